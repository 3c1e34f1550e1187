//! The servers on each host: how they are started, and what they say about themselves and one another.

pub mod balancer;
pub mod galera;
pub mod rabbit;
pub mod redis;
pub mod replicated;
pub mod roles;
pub mod sentinel;

use crate::dump::DumpUrls;
use crate::network::{Number, address};
use std::sync::OnceLock;

/// What the hosts' Redis and database are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Redis Cluster and Galera.
    Clusters,
    /// Redis with Sentinel; MariaDB with an asynchronous replica.
    Replicas,
}

static KIND: OnceLock<Kind> = OnceLock::new();

/// Says it once, before anything is started.
pub fn choose(kind: Kind) {
    KIND.set(kind).expect("one site in a process");
}

/// What was chosen.
pub fn kind() -> Kind {
    *KIND.get().expect("chosen")
}

/// The host whose database is written to, while all is well.
pub fn writer() -> Number {
    match kind() {
        Kind::Clusters => galera::WRITER,
        Kind::Replicas => replicated::written_to(),
    }
}

/// What keeps the servers from being whole, if anything.
pub async fn lack() -> Option<String> {
    let (redis, database) = match kind() {
        Kind::Clusters => (redis::lacks().await, galera::lacks().await),
        Kind::Replicas => (sentinel::lacks().await, replicated::lacks().await),
    };
    match redis.or(database) {
        Some(lack) => Some(lack),
        None => rabbit::lacks().await,
    }
}

/// The shards whose Redis primary is on one of these hosts.
pub async fn shards_on(hosts: &[Number]) -> Vec<u16> {
    let mut found = Vec::new();
    for shard in 0..roles::SHARDS {
        let primary = match kind() {
            Kind::Clusters => redis::primary_of(redis::group_of_shard(shard).await).await,
            Kind::Replicas => sentinel::primary().await,
        };
        if primary.is_some_and(|host| hosts.contains(&host)) {
            found.push(shard);
        }
    }
    found
}

/// Where everything is, past balancers and product.
pub async fn dump_urls() -> DumpUrls {
    DumpUrls {
        redis: match kind() {
            Kind::Clusters => redis::primaries().await,
            Kind::Replicas => sentinel::primary_url().await,
        },
        amqp: format!("amqp://guest:guest@{}:{}/%2f", address(1), rabbit::PORT),
        mysql: galera::url(writer()),
        prefix: roles::PREFIX.to_owned(),
        damaged: false,
    }
}
