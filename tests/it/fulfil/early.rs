//! Payments that come before their order (S7): nothing is decided about money while the order is to come.

use crate::support::basics::answer::Answer;
use crate::support::buyers::orders::LONG;
use crate::support::links::link::Link;
use crate::support::world::database_sessions::{ROLES, Session};
use crate::support::world::fault_injection::port_of;
use crate::support::world::parts::mysql_store::rows;
use crate::support::world::shared_servers::shared;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::outcome::Verdict;
use seckill::domain::sale::MetaState;
use seckill::roles::Role::{Api, Reconcile, Relay};
use seckill::store::mysql::codes::PersistSource;
use serde_json::json;

/// Status, code, and whether it says when to come back.
fn said(answer: &Answer) -> (u16, String, bool) {
    (answer.status, answer.code(), answer.retry_after_s() > 0)
}

/// A payment as an older version has recorded it, when the order was not there yet.
async fn reported_before(world: &World, id: &str, order: RequestId, (amount, state): (i64, &str)) {
    let columns = "payment_id, request_id, amount_cents, currency, state, reason";
    let row = format!("'{id}', {order}, {amount}, 'CNY', '{state}', 'NO_ORDER'");
    world.sql(&format!("INSERT INTO payments ({columns}) VALUES ({row})")).await;
}

#[test]
fn money_for_an_order_that_is_still_to_be_written_is_refused_for_now_and_pays_it_later() {
    run(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("early", 5, Some(1), LONG).await;
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'early'").await;
        let alice = world.bought(&sale, "alice").await;

        let not_yet = (503, "ORDER_NOT_WRITTEN".to_owned(), true);
        let early = admin.pay(alice, "pi_1").await;
        assert_eq!(said(&early), not_yet, "{early:?}");
        let beginning = admin.post(&format!("/orders/{alice}/paying"), json!({})).await;
        let cancelling = admin.post(&format!("/orders/{alice}/cancel"), json!({ "reason": "r" })).await;
        for answer in [&beginning, &cancelling] {
            assert_eq!((answer.status, answer.retry_after_s() > 0), (503, true), "{answer:?}");
        }
        let amount = ["--payment-id", "pi_1", "--amount", "100", "--currency", "CNY"];
        let refused = world.cli(&[&["order", "paid", &alice.to_string()], amount.as_slice()].concat()).exits(1);
        assert!(refused.err.contains("not written yet") && refused.err.contains("nothing was recorded"), "{refused:?}");
        assert_eq!((world.rows("payments", "TRUE").await, world.rows("operator_acts", "TRUE").await), (0, 0));

        other.run("ROLLBACK").await;
        eventually("an order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        assert_eq!(admin.pay(alice, "pi_1").await.code(), "P6-F1");
        assert!(world.order_in("PAID", alice).await);
        world.finish().await;
    });
}

#[test]
fn money_that_was_recorded_before_its_order_pays_it_when_it_is_told_again() {
    run(async {
        let world = World::start().await;
        let admin = world.admin_port();
        let sale = world.paying_sale("again", 5, Some(1), LONG).await;
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'again'").await;
        let mut orders = Vec::new();
        for user in ["alice", "bob", "carol"] {
            orders.push(world.bought(&sale, user).await);
        }
        let [alice, bob, carol] = orders[..] else { panic!("three orders") };
        reported_before(&world, "pi_alice", alice, (100, "REFUND_NEEDED")).await;
        reported_before(&world, "pi_bob", bob, (100, "REFUNDED")).await;
        reported_before(&world, "pi_carol", carol, (99, "REFUND_NEEDED")).await;
        let early = admin.pay(alice, "pi_alice").await;
        assert_eq!((early.status, early.code()), (503, "ORDER_NOT_WRITTEN".to_owned()), "{early:?}");
        other.run("ROLLBACK").await;
        eventually("three orders", async || world.orders(&sale).await == 3).await;

        // A provider may report it several times at once.
        let repeats = futures::future::join_all((0..6).map(|_| admin.pay(alice, "pi_alice"))).await;
        for paid in repeats {
            assert_eq!((paid.status, paid.code()), (200, "P6-F1".to_owned()), "{paid:?}");
        }
        assert!(world.order_in("PAID", alice).await);
        let applied = "payment_id = 'pi_alice' AND state = 'APPLIED' AND reason IS NULL AND sale_id = 'again'";
        assert_eq!(world.rows("payments", applied).await, 1);
        assert_eq!(world.rows("operator_acts", "action = 'order.paid' AND outcome = 'ok'").await, 1, "one act");
        assert_eq!(world.rows("orders", &format!("request_id = {alice} AND version = 2")).await, 1, "one event");

        let gone = admin.pay(bob, "pi_bob").await;
        assert_eq!((gone.code(), gone.text("reason")), ("P6-F4".to_owned(), "NO_ORDER".to_owned()), "{gone:?}");
        let other_amount = admin.pay_amount(carol, "pi_carol", 99).await;
        assert_eq!(other_amount.code(), "P6-F4", "{other_amount:?}");
        assert!(world.order_in("UNPAID", bob).await && world.order_in("UNPAID", carol).await);
        assert_eq!(admin.get("/refunds").await.json["count"], 1, "carol's");
        world.finish().await;
    });
}

