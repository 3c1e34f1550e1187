//! Several orders in one message. They share the message's way to the consumer and nothing else: each has its own
//! outcome, and a process that dies in the middle of a message loses and doubles none of them.

use crate::support::world::fault_injection::REFUSING_TRIGGER;
use crate::support::world::outbox_kinds::{OUTBOX_KINDS, STREAM};
use crate::support::world::relay_state::nothing_is_left;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::{browse_dlq, declare};

/// Relays everything with `bundle_max` orders a message while no consumer takes any.
async fn relayed(world: &World, bundle_max: usize) {
    declare(&world.servers.rabbit).await.unwrap();
    let relay = world.extra_roles(&[Relay], |settings| settings.p3_relay.bundle_max = bundle_max);
    nothing_is_left(world).await;
    relay.stop().await;
}

async fn ordered(world: &World, sale: &SaleId, count: i64) {
    eventually(&format!("{count} orders"), async || world.orders(sale).await == count).await;
}

#[test]
fn orders_of_a_queue_share_messages_and_each_has_its_own_outcome() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api], &[outbox]).await;
            let sale = world.sale("shared", 1_000, Some(1)).await;
            world.sql(REFUSING_TRIGGER).await;
            world.foreign_order(&sale, "taken", 7).await;
            world.sell(&sale, 20).await;
            let cursed = world.bought(&sale, "cursed").await;
            let taken = world.bought(&sale, "taken").await;
            // Neither of the two is an order; the second one would be two lines.
            world.put_in_outbox(Some("shared"), "4711", Some("not json")).await;
            world.put_in_outbox(Some("shared"), "4711", Some("not\njson")).await;
            world.bought(&sale, "last").await;
            relayed(&world, 8).await;
            // 24 that share, and one that travels alone. In lines, an entry is never split: messages may be less full.
            let messages = if outbox == STREAM { 4..=10 } else { 4..=4 };
            let waiting = world.waiting_in("seckill.orders").await;
            assert!(messages.contains(&waiting), "{outbox}: {waiting}");

            let consumer = world.extra_roles(&[Consumer], |_| {});
            // The foreign one, the crowd, and the last.
            ordered(&world, &sale, 22).await;
            eventually("a refusal", async || world.status_of(&sale, "taken", taken).await.0 == "FAILED").await;
            eventually("no message left", async || world.waiting_in("seckill.orders").await == 0).await;
            let dead = browse_dlq(&world.servers.rabbit, 10).await.unwrap();
            let bodies: Vec<&[u8]> = dead.iter().map(|parked| parked.body.as_slice()).collect();
            assert_eq!(bodies.len(), 2, "{dead:?}");
            assert!(bodies.contains(&b"not json".as_slice()) && bodies.contains(&b"not\njson".as_slice()), "{dead:?}");
            assert!(dead.iter().all(|parked| parked.message_id.as_deref() == Some("4711")), "{dead:?}");
            world.sql("DROP TRIGGER curse").await;
            eventually("an order", async || world.status_of(&sale, "cursed", cursed).await.0 == "CONFIRMED").await;
            ordered(&world, &sale, 23).await;
            consumer.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn a_consumer_that_dies_in_the_middle_of_a_message_loses_and_doubles_nothing() {
    run(async {
        // Entries of one order, of which sixteen share a message.
        let world = World::with(&[Api], &["p2_reserve.group_max=1"]).await;
        let sale = world.sale("middle", 1_000, Some(1)).await;
        world.sell(&sale, 60).await;
        relayed(&world, 16).await;
        assert_eq!(world.waiting_in("seckill.orders").await, 4);
        // Groups of ten end in the middle of messages; committed, and the process is gone before it acknowledges.
        let set = ["p4_persist.group_max=10", "p4_persist.prefetch=10", "p4_persist.writers_count=1"];
        world.process("consumer", "F16=return", &set).dies_at("F16").await;
        ordered(&world, &sale, 10).await;
        // The second time the ten are found, and six of the first message and four of the next one are new.
        world.process("consumer", "F16=return", &set).dies_at("F16").await;
        ordered(&world, &sale, 20).await;
        eventually("all messages back", async || world.waiting_in("seckill.orders").await == 4).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        ordered(&world, &sale, 60).await;
        eventually("no message left", async || world.waiting_in("seckill.").await == 0).await;
        assert_eq!(world.settled(&sale).await.counted.ordered, 60);
        assert_eq!(world.number("SELECT stock AS n FROM sales").await, 940);
        consumer.stop().await;
        world.finish().await;
    });
}
