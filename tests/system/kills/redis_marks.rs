//! Redis is down while orders land: their buyers see it as soon as it is back, not when P5's window is over.

use crate::support::basics::resp::RawRedis;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{ALONE, World, eventually, run, time_passes};
use seckill::dev::ServerKind;
use seckill::roles::Role::{Api, Consumer, Relay};

#[test]
fn outcomes_that_redis_could_not_take_are_marked_when_it_is_back() {
    run(async {
        let mut servers = breakable_servers().await;
        // No process reconciles here: what marks is the consumer.
        let world = World::on_breakable(&servers, "unmarked", &[Api, Relay], &ALONE).await;
        let sale = world.sale("unmarked", 100, Some(1)).await;
        let first = world.bought(&sale, "first").await;
        world.sell(&sale, 50).await;
        eventually("everything at the broker", async || world.outbox().await == (0, 0)).await;
        servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("51 orders", async || world.orders(&sale).await == 51).await;
        eventually("an empty queue", async || world.waiting_in("seckill.orders").await == 0).await;
        // The marks follow the acks, and fail.
        time_passes(1_000).await;
        servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
        world.redis_is_back().await;
        eventually("a buyer who sees it", async || world.status_of(&sale, "first", first).await.0 == "CONFIRMED").await;
        let mut redis = RawRedis::of(&world).await;
        let ledger = world.servers.redis.keys.ledger(0, &sale);
        let mut queued = async || redis.hash(&ledger).await.values().filter(|record| record.starts_with("Q ")).count();
        eventually("every record marked", async || queued().await == 0).await;
        consumer.stop().await;
        world.finish().await;
    });
}
