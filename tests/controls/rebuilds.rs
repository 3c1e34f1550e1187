//! What a rebuild waits for and what it counts.

use crate::scene::{
    PIPELINE, QUICK, ROUNDS_MS, found_at_last, lose_the_keys, message_of, parked, rebuilt, units, with_queues,
};
use crate::support::world::fault_injection::purge_mq_dlq;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, harms_without};
use seckill::domain::message::encode;
use seckill::faults::Mechanism;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::Consumer as QueueReader;
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
