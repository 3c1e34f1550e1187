//! Entries of a dead relay are taken over, and an unreadable one holds up no other.

use crate::support::world::outbox_kinds::OUTBOX_KINDS;
use crate::support::world::relay_state::{nothing_is_left, read_and_die};
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use std::time::{Duration, Instant};

#[test]
fn entries_of_a_dead_relay_are_taken_over_after_the_claim_time() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer], &[outbox]).await;
            let sale = world.sale("dead", 100, Some(1)).await;
            world.sell(&sale, 50).await;
            let read = read_and_die(&world, "relay-of-another-machine", 30).await;
            let died = Instant::now();
            assert_eq!(world.outbox().await.0, 50);
            // Long enough for the 20 to be seen alone on a busy machine, too.
            let claim_idle = Duration::from_secs(8);
            let relay = world.extra_roles(&[Relay], |settings| settings.p3_relay.claim_idle_ms = 8_000);
            let unread = i64::try_from(50 - read).unwrap();
            eventually("what no relay had read", async || world.orders(&sale).await == unread).await;
            eventually("what the dead relay had read", async || world.orders(&sale).await == 50).await;
            assert!(died.elapsed() >= claim_idle, "not before the claim time: {:?}", died.elapsed());
            nothing_is_left(&world).await;
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn a_poison_entry_goes_to_the_relay_dlq_with_its_reason_and_blocks_no_other() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer, Reconcile], &[outbox]).await;
            let sale = world.sale("poison", 100, Some(1)).await;
            world.sell(&sale, 5).await;
            world.put_in_outbox(None, "5", None).await;
            world.put_in_outbox(Some(sale.as_str()), "5", None).await;
            world.put_in_outbox(Some("not a sale"), "5", Some("{}")).await;
            let last = world.bought(&sale, "after").await;
            let relay = world.extra_roles(&[Relay], |_| {});
            eventually("the one behind the poison", async || {
                world.status_of(&sale, "after", last).await.0 == "CONFIRMED"
            })
            .await;
            nothing_is_left(&world).await;
            let parked = world.servers.redis.relay_dlq.page(0, "-", 10).await.unwrap();
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
