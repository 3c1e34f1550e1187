//! Orders after they were confirmed: deadlines, payments, units that come back.

use crate::scene::{PIPELINE, ROUNDS_MS, found};
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, harms_without};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::payment::Price;
use seckill::faults::{Hold, Mechanism};
use seckill::orders::rows::{CancelRequest, NewPayment, OverdueOrder};
use seckill::roles::Role::Reconcile;

fn payment(id: RequestId, amount_cents: i64) -> NewPayment {
    NewPayment {
        payment_id: "pi_1".to_owned(),
        request_id: id,
        price: Price { amount_cents, currency: "CNY".to_owned() },
    }
}

async fn pay(world: &World, payment: &NewPayment) -> bool {
    world.servers.rows.orders.receive(payment, None, None).await.unwrap().is_some()
}

async fn a_sale(name: &str) -> (World, SaleId, RequestId) {
    let world = World::with(&PIPELINE, &[]).await;
    let sale = world.paying_sale(name, 10, Some(1), LONG).await;
    let alice = world.ordered(&sale, "alice").await;
    (world, sale, alice)
}

/// The order as a sweep chooses it now.
async fn chosen(world: &World, sale: &SaleId) -> Vec<OverdueOrder> {
    let chosen = world.servers.rows.orders.overdue(sale, None, 10).await.unwrap();
    assert_eq!(chosen.len(), 1);
    chosen
}

#[test]
fn an_order_that_was_paid_since_it_was_chosen_expires_without_the_condition_on_the_state() {
    harms_without(Mechanism::ExpiryState, async |_| {
        let (world, sale, alice) = a_sale("state").await;
        world.overdue(alice).await;
        let chosen = chosen(&world, &sale).await;
        pay(&world, &payment(alice, 100)).await;
        world.servers.rows.orders.expire(&sale, chosen).await.unwrap();
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn an_order_whose_deadline_is_ahead_again_expires_without_the_condition_on_it() {
    harms_without(Mechanism::ExpiryDeadline, async |_| {
        let (world, sale, alice) = a_sale("deadline").await;
        world.overdue(alice).await;
        let chosen = chosen(&world, &sale).await;
        // The clock of another host's database is behind.
        world.sql("UPDATE orders SET expire_at = NOW(3) + INTERVAL 60 SECOND").await;
        world.servers.rows.orders.expire(&sale, chosen).await.unwrap();
        let early = world.rows("orders", "state = 'EXPIRED' AND expire_at > state_at").await;
        world.stop().await;
        if early == 0 { Vec::new() } else { vec!["an order expired before its deadline".to_owned()] }
    });
}

#[test]
fn units_that_come_back_in_a_transaction_of_their_own_are_lost_with_who_writes_it() {
    harms_without(Mechanism::ReturnWithExpiry, async |plays| {
        let (world, sale, alice) = a_sale("returns").await;
        world.overdue(alice).await;
        let switch = if plays == Plays::Without { "return_with_expiry=return;" } else { "" };
        world.process("reconcile", &format!("{switch}F28=return"), &[]).dies_at("F28").await;
        let next = world.extra_roles(&[Reconcile], |_| {});
        eventually("expired", async || world.order_in("EXPIRED", alice).await).await;
        let grants = async || world.rows("stock_grants", "applied_at IS NULL").await;
        eventually("given", async || grants().await == 0).await;
        next.stop().await;
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn the_grant_of_a_sweep_that_died_waits_for_ever_when_only_its_maker_gives_it() {
    harms_without(Mechanism::OthersGive, async |plays| {
        let (mut world, sale, alice) = a_sale("others").await;
        // An api would give it, too.
        world.stop_roles().await;
        world.overdue(alice).await;
        world.process("reconcile", "F29=return", &[]).dies_at("F29").await;
        let next = world.extra_roles(&[Reconcile], |_| {});
        let open = async || world.rows("stock_grants", "applied_at IS NULL").await;
        match plays {
            Plays::With => eventually("given", async || open().await == 0).await,
            Plays::Without => time_passes(2 * ROUNDS_MS).await,
        }
        let open = open().await;
        next.stop().await;
        let mut found = found(&world, &sale).await;
        world.stop().await;
        if open > 0 {
            found.push(format!("{open} grants wait"));
        }
        found
    });
}

#[test]
fn an_expired_order_that_a_payment_makes_paid_has_a_unit_that_is_sold_again() {
    harms_without(Mechanism::LateMoneyRefused, async |_| {
        let (world, sale, alice) = a_sale("late").await;
        world.overdue(alice).await;
        let chosen = chosen(&world, &sale).await;
        world.servers.rows.orders.expire(&sale, chosen).await.unwrap();
        pay(&world, &payment(alice, 100)).await;
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

/// What providers reported and what is on record differ.
async fn off_the_record(world: &World, reported: i64, rows: &str) -> Vec<String> {
    let there = world.rows("payments", rows).await;
    if there == reported { Vec::new() } else { vec![format!("{there} payments where {reported} were reported")] }
}

#[test]
fn money_that_no_order_can_take_is_lost_without_its_row() {
    harms_without(Mechanism::RefundRecorded, async |_| {
        let (world, sale, alice) = a_sale("refund").await;
        world.overdue(alice).await;
        let chosen = chosen(&world, &sale).await;
        world.servers.rows.orders.expire(&sale, chosen).await.unwrap();
        assert!(pay(&world, &payment(alice, 100)).await, "the provider has the answer that it is on record");
        let found = off_the_record(&world, 1, "state = 'REFUND_NEEDED'").await;
        world.stop().await;
        found
    });
}

#[test]
fn a_payment_that_is_reported_again_is_sent_back_as_a_second_one_without_its_id() {
    harms_without(Mechanism::PaymentId, async |_| {
        let (world, _, alice) = a_sale("again").await;
        for _ in 0..2 {
            pay(&world, &payment(alice, 100)).await;
        }
        let found = off_the_record(&world, 1, "TRUE").await;
        world.stop().await;
        found
    });
}

#[test]
fn an_order_is_paid_by_no_payment_when_that_is_written_later() {
    harms_without(Mechanism::PaidWithItsRow, async |plays| {
        let (world, sale, alice) = a_sale("row").await;
        let between = Hold::OrderPaid.hold();
        let (orders, paying) = (world.servers.rows.orders.clone(), payment(alice, 100));
        let task = tokio::spawn(async move { orders.receive(&paying, None, None).await.is_ok() });
        if plays == Plays::Without {
            crate::scene::held(1).await;
            task.abort();
        }
        drop(task.await);
        drop(between);
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn a_cancelled_order_keeps_its_money_when_nothing_sends_it_back() {
    harms_without(Mechanism::CancelRefunds, async |_| {
        let (world, sale, alice) = a_sale("cancel").await;
        pay(&world, &payment(alice, 100)).await;
        let request = CancelRequest { request_id: alice, buyer: None, reason: "r", by: "test", act: None };
        world.servers.rows.orders.cancel(request).await.unwrap();
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    });
}

#[test]
fn an_order_is_paid_with_a_cent_when_amounts_are_not_compared() {
    harms_without(Mechanism::AmountCompared, async |_| {
        let (world, _, alice) = a_sale("cent").await;
        pay(&world, &payment(alice, 1)).await;
        let query = "SELECT COUNT(*) AS n FROM orders o JOIN payments p ON p.request_id = o.request_id \
            WHERE p.state = 'APPLIED' AND p.amount_cents <> o.amount_cents";
        let wrong = world.number(query).await;
        world.stop().await;
        if wrong == 0 { Vec::new() } else { vec!["a payment of another amount is applied".to_owned()] }
    });
}
