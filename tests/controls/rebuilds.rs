//! What a rebuild waits for and what it counts.

use crate::scene::{
    PIPELINE, QUICK, ROUNDS_MS, found_at_last, lose_the_keys, message_of, parked, rebuilt, sells, units, with_queues,
};
use crate::support::world::fault_injection::purge_mq_dlq;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, harms_without};
use seckill::domain::message::encode;
use seckill::faults::Mechanism;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{
    Consumer as QueueReader, Delivery, Outgoing, PublishRoute, RabbitConfig, Topology, send_all,
};
use std::time::Duration;

#[test]
fn a_rebuild_that_does_not_wait_for_the_outbox_sells_a_unit_twice() {
    harms_without(Mechanism::NothingOnItsWay, async |plays| {
        let world = with_queues(&[Api], QUICK).await;
        let sale = world.sale("on-its-way", 10, Some(1)).await;
        world.bought(&sale, "alice").await;
        lose_the_keys(&world, &sale).await;
        let leader = world.extra_roles(&[Reconcile], |_| {});
        match plays {
            Plays::With => time_passes(ROUNDS_MS).await,
            Plays::Without => rebuilt(&world, &sale, 1).await,
        }
        let rest = world.extra_roles(&[Relay, Consumer], |_| {});
        eventually("an order", async || world.orders(&sale).await == 1).await;
        rebuilt(&world, &sale, 1).await;
        let found = found_at_last(&world, &sale).await;
        rest.stop().await;
        leader.stop().await;
        world.stop().await;
        found
    });
}

#[test]
fn a_rebuild_without_the_quiet_time_sells_what_a_consumer_has_in_hand() {
    harms_without(Mechanism::QuietTime, async |plays| {
        let world = World::with(&[Api, Relay], QUICK).await;
        let sale = world.sale("in-hand", 10, Some(1)).await;
        world.bought(&sale, "alice").await;
        eventually("at the broker", async || world.outbox().await == (0, 0)).await;
        let mut hand = QueueReader::connect(&world.servers.rabbit, &[0], 10).await.unwrap();
        let held = hand.recv_group(10, Duration::from_secs(10)).await.unwrap();
        assert_eq!(held.len(), 1);
        lose_the_keys(&world, &sale).await;
        let leader = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.quiet_ms = 60_000);
        match plays {
            Plays::With => time_passes(ROUNDS_MS).await,
            Plays::Without => rebuilt(&world, &sale, 1).await,
        }
        leader.stop().await;
        drop(hand);
        let rest = world.extra_roles(&[Consumer, Reconcile], |_| {});
        eventually("an order", async || world.orders(&sale).await == 1).await;
        rebuilt(&world, &sale, 1).await;
        let found = found_at_last(&world, &sale).await;
        rest.stop().await;
        world.stop().await;
        found
    });
}

