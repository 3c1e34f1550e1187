//! Several shards: a relay reads and deletes on all of them at once, and none of them waits for another one.

use crate::support::world::outbox_kinds::{OUTBOX_KINDS, STREAM};
use crate::support::world::parts::buckets::buyer_of;
use crate::support::world::relay_state::arrived;
use crate::support::world::{World, eventually, run};
use futures::future::join_all;
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;

const SHARDS: u16 = 4;

/// The first `count` buyers at home on a shard buy one unit each.
async fn sell_on(world: &World, sale: &SaleId, shard: u16, count: usize) {
    let names: Vec<String> = (0..count).map(|n| buyer_of(shard, SHARDS, n)).collect();
    for some in names.chunks(25) {
        join_all(some.iter().map(|name| world.bought(sale, name))).await;
    }
}

/// Entries of all outboxes, and those in a relay's hand.
async fn outboxes(world: &World) -> (u64, u64) {
    let depths = join_all((0..SHARDS).map(|shard| world.servers.redis.outbox.depth(shard))).await;
    depths.into_iter().map(|depth| depth.expect("redis")).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[test]
fn a_long_backlog_on_one_shard_holds_up_no_other() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api], &["redis.shards=4", outbox]).await;
            let sale = world.sale("long", 10_000, Some(1)).await;
            sell_on(&world, &sale, 2, 400).await;
            for shard in [0, 1, 3] {
                sell_on(&world, &sale, shard, 5).await;
            }
            assert_eq!(outboxes(&world).await, (415, 0));
            declare(&world.servers.rabbit).await.unwrap();
            let relay = world.extra_roles(&[Relay], |settings| {
                settings.p3_relay.window_max = 64;
                settings.p3_relay.bundle_max = 1;
            });
            let shards: Vec<u16> = arrived(&world, 415).await.into_iter().map(|order| order.shard).collect();
            let last = shards.iter().rposition(|shard| *shard != 2).unwrap();
            // In lines an entry is never split, and its orders are not known before it is read.
            let before = if outbox == STREAM { 4 * 64 } else { 2 * 64 };
            assert!(last < before, "the last of the short ones came as number {last}: {shards:?}");
            eventually("empty outboxes", async || outboxes(&world).await == (0, 0)).await;
            relay.stop().await;
            let consumer = world.extra_roles(&[Consumer], |_| {});
            eventually("all orders", async || world.orders(&sale).await == 415).await;
            consumer.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn what_other_shards_gave_lands_beside_a_shard_that_answers_with_errors() {
    run(async {
        let set = ["redis.shards=4", "p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000"];
        let world = World::with(&[Api, Consumer], &set).await;
        let sale = world.sale("damaged", 1_000, Some(1)).await;
        let relay = world.extra_roles(&[Relay], |_| {});
        sell_on(&world, &sale, 1, 10).await;
        eventually("a relay at work", async || world.orders(&sale).await == 10).await;
        eventually("empty outboxes", async || outboxes(&world).await == (0, 0)).await;
        let damaged = world.servers.redis.keys.outbox(1);
        world.redis(&["SET", &damaged, "no stream"]).await;
        for (round, landed) in [(0, 40), (1, 70)] {
            for shard in [0, 2, 3] {
                let names: Vec<String> = (10 * round..10 * (round + 1)).map(|n| buyer_of(shard, SHARDS, n)).collect();
                join_all(names.iter().map(|name| world.bought(&sale, name))).await;
            }
            eventually("the others' orders", async || world.orders(&sale).await == landed).await;
        }
        let others = async || {
            let depths = join_all([0, 2, 3].map(|shard| world.servers.redis.outbox.depth(shard))).await;
            depths.into_iter().all(|depth| depth.expect("redis") == (0, 0))
        };
        eventually("the others' outboxes empty", others).await;
        world.redis(&["DEL", &damaged]).await;
        eventually("empty outboxes", async || outboxes(&world).await == (0, 0)).await;
        relay.stop().await;
        world.finish().await;
    });
}
