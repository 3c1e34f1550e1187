//! Every outcome is reported to downstream systems at least once (D10), by whichever process it was decided, and whichever
//! died over it.

use crate::support::downstream::Downstream;
use crate::support::world::{ALONE, World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::operator::Actor;
use seckill::p5_reconcile::dlq::{DlqAction, DlqSelection, DlqService};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn every_outcome_a_message_brings_is_reported_and_again_after_a_death_before_the_ack() {
    run(async {
        let world = World::with(&[Api, Relay], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("events", 100, Some(1)).await;
        world.foreign_order(&sale, "alice", 7).await;
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        // Committed, and dead before anything was reported.
        world.process("consumer", "F16=return", &[]).dies_at("F16").await;
        eventually("the order", async || world.orders(&sale).await == 2).await;
        downstream.read().await;
        assert!(downstream.told.is_empty(), "{:?}", downstream.told);
        let consumer = world.extra_roles(&[Consumer], |_| {});
        downstream.hears(bob, "CONFIRMED", 1).await;
        downstream.hears(alice, "FAILED DUPLICATE_BUYER", 1).await;
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn outcomes_that_p5_and_operators_decide_are_reported_too() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("others", 100, Some(1)).await;
        world.foreign_order(&sale, "bob", 7).await;
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        // No relay: P5 persists both from the ledger. No consumer either: the events wait in the database.
        let reconcile = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.window_ms = 1_000);
        eventually("both decided", async || world.rows("request_outcome", "epoch > 0").await == 2).await;
        reconcile.stop().await;
        assert_eq!(world.rows("outcome_event", "1 = 1").await, 2);
        downstream.read().await;
        assert!(downstream.told.is_empty());
        let consumer = world.extra_roles(&[Consumer], |_| {});
        downstream.hears(alice, "CONFIRMED", 1).await;
        downstream.hears(bob, "FAILED DUPLICATE_BUYER", 1).await;
        eventually("events forgotten", async || world.rows("outcome_event", "1 = 1").await == 0).await;
        // An operator's replay and give-up, out of the register.
        world.sql("CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'").await;
        let relay = world.extra_roles(&[Relay], |_| {});
        let (carol, dave) = (world.bought(&sale, "carol").await, world.bought(&sale, "dave").await);
        consumer.stop().await;
        let brief = world.extra_roles(&[Consumer], |settings| settings.p4_persist.attempts_max = 1);
        eventually("two dead letters", async || world.waiting_in("seckill.dlq").await == 2).await;
        world.sql("DROP TRIGGER curse").await;
        let desk = DlqService { context: world.reconcile_context(), actor: Actor::at_the_terminal("an operator") };
        let named = |id: RequestId| DlqSelection { named: vec![id.to_string()], ..DlqSelection::default() };
        desk.apply(&DlqAction::Replay, &named(carol), &|_, _| {}).await.unwrap();
        desk.apply(&DlqAction::GiveUp("called off".to_owned()), &named(dave), &|_, _| {}).await.unwrap();
        downstream.hears(carol, "CONFIRMED", 1).await;
        downstream.hears(dave, "FAILED GIVEN_UP", 1).await;
        brief.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_crowd_of_outcomes_is_reported_in_bundles_each_once() {
    run(async {
        let world = World::with(&[Api, Relay], &ALONE).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("crowd", 1_000, Some(1)).await;
        let mut bought = Vec::new();
        for buyer in 0..250 {
            bought.push(world.bought(&sale, &format!("u{buyer}")).await);
        }
        eventually("all in the queue", async || world.waiting_in("seckill.orders").await == 250).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        for id in &bought {
            downstream.hears(*id, "CONFIRMED", 1).await;
        }
        assert_eq!(downstream.told.len(), 250);
        assert!(downstream.told.values().all(|times| *times == 1), "{:?}", downstream.told);
        assert!((2..=100).contains(&downstream.largest), "largest bundle {}", downstream.largest);
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn events_nobody_listens_to_hold_nothing_up() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("unheard", 1_000, Some(1)).await;
        world.sell(&sale, 200).await;
        eventually("200 orders", async || world.orders(&sale).await == 200).await;
        eventually("empty queues", async || world.waiting_in("seckill.").await == 0).await;
        world.finish().await;
    });
}

#[test]
fn events_that_cannot_be_read_are_an_error_in_the_log_and_hold_up_the_others_until_they_are_gone() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        // The first says that it has two events, and has none.
        world
            .sql(
                "INSERT INTO order_events (request_id, event_key, events_count, body) VALUES (1, 'order.paid', 2, 'broken'), \
                 (2, 'order.paid', 1, '{\"v\":1,\"rid\":\"2\",\"status\":\"PAID\"}')",
            )
            .await;
        let mut consumer = world.process("consumer", "", &[]);
        consumer.program.until_logged("no event is published").await;
        let log = consumer.program.stderr();
        let said = |line: &str| line.contains("ERROR") && line.contains("no event is published");
        assert!(log.lines().any(said), "{log}");
        world.sql("DELETE FROM order_events WHERE request_id = 1").await;
        downstream.hears(RequestId::new(2).unwrap(), "PAID", 1).await;
        eventually("forgotten", async || world.rows("order_events", "TRUE").await == 0).await;
        consumer.kill();
        world.finish().await;
    });
}
