//! What the broker says, does not say, or says no to: confirms that get lost, returns, nacks; and the cap on the rate.

use crate::support::links::link::Link;
use crate::support::world::fault_injection::{ExtraRoles, delete_order_queue, port_of, unbind_order_queue};
use crate::support::world::outbox_kinds::OUTBOX_KINDS;
use crate::support::world::relay_state::{attempts, limit_queues, nothing_is_left, parked};
use crate::support::world::{ALONE, World, eventually, pause, run};
use seckill::config::{ServerUrl, Settings};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use std::time::Instant;

/// Leads a relay's way to the broker through the black hole.
fn through(hole: &Link) -> impl Fn(&mut Settings) {
    |settings| settings.rabbitmq.url = ServerUrl::new(hole.url(settings.rabbitmq.url.expose()))
}

/// A relay that works, with a hole between it and the broker that does not swallow anything yet.
async fn working_through_a_hole(world: &World, sale: &SaleId) -> (Link, ExtraRoles) {
    let hole = Link::before(port_of(world.settings.rabbitmq.url.expose())).await;
    let relay = world.extra_roles(&[Relay], through(&hole));
    let first = world.bought(sale, "first").await;
    eventually("a working relay", async || world.status_of(sale, "first", first).await.0 == "CONFIRMED").await;
    nothing_is_left(world).await;
    (hole, relay)
}

