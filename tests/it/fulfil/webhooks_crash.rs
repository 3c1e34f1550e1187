//! Crashes around the deliveries of webhooks: neither a change without its delivery, nor a delivery that is never sent.

use crate::support::buyers::orders::LONG;
use crate::support::outside::hook_receiver::{HookReceiver, SOON};
use crate::support::world::parts::mysql_store::rows;
use crate::support::world::{World, eventually, run};
use seckill::events::webhooks::rows::TriedDelivery;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn a_change_and_its_delivery_are_written_together_or_not_at_all() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&[Api, Relay], &[], &receiver).await;
        let sale = world.paying_sale("together", 10, Some(1), LONG).await;
        // A consumer dies with the rows written and before its COMMIT, then behind it.
        for (user, point, there) in [("alice", "F13", 0), ("bob", "F14", 0), ("carol", "F16", 1)] {
            let before = world.rows("webhook_deliveries", "TRUE").await;
            let id = world.bought(&sale, user).await;
            world.process("consumer", &format!("{point}=return"), &[]).dies_at(point).await;
            let orders = world.rows("orders", &format!("request_id = {id}")).await;
            let deliveries = world.rows("webhook_deliveries", "TRUE").await - before;
            assert_eq!((orders, deliveries), (there, there), "{point}");
            let next = world.extra_roles(&[Consumer], |_| {});
            eventually("an order", async || world.status_of(&sale, user, id).await.0 == "CONFIRMED").await;
            next.stop().await;
            assert_eq!(world.rows("webhook_deliveries", &format!("request_id = {id}")).await, 1, "{point}");
        }
        // The same for a payment.
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let dave = world.ordered(&sale, "dave").await;
        let rid = dave.to_string();
        let args = ["order", "paid", &rid, "--payment-id", "p", "--amount", "100", "--currency", "CNY"];
        let paid = format!("request_id = {dave} AND event_key = 'order.paid'");
        for (point, there) in [("F30", 0), ("F31", 1)] {
            assert_eq!(world.cli_with_faults(&format!("{point}=return"), &args).code, None);
            assert_eq!(world.rows("webhook_deliveries", &paid).await, there, "{point}");
            assert_eq!(world.order_in("PAID", dave).await, there == 1, "{point}");
        }
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        receiver.receives("order.paid", dave).await;
        eventually("all is delivered", async || world.deliveries("DELIVERED").await == 5).await;
        assert_eq!(receiver.taken().len(), 5, "each once, however often its writer died");
        reconcile.stop().await;
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_sender_that_dies_at_any_line_is_followed_by_one_that_sends_what_is_due() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&[Api, Relay, Consumer], &[], &receiver).await;
        let sale = world.paying_sale("dies", 10, Some(1), LONG).await;
        for (point, calls, waiting) in [("F40", 0, 1), ("F41", 1, 1), ("F42", 1, 0)] {
            let before = receiver.calls().len();
            let id = world.ordered(&sale, point).await;
            world.process("reconcile", &format!("{point}=return"), &[SOON]).dies_at(point).await;
            assert_eq!(receiver.calls().len() - before, calls, "{point}");
            assert_eq!(world.deliveries("WAITING").await, waiting, "{point}");
            let next = world.extra_roles(&[Reconcile], |_| {});
            receiver.receives("order.confirmed", id).await;
            eventually("it is recorded", async || world.deliveries("WAITING").await == 0).await;
            next.stop().await;
        }
        // Twice where the receiver had it and the database did not know, under one id.
        let mut times: Vec<u32> = receiver.taken().into_values().collect();
        times.sort_unstable();
        assert_eq!(times, [1, 1, 2]);
        world.finish().await;
    });
}