#[test]
fn money_for_a_request_that_failed_has_to_go_back_and_says_so() {
    run(async {
        let mut world = World::with(&[Api, Relay], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("failed", 5, Some(1), LONG).await;
        let alice = world.bought(&sale, "alice").await;
        let accepted = world.accepted(&sale, alice).await;
        world.servers.rows.persister.give_up(&accepted, "why", "who").await.unwrap();
        let paid = admin.pay(alice, "pi_1").await;
        let found = (paid.status, paid.code(), paid.text("reason"));
        assert_eq!(found, (200, "P6-F4".to_owned(), "REQUEST_FAILED".to_owned()), "{paid:?}");
        world.stop_roles().await;
        world.start_roles(&seckill::roles::Role::ALL).await;
        world.finish().await;
    });
}

#[test]
fn nothing_is_decided_about_money_for_a_closed_sale_whose_redis_forgot_what_it_accepted_last() {
    run(async {
        let mut world = World::with(&[Api, Relay], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("tail", 5, Some(1), LONG).await;
        let redis = &world.servers.redis;
        let mut copies = Vec::new();
        for key in redis.keys.of_warmed(0, &sale) {
            let copy = format!("copy-of-{key}");
            world.redis(&["COPY", &key, &copy]).await;
            copies.push((key, copy));
        }
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        let of_alice = world.accepted(&sale, alice).await;
        eventually("both are at the broker", async || world.outbox().await == (0, 0)).await;
        world.cli(&["sale", "close", "tail"]).exits(0);
        for (key, copy) in &copies {
            world.redis(&["DEL", key]).await;
            world.redis(&["COPY", copy, key]).await;
        }
        redis.sale_keys.set_state(&sale, 0, MetaState::Closed, &MetaState::ALL).await.unwrap();
        let landed = rows(&world.servers.db).persister.persist_all(&[of_alice], PersistSource::Relay).await;
        assert_eq!(landed, [Ok(Verdict::Ordered)]);

        let early = admin.pay(bob, "pi_1").await;
        assert_eq!(said(&early), (503, "ORDER_NOT_WRITTEN".to_owned(), true), "{early:?}");
        assert_eq!(world.rows("payments", "TRUE").await, 0);
        world.stop_roles().await;
        world.start_roles(&ROLES).await;
        eventually("his order", async || world.order_in("UNPAID", bob).await).await;
        assert_eq!(admin.pay(bob, "pi_1").await.code(), "P6-F1");
        // Of a week ago, nothing is on its way any more.
        let unknown = RequestId::new(7).unwrap();
        assert_eq!(admin.pay(unknown, "pi_2").await.status, 503);
        world.sql("UPDATE request_outcome SET created_at = created_at - INTERVAL 8 DAY").await;
        assert_eq!(admin.pay(unknown, "pi_2").await.text("reason"), "NO_ORDER");
        world.stop_roles().await;
    });
}

#[test]
fn a_closed_sale_that_has_left_redis_keeps_no_money_from_being_decided() {
    run(async {
        let world = World::with(&ROLES, &["p5_reconcile.interval_ms=100"]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("left", 5, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        assert_eq!(admin.pay(alice, "pi_1").await.code(), "P6-F1");
        world.settled(&sale).await;
        world.cli(&["sale", "close", "left"]).exits(0);
        let nowhere = admin.pay(RequestId::new(7).unwrap(), "pi_2").await;
        assert_eq!(nowhere.text("reason"), "NO_ORDER", "its keys are there: {nowhere:?}");
        let short = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.ledger_retention_s = 1);
        let meta = world.servers.redis.keys.meta(0, &sale);
        eventually("gone from redis", async || world.redis(&["EXISTS", &meta]).await.as_u64() == Some(0)).await;
        short.stop().await;
        let nowhere = admin.pay(RequestId::new(8).unwrap(), "pi_3").await;
        assert_eq!(nowhere.text("reason"), "NO_ORDER", "removed after an audit: {nowhere:?}");
        world.sql("DELETE FROM sale_epochs").await;
        let unread = admin.pay(RequestId::new(9).unwrap(), "pi_4").await;
        assert_eq!(said(&unread), (503, "ORDER_NOT_WRITTEN".to_owned(), true), "gone, for no known reason: {unread:?}");
        world.finish().await;
    });
}

#[test]
fn nothing_is_decided_about_money_while_a_ledger_that_may_have_its_request_cannot_be_read() {
    run(async {
        let direct = shared().await.urls().redis_url;
        let hole = Link::before(port_of(&direct)).await;
        let world = World::on_redis(&hole.url(&direct), "early-hole", &ROLES, &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("unread", 5, Some(1), LONG).await;
        let unknown = RequestId::new(7).unwrap();
        let unread = async |why: &str| {
            let answer = admin.pay(unknown, "pi_1").await;
            assert_eq!(said(&answer), (503, "ORDER_NOT_WRITTEN".to_owned(), true), "{why}: {answer:?}");
            assert_eq!(world.rows("payments", "TRUE").await, 0, "{why}");
        };
        hole.loses_answers(true);
        unread("redis is silent").await;
        hole.loses_answers(false);
        let keys = &world.servers.redis.sale_keys;
        let set =
            async |to, from| eventually("a state", async || keys.set_state(&sale, 0, to, &[from]).await.is_ok()).await;
        set(MetaState::Frozen, MetaState::Open).await;
        unread("the sale is frozen").await;
        set(MetaState::Open, MetaState::Frozen).await;
        let nowhere = admin.pay(unknown, "pi_1").await;
        assert_eq!((nowhere.status, nowhere.text("reason")), (200, "NO_ORDER".to_owned()), "{nowhere:?}");
        // What is on record of the same money holds, whichever server is away now.
        hole.loses_answers(true);
        let again = admin.pay(unknown, "pi_1").await;
        assert_eq!((again.status, again.text("reason")), (200, "NO_ORDER".to_owned()), "{again:?}");
        hole.loses_answers(false);
        set(MetaState::Open, MetaState::Open).await;
        world.finish().await;
    });
}

#[test]
fn a_cancellation_gives_its_own_units_and_no_others() {
    run(async {
        let world = World::with(&ROLES, &[]).await;
        let sale = world.paying_sale("own", 5, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        // As a crash leaves it: units of somebody else that Redis was not given yet.
        world
            .sql(
                "INSERT INTO stock_grants (sale_id, grant_id, kind, quantity) VALUES ('own', 'cancel-7', 'reclaim', 0)",
            )
            .await;
        assert_eq!(world.cancel_mine("alice", alice).await.text("state"), "CANCELLED");
        let given = async |grant: String| {
            world.rows("stock_grants", &format!("grant_id = '{grant}' AND applied_at IS NOT NULL")).await
        };
        assert_eq!((given(format!("cancel-{alice}")).await, given("cancel-7".to_owned()).await), (1, 0));
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(5));
        world.sql("DELETE FROM stock_grants WHERE grant_id = 'cancel-7'").await;
        world.finish().await;
    });
}
