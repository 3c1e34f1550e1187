//! Payments (`orders/rows/payments.rs`): the money gets its row, then the order is tried, in one transaction. What no
//! order can take is a row that says so.

use super::setup::{OrdersSetup, Skipped};
use super::state::{Money, Order, Payment, Shop};
use seckill::domain::order_life::{OrderEvent, OrderState};
use seckill::domain::payment::{PaymentState, Price, RefundReason, refund_reason};

fn price(money: Money) -> Price {
    let amount_cents = if money == Money::Other { 499 } else { 500 };
    Price { amount_cents, currency: "CNY".to_owned() }
}

/// Records a payment. Who reports it again finds what was decided.
pub fn receive(setup: &OrdersSetup, shop: &mut Shop, at: usize, one: usize) {
    let Order { state, payments, .. } = shop.orders[at];
    let payment = payments[one];
    if payment.row.is_some() && !setup.lacks(Skipped::PaymentId) {
        return;
    }
    let row = match state {
        Some(state) => of_order(setup, shop, at, (state, payment.money)),
        None => PaymentState::RefundNeeded,
    };
    let lost = row == PaymentState::RefundNeeded && setup.lacks(Skipped::RefundRecorded);
    let payment = &mut shop.orders[at].payments[one];
    payment.recorded += u8::from(!lost);
    payment.row = Some(row).filter(|_| !lost).or(payment.row);
}

/// What the order makes of it.
fn of_order(setup: &OrdersSetup, shop: &mut Shop, at: usize, (state, money): (OrderState, Money)) -> PaymentState {
    let reported = if setup.lacks(Skipped::AmountCompared) { price(Money::Exact) } else { price(money) };
    match refund_reason(Some(state), &price(Money::Exact), &reported) {
        None if shop.step(setup, at, OrderEvent::PaymentReceived) => PaymentState::Applied,
        Some(RefundReason::Expired) if setup.lacks(Skipped::LateMoneyRefused) => {
            shop.force(at, OrderEvent::PaymentReceived, OrderState::Paid);
            PaymentState::Applied
        }
        reason => {
            // The table says of an exact amount what the reasons say.
            let moves = money == Money::Exact && shop.step(setup, at, OrderEvent::PaymentReceived);
            shop.illegal |= moves || reason.is_none();
            PaymentState::RefundNeeded
        }
    }
}

/// Only the order, where order and row are two transactions.
pub fn half(setup: &OrdersSetup, shop: &mut Shop, at: usize) {
    shop.step(setup, at, OrderEvent::PaymentReceived);
}

/// The money of a cancelled order has to go back.
pub fn demand_refund(order: &mut Order) {
    for payment in order.payments.iter_mut().filter(|payment| payment.row == Some(PaymentState::Applied)) {
        payment.row = Some(PaymentState::RefundNeeded);
    }
}

pub fn is_refund_due(payment: &Payment) -> bool {
    payment.row == Some(PaymentState::RefundNeeded)
}

pub fn send_back(shop: &mut Shop, at: usize, one: usize) {
    shop.orders[at].payments[one].row = Some(PaymentState::Refunded);
}
