//! The roles of the product on each host, a process each, and its commands on a host.

use crate::host::Host;
use crate::network::{NUMBERS, Number, address, command_on};
use crate::servers::balancer::in_turn;
use crate::servers::{Kind, balancer, galera, kind, rabbit, redis, sentinel};
use crate::time::QUICK;
use crate::{asked, status_and_body};
use seckill::roles::Role;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Key prefix of everything.
pub const PREFIX: &str = "hosts";
/// Parts of each sale; every host's primary has at least one of them.
pub const SHARDS: u16 = 4;
/// `p5_reconcile.window_ms`.
pub const WINDOW_MS: u64 = 10_000;
/// Where an api is, on its host's address.
pub const API_PORT: u16 = 8_080;
const FIRST_ADMIN_PORT: u16 = 9_090;
const CALL: Duration = Duration::from_secs(60);

/// On top of the quick settings: attempts that outlast the faults, retries that come soon after them, and what three hosts need.
const OWN: [&str; 8] = [
    "p3_relay.attempts_max=60",
    "p3_relay.backoff_max_ms=1000",
    "p4_persist.attempts_max=60",
    "p4_persist.retry_delay_max_ms=1000",
    "runtime.drain_ms=3000",
    "http.workers_count=1",
    "redis.wait_replicas=1",
    "log.level=info",
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

/// Settings of every process, but for its addresses.
fn settings() -> Vec<String> {
    let mut set: Vec<String> = QUICK.into_iter().chain(OWN).map(str::to_owned).collect();
    let (mode, url) = match kind() {
        Kind::Clusters => ("cluster", redis::url()),
        Kind::Replicas => ("sentinel", sentinel::url()),
    };
    set.extend([
        format!("redis.mode={mode}"),
        format!("redis.url={url}"),
        format!("redis.shards={SHARDS}"),
        format!("redis.prefix={PREFIX}"),
        format!("rabbitmq.prefix={PREFIX}"),
        format!("p5_reconcile.window_ms={WINDOW_MS}"),
    ]);
    set
}

/// `auth.secret`.
pub fn secret() -> String {
    let set = settings();
    set.iter().rev().find_map(|set| set.strip_prefix("auth.secret=")).expect("among the quick settings").to_owned()
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
    command.arg(crate::folder().join("seckill"));
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
