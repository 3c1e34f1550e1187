//! Redis Cluster: a primary on each host, and a replica of each primary on the two other hosts.
//!
//! Group g (1 to 3) begins with its primary on host g. Its nodes have the port 7000 + g on each host, so an address names host
//! and group.

use crate::host::Host;
use crate::network::{NUMBERS, Number, address, command_on};
use crate::raw_commands::try_redis;
use crate::time::{eventually, pause};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;

const SLOTS: u16 = 16_384;
const FIRST_PORT: u16 = 7_000;
pub(super) const ANSWER: Duration = Duration::from_secs(2);
/// A replica elected now is not ordered to hand over before this has passed: see `tests/support/processes/redis_sets/cluster.rs`.
pub const REST: Duration = Duration::from_secs(14);

/// Of every node, as they are given to users.
const SETTINGS: &str = include_str!("../../../deploy/three-hosts/redis.conf");
/// The clients come from other hosts.
const OPEN: &str = "protected-mode no";

/// Settings of every server that is not of a cluster, too.
pub(super) fn durable() -> impl Iterator<Item = String> {
    settings().filter(|line| !line.starts_with("cluster-"))
}

fn settings() -> impl Iterator<Item = String> {
    let lines = SETTINGS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.chain([OPEN]).map(str::to_owned)
}

/// The port of a group's nodes.
pub fn port(group: Number) -> u16 {
    FIRST_PORT + u16::from(group)
}

/// `redis.url`.
pub fn url() -> String {
    let at = |number| format!("{}:{}", address(number), port(number));
    format!("redis-cluster://{}?node={}&node={}", at(1), at(2), at(3))
}

fn url_of(host: Number, group: Number) -> String {
    format!("redis://{}:{}", address(host), port(group))
}

async fn call(host: Number, group: Number, words: &[&str]) -> io::Result<Value> {
    let url = url_of(host, group);
    tokio::time::timeout(ANSWER, try_redis(&url, words)).await.map_err(io::Error::from)?
}

async fn must(host: Number, group: Number, words: &[&str]) -> Value {
    call(host, group, words).await.unwrap_or_else(|error| panic!("redis {group} on host {host}, {words:?}: {error}"))
}

/// Starts a host's three nodes.
pub async fn start(host: &Arc<Host>) {
    for group in NUMBERS {
        let dir = host.folder(&format!("redis{group}"));
        let mut lines: Vec<String> = settings().collect();
        lines.extend([
            format!("bind {}", host.address()),
            format!("port {}", port(group)),
            format!("dir {}", dir.display()),
        ]);
        let file = dir.join("redis.conf");
        std::fs::write(&file, lines.join("\n") + "\n").expect("a settings file");
        let number = host.number();
        host.run(
            &format!("redis{group}"),
            Box::new(move || {
                let mut command = command_on(number);
                command.arg("redis-server").arg(&file);
                command
            }),
        )
        .await;
    }
}

/// Makes one cluster of all nodes.
pub async fn join() {
    for host in NUMBERS {
        for group in NUMBERS {
            eventually("a node answers", async || call(host, group, &["PING"]).await.is_ok()).await;
            let epoch = (3 * (group - 1) + host).to_string();
            must(host, group, &["CLUSTER", "SET-CONFIG-EPOCH", &epoch]).await;
        }
        let (first, next) = (SLOTS / 3 * u16::from(host - 1), SLOTS / 3 * u16::from(host));
        let last = if host == 3 { SLOTS - 1 } else { next - 1 };
        must(host, host, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]).await;
    }
    for host in NUMBERS {
        for group in NUMBERS {
            must(1, 1, &["CLUSTER", "MEET", &address(host), &port(group).to_string()]).await;
        }
    }
    for group in NUMBERS {
        let id = must(group, group, &["CLUSTER", "MYID"]).await;
        let id = id.as_str().expect("an id").to_owned();
        for host in NUMBERS.into_iter().filter(|host| *host != group) {
            let replicate = ["CLUSTER", "REPLICATE", &id];
            eventually("a replica of a node it knows", async || call(host, group, &replicate).await.is_ok()).await;
        }
    }
}

/// The group that has a shard.
pub async fn group_of_shard(shard: u16) -> Number {
    let slot = must(1, 1, &["CLUSTER", "KEYSLOT", &format!("{{{shard}}}")]).await.as_u64().expect("a slot");
    let each = u64::from(SLOTS / 3);
    u8::try_from((slot / each).min(2) + 1).expect("a group")
}

/// A field of INFO replication.
async fn replication(host: Number, group: Number) -> Option<String> {
    let text = call(host, group, &["INFO", "replication"]).await.ok()?;
    text.as_str().map(str::to_owned)
}

/// The host with a group's primary; of two that believe it, the one that most nodes name.
pub async fn primary_of(group: Number) -> Option<Number> {
    let mut claims = Vec::new();
    for host in NUMBERS {
        if replication(host, group).await.is_some_and(|text| text.contains("role:master")) {
            claims.push(host);
        }
    }
    if claims.len() < 2 {
        return claims.first().copied();
    }
    let view = call(claims[0], group, &["CLUSTER", "NODES"]).await.ok()?;
    let view = view.as_str()?.to_owned();
    claims.into_iter().find(|host| {
        let at = format!("{}:{}@", address(*host), port(group));
        view.lines().any(|line| line.contains(&at) && line.contains("master") && line.split(' ').count() > 8)
    })
}

/// `redis://…` of the three primaries, separated by commas.
pub async fn primaries() -> String {
    let mut urls = Vec::new();
    for group in NUMBERS {
        let host = primary_of(group).await.unwrap_or_else(|| panic!("group {group} has no primary"));
        urls.push(url_of(host, group));
    }
    urls.join(",")
}

/// What keeps the cluster from being whole, if anything: a node that is away or finds another one away, or a replica behind.
pub async fn lacks() -> Option<String> {
    for host in NUMBERS {
        for group in NUMBERS {
            let Ok(nodes) = call(host, group, &["CLUSTER", "NODES"]).await else {
                return Some(format!("redis {group} on host {host} does not answer"));
            };
            let nodes = nodes.as_str().unwrap_or_default().to_owned();
            let ill = nodes.lines().find(|line| line.contains("fail") || line.contains("handshake"));
            if let Some(ill) = ill {
                return Some(format!("redis {group} on host {host} says {ill}"));
            }
            let Some(text) = replication(host, group).await else { return Some("no INFO".to_owned()) };
            let well = if text.contains("role:master") {
                text.matches("state=online").count() == 2
            } else {
                text.contains("master_link_status:up")
            };
            if !well {
                return Some(format!("redis {group} on host {host}: {text}"));
            }
        }
    }
    None
}

/// Gives every group's primary back to its own host. Call it when the cluster is whole: with two primaries on one host the loss
/// of that host would leave no majority to elect others.
pub async fn hand_back(group: Number) -> bool {
    match primary_of(group).await {
        Some(host) if host == group => true,
        Some(_) => {
            drop(call(group, group, &["CLUSTER", "FAILOVER"]).await);
            for _round in 0..100 {
                if primary_of(group).await == Some(group) {
                    return true;
                }
                pause().await;
            }
            false
        }
        None => false,
    }
}

/// The addresses that replicas have their links to this node from.
pub async fn replica_links(host: Number, group: Number) -> Vec<String> {
    let listed = call(host, group, &["CLIENT", "LIST", "TYPE", "REPLICA"]).await.unwrap_or_default();
    let addresses = listed
        .as_str()
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.split(' ').find_map(|field| field.strip_prefix("addr=")).map(str::to_owned));
    addresses.collect()
}
