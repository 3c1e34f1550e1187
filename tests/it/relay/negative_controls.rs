//! Negative controls of the relay: with one mechanism of it or of the topology left out, the audit must show the loss.
//! No process compensates here: the ledger would heal most of them.

use crate::support::processes::killable::KillableProcess;
use crate::support::world::fault_injection::{delete_order_queue, unbind_order_queue};
use crate::support::world::outbox_kinds::OUTBOX_KINDS;
use crate::support::world::{World, eventually, run, time_passes};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Relay};

/// A world with a consumer, and a relay that has declared the topology and works, with fault points.
async fn relaying(name: &str, failpoints: &str, set: &[&str]) -> (World, SaleId, KillableProcess) {
    let world = World::with(&[Api, Consumer], &[]).await;
    let sale = world.sale(name, 100, Some(1)).await;
    let first = world.bought(&sale, "first").await;
    let relay = world.process("relay", failpoints, set);
    eventually("a working relay", async || world.status_of(&sale, "first", first).await.0 == "CONFIRMED").await;
    eventually("an entry less", async || world.outbox().await == (0, 0)).await;
    (world, sale, relay)
}

/// The request is nowhere but in the ledger.
async fn is_lost(world: World, sale: &SaleId, mechanism: &str) {
    let audit = world.audit(sale, Window::Now).await;
    assert!(audit.counted.leaked == 1 && !audit.consistent(), "{mechanism} left out and nothing lost: {audit:#?}");
    world.stop().await;
}

#[test]
fn without_mandatory_what_no_queue_takes_is_lost() {
    run(async {
        let (world, sale, relay) = relaying("mandatory", "mandatory=return", &[]).await;
        unbind_order_queue(&world.servers.rabbit).await;
        world.bought(&sale, "alice").await;
        eventually("an entry less", async || world.outbox().await == (0, 0)).await;
        drop(relay);
        is_lost(world, &sale, "mandatory").await;
    });
}

#[test]
fn an_entry_deleted_before_its_confirm_is_lost() {
    run(async {
        let (world, sale, relay) = relaying("confirm", "confirm_first=return", &[]).await;
        unbind_order_queue(&world.servers.rabbit).await;
        world.bought(&sale, "alice").await;
        eventually("an entry less", async || world.outbox().await == (0, 0)).await;
        drop(relay);
        is_lost(world, &sale, "confirm_first").await;
    });
}

#[test]
fn an_entry_parked_in_two_steps_is_lost_between_them() {
    run(async {
        // The first pass is the first purchase's, whose entry is confirmed and deleted.
        let failpoints = "park_atomic=return;F8=1*off->return";
        let (world, sale, relay) = relaying("parked", failpoints, &["p3_relay.attempts_max=1"]).await;
        unbind_order_queue(&world.servers.rabbit).await;
        world.bought(&sale, "alice").await;
        relay.dies_at("F8").await;
        assert_eq!(world.outbox().await, (0, 0));
        is_lost(world, &sale, "park_atomic").await;
    });
}

#[test]
fn entries_of_a_dead_relay_stay_for_ever_when_no_relay_takes_over_or_reads_its_own() {
    run(async {
        for outbox in OUTBOX_KINDS {
            for (name, failpoints, node) in
                [("taken", "take_over=return", "another"), ("own", "take_over=return;own_pending=return", "")]
            {
                let world = World::with(&[Api, Consumer], &[outbox]).await;
                let sale = world.sale(name, 100, Some(1)).await;
                let alice = world.bought(&sale, "alice").await;
                world.process("relay", "F3=return", &[]).dies_at("F3").await;
                let node = format!("runtime.node={node}");
                let set: &[&str] = if node.ends_with('=') { &[] } else { &[&node] };
                let broken = world.process("relay", failpoints, set);
                let bob = world.bought(&sale, "bob").await;
                eventually("the one behind", async || world.status_of(&sale, "bob", bob).await.0 == "CONFIRMED").await;
                time_passes(world.settings.p3_relay.claim_idle_ms * 2).await;
                assert_eq!(world.outbox().await, (1, 1), "{failpoints} left out and nothing stays");
                assert_eq!(world.status_of(&sale, "alice", alice).await.0, "QUEUED");
                drop(broken);
                // With both mechanisms nothing stays.
                let relay = world.extra_roles(&[Relay], |_| {});
                eventually("the one left behind", async || {
                    world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED"
                })
                .await;
                relay.stop().await;
                world.finish().await;
            }
        }
    });
}

#[test]
fn a_retry_whose_queue_is_gone_is_dropped_without_at_least_once() {
    const REFUSING_TRIGGER: &str = "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' \
        SET MESSAGE_TEXT = 'cursed'";
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("once", 100, Some(1)).await;
        world.bought(&sale, "alice").await;
        world.sql(REFUSING_TRIGGER).await;
        let off = "dead_letter_at_least_once=return";
        let relay = world.process("relay", off, &[]);
        eventually("everything at the broker", async || world.outbox().await == (0, 0)).await;
        // Gone before the queue is: it would declare it again.
        drop(relay);
        let set = ["p4_persist.retry_delay_ms=1500", "p4_persist.retry_delay_max_ms=1500"];
        let consumer = world.process("consumer", &format!("{off};F18=return"), &set);
        consumer.dies_at("F18").await;
        delete_order_queue(&world.servers.rabbit).await;
        time_passes(3_000).await;
        is_lost(world, &sale, "dead_letter_at_least_once").await;
    });
}