#[test]
fn a_leader_that_is_killed_while_it_sends_is_followed_by_one_that_sends_it_again() {
    run(async {
        let receiver = HookReceiver::start().await;
        receiver.falls_silent();
        let world = World::with_hook(&[Api, Relay, Consumer], &[], &receiver).await;
        let sale = world.paying_sale("killed", 10, Some(1), LONG).await;
        let id = world.ordered(&sale, "alice").await;
        let leader = world.process("reconcile", "", &[SOON]);
        eventually("it sends", async || receiver.calls().len() == 1).await;
        leader.kill();
        assert_eq!(world.rows("webhook_deliveries", "state = 'WAITING' AND attempts = 0").await, 1);
        receiver.answers("200 OK", "");
        let next = world.extra_roles(&[Reconcile], |_| {});
        receiver.receives("order.confirmed", id).await;
        let calls = receiver.calls();
        assert_eq!((calls.len(), calls[0].id()), (2, calls[1].id()));
        next.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_replay_that_dies_has_its_act_and_its_repeat_takes_what_is_still_dead() {
    run(async {
        let receiver = HookReceiver::start().await;
        let world = World::with_hook(&[Api, Relay, Consumer], &[], &receiver).await;
        let sale = world.paying_sale("replayed", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        world.sql("UPDATE webhook_deliveries SET state = 'DEAD', attempts = 9").await;
        let first =
            world.number("SELECT CAST(MIN(delivery_id) AS SIGNED) AS n FROM webhook_deliveries").await.to_string();
        // By its number it is done with its act; of all dead ones the act is there before the first.
        for (acts, args) in [(1, vec!["webhook", "replay", &first]), (2, vec!["webhook", "replay", "--dead"])] {
            let died = world.cli_with_faults("F44=return", &args);
            assert_eq!(died.code, None, "{died:?}");
            let waiting = world.rows("webhook_deliveries", "state = 'WAITING' AND attempts = 0").await;
            assert_eq!(waiting, 1, "{args:?}");
            assert_eq!(world.rows("operator_acts", "action = 'webhook.replay' AND outcome = 'ok'").await, acts);
        }
        world.cli(&["webhook", "replay", "--dead"]).exits(0);
        assert_eq!(world.rows("webhook_deliveries", "state = 'WAITING' AND attempts = 0").await, 2);
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        for id in [alice, bob] {
            receiver.receives("order.confirmed", id).await;
        }
        eventually("all is delivered", async || world.deliveries("DELIVERED").await == 2).await;
        assert_eq!(receiver.taken().into_values().collect::<Vec<u32>>(), [1, 1], "each once");
        reconcile.stop().await;
        world.finish().await;
    });
}

/// On Galera two processes on different nodes may both lead.
#[test]
fn a_try_that_two_processes_made_counts_once_and_what_arrived_is_not_dead() {
    run(async {
        let world = World::with(&[], &[]).await;
        let db = &world.servers.db;
        let row = "INSERT INTO webhook_deliveries (webhook, request_id, event_key, body) VALUES ('shop', 1, 'order.paid', '{}')";
        world.sql(row).await;
        let due = rows(db).webhooks.due("shop", 1).await.unwrap();
        let (delivery_id, problem) = (due[0].delivery_id, "answers 500".to_owned());
        let attempts = async || world.number("SELECT attempts AS n FROM webhook_deliveries").await;
        let again = TriedDelivery::Again { delivery_id, attempts: 0, after_ms: 1, problem: problem.clone() };
        for _ in 0..2 {
            rows(db).webhooks.record_tries(std::slice::from_ref(&again)).await.unwrap();
            assert_eq!(attempts().await, 1);
        }
        for (before, dead) in [(0, 0), (1, 1)] {
            let last = TriedDelivery::Dead { delivery_id, attempts: before, problem: problem.clone() };
            rows(db).webhooks.record_tries(&[last]).await.unwrap();
            assert_eq!(world.rows("webhook_deliveries", "state = 'DEAD'").await, dead);
        }
        rows(db).webhooks.record_tries(&[TriedDelivery::Delivered { delivery_id, keep_s: 60 }]).await.unwrap();
        assert_eq!(world.rows("webhook_deliveries", "state = 'DELIVERED'").await, 1);
        world.finish().await;
    });
}
