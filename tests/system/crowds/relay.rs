//! The relay brings every entry of a crowd to the broker, in order, whichever relay dies on the way (P3).

use crate::support::world::outbox_kinds::OUTBOX_KINDS;
use crate::support::world::relay_state::{arrived, nothing_is_left, read_and_die};
use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;
use seckill_bench::loadgen;

#[test]
fn five_thousand_entries_reach_the_broker_in_order_and_are_persisted_exactly_once() {
    run_waiting(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api], &[outbox]).await;
            let sale = world.sale("many", 10_000, Some(1)).await;
            world.sell(&sale, 5_000).await;
            assert_eq!(world.outbox().await, (5_000, 0));
            declare(&world.servers.rabbit).await.unwrap();
            let relay = world.extra_roles(&[Relay], |_| {});
            nothing_is_left(&world).await;
            let numbers = arrived(&world, 5_000).await.into_iter().map(|order| order.number);
            assert!(numbers.eq(1..=5_000), "one relay keeps the order");
            let consumer = world.extra_roles(&[Consumer], |_| {});
            eventually("5,000 orders", async || world.orders(&sale).await == 5_000).await;
            assert_eq!(world.settled(&sale).await.counted.ordered, 5_000);
            consumer.stop().await;
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn a_relay_that_comes_back_under_its_name_goes_on_at_once() {
    run_waiting(async {
        for outbox in OUTBOX_KINDS {
            let set = ["p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000", outbox];
            let world = World::with(&[Api, Consumer], &set).await;
            let sale = world.sale("back", 2_000, Some(1)).await;
            world.sell(&sale, 1_500).await;
            // More than one window of it, so that the drain of its own entries needs several steps.
            read_and_die(&world, &format!("relay-{}", world.settings.node()), 1_300).await;
            let relay = world.extra_roles(&[Relay], |_| {});
            eventually("all 1,500, long before the claim time", async || world.orders(&sale).await == 1_500).await;
            nothing_is_left(&world).await;
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn two_relays_share_the_work_and_one_killed_in_it_loses_nothing() {
    run_waiting(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer], &[outbox]).await;
            let sale = world.sale("two", 5_000, Some(1)).await;
            let first = world.extra_roles(&[Relay], |settings| settings.runtime.node = "first".into());
            let second = world.extra_roles(&[Relay], |settings| settings.runtime.node = "second".into());
            world.sell(&sale, 1_000).await;
            let selling = loadgen::run(loadgen::LoadPlan { first_buyer: 1_000, ..world.crowd(&sale, 2_000) });
            let kill = async {
                eventually("work under way", async || world.orders(&sale).await > 1_000).await;
                first.kill().await;
            };
            let (sold, ()) = tokio::join!(selling, kill);
            assert_eq!(sold.unwrap().accepted, 2_000);
            eventually("all 3,000", async || world.orders(&sale).await == 3_000).await;
            nothing_is_left(&world).await;
            second.stop().await;
            world.finish().await;
        }
    });
}
