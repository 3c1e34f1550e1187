//! haproxy on each host: one address for the database, whichever host's server is written to, and one for RabbitMQ. And haproxy in
//! front of the hosts: one address for buyers, whichever host's api is ready. Both run on the files of `deploy/three-hosts`.

use crate::host::Host;
use crate::network::{NUMBERS, Number, OUTSIDE, address, command_on};
use crate::servers::{Kind, kind};
use seckill::dev::Child;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// On loopback of each host.
pub const DATABASE_PORT: u16 = 3_307;
/// On loopback of each host.
pub const BROKER_PORT: u16 = 5_673;

/// In front of the hosts.
const FRONT_PORT: u16 = 8_000;

/// As they are given to users.
const FRONT: &str = include_str!("../../../deploy/three-hosts/haproxy.cfg");
const ON_HOST: &str = include_str!("../../../deploy/three-hosts/haproxy-host.cfg");
const GALERA_CHECK: &str = include_str!("../../../deploy/three-hosts/galera-check.sh");
/// Who asks the nodes: here without a password.
const GALERA_LOGIN: &str = "[client]\nuser = root\n";

/// The same for a server that is written to, or not.
const WRITER_CHECK: &str = "#!/bin/sh\n\
    state=$(timeout 1 mariadb --no-defaults -h \"$3\" -P \"$4\" -u root --connect-timeout=1 -N -e 'SELECT @@read_only') || exit 1\n\
    case $state in 0 | OFF) exit 0 ;; *) exit 1 ;; esac\n";

/// Those of `first`, then the others.
pub fn in_turn(first: Number) -> Vec<Number> {
    let others = NUMBERS.into_iter().filter(|number| *number != first);
    std::iter::once(first).chain(others).collect()
}

/// Gives haproxy a file, and the environment that says where the hosts are.
fn with_file(command: &mut Command, file: &Path) {
    command.args(["-db", "-f"]).arg(file);
    for number in NUMBERS {
        command.env(format!("HOST_{number}"), address(number));
    }
}

/// Starts a host's balancer.
pub async fn start(host: &Arc<Host>) {
    use std::os::unix::fs::PermissionsExt;
    let dir = host.folder("haproxy");
    let (check, file) = (dir.join("check.sh"), dir.join("haproxy.cfg"));
    let check_text = match kind() {
        Kind::Clusters => GALERA_CHECK,
        Kind::Replicas => WRITER_CHECK,
    };
    for (path, text) in [(&check, check_text), (&file, ON_HOST), (&dir.join("galera-check.cnf"), GALERA_LOGIN)] {
        std::fs::write(path, text).expect("written");
    }
    std::fs::set_permissions(&check, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let number = host.number();
    host.run(
        "haproxy",
        Box::new(move || {
            let mut command = command_on(number);
            command.arg("haproxy");
            with_file(&mut command, &file);
            command.env("HOST_OWN", address(number)).env("CHECK", &check);
            command
        }),
    )
    .await;
}

/// `http://…` of the balancer in front of the hosts.
pub fn front() -> String {
    format!("http://{OUTSIDE}:{FRONT_PORT}")
}

/// Where it writes which api goes out of service and comes back.
pub fn front_log() -> PathBuf {
    crate::folder().join("front.log")
}

/// Starts it.
pub async fn start_front() -> Child {
    let file = crate::folder().join("front.cfg");
    std::fs::write(&file, FRONT).expect("written");
    let mut command = Command::new("haproxy");
    with_file(&mut command, &file);
    command.env("LISTEN", format!("{OUTSIDE}:{FRONT_PORT}"));
    Child::spawn("haproxy", command, &front_log()).await.expect("a balancer")
}
