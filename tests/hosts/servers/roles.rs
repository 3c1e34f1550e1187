//! The roles of the product on each host, a process each, and its commands on a host.
//!
//! Their settings are the shipped files, `config/production.toml` and `deploy/three-hosts/seckill.toml`, as the compose file gives
//! them; only what is in [`settings`] differs.

use crate::host::Host;
use crate::network::{NUMBERS, Number, address, command_on};
use crate::servers::balancer::in_turn;
use crate::servers::{Kind, balancer, galera, kind, rabbit, redis, sentinel};
use crate::{asked, status_and_body};
use seckill::roles::Role;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Key prefix of everything.
pub const PREFIX: &str = "hosts";
/// Parts of each sale; every host's primary has at least one of them.
pub const SHARDS: u16 = 4;
/// `admin.token`, with which the shop's backend reports payments.
pub const ADMIN_TOKEN: &str = "test-admin-token-of-three-hosts-with-32-bytes";
/// `auth.secret`.
const SECRET: &str = "test-access-secret-of-32-bytes-or-more";
/// Where an api is, on its host's address.
const API_PORT: u16 = 8_080;
const FIRST_ADMIN_PORT: u16 = 9_090;
const CALL: Duration = Duration::from_secs(60);

/// Copies of the shipped files in the run's folder (`scripts/hosts.sh`), the second on top of the first.
const SHIPPED: [&str; 2] = ["production.toml", "three-hosts.toml"];

/// What differs from them beside names and addresses. `docs/proof.md` lists it, with the reasons.
const OWN: [&str; 6] = [
    "p1_entry.token_secret=test-purchase-secret-of-32-bytes-or-more",
    // Longer than a relay needs to take over what another one left, so that P5 does not do it first.
    "p5_reconcile.window_ms=15000",
    "p5_reconcile.interval_ms=1000",
    "rabbitmq.queues=1",
    "http.workers_count=1",
    "log.format=text",
];

/// Whether the roles reach the broker and the database through their host's haproxy, and buyers the apis through one in front of
/// the hosts; by lists of addresses else.
pub fn through_balancers() -> bool {
    asked::<String>("HOSTS_WAY").is_some_and(|way| way == "balancer")
}

/// Where the broker and the database are, for a process on this host.
fn addresses(number: Number) -> [String; 2] {
    if through_balancers() {
        return [
            format!("rabbitmq.url=amqp://guest:guest@127.0.0.1:{}/%2f", balancer::BROKER_PORT),
            format!("mysql.url=mysql://seckill@127.0.0.1:{}/seckill?prefer_socket=false", balancer::DATABASE_PORT),
        ];
    }
    let broker = |at: &Number| format!("amqp://guest:guest@{}:{}/%2f", address(*at), rabbit::PORT);
    let database =
        |at: &Number| format!("mysql://seckill@{}:{}/seckill?prefer_socket=false", address(*at), galera::PORT);
    let brokers: Vec<String> = in_turn(number).iter().map(broker).collect();
    let databases: Vec<String> = in_turn(galera::WRITER).iter().map(database).collect();
    [format!("rabbitmq.urls={}", brokers.join(",")), format!("mysql.urls={}", databases.join(","))]
}

/// What every process is given on top of the shipped files, but for its addresses.
fn settings() -> Vec<String> {
    let mut set = OWN.map(str::to_owned).to_vec();
    let (mode, url) = match kind() {
        Kind::Clusters => ("cluster", redis::url()),
        Kind::Replicas => ("sentinel", sentinel::url()),
    };
    set.extend([
        format!("auth.secret={SECRET}"),
        format!("admin.token={ADMIN_TOKEN}"),
        format!("redis.mode={mode}"),
        format!("redis.url={url}"),
        format!("redis.shards={SHARDS}"),
        format!("redis.prefix={PREFIX}"),
        format!("rabbitmq.prefix={PREFIX}"),
    ]);
    set
}

/// `auth.secret`.
pub fn secret() -> String {
    SECRET.to_owned()
}

/// Where buyers reach the apis, but for those of the hosts that are `gone`: a balancer finds that out by itself.
pub fn apis(gone: &[Number]) -> Vec<String> {
    if through_balancers() {
        return vec![balancer::front()];
    }
    let there = NUMBERS.into_iter().filter(|number| !gone.contains(number));
    there.map(|number| format!("http://{}:{API_PORT}", address(number))).collect()
}

/// Where a role's admin port is on a host.
pub fn admin_address(number: Number, role: Role) -> String {
    let at = Role::ALL.iter().position(|one| *one == role).and_then(|at| u16::try_from(at).ok()).expect("a role");
    format!("{}:{}", address(number), FIRST_ADMIN_PORT + at)
}

/// The binary on a host.
fn program(number: Number, sets: &[String]) -> Command {
    let mut command = command_on(number);
    if let Some(traces) = crate::traces_folder() {
        std::fs::create_dir_all(&traces).expect("a folder");
        command.env("SECKILL_TRACE", traces);
    }
    command.arg(crate::folder().join("seckill"));
    for file in SHIPPED {
        command.arg("--config").arg(crate::folder().join(file));
    }
    for set in sets {
        command.arg("--set").arg(set);
    }
    command
}

/// Starts a host's four processes.
pub async fn start(host: &Arc<Host>) {
    let number = host.number();
    for role in Role::ALL {
        let mut sets = settings();
        sets.extend(addresses(number));
        sets.extend([
            format!("runtime.node={}-host{number}", role.name()),
            format!("admin.listen={}", admin_address(number, role)),
            format!("http.listen={}:{API_PORT}", address(number)),
        ]);
        host.run(
            role.name(),
            Box::new(move || {
                let mut command = program(number, &sets);
                command.args(["--role", role.name()]);
                command
            }),
        )
        .await;
    }
}

/// Runs a command of the product on a host: exit code, and what it prints.
pub async fn call(number: Number, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command = program(number, &[settings(), addresses(number).to_vec()].concat());
    command.args(["--data-dir", "/nonexistent"]).args(args);
    let output = tokio::process::Command::from(command).kill_on_drop(true).output();
    let Ok(output) = tokio::time::timeout(CALL, output).await else {
        return (None, String::new(), format!("{args:?} takes too long"));
    };
    let output = output.expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// The same, and it must succeed.
pub async fn must_call(number: Number, args: &[&str]) -> String {
    let (code, out, err) = call(number, args).await;
    assert_eq!(code, Some(0), "{args:?}: {out}{err}");
    out
}

/// What keeps the roles from being whole, if anything.
pub async fn lacks(http: &reqwest::Client) -> Option<String> {
    for number in NUMBERS {
        for role in Role::ALL {
            let request = http.get(format!("http://{}/readyz", admin_address(number, role)));
            let (status, body) = status_and_body(request).await;
            // Ready is a process also while a server is away; whole it is with all of them.
            if status != 200 || body.to_string().contains("\"ok\":false") {
                return Some(format!("{} on host {number} is not whole: {status} {body}", role.name()));
            }
        }
    }
    None
}
