//! Mistakes in the configuration, as a person at the command line meets them.

use crate::support::procs::{call, seckill};

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
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("admin.listen={}", taken.local_addr().unwrap());
    let (code, _, stderr) = call(&["--set", &listen, "--role", "relay"]);
    assert!(code == Some(64) && stderr.contains("admin.listen"), "{code:?} {stderr}");
}
