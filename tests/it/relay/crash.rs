//! A relay that dies, wherever it dies (windows 26, 27, 43, 49), loses nothing and doubles nothing; its work is continued by
//! its next life, which finds its own entries, or another relay, which takes them over.

use crate::support::world::fault_injection::unbind_order_queue;
use crate::support::world::outbox_kinds::OUTBOX_KINDS;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;

#[test]
fn a_relay_that_dies_at_any_line_loses_and_doubles_nothing() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer], &[outbox]).await;
            declare(&world.servers.rabbit).await.unwrap();
            let sale = world.sale("relays", 100, Some(3)).await;
            let mut bought = Vec::new();
            for point in ["F3", "F4", "F5", "F7", "F8"] {
                let user = format!("u-{point}");
                bought.push((user.clone(), world.bought(&sale, &user).await));
                world.process("relay", &format!("{point}=return"), &[]).dies_at(point).await;
            }
            // What the last one left is another relay's to take over; it dies over that, too.
            bought.push(("u-F10".to_owned(), world.bought(&sale, "u-F10").await));
            world.process("relay", "F3=return", &[]).dies_at("F3").await;
            world.process("relay", "F10=return", &["runtime.node=another"]).dies_at("F10").await;
            let relay = world.extra_roles(&[Relay], |_| {});
            for (user, id) in &bought {
                eventually("an order", async || world.status_of(&sale, user, *id).await.0 == "CONFIRMED").await;
            }
            eventually("nothing left", async || world.outbox().await == (0, 0)).await;
            assert_eq!(world.orders(&sale).await, 6);
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn a_relay_that_dies_over_a_returned_message_or_around_parking_leaves_nothing_undone() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer], &[outbox]).await;
            let sale = world.sale("parking", 100, Some(1)).await;
            // It has declared the topology for the first one; the second one comes back.
            let first = world.bought(&sale, "first").await;
            let relay = world.process("relay", "F6=return", &[]);
            eventually("a working relay", async || world.status_of(&sale, "first", first).await.0 == "CONFIRMED").await;
            unbind_order_queue(&world.servers.rabbit).await;
            let second = world.bought(&sale, "second").await;
            relay.dies_at("F6").await;

            // An unreadable entry is parked by the third life only, and exactly once.
            world.put_in_outbox(None, "5", None).await;
            for (point, parked) in [("F9", 0), ("F9a", 1)] {
                world.process("relay", &format!("{point}=return"), &[]).dies_at(point).await;
                let page = world.servers.redis.relay_dlq.page(0, "-", 10).await.unwrap();
                assert_eq!(page.len(), parked, "{point}: {page:?}");
            }
            let relay = world.extra_roles(&[Relay], |_| {});
            eventually("an order", async || world.status_of(&sale, "second", second).await.0 == "CONFIRMED").await;
            eventually("nothing left", async || world.outbox().await == (0, 0)).await;
            assert_eq!(world.servers.redis.relay_dlq.page(0, "-", 10).await.unwrap().len(), 1);
            relay.stop().await;
            world.finish().await;
        }
    });
}
