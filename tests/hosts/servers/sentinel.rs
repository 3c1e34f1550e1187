//! One Redis primary with two replicas, one server a host, and a sentinel on each host.

use super::redis::{ANSWER, durable};
use crate::host::Host;
use crate::network::{NUMBERS, Number, address, command_on};
use crate::raw_commands::try_redis;
use crate::time::eventually;
use serde_json::Value;
use std::io;
use std::sync::Arc;

const PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;
const SERVICE: &str = "seckill";
/// The host whose server begins as the primary: not the one with the database.
const FIRST: Number = 3;

/// `redis.url`.
pub fn url() -> String {
    let at = |number| format!("{}:{SENTINEL_PORT}", address(number));
    format!("redis-sentinel://{}?node={}&node={}&sentinelServiceName={SERVICE}", at(1), at(2), at(3))
}

fn url_of(host: Number) -> String {
    format!("redis://{}:{PORT}", address(host))
}

async fn call(host: Number, words: &[&str]) -> io::Result<Value> {
    let url = url_of(host);
    tokio::time::timeout(ANSWER, try_redis(&url, words)).await.map_err(io::Error::from)?
}

/// Starts a host's server and sentinel.
pub async fn start(host: &Arc<Host>) {
    let mut data: Vec<String> = durable().collect();
    data.push(format!("port {PORT}"));
    if host.number() != FIRST {
        data.push(format!("replicaof {} {PORT}", address(FIRST)));
    }
    run(host, "redis", data, &[]).await;
    let watch = vec![
        "protected-mode no".to_owned(),
        format!("port {SENTINEL_PORT}"),
        format!("sentinel monitor {SERVICE} {} {PORT} 2", address(FIRST)),
        format!("sentinel down-after-milliseconds {SERVICE} 3000"),
        format!("sentinel failover-timeout {SERVICE} 6000"),
    ];
    run(host, "sentinel", watch, &["--sentinel"]).await;
}

async fn run(host: &Arc<Host>, name: &str, mut lines: Vec<String>, more: &'static [&'static str]) {
    let dir = host.folder(name);
    lines.extend([format!("bind {}", host.address()), format!("dir {}", dir.display())]);
    let (file, number) = (dir.join("redis.conf"), host.number());
    std::fs::write(&file, lines.join("\n") + "\n").expect("a settings file");
    let recipe = move || {
        let mut command = command_on(number);
        command.arg("redis-server").arg(&file).args(more);
        command
    };
    host.run(name, Box::new(recipe)).await;
}

/// The host with the primary, as most sentinels say and as it says itself.
pub async fn primary() -> Option<Number> {
    let mut named = Vec::new();
    for host in NUMBERS {
        let sentinel = format!("redis://{}:{SENTINEL_PORT}", address(host));
        let asked = try_redis(&sentinel, &["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]);
        if let Ok(Ok(answer)) = tokio::time::timeout(ANSWER, asked).await {
            named.push(answer[0].as_str().map(str::to_owned));
        }
    }
    for host in NUMBERS {
        let votes = named.iter().flatten().filter(|at| **at == address(host)).count();
        let info = call(host, &["INFO", "replication"]).await.unwrap_or_default();
        if votes >= 2 && info.as_str().is_some_and(|text| text.contains("role:master")) {
            return Some(host);
        }
    }
    None
}

/// `redis://…` of the primary.
pub async fn primary_url() -> String {
    url_of(primary().await.expect("a primary"))
}

/// What keeps the set from being whole, if anything.
pub async fn lacks() -> Option<String> {
    let Some(host) = primary().await else { return Some("redis has no primary".to_owned()) };
    let info = call(host, &["INFO", "replication"]).await.unwrap_or_default();
    let text = info.as_str().unwrap_or_default();
    (text.matches("state=online").count() != 2).then(|| format!("redis on host {host}: {text}"))
}

/// Waits for all of them.
pub async fn join() {
    eventually("a whole set", async || lacks().await.is_none()).await;
}
