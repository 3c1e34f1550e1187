//! Group B: the relay brings every entry to the broker, whatever dies on the way (P3).

use super::outbox_kinds::OUTBOX_KINDS;
use super::world::{World, eventually, run};
use seckill::crowd;
use seckill::domain::message;
use seckill::domain::request::Accepted;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{Consumer as QueueReader, declare};
use std::time::{Duration, Instant};

/// Reads entries for a consumer as a relay does that dies right afterwards.
pub async fn read_and_die(world: &World, consumer: &str, count: usize) {
    let mut read = 0;
    while read < count {
        // A list gives no more than 1,000 at once.
        let entries = world.servers.redis.outbox_new(0, consumer, count - read).await.expect("entries");
        assert!(!entries.is_empty(), "{read} of {count}");
        read += entries.len();
    }
}

/// Failed attempts of every entry that has any.
pub async fn attempts(world: &World) -> Vec<u64> {
    let counts = world.redis(&["HVALS", &world.servers.redis.keys.attempts(0)]).await;
    let counts = counts.as_array().expect("a list").iter();
    counts.map(|count| count.as_str().expect("a count").parse().expect("a number")).collect()
}

/// Entries in the relay DLQ.
pub async fn parked(world: &World) -> u64 {
    world.servers.redis.parked_count(0).await.expect("redis")
}

/// Waits until the outbox is empty, and nothing else remembers its entries.
pub async fn nothing_is_left(world: &World) {
    eventually("an empty outbox", async || world.outbox().await == (0, 0)).await;
    assert_eq!(attempts(world).await, Vec::<u64>::new(), "attempts of entries that are gone");
}

/// The first `count` orders that arrive in the queue, in their order. They are not taken: who consumes afterwards gets them.
pub async fn arrived(world: &World, count: usize) -> Vec<Accepted> {
    let mut reader = QueueReader::connect(&world.servers.rabbit, &[0], 10_000).await.unwrap();
    let mut orders = Vec::new();
    while orders.len() < count {
        let group = reader.recv_group(1_000, Duration::from_secs(10)).await.unwrap();
        assert!(!group.is_empty(), "only {} arrived", orders.len());
        orders.extend(group.iter().map(|delivery| message::decode(&delivery.body).unwrap()));
    }
    orders
}

#[test]
fn five_thousand_entries_reach_the_broker_in_order_and_land_exactly_once() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api], &[outbox]).await;
            let sale = world.sale("many", 10_000, Some(1)).await;
            world.sell(&sale, 5_000).await;
            assert_eq!(world.outbox().await, (5_000, 0));
            declare(&world.servers.rabbit).await.unwrap();
            let relay = world.more(&[Relay], |_| {});
            nothing_is_left(&world).await;
            let numbers = arrived(&world, 5_000).await.into_iter().map(|order| order.number);
            assert!(numbers.eq(1..=5_000), "one relay keeps the order");
            let consumer = world.more(&[Consumer], |_| {});
            eventually("5,000 orders", async || world.orders(&sale).await == 5_000).await;
            assert_eq!(world.settled(&sale).await.counted.ordered, 5_000);
            consumer.stop().await;
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn entries_of_a_dead_relay_are_taken_over_after_the_claim_time() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer], &[outbox]).await;
            let sale = world.sale("dead", 100, Some(1)).await;
            world.sell(&sale, 50).await;
            read_and_die(&world, "relay-of-another-machine", 30).await;
            let died = Instant::now();
            assert_eq!(world.outbox().await, (50, 30));
            // Long enough for the 20 to be seen alone on a busy machine, too.
            let claim_idle = Duration::from_secs(8);
            let relay = world.more(&[Relay], |settings| settings.p3_relay.claim_idle_ms = 8_000);
            eventually("the 20 nobody had read", async || world.orders(&sale).await == 20).await;
            eventually("the 30 of the dead relay", async || world.orders(&sale).await == 50).await;
            assert!(died.elapsed() >= claim_idle, "not before the claim time: {:?}", died.elapsed());
            nothing_is_left(&world).await;
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn a_relay_that_comes_back_under_its_name_goes_on_at_once() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let set = ["p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000", outbox];
            let world = World::with(&[Api, Consumer], &set).await;
            let sale = world.sale("back", 2_000, Some(1)).await;
            world.sell(&sale, 1_500).await;
            // More than one window of it, so that the drain of its own entries needs several steps.
            read_and_die(&world, &format!("relay-{}", world.settings.node()), 1_300).await;
            let relay = world.more(&[Relay], |_| {});
            eventually("all 1,500, long before the claim time", async || world.orders(&sale).await == 1_500).await;
            nothing_is_left(&world).await;
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn two_relays_share_the_work_and_one_killed_in_it_loses_nothing() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer], &[outbox]).await;
            let sale = world.sale("two", 5_000, Some(1)).await;
            let first = world.more(&[Relay], |settings| settings.runtime.node = "first".into());
            let second = world.more(&[Relay], |settings| settings.runtime.node = "second".into());
            world.sell(&sale, 1_000).await;
            let selling = crowd::run(crowd::CrowdPlan { first_buyer: 1_000, ..world.crowd(&sale, 2_000) });
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

#[test]
fn a_poison_entry_goes_to_the_relay_dlq_with_its_reason_and_blocks_nobody() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer, Reconcile], &[outbox]).await;
            let sale = world.sale("poison", 100, Some(1)).await;
            world.sell(&sale, 5).await;
            world.put_in_outbox(None, "5", None).await;
            world.put_in_outbox(Some(sale.as_str()), "5", None).await;
            world.put_in_outbox(Some("not a sale"), "5", Some("{}")).await;
            let last = world.bought(&sale, "after").await;
            let relay = world.more(&[Relay], |_| {});
            eventually("the one behind the poison", async || world.told(&sale, "after", last).await.0 == "CONFIRMED")
                .await;
            nothing_is_left(&world).await;
            let parked = world.servers.redis.parked_page(0, "-", 10).await.unwrap();
            for reason in ["field s is missing", "field p is missing", "sale_id"] {
                assert_eq!(parked.iter().filter(|entry| entry.reason.contains(reason)).count(), 1, "{parked:?}");
            }
            assert_eq!(parked.len(), 3);
            assert!(parked.iter().all(|entry| entry.parked_at_ms > 0));
            assert_eq!(world.orders(&sale).await, 6);
            relay.stop().await;
            world.finish().await;
        }
    });
}
