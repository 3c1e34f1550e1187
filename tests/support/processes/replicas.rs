//! A primary and a replica of Redis that one test has for itself.

use super::own_redis;
use crate::support::basics::resp::RawRedis;
use crate::support::world::eventually;
use seckill::dev::Server;

/// A primary and a replica that is in step with it.
pub async fn pair(name: &str) -> (Server, Server) {
    let primary = own_redis::start(&format!("{name}-primary")).await;
    let replica = own_redis::start(&format!("{name}-replica")).await;
    RawRedis::at(&primary.url(), "").await.call(&["CONFIG", "SET", "repl-diskless-sync-delay", "0"]).await;
    let port = primary.port().to_string();
    RawRedis::at(&replica.url(), "").await.call(&["REPLICAOF", "127.0.0.1", &port]).await;
    in_step(&replica).await;
    (primary, replica)
}

/// Waits until the replica has everything that its primary has written.
pub async fn has_everything(primary: &Server, replica: &Server) {
    in_step(replica).await;
    let offset = async |server: &Server| {
        let info = RawRedis::at(&server.url(), "").await.call(&["INFO", "replication"]).await.text();
        info.lines().find(|line| line.starts_with("master_repl_offset:")).map(str::to_owned)
    };
    eventually("the replica has everything", async || {
        let written = offset(primary).await;
        written.is_some() && written == offset(replica).await
    })
    .await;
}

/// Waits until it is.
pub async fn in_step(replica: &Server) {
    eventually("the replica is in step", async || {
        let info = RawRedis::at(&replica.url(), "").await.call(&["INFO", "replication"]).await.text();
        info.contains("master_link_status:up")
    })
    .await;
}
