//! What must always hold of orders, and what their searches must have seen to be worth anything.

use super::setup::OrdersSetup;
use super::state::{BUYERS, Chosen, Giving, Keys, Money, Order, PROCESSES, Purchase, Rebuild, Shop};
use super::steps::is_quiet;
use seckill::domain::order_life::OrderState;
use seckill::domain::payment::PaymentState;
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 8] = [
    (
        "O1",
        "nothing is oversold: the database's stock is never below zero, and it has a unit for each request that Redis accepts",
    ),
    ("O2", "granted = stock + live orders, in the database, after every transaction"),
    (
        "O3",
        "an order is PAID exactly while one payment is APPLIED to it, of its exact amount: never both paid and expired or cancelled",
    ),
    (
        "O4",
        "the unit of an order comes back when it ends, never twice and never before; when nothing happens any more, once",
    ),
    (
        "O5",
        "`D = R + U + P` whenever Redis sells: what the database has is for sale in Redis, on its way to an order, or in a grant \
         that Redis has not taken yet; when nothing happens any more, there is no such grant",
    ),
    ("O6", "each payment is on record once, from the first answer on: APPLIED, or REFUND_NEEDED until it is REFUNDED"),
    ("O7", "no order expires while its deadline is ahead; when nothing happens any more, no order is UNPAID"),
    ("O8", "nothing happens that the table of `src/domain/order_life.rs` forbids"),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 12] = [
    ("batch of two", "two orders expire together, in one grant"),
    ("chosen twice", "two processes have read the same order as overdue"),
    ("paid when chosen", "an order is paid while a process is about to expire it"),
    ("cancelled when chosen", "an order is cancelled while a process is about to expire it"),
    ("late money", "a payment for an expired order waits to be sent back"),
    ("money too much", "a paid order has a second payment, which waits to be sent back"),
    ("money without an order", "a payment came before its order and waits to be sent back"),
    ("refunded", "money went back"),
    ("given twice", "a process gave a grant that another one had given"),
    ("sold again", "a unit of an order that ended is somebody else's"),
    ("expired in a rebuild", "an order ends after the snapshot of a rebuild that has not opened the sale yet"),
    ("old giver", "a process has read a grant in an epoch that is over"),
];

pub fn all() -> Vec<Property<OrdersSetup>> {
    let [o1, o2, o3, o4, o5, o6, o7, o8] = LAWS.map(|(name, _)| name);
    let [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12] = SIGHTS.map(|(name, _)| name);
    vec![
        Property::always(o1, nothing_is_oversold),
        Property::always(o2, |setup: &OrdersSetup, shop: &Shop| shop.stock + live(shop) == setup.stock),
        Property::always(o3, |_, shop: &Shop| shop.orders.iter().all(is_paid_by_one)),
        Property::always(o4, units_come_back_once),
        Property::always(o5, redis_has_the_rest),
        Property::always(o6, |_, shop: &Shop| shop.orders.iter().all(is_on_record)),
        Property::always(o7, |setup, shop: &Shop| {
            !shop.early && (!any(shop, |order| order.state == Some(OrderState::Unpaid)) || !is_quiet(setup, shop))
        }),
        Property::always(o8, |_, shop: &Shop| !shop.illegal),
        Property::sometimes(s1, |_, shop: &Shop| any(shop, |order| order.batch.units > 1)),
        Property::sometimes(s2, |_, shop: &Shop| any(shop, |order| order.chosen == [Chosen::Picked; PROCESSES])),
        Property::sometimes(s3, |_, shop: &Shop| chosen_in(shop, OrderState::Paid)),
        Property::sometimes(s4, |_, shop: &Shop| chosen_in(shop, OrderState::Cancelled)),
        Property::sometimes(s5, |_, shop: &Shop| refund_due_in(shop, Some(OrderState::Expired))),
        Property::sometimes(s6, |_, shop: &Shop| refund_due_in(shop, Some(OrderState::Paid))),
        Property::sometimes(s7, |_, shop: &Shop| refund_due_in(shop, None)),
        Property::sometimes(s8, |_, shop: &Shop| any(shop, |order| has_row(order, PaymentState::Refunded))),
        Property::sometimes(s9, |_, shop: &Shop| shop.twice),
        Property::sometimes(s10, sold_again),
        Property::sometimes(s11, |_, shop: &Shop| {
            let open = |order: &Order| [order.batch, order.cancel].iter().any(|grant| grant.units > 0 && !grant.marked);
            matches!(shop.rebuild, Rebuild::Snapped(_)) && any(shop, open)
        }),
        Property::sometimes(s12, |_, shop: &Shop| any(shop, |order| is_held_in_an_old_epoch(order, shop.db_epoch))),
    ]
}