#[test]
fn a_message_whose_confirm_got_lost_is_sent_again_and_is_persisted_once() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[Api, Consumer], &["rabbitmq.connect_timeout_ms=1000", outbox]).await;
            let sale = world.sale("mute", 100, Some(1)).await;
            let (hole, relay) = working_through_a_hole(&world, &sale).await;
            hole.loses_answers(true);
            world.sell(&sale, 20).await;
            eventually("orders, although no confirm came", async || world.orders(&sale).await == 21).await;
            assert_eq!(world.outbox().await.0, 20, "only a confirm deletes");
            eventually("counted attempts", async || attempts(&world).await.len() as u64 == world.outbox().await.1)
                .await;
            hole.loses_answers(false);
            nothing_is_left(&world).await;
            assert_eq!((world.orders(&sale).await, parked(&world).await), (21, 0));
            relay.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn confirms_that_stay_out_for_long_end_in_the_relay_dlq_and_that_is_no_verdict() {
    run(async {
        let set = ["rabbitmq.connect_timeout_ms=500", "p3_relay.attempts_max=3"];
        let world = World::with(&[Api, Consumer], &set).await;
        let sale = world.sale("dumb", 100, Some(1)).await;
        let (hole, relay) = working_through_a_hole(&world, &sale).await;
        hole.loses_answers(true);
        let lost = world.bought(&sale, "lost").await;
        eventually("the relay DLQ", async || parked(&world).await == 1).await;
        nothing_is_left(&world).await;
        let entry = world.servers.redis.relay_dlq.page(0, "-", 1).await.unwrap().pop().unwrap();
        assert!(entry.attempts == 3 && entry.parked_at_ms > 0 && !entry.reason.is_empty(), "{entry:?}");
        // Window 45: the order is there all the same, and P5 closes the entry without another one.
        eventually("the order", async || world.status_of(&sale, "lost", lost).await.0 == "CONFIRMED").await;
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        eventually("an empty relay DLQ", async || parked(&world).await == 0).await;
        assert_eq!(world.orders(&sale).await, 2);
        reconcile.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_message_that_came_back_makes_the_relay_declare_the_topology_again() {
    run(async {
        let world = World::with(&[Api, Relay], &ALONE).await;
        let sale = world.sale("noroute", 100, Some(1)).await;
        world.bought(&sale, "first").await;
        nothing_is_left(&world).await;
        assert_eq!(world.waiting_in("seckill.orders").await, 1);
        // Nothing else declares anything here: there is no consumer, and the relay's connection stands.
        unbind_order_queue(&world.servers.rabbit).await;
        world.bought(&sale, "unbound").await;
        nothing_is_left(&world).await;
        eventually("both", async || world.waiting_in("seckill.orders").await == 2).await;
        delete_order_queue(&world.servers.rabbit).await;
        world.bought(&sale, "deleted").await;
        nothing_is_left(&world).await;
        eventually("the last one", async || world.waiting_in("seckill.orders").await == 1).await;
        assert_eq!(parked(&world).await, 0);
        // The two that went with the queue had been confirmed: they are repaired from the ledger.
        let rest = world.extra_roles(&[Consumer, Reconcile], |_| {});
        eventually("all three", async || world.orders(&sale).await == 3).await;
        rest.stop().await;
        world.finish().await;
    });
}

/// Limits the queue and buys one by one until the broker refuses. Returns how many were bought.
async fn fill_queue(world: &World, sale: &SaleId, max: u32) -> u64 {
    world.bought(sale, "first").await;
    nothing_is_left(world).await;
    limit_queues(world, Some(max)).await;
    // It takes a few more than its limit, and learns of the limit a moment later.
    for bought in 2..100 {
        world.bought(sale, &format!("filler-{bought}")).await;
        let refused = async || !attempts(world).await.is_empty() || parked(world).await > 0;
        eventually("a verdict", async || refused().await || world.outbox().await.0 == 0).await;
        if refused().await {
            return bought;
        }
    }
    panic!("a queue for {max} took everything");
}

#[test]
fn what_a_full_queue_refused_is_sent_again_when_it_has_room() {
    run(async {
        let set = ["p3_relay.attempts_max=1000", "p3_relay.backoff_max_ms=200", ALONE[0], ALONE[1]];
        let world = World::with(&[Api, Relay], &set).await;
        let sale = world.sale("full", 100, Some(1)).await;
        let all = fill_queue(&world, &sale, 5).await + 40;
        world.sell(&sale, 40).await;
        eventually("nacks", async || attempts(&world).await.iter().any(|count| *count >= 3)).await;
        assert!(world.outbox().await.0 > 0 && world.waiting_in("seckill.orders").await >= 5);
        // This broker refuses for ever on a channel that it has refused on, once the limit is gone.
        limit_queues(&world, None).await;
        nothing_is_left(&world).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("everything", async || world.orders(&sale).await == i64::try_from(all).unwrap()).await;
        assert_eq!(parked(&world).await, 0);
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn what_a_full_queue_refused_too_often_is_parked_and_is_persisted_from_the_ledger() {
    run(async {
        let world = World::with(&[Api, Relay], &["p3_relay.attempts_max=2", ALONE[0], ALONE[1]]).await;
        let sale = world.sale("fuller", 100, Some(1)).await;
        let all = fill_queue(&world, &sale, 1).await + 30;
        world.sell(&sale, 30).await;
        nothing_is_left(&world).await;
        let entries = world.servers.redis.relay_dlq.page(0, "-", 100).await.unwrap();
        assert!(entries.len() >= 20, "{} refused", entries.len());
        assert!(entries.iter().all(|entry| entry.attempts == 2 && entry.reason.starts_with("nack")), "{entries:?}");
        assert_eq!(entries.len() as u64 + world.waiting_in("seckill.orders").await, all);
        let rest = world.extra_roles(&[Consumer, Reconcile], |_| {});
        let landed = async || world.orders(&sale).await == i64::try_from(all).unwrap();
        eventually("everything", async || landed().await && parked(&world).await == 0).await;
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn the_publishing_rate_can_be_capped_and_nothing_is_lost_by_it() {
    run(async {
        const RATE: u32 = 60;
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("cap", 1_000, Some(1)).await;
        world.sell(&sale, 300).await;
        let begun = Instant::now();
        let relay = world.extra_roles(&[Relay], |settings| settings.p3_relay.rate_per_s = RATE);
        loop {
            let left = world.outbox().await.0;
            // A second's worth may go at once; after that the rate. A slow machine only sends less.
            let allowed = f64::from(RATE) * (1.0 + begun.elapsed().as_secs_f64()) + 1.0;
            assert!((300 - left) as f64 <= allowed, "{} sent after {:?}", 300 - left, begun.elapsed());
            if left == 0 {
                break;
            }
            pause().await;
        }
        eventually("everything", async || world.orders(&sale).await == 300).await;
        relay.stop().await;
        world.finish().await;
    });
}
