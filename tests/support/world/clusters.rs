//! Worlds on a Redis Cluster whose sales are on three servers, and how its servers are distinguished.

use super::World;
use crate::support::processes::redis_sets::{Cluster, Node};
use seckill::domain::ids::UserId;
use seckill::domain::shard::home_shard;
use seckill::roles::Role;

/// Of every sale here.
pub const SHARDS: u16 = 8;

/// All roles, on a cluster.
pub async fn world_on(cluster: &Cluster, name: &str, set: &[&str]) -> World {
    World::on_cluster((cluster, SHARDS), name, &Role::ALL, set).await
}

/// A buyer whose home shard is this one.
pub fn buyer_of(shard: u16, n: usize) -> String {
    let name = |k: usize| format!("buyer-{n}-{k}");
    let at_home = |name: &String| home_shard(&UserId::parse(name).unwrap(), SHARDS) == shard;
    (0..).map(name).find(at_home).unwrap()
}

/// The shards on the server of this port.
pub fn shards_of(world: &World, port: u16) -> Vec<u16> {
    let places = world.servers.redis.servers();
    places.into_iter().find(|(at, _)| at.ends_with(&format!(":{port}"))).expect("a server").1
}

/// Settings that let a rebuild come soon.
pub const SOON: [&str; 3] = ["p5_reconcile.quiet_ms=1000", "p1_entry.cache_ttl_ms=50", "redis.command_timeout_ms=1000"];

/// From now on the replica gets nothing of its primary any more. Standing still is not enough: what is written meanwhile
/// would wait in its socket.
pub async fn cut_off(replica: &Node, primary: &Node) {
    replica.freeze().await;
    assert_eq!(primary.call(&["CLIENT", "KILL", "TYPE", "replica"]).await, 1);
}
