//! Payments that come before their order (S7): nothing is decided about money while the order is to come.

use crate::support::answer::Answer;
use crate::support::black_hole::BlackHole;
use crate::support::database_sessions::{ROLES, Session};
use crate::support::fault_injection::port_of;
use crate::support::orders::LONG;
use crate::support::shared_servers::shared;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::sale::MetaState;
use seckill::roles::Role::{Api, Relay};
use serde_json::json;

/// Status, code, and whether it says when to come back.
fn said(answer: &Answer) -> (u16, String, bool) {
    (answer.status, answer.code(), answer.retry_after_s() > 0)
}

/// A payment as an older version has recorded it, when the order was not there yet.
async fn told_before(world: &World, id: &str, order: RequestId, (amount, state): (i64, &str)) {
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
        let told = world.cli(&[&["order", "paid", &alice.to_string()], amount.as_slice()].concat()).exits(1);
        assert!(told.err.contains("not written yet") && told.err.contains("nothing was recorded"), "{told:?}");
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
        told_before(&world, "pi_alice", alice, (100, "REFUND_NEEDED")).await;
        told_before(&world, "pi_bob", bob, (100, "REFUNDED")).await;
        told_before(&world, "pi_carol", carol, (99, "REFUND_NEEDED")).await;
        let early = admin.pay(alice, "pi_alice").await;
        assert_eq!((early.status, early.code()), (503, "ORDER_NOT_WRITTEN".to_owned()), "{early:?}");
        other.run("ROLLBACK").await;
        eventually("three orders", async || world.orders(&sale).await == 3).await;

        // A provider may tell it several times at once.
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
        world.servers.persister.give_up(&accepted, "why", "who").await.unwrap();
        let paid = admin.pay(alice, "pi_1").await;
        let found = (paid.status, paid.code(), paid.text("reason"));
        assert_eq!(found, (200, "P6-F4".to_owned(), "REQUEST_FAILED".to_owned()), "{paid:?}");
        world.stop_roles().await;
        world.start_roles(&seckill::roles::Role::ALL).await;
        world.finish().await;
    });
}

#[test]
fn nothing_is_decided_about_money_while_a_ledger_that_may_have_its_request_cannot_be_read() {
    run(async {
        let direct = shared().await.urls().redis_url;
        let hole = BlackHole::before(port_of(&direct)).await;
        let world = World::on_redis(&hole.url(&direct), "early-hole", &ROLES, &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("unread", 5, Some(1), LONG).await;
        let unknown = RequestId::new(7).unwrap();
        let unread = async |why: &str| {
            let answer = admin.pay(unknown, "pi_1").await;
            assert_eq!(said(&answer), (503, "ORDER_NOT_WRITTEN".to_owned(), true), "{why}: {answer:?}");
            assert_eq!(world.rows("payments", "TRUE").await, 0, "{why}");
        };
        hole.swallow(true);
        unread("redis is silent").await;
        hole.swallow(false);
        let keys = &world.servers.redis.sale_keys;
        let set =
            async |to, from| eventually("a state", async || keys.set_state(&sale, 0, to, &[from]).await.is_ok()).await;
        set(MetaState::Frozen, MetaState::Open).await;
        unread("the sale is frozen").await;
        set(MetaState::Open, MetaState::Frozen).await;
        let nowhere = admin.pay(unknown, "pi_1").await;
        assert_eq!((nowhere.status, nowhere.text("reason")), (200, "NO_ORDER".to_owned()), "{nowhere:?}");
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
