//! A server of a Redis Cluster is lost while a crowd buys (B4, B5, B6; windows 15 to 17): its share stops, the others go on
//! getting 202, and every 202 is an order, once.

use super::redis_sets::Cluster;
use crate::support::buyers::retrying_buyers::RetryingBuyers;
use crate::support::world::clusters::{SHARDS, buyer_of, world_on};
use crate::support::world::{World, eventually, time_passes};
use futures::future::join_all;
use std::time::Duration;

/// No buyer gets "accepted" before the replica has it. The waits are short: all that waits for replicas of one server takes
/// turns on one connection.
const PROMISED: [&str; 3] = ["redis.wait_replicas=1", "redis.wait_timeout_ms=100", "redis.command_timeout_ms=1000"];
/// More than anyone buys here.
pub const STOCK: i64 = 80_000;
/// Buyers of each shard at a time.
const LINES: usize = 3;
/// Accepts before the server is lost, and by its share after it is back.
pub const SOME: usize = 150;
/// An accept that waits for no replica is answered within this time.
const ANSWERED_MS: u64 = 3_000;
/// An answer from before a kill may arrive this long after it.
pub const LATE: Duration = Duration::from_secs(1);

/// How it is lost.
#[derive(Clone, Copy, PartialEq)]
pub enum Loss {
    /// The kernel ends it, and its connections.
    Killed,
    /// It stands still, and its connections stay.
    Frozen,
}

/// Everybody buys while `story` goes on; it says when it is over.
pub async fn crowd<T>(rush: &RetryingBuyers<'_>, story: impl Future<Output = T>) -> T {
    let lines = (0..SHARDS).flat_map(|shard| (0..LINES).map(move |line| (shard, line)));
    let lines =
        lines.map(|(shard, line)| rush.line(shard, (0..).map(move |n| buyer_of(shard, 1_000_000 * (line + 1) + n))));
    let story = async {
        let ended = story.await;
        rush.end();
        ended
    };
    tokio::join!(join_all(lines), story).1
}

/// The place of this server among those of the rush.
pub fn place_of(world: &World, port: u16) -> usize {
    world.servers.redis.servers().iter().position(|(at, _)| at.ends_with(&format!(":{port}"))).expect("a server")
}

/// The primary of shard 0 is lost in the middle and replaced by its replica.
pub async fn lose_a_primary(name: &str, loss: Loss, set: &[&str]) {
    let cluster = Cluster::start(3, 1, &[]).await;
    let world = world_on(&cluster, name, &[&PROMISED[..], set].concat()).await;
    let sale = world.sale("load", STOCK, if loss == Loss::Killed { None } else { Some(1) }).await;
    let old = cluster.primary_of_tag("{0}").await;
    let (lost, others) = (place_of(&world, old.port()), world.servers.redis.servers().len());
    let rush = RetryingBuyers::new(&world, &sale);
    crowd(&rush, async {
        eventually("a load", async || rush.accepted() > SOME).await;
        match loss {
            Loss::Killed => old.kill().await,
            Loss::Frozen => old.freeze().await,
        }
        let gone = rush.mark("the first primary is lost");
        cluster.failed_over(old).await;
        let promoted = rush.mark("its replica is promoted, and has none");
        for server in (0..others).filter(|server| *server != lost) {
            // The cluster takes two seconds to notice; what was under way is not counted.
            let accepted = rush.accepted_of(server, gone + LATE, Some(promoted));
            assert!(accepted > 0, "server {server} goes on");
        }
        // The promoted one has no replica yet: nothing of its share may be reported as accepted.
        eventually("the others go on", async || {
            (0..others).filter(|server| *server != lost).all(|server| rush.accepted_of(server, promoted, None) > 30)
        })
        .await;
        eventually("it was asked", async || {
            rush.answers_of((lost, 504), promoted, None) + rush.accepted_of(lost, promoted, None) >= 2 * LINES
        })
        .await;
        time_passes(ANSWERED_MS).await;
        let alone = rush.mark("the lost one comes back");
        assert_eq!(rush.accepted_of(lost, promoted, Some(alone)), 0, "accepted without a replica");
        match loss {
            Loss::Killed => old.restart().await,
            Loss::Frozen => old.thaw().await,
        }
        eventually("its share sells again", async || rush.accepted_of(lost, alone, None) > SOME / 3).await;
        rush.mark("its share has sold again");
    })
    .await;
    rush.print(name);
    rush.holds().await;
    cluster.whole().await;
    assert_ne!(cluster.primary_of_tag("{0}").await.port(), old.port(), "it is a replica now");
    world.finish().await;
}
