//! A consumer that dies, wherever it dies (windows 62, 63, 64, 76), loses nothing, doubles nothing, reports nothing
//! that is not true.

use crate::support::world::fault_injection::REFUSING_TRIGGER;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;

/// A world without a consumer whose messages are at the broker.
async fn without_consumer() -> World {
    let world = World::with(&[Api, Relay], &[]).await;
    declare(&world.servers.rabbit).await.unwrap();
    world
}

#[test]
fn a_consumer_that_dies_at_any_line_of_persisting_loses_and_doubles_nothing() {
    run(async {
        let world = without_consumer().await;
        let sale = world.sale("mortal", 100, Some(3)).await;
        // What is committed when the process is gone: nothing until COMMIT is sent, everything from then on.
        let points = [("F11", false), ("F12", false), ("F13", false), ("F14", false), ("F15", true), ("F16", true)];
        let (mut bought, mut landed) = (Vec::new(), 0);
        for (point, committed) in points {
            let user = format!("u-{point}");
            bought.push((user.clone(), world.bought(&sale, &user).await));
            world.process("consumer", &format!("{point}=return"), &[]).dies_at(point).await;
            if committed {
                // All of a group or nothing. What the dead process had comes back in its own time: the new message may be first,
                // and alone.
                let before = landed;
                eventually("the commit that was sent", async || {
                    landed = world.orders(&sale).await;
                    landed > before
                })
                .await;
            }
            assert_eq!(world.orders(&sale).await, landed, "{point}");
            assert_eq!(world.rows("request_outcome", "1 = 1").await, landed, "{point}");
            assert_eq!(world.number("SELECT stock AS n FROM sales").await, 100 - landed, "{point}");
        }
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("no message left", async || world.waiting_in("seckill.").await == 0).await;
        for (user, id) in &bought {
            eventually("an order", async || world.status_of(&sale, user, *id).await.0 == "CONFIRMED").await;
        }
        assert_eq!(world.orders(&sale).await, 6);
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_refusal_that_was_recorded_and_not_acknowledged_is_the_same_refusal() {
    run(async {
        let world = without_consumer().await;
        let sale = world.sale("refusal", 100, Some(1)).await;
        world.foreign_order(&sale, "alice", 7).await;
        let alice = world.bought(&sale, "alice").await;
        world.process("consumer", "F17=return", &[]).dies_at("F17").await;
        let failed = format!("request_id = {alice} AND kind = 'FAILED' AND reason = 'DUPLICATE_BUYER'");
        assert_eq!(world.rows("request_outcome", &failed).await, 1, "recorded before the ack");
        assert_eq!(world.rows("failed_request", "status = 'failed_final'").await, 1);
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("the failure is known", async || world.status_of(&sale, "alice", alice).await.0 == "FAILED").await;
        eventually("no message left", async || world.waiting_in("seckill.").await == 0).await;
        assert_eq!(world.rows("failed_request", "1 = 1").await, 1);
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_retry_that_was_published_and_not_acknowledged_becomes_one_order() {
    run(async {
        let world = without_consumer().await;
        let sale = world.sale("twice", 100, Some(1)).await;
        world.sql(REFUSING_TRIGGER).await;
        let cursed = world.bought(&sale, "cursed").await;
        world.process("consumer", "F18=return", &[]).dies_at("F18").await;
        // One copy in the retry queue (or back from it already), and the original.
        eventually("two copies", async || world.waiting_in("seckill.").await == 2).await;
        world.sql("DROP TRIGGER curse").await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("an order", async || world.status_of(&sale, "cursed", cursed).await.0 == "CONFIRMED").await;
        eventually("no message left", async || world.waiting_in("seckill.").await == 0).await;
        assert_eq!(world.orders(&sale).await, 1);
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_panic_ends_the_process_with_1_and_its_messages_are_persisted_by_the_next_one() {
    run(async {
        let world = without_consumer().await;
        let sale = world.sale("panic", 100, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        // One writer: another would persist what the broken one gives back, before the process is gone.
        let mut consumer = world.process("consumer", "F11=1*panic", &["p4_persist.writers_count=1"]);
        assert_eq!(consumer.program.ended().await, Some(1), "{}", consumer.program.stderr());
        assert!(consumer.program.stderr().contains("a role's task died"), "{}", consumer.program.stderr());
        assert_eq!(world.orders(&sale).await, 0);
        let next = world.extra_roles(&[Consumer], |_| {});
        eventually("an order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        next.stop().await;
        world.finish().await;
    });
}
