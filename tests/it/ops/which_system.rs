//! Which system a command works on: what was named goes before a running local stack, and the
//! command says which it is. No server is needed: the address that does not answer is in the error.

use crate::support::processes::programs::{scratch, seckill};
use serde_json::json;
use std::path::Path;

/// The running stack's Redis is at port 1.
fn folder_of_a_running_stack() -> std::path::PathBuf {
    let folder = scratch("which_system");
    let state = json!({
        "api": "http://127.0.0.1:1",
        "admin": "http://127.0.0.1:1",
        "admins": {},
        "redis_url": "redis://127.0.0.1:1",
        "amqp_url": "amqp://guest:guest@127.0.0.1:1/%2f",
        "mysql_url": "mysql://root@127.0.0.1:1/seckill",
        "admin_token": "of-the-stack-and-of-32-bytes-or-more",
        "jwt_secret": "of-the-stack-and-of-32-bytes-or-more",
        "pids": { "api": std::process::id() },
        "config": [],
        "set": [],
    });
    std::fs::write(folder.join("dev.json"), state.to_string()).unwrap();
    folder
}

/// What `seckill audit` says of the Redis that it did not find, and of the system.
fn audit(data_dir: &Path, args: &[&str], env: &[(&str, &str)]) -> String {
    let mut command = seckill(&["--data-dir", data_dir.to_str().unwrap()]);
    command.args(args).arg("audit").envs(env.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{said}");
    said
}

#[test]
fn a_named_configuration_or_server_goes_before_a_running_stack() {
    let folder = folder_of_a_running_stack();
    let config = folder.join("own.toml");
    let text = "[redis]\nurl = \"redis://127.0.0.1:2\"\n[auth]\nsecret = \"a-secret-of-this-test-with-32-bytes\"\n[p1_entry]\ntoken_secret = \"another-secret-of-this-test-32-bytes\"\n";
    std::fs::write(&config, text).unwrap();
    let config = config.to_str().unwrap();
    let secrets = [
        ("SECKILL__AUTH__SECRET", "a-secret-of-this-test-with-32-bytes"),
        ("SECKILL__P1_ENTRY__TOKEN_SECRET", "another-secret-of-this-test-32-bytes"),
    ];
    for variable in ["SECKILL_REDIS_URL", "SECKILL__REDIS__URL"] {
        let said = audit(&folder, &[], &[&secrets[..], &[(variable, "redis://127.0.0.1:3")]].concat());
        assert!(
            said.contains("redis at redis://127.0.0.1:3 ") && said.contains("system of the configuration"),
            "{said}"
        );
    }
    let said = audit(&folder, &["--config", config], &[]);
    assert!(said.contains("redis at redis://127.0.0.1:2 ") && said.contains("system of the configuration"), "{said}");
    let said = audit(&folder, &[], &[]);
    assert!(said.contains("redis at redis://127.0.0.1:1 ") && said.contains("the local stack in"), "{said}");
}