#[test]
fn a_rebuild_that_does_not_count_dead_letters_sells_their_units() {
    harms_without(Mechanism::DeadLettersCount, async |_| {
        let mut world = World::with(&PIPELINE, QUICK).await;
        let sale = world.sale("dead", 10, Some(1)).await;
        world.ordered(&sale, "alice").await;
        let bob = parked(&world, &sale, "bob").await;
        let message = message_of(&world, &sale, bob).await;
        lose_the_keys(&world, &sale).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        // A person has it replayed.
        world.publish(&[encode(&message).into_bytes()]).await;
        eventually("an order", async || world.orders(&sale).await == 2).await;
        let found = found_at_last(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn the_unit_of_a_gap_is_there_twice_when_a_rebuild_sells_it() {
    harms_without(Mechanism::GapsHeld, async |_| {
        let mut world = World::with(&PIPELINE, QUICK).await;
        let sale = world.sale("gap", 10, Some(1)).await;
        world.ordered(&sale, "alice").await;
        parked(&world, &sale, "lost").await;
        world.ordered(&sale, "carol").await;
        // Everything that knew of it goes.
        lose_the_keys(&world, &sale).await;
        purge_mq_dlq(&world.servers.rabbit).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        world
            .sql(&format!(
                "INSERT INTO closed_findings (sale_id, code, epoch, shard, first_number, last_number, units, reason, closed_by) \
                 VALUES ('{sale}', 'P5-RC4', 1, 0, 2, 2, 1, 'r', 'test')"
            ))
            .await;
        let mut found = found_at_last(&world, &sale).await;
        if !found.is_empty() {
            found.push(format!("{} units in Redis", units(&world, &sale).await));
        }
        world.stop().await;
        found
    });
}

#[test]
fn the_unit_of_a_closed_number_is_there_twice_when_a_late_message_of_it_becomes_an_order() {
    harms_without(Mechanism::ClosedNumbers, async |_| {
        let mut world = World::with(&PIPELINE, QUICK).await;
        let sale = world.sale("closed", 10, Some(1)).await;
        world.ordered(&sale, "alice").await;
        let lost = parked(&world, &sale, "lost").await;
        let message = message_of(&world, &sale, lost).await;
        world.ordered(&sale, "carol").await;
        lose_the_keys(&world, &sale).await;
        purge_mq_dlq(&world.servers.rabbit).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        world.cli(&["finding", "close", "closed", "--gap", "1:0:2", "--reason", "refunded"]).exits(0);
        world.cli(&["sale", "reclaim", "closed"]).exits(0);
        world.publish(&[encode(&message).into_bytes()]).await;
        let outcome = format!("request_id = {lost}");
        eventually("an outcome", async || world.rows("request_outcome", &outcome).await == 1).await;
        let found = found_at_last(&world, &sale).await;
        world.stop().await;
        found
    });
}

/// Takes the only message of the order queue.
async fn take(hand: &mut QueueReader) -> Delivery {
    let mut group = hand.recv_group(10, Duration::from_secs(20)).await.unwrap();
    assert_eq!(group.len(), 1);
    group.remove(0)
}

/// What a consumer does with a message that fails again and again: it is in a hand for most of the time, each time for less than
/// the quiet time.
async fn goes_round(rabbit: RabbitConfig) {
    let mut hand = QueueReader::connect(&rabbit, &[0], 10).await.unwrap();
    let retry = Topology::new(&rabbit).retry_exchange(1);
    let mut publisher = None;
    loop {
        let mut held = take(&mut hand).await;
        time_passes(IN_HAND_MS).await;
        let order = held.take_order().unwrap();
        let route = PublishRoute { exchange: &retry, key: &held.routing_key };
        let copy = Outgoing::new(route, order.purchase.request_id.to_string(), encode(&order).into_bytes());
        send_all(&rabbit, &mut publisher, vec![copy]).await.unwrap();
        hand.ack(&[held.id]).await.unwrap();
    }
}

const IN_HAND_MS: u64 = 600;
const QUIET_MS: u64 = 1_500;

#[test]
fn a_rebuild_that_searches_the_retry_queues_only_now_and_then_misses_what_goes_through_them() {
    harms_without(Mechanism::RetriesWatched, async |plays| {
        let world = World::with(&[Api, Relay], &["rabbitmq.queues=1"]).await;
        let sale = world.sale("round", 10, Some(1)).await;
        world.bought(&sale, "alice").await;
        eventually("at the broker", async || world.outbox().await == (0, 0)).await;
        let round = tokio::spawn(goes_round(world.servers.rabbit.clone()));
        eventually("in a hand", async || world.waiting_in("seckill.orders").await == 0).await;
        lose_the_keys(&world, &sale).await;
        let leader = world.extra_roles(&[Reconcile], |settings| {
            (settings.p5_reconcile.interval_ms, settings.p5_reconcile.quiet_ms) = (1_000, QUIET_MS);
        });
        match plays {
            Plays::With => {
                time_passes(8 * QUIET_MS).await;
                assert!(!sells(&world, &sale).await, "her unit would be sold twice");
            }
            // In a hand at each search, by chance.
            Plays::Without => rebuilt(&world, &sale, 1).await,
        }
        assert!(!round.is_finished(), "it goes round all the time");
        round.abort();
        let rest = world.extra_roles(&[Consumer], |_| {});
        eventually("an order", async || world.orders(&sale).await == 1).await;
        rebuilt(&world, &sale, 1).await;
        let found = found_at_last(&world, &sale).await;
        rest.stop().await;
        leader.stop().await;
        world.stop().await;
        found
    });
}
