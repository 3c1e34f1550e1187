//! haproxy on each host: one address for the database, whichever host's server is written to, and one for RabbitMQ. And haproxy in
//! front of the hosts: one address for buyers, whichever host's api is ready.
//!
//! A server is asked what it is, not only whether its port answers: a frozen one takes connections, and a Galera node without
//! the majority greets and then refuses every statement. Connections to a server that is given up are ended, so that no client
//! waits on them.

use crate::host::Host;
use crate::network::{NUMBERS, Number, OUTSIDE, address, command_on};
use crate::servers::roles::{self, API_PORT};
use crate::servers::{Kind, galera, kind, rabbit};
use seckill::dev::Child;
use std::process::Command;
use std::sync::Arc;

/// On loopback of each host.
pub const DATABASE_PORT: u16 = 3_307;
/// On loopback of each host.
pub const BROKER_PORT: u16 = 5_673;

/// In front of the hosts.
const FRONT_PORT: u16 = 8_000;

/// haproxy's own arguments: ADDRESS PORT of the balancer, ADDRESS PORT of the server.
const GALERA_CHECK: &str = "#!/bin/sh\n\
    state=$(timeout 1 mariadb --no-defaults -h \"$3\" -P \"$4\" -u root --connect-timeout=1 -N -e \
    \"SHOW STATUS LIKE 'wsrep_local_state_comment'; SHOW STATUS LIKE 'wsrep_ready'\") || exit 1\n\
    case $state in *Synced*ON*) exit 0 ;; *) exit 1 ;; esac\n";

/// The same for a server that is written to, or not.
const WRITER_CHECK: &str = "#!/bin/sh\n\
    state=$(timeout 1 mariadb --no-defaults -h \"$3\" -P \"$4\" -u root --connect-timeout=1 -N -e 'SELECT @@read_only') || exit 1\n\
    case $state in 0 | OFF) exit 0 ;; *) exit 1 ;; esac\n";

/// Those of `first`, then the others.
pub fn in_turn(first: Number) -> Vec<Number> {
    let others = NUMBERS.into_iter().filter(|number| *number != first);
    std::iter::once(first).chain(others).collect()
}

fn servers(order: &[Number], port: u16, rest: &str) -> String {
    let line = |(at, number): (usize, &Number)| {
        let backup = if at == 0 { "" } else { " backup" };
        format!("    server host{number} {}:{port} {rest}{backup}\n", address(*number))
    };
    order.iter().enumerate().map(line).collect()
}

fn config(number: Number, check: &str) -> String {
    let quick =
        "check inter 700ms fall 2 rise 2 on-marked-down shutdown-sessions on-marked-up shutdown-backup-sessions";
    let broker = "check inter 700ms fall 2 rise 2 on-marked-down shutdown-sessions";
    format!(
        "global\n    maxconn 2000\n    external-check\n    insecure-fork-wanted\n    nbthread 1\n\
         defaults\n    mode tcp\n    timeout connect 1s\n    timeout client 1h\n    timeout server 1h\n    timeout check 1500ms\n\
         listen database\n    bind 127.0.0.1:{DATABASE_PORT}\n    option external-check\n\
         \x20   external-check path /usr/sbin:/usr/bin:/bin\n    external-check command {check}\n{}\
         listen broker\n    bind 127.0.0.1:{BROKER_PORT}\n    option tcp-check\n\
         \x20   tcp-check send-binary 414d515000000901\n    tcp-check expect binary 01\n{}",
        servers(&in_turn(galera::WRITER), galera::PORT, quick),
        servers(&in_turn(number), rabbit::PORT, broker),
    )
}

/// Starts a host's balancer.
pub async fn start(host: &Arc<Host>) {
    use std::os::unix::fs::PermissionsExt;
    let dir = host.folder("haproxy");
    let (check, file) = (dir.join("check.sh"), dir.join("haproxy.cfg"));
    let text = match kind() {
        Kind::Clusters => GALERA_CHECK,
        Kind::Replicas => WRITER_CHECK,
    };
    std::fs::write(&check, text).expect("written");
    std::fs::set_permissions(&check, std::fs::Permissions::from_mode(0o755)).expect("executable");
    std::fs::write(&file, config(host.number(), &check.display().to_string())).expect("written");
    let number = host.number();
    host.run(
        "haproxy",
        Box::new(move || {
            let mut command = command_on(number);
            command.args(["haproxy", "-db", "-f"]).arg(&file);
            command
        }),
    )
    .await;
}

/// `http://…` of the balancer in front of the hosts.
pub fn front() -> String {
    format!("http://{OUTSIDE}:{FRONT_PORT}")
}

/// An api is in service while it says that it is ready. What is under way to one that is not is waited for: an end of its connection
/// would say 503, and so that nothing was done.
fn front_config() -> String {
    let server = |number: Number| {
        let (check, at) = (roles::admin_address(number, seckill::roles::Role::Api), address(number));
        let (check_at, check_port) = check.rsplit_once(':').expect("a port");
        format!(
            "    server host{number} {at}:{API_PORT} check addr {check_at} port {check_port} inter 700ms fall 2 rise 2\n"
        )
    };
    format!(
        "global\n    maxconn 2000\n    nbthread 1\n\
         defaults\n    mode http\n    timeout connect 1s\n    timeout client 30s\n    timeout server 30s\n    timeout check 1500ms\n\
         \x20   retries 2\n    option redispatch 1\n\
         listen buyers\n    bind {OUTSIDE}:{FRONT_PORT}\n    option httpchk GET /readyz\n{}",
        NUMBERS.map(server).concat()
    )
}

/// Starts it.
pub async fn start_front() -> Child {
    let file = crate::folder().join("front.cfg");
    std::fs::write(&file, front_config()).expect("written");
    let mut command = Command::new("haproxy");
    command.args(["-db", "-f"]).arg(&file);
    Child::spawn("haproxy", command, &crate::folder().join("front.log")).await.expect("a balancer")
}
