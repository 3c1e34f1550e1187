//! Every outcome is reported to downstream systems at least once (D10), by whichever process it was decided, and whichever
//! died over it.

use crate::support::outside::downstream::Downstream;
use crate::support::world::{ALONE, World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::operator::Actor;
use seckill::p5_reconcile::dlq::{DlqAction, DlqSelection, DlqService};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::declare;

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
        assert!(downstream.counts.is_empty(), "{:?}", downstream.counts);
        let consumer = world.extra_roles(&[Consumer], |_| {});
        downstream.receives(bob, "CONFIRMED", 1).await;
        downstream.receives(alice, "FAILED DUPLICATE_BUYER", 1).await;
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
        assert!(downstream.counts.is_empty());
        let consumer = world.extra_roles(&[Consumer], |_| {});
        downstream.receives(alice, "CONFIRMED", 1).await;
        downstream.receives(bob, "FAILED DUPLICATE_BUYER", 1).await;
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
        downstream.receives(carol, "CONFIRMED", 1).await;
        downstream.receives(dave, "FAILED GIVEN_UP", 1).await;
        brief.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn an_outcome_whose_message_is_a_dead_letter_by_then_is_reported_too() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("late", 100, Some(1)).await;
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        world.lose_the_outbox().await;
        // What a last try leaves whose commit was not answered: the order, and its message in the MQ DLQ.
        declare(&world.servers.rabbit).await.unwrap();
        for id in [alice, bob] {
            let accepted = world.accepted(&sale, id).await;
            world.servers.rows.persister.persist_one(&accepted, PersistSource::Relay).await.unwrap();
            world.park_request_in_mq(&sale, id).await;
        }
        let desk = DlqService { context: world.reconcile_context(), actor: Actor::at_the_terminal("an operator") };
        let bobs = DlqSelection { named: vec![bob.to_string()], ..DlqSelection::default() };
        desk.apply(&DlqAction::Replay, &bobs, &|_, _| {}).await.unwrap();
        let both = world.extra_roles(&[Reconcile, Consumer], |_| {});
        eventually("no dead letters", async || world.waiting_in("seckill.dlq").await == 0).await;
        downstream.receives(alice, "CONFIRMED", 1).await;
        downstream.receives(bob, "CONFIRMED", 1).await;
        both.stop().await;
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
            downstream.receives(*id, "CONFIRMED", 1).await;
        }
        assert_eq!(downstream.counts.len(), 250);
        assert!(downstream.counts.values().all(|times| *times == 1), "{:?}", downstream.counts);
        assert!((2..=100).contains(&downstream.largest), "largest bundle {}", downstream.largest);
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn events_without_a_listener_hold_nothing_up() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("unheard", 1_000, Some(1)).await;
        world.sell(&sale, 200).await;
        eventually("200 orders", async || world.orders(&sale).await == 200).await;
        eventually("empty queues", async || world.waiting_in("seckill.").await == 0).await;
        world.finish().await;
    });
}

/// The event of an order that was paid.
fn paid(id: u64) -> String {
    format!(
        r#"{{"v":1,"rid":"{id}","sale":"s","user":"u","qty":1,"status":"PAID","amount":1,"currency":"CNY","version":2,"at":1}}"#
    )
}

