//! Mistakes in the configuration, as a person at the command line meets them.

use crate::support::processes::programs::{Folder, call, seckill};
use serde_json::Value;

#[test]
fn mistakes_in_the_configuration_end_with_64_and_name_the_key() {
    let mistakes: [(&[&str], &str); 9] = [
        (&["--set", "p3_relay.window=3"], "window"),
        (&["--set", "http.listen=here"], "http.listen"),
        (&["--set", "p2_reserve.group_max=0", "config", "check"], "p2_reserve.group_max"),
        (&["--config", "/nowhere.toml", "audit"], "/nowhere.toml"),
        (&["--role", "chef"], "--role"),
        (&["--role", "api", "--set", "admin.listen=127.0.0.1:0", "--set", "http.listen=127.0.0.1:0"], "auth.secret"),
        (&["--role", "relay", "dev"], "--role"),
        (&["dev", "--keep", "--fresh"], "--fresh"),
        (&["sale", "create", "--id", "no spaces"], "--id"),
    ];
    for (args, key) in mistakes {
        let (code, stdout, stderr) = call(args);
        assert!(code == Some(64) && stderr.contains(key) && stdout.is_empty(), "{args:?}: {code:?} {stderr}");
    }
    let output = seckill(&["config", "check"]).env("SECKILL__P3_RELAY__WINDOW_MAX", "many").output().unwrap();
    assert_eq!(output.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&output.stderr).contains("window_max"), "{output:?}");
    let output = seckill(&["config", "show", "--json"]).env("SECKILL__AUTH__ISSUER", "1.0").output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown["auth"]["issuer"], "1.0", "a text that could be a number arrives as it is");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("admin.listen={}", taken.local_addr().unwrap());
    let (code, _, stderr) = call(&["--set", &listen, "--role", "relay"]);
    // Not 64, which keeps systemd from trying again: the next start may find the address free.
    assert!(code == Some(1) && stderr.contains("admin.listen"), "{code:?} {stderr}");
}

/// Each of the three was fine to `config check` once, and a consumer with such a `mysql.url` ran for ever.
#[test]
fn an_address_that_cannot_be_read_ends_every_role_and_shows_nothing_of_its_password() {
    for (key, url) in [
        ("redis.url", "redis://:hunter#2@127.0.0.1:1"),
        ("redis.url", "redis://:p@ss/hunter@127.0.0.1:1"),
        ("rabbitmq.url", "amqp://u:12?hunter@127.0.0.1:1/v"),
        ("mysql.url", "mysql://root:hunter#2@127.0.0.1:1/s"),
        ("mysql.url", "mysql://root:12/hunter@127.0.0.1:1/s"),
    ] {
        let set = format!("{key}={url}");
        let role = ["--set", &set, "--set", "admin.listen=127.0.0.1:0", "--role", "consumer"];
        for args in [&["--set", &set, "config", "check"][..], &["--set", &set, "config", "show"], &role] {
            let (code, stdout, stderr) = call(args);
            assert!(code == Some(64) && stderr.contains(&format!("{key}: ")), "{args:?}: {code:?} {stderr}");
            assert!(!format!("{stdout}{stderr}").contains("hunter"), "{args:?}: {stdout}{stderr}");
        }
    }
    let parameter = ["--set", "mysql.url=mysql://root@127.0.0.1:1/s?hunter=2", "--set", "admin.listen=127.0.0.1:0"];
    let (code, _, stderr) = call(&[&parameter[..], &["--role", "consumer"]].concat());
    assert!(code == Some(64) && stderr.contains("mysql.url: ") && !stderr.contains("hunter"), "{code:?} {stderr}");
    let (code, _, stderr) = call(&["--set", "admin.token=a-token-of-32-bytes-or-even-more\n", "config", "check"]);
    assert!(code == Some(64) && stderr.contains("admin.token: begins or ends"), "{code:?} {stderr}");
}

/// What `config show --json` prints of `p3_relay.window_max` and `redis.url`, with these arguments and this environment.
fn in_effect(args: &[&str], env: &[(&str, &str)]) -> (Value, String) {
    let output = seckill(args).args(["config", "show", "--json"]).envs(env.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    (shown["p3_relay"]["window_max"].clone(), shown["redis"]["url"].as_str().unwrap().to_owned())
}

/// Row F2: defaults, then files in their order, then the environment, then flags; the last one that names a key decides.
#[test]
fn a_flag_overrides_the_environment_which_overrides_the_files_which_override_the_defaults() {
    let folder = Folder::new("layers");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let first = file("first.toml", "[p3_relay]\nwindow_max = 101\n[redis]\nurl = \"redis://file:1\"\n");
    let second = file("second.toml", "[p3_relay]\nwindow_max = 102\n");
    let variable = [("SECKILL__P3_RELAY__WINDOW_MAX", "103")];
    let flag = ["--set", "p3_relay.window_max=104"];
    let defaults = in_effect(&[], &[]);
    assert!(![101, 102, 103, 104].map(Value::from).contains(&defaults.0), "the layers are distinct: {defaults:?}");

    let files = ["--config", &first, "--config", &second];
    let shown = |args: &[&str], env: &[(&str, &str)]| in_effect(args, env).0;
    assert_eq!(shown(&files[..2], &[]), 101, "a file over the defaults");
    assert_eq!(shown(&files, &[]), 102, "a later file over an earlier one");
    assert_eq!(shown(&files, &variable), 103, "the environment over the files");
    assert_eq!(shown(&[&files[..], &flag].concat(), &variable), 104, "a flag over the environment");
    assert_eq!(shown(&flag, &[]), 104, "a flag over the defaults");

    let url = |args: &[&str], env: &[(&str, &str)]| in_effect(args, env).1;
    assert_eq!(url(&files, &[]), "redis://file:1", "what the second file does not name stays");
    let short = [("SECKILL_REDIS_URL", "redis://short:1")];
    assert_eq!(url(&files, &short), "redis://short:1", "the short variable over the files");
    let both = [short[0], ("SECKILL__REDIS__URL", "redis://long:1")];
    assert_eq!(url(&[], &both), "redis://short:1", "the short variable over the long one");
    assert_eq!(url(&["--set", "redis.url=redis://flag:1"], &both), "redis://flag:1", "a flag over both");
}