fn any(shop: &Shop, condition: impl Fn(&Order) -> bool) -> bool {
    shop.orders.iter().any(condition)
}

fn count(shop: &Shop, condition: impl Fn(&Order) -> bool) -> i8 {
    i8::try_from(shop.orders.iter().filter(|order| condition(order)).count()).unwrap_or(i8::MAX)
}

fn live(shop: &Shop) -> i8 {
    count(shop, Order::holds_unit)
}

/// O1.
fn nothing_is_oversold(_: &OrdersSetup, shop: &Shop) -> bool {
    shop.stock >= 0 && !any(shop, |order| order.purchase == Purchase::Failed)
}

/// O3.
fn is_paid_by_one(order: &Order) -> bool {
    let applied: Vec<_> = order.payments.iter().filter(|one| one.row == Some(PaymentState::Applied)).collect();
    let paid = order.state == Some(OrderState::Paid);
    applied.len() == usize::from(paid) && applied.iter().all(|one| one.money == Money::Exact)
}

/// O4.
fn units_come_back_once(setup: &OrdersSetup, shop: &Shop) -> bool {
    let ended = |order: &Order| u8::from(order.state.is_some() && !order.holds_unit());
    let too_often = any(shop, |order| order.returned > ended(order));
    let never = any(shop, |order| order.returned < ended(order));
    !too_often && (!never || !is_quiet(setup, shop))
}

/// O5.
fn redis_has_the_rest(setup: &OrdersSetup, shop: &Shop) -> bool {
    if shop.keys != Keys::Open || shop.epoch != shop.db_epoch {
        return !is_quiet(setup, shop);
    }
    let grants = || shop.orders.iter().flat_map(|order| [order.batch, order.cancel]);
    let outside = grants().filter(|grant| !grant.inside).map(|grant| grant.units).sum::<u8>();
    let on_their_way = count(shop, |order| order.purchase == Purchase::Accepted);
    let adds_up = shop.stock == shop.units + on_their_way + i8::try_from(outside).unwrap_or(i8::MAX);
    adds_up && (outside == 0 || !is_quiet(setup, shop))
}

/// O6.
fn is_on_record(order: &Order) -> bool {
    order.payments.iter().all(|one| {
        let answered = one.money != Money::None && !one.reporting;
        one.recorded <= 1 && one.recorded == u8::from(one.row.is_some()) && (one.row.is_some() || !answered)
    })
}

fn has_row(order: &Order, row: PaymentState) -> bool {
    order.payments.iter().any(|one| one.row == Some(row))
}

fn chosen_in(shop: &Shop, state: OrderState) -> bool {
    any(shop, |order| order.chosen.contains(&Chosen::Picked) && order.state == Some(state))
}

fn refund_due_in(shop: &Shop, state: Option<OrderState>) -> bool {
    any(shop, |order| has_row(order, PaymentState::RefundNeeded) && order.state == state)
}

fn sold_again(setup: &OrdersSetup, shop: &Shop) -> bool {
    let sold = (0..BUYERS).filter(|at| shop.orders[*at].purchase != Purchase::Absent);
    let sold = sold.filter(|at| shop.orders[*at].purchase != Purchase::Waits).count();
    i8::try_from(sold).is_ok_and(|sold| sold > setup.stock)
}

fn is_held_in_an_old_epoch(order: &Order, epoch: u8) -> bool {
    let old = |giving: &Giving| matches!(giving, Giving::Read(read) if *read < epoch);
    [order.batch, order.cancel].iter().any(|grant| grant.giving.iter().any(old))
}