#[test]
fn events_around_one_that_cannot_be_read_are_published_and_it_stays_and_is_reported() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        let failed = r#"{"v":1,"rid":"6","sale":"s","user":"u","qty":1,"status":"FAILED","reason":"GIVEN_UP"}"#;
        // Of the orders, the first says that it has two events and has none, the third that it has one and is no JSON: a message with
        // it could not be read either.
        let rows = format!(
            "INSERT INTO order_events (request_id, event_key, events_count, body) VALUES (1, 'order.paid', 2, 'broken'), \
             (2, 'order.paid', 1, '{}'), (3, 'order.paid', 1, '{{'), (4, 'order.paid', 1, '{}'); \
             INSERT INTO outcome_event (request_id, event_key, body) VALUES (5, 'order.failed', ''), (6, 'order.failed', '{failed}')",
            paid(2),
            paid(4)
        );
        world.sql(&rows).await;
        let consumer = world.process("consumer", "", &[]);
        for (id, status) in [(2, "PAID"), (4, "PAID"), (6, "FAILED GIVEN_UP")] {
            downstream.receives(RequestId::new(id).unwrap(), status, 1).await;
        }
        let unreadable = |table: &str| format!("seckill_p4_persist_events_unreadable_count{{table=\"{table}\"}}");
        consumer.until_metric(&unreadable("order_events"), |count| count == 2.0).await;
        consumer.until_metric(&unreadable("outcome_event"), |count| count == 1.0).await;
        let log = consumer.program.stderr();
        let said = |line: &&str| line.contains("ERROR") && line.contains("an event cannot be read");
        assert_eq!(log.lines().filter(said).count(), 3, "each once: {log}");
        eventually("the others are forgotten", async || world.rows("order_events", "TRUE").await == 2).await;
        assert_eq!(world.rows("order_events", "request_id IN (1, 3)").await, 2, "they stay for a person");
        assert_eq!(world.rows("outcome_event", "request_id = 5").await, 1);
        world.sql("DELETE FROM order_events; DELETE FROM outcome_event").await;
        for table in ["order_events", "outcome_event"] {
            consumer.until_metric(&unreadable(table), |count| count == 0.0).await;
        }
        consumer.kill();
        world.finish().await;
    });
}

#[test]
fn a_page_full_of_events_that_cannot_be_read_does_not_hide_those_behind_it() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut downstream = Downstream::listen(&world).await;
        // More than a page of each table has.
        for (id, of) in
            [(1, "order_events (request_id, event_key, body)"), (2, "outcome_event (request_id, event_key, body)")]
        {
            let rows: Vec<String> = (1000..1600).map(|row| format!("({row}, 'order.paid', '{{')")).collect();
            world.sql(&format!("INSERT INTO {of} VALUES {}", rows.join(", "))).await;
            let id = 5000 + id;
            world.sql(&format!("INSERT INTO {of} VALUES ({id}, 'order.paid', '{}')", paid(id))).await;
        }
        let consumer = world.process("consumer", "", &[]);
        for id in [5001, 5002] {
            downstream.receives(RequestId::new(id).unwrap(), "PAID", 1).await;
        }
        eventually("they stay", async || world.rows("order_events", "TRUE").await == 600).await;
        eventually("they stay", async || world.rows("outcome_event", "TRUE").await == 600).await;
        consumer.kill();
        world.finish().await;
    });
}

#[test]
fn events_that_are_not_published_are_counted_with_the_age_of_the_oldest() {
    run(async {
        let world = World::with(&[], &[]).await;
        // No consumer runs. Two rows of three events, and one of an outcome.
        world
            .sql(
                "INSERT INTO order_events (request_id, event_key, events_count, body, created_at) VALUES \
                 (1, 'order.expired', 2, '{}', NOW(3) - INTERVAL 2 HOUR), (3, 'order.paid', 1, '{}', NOW(3)); \
                 INSERT INTO outcome_event (request_id, event_key, body, created_at) VALUES \
                 (4, 'order.failed', '{}', NOW(3) - INTERVAL 1 HOUR)",
            )
            .await;
        let reconcile = world.process("reconcile", "", &[]);
        let oldest = |table: &str| format!("seckill_p5_reconcile_events_untold_oldest_seconds{{table=\"{table}\"}}");
        reconcile.until_metric("seckill_p5_reconcile_order_events_untold_count", |count| count == 3.0).await;
        reconcile.until_metric("seckill_p5_reconcile_events_untold_count", |count| count == 1.0).await;
        reconcile.until_metric(&oldest("order_events"), |age| (7200.0..10_000.0).contains(&age)).await;
        reconcile.until_metric(&oldest("outcome_event"), |age| (3600.0..7000.0).contains(&age)).await;
        world.sql("DELETE FROM order_events; DELETE FROM outcome_event").await;
        reconcile.until_metric("seckill_p5_reconcile_order_events_untold_count", |count| count == 0.0).await;
        reconcile.until_metric(&oldest("order_events"), |age| age == 0.0).await;
        reconcile.kill();
        world.finish().await;
    });
}
