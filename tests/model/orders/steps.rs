//! What can happen next in a search about orders. Every step is one transaction of the database, one script of Redis, or one thing
//! that a person does; a process can die between any two.

use super::setup::{OrderFault, OrdersSetup, Skipped};
use super::state::{BUYERS, Chosen, Due, Giving, Keys, Money, Of, Order, PAYMENTS, PROCESSES, Purchase, Rebuild, Shop};
use super::{money, units};
use seckill::domain::order_life::{OrderEvent, OrderState};

/// A step; the numbers are an order, then a payment or a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderStep {
    Buy(usize),
    Land(usize),
    DeadlinePasses(usize),
    /// A process reads a batch of overdue orders: a bit an order.
    Choose(u8, usize),
    /// Its transaction.
    ExpireBatch(usize),
    /// The second one, where the return is apart.
    ReturnApart(usize),
    ReadsGrant(usize, Of, usize),
    GivesGrant(usize),
    Rebuild,
    /// A provider takes money.
    Pays(usize, usize, Money),
    /// The shop's backend reports it.
    ReportsPayment(usize, usize),
    StartsPayment(usize),
    BuyerCancels(usize),
    OperatorCancels(usize),
    SendsBack(usize, usize),
    /// Costs one of the faults that are left.
    Fault(OrderFault, usize, usize),
}

const OF: [Of; 2] = [Of::Batch, Of::Cancel];

/// Whether nothing happens any more unless a person or a fault does something.
pub fn is_quiet(setup: &OrdersSetup, shop: &Shop) -> bool {
    let mut out = Vec::new();
    by_itself(setup, shop, &mut out);
    out.is_empty()
}

/// What the system, its buyers and the clock do.
pub fn by_itself(setup: &OrdersSetup, shop: &Shop, out: &mut Vec<OrderStep>) {
    for at in 0..BUYERS {
        let order = &shop.orders[at];
        match order.purchase {
            Purchase::Waits if shop.keys == Keys::Open && shop.units > 0 => out.push(OrderStep::Buy(at)),
            Purchase::Accepted => out.push(OrderStep::Land(at)),
            Purchase::Absent | Purchase::Waits | Purchase::Ordered | Purchase::Failed => {}
        }
        if order.state == Some(OrderState::Unpaid) && order.due == Due::Ahead {
            out.push(OrderStep::DeadlinePasses(at));
        }
        let reported = (0..PAYMENTS).filter(|one| order.payments[*one].reporting);
        out.extend(reported.map(|one| OrderStep::ReportsPayment(at, one)));
    }
    for process in 0..PROCESSES {
        if shop.is_free(process) {
            begin(setup, shop, process, out);
        } else {
            go_on(shop, process, out);
        }
    }
    let on_its_way = shop.orders.iter().any(|order| order.purchase == Purchase::Accepted);
    if shop.rebuild != Rebuild::None || (shop.keys != Keys::Open && !on_its_way) {
        out.push(OrderStep::Rebuild);
    }
}

fn begin(setup: &OrdersSetup, shop: &Shop, process: usize, out: &mut Vec<OrderStep>) {
    let overdue = |order: &Order| order.state == Some(OrderState::Unpaid) && order.due == Due::Passed;
    let due = (0..BUYERS).filter(|at| overdue(&shop.orders[*at])).fold(0_u8, |bits, at| bits | 1 << at);
    // Every batch that a limit can cut off.
    out.extend((1..=due).filter(|bits| bits & due == *bits).map(|bits| OrderStep::Choose(bits, process)));
    for at in 0..BUYERS {
        for of in OF {
            let grant = shop.orders[at].grant(of);
            let open = grant.units > 0 && !grant.marked && grant.epoch == shop.db_epoch;
            let may = of == Of::Cancel || !setup.lacks(Skipped::OthersGive);
            if open && may && shop.keys == Keys::Open {
                out.push(OrderStep::ReadsGrant(at, of, process));
            }
        }
    }
}

fn go_on(shop: &Shop, process: usize, out: &mut Vec<OrderStep>) {
    let has = |wanted: Chosen| shop.orders.iter().any(|order| order.chosen[process] == wanted);
    if has(Chosen::Picked) {
        out.push(OrderStep::ExpireBatch(process));
    } else if has(Chosen::RefundDue) {
        out.push(OrderStep::ReturnApart(process));
    } else {
        out.push(OrderStep::GivesGrant(process));
    }
}

/// What happens only when a person, or a provider, wants it.
pub fn by_people(_: &OrdersSetup, shop: &Shop, out: &mut Vec<OrderStep>) {
    for at in 0..BUYERS {
        let order = &shop.orders[at];
        let free = (0..PAYMENTS).find(|one| order.payments[*one].money == Money::None);
        let known = matches!(order.purchase, Purchase::Accepted | Purchase::Ordered);
        if let Some(one) = free.filter(|_| known && shop.money_left > 0) {
            out.push(OrderStep::Pays(at, one, Money::Exact));
            out.push(OrderStep::Pays(at, one, Money::Other));
        }
        if order.purchase != Purchase::Ordered || shop.acts_left == 0 {
            continue;
        }
        out.extend([OrderStep::StartsPayment(at), OrderStep::BuyerCancels(at), OrderStep::OperatorCancels(at)]);
        let due = (0..PAYMENTS).filter(|one| money::is_refund_due(&order.payments[*one]));
        out.extend(due.map(|one| OrderStep::SendsBack(at, one)));
    }
}

pub fn faults(setup: &OrdersSetup, shop: &Shop, out: &mut Vec<OrderStep>) {
    if shop.faults_left == 0 {
        return;
    }
    let mut fault = |kind, at, k| {
        if setup.may(kind) {
            out.push(OrderStep::Fault(kind, at, k));
        }
    };
    for process in (0..PROCESSES).filter(|process| !shop.is_free(*process)) {
        fault(OrderFault::ProcessDies, 0, process);
    }
    for at in 0..BUYERS {
        for one in (0..PAYMENTS).filter(|one| shop.orders[at].payments[*one].reporting) {
            fault(OrderFault::AnswerLost, at, one);
            if setup.lacks(Skipped::PaidWithItsRow) {
                fault(OrderFault::PaymentHalf, at, one);
            }
        }
        if shop.orders[at].state == Some(OrderState::Unpaid) && shop.orders[at].due == Due::Passed {
            fault(OrderFault::ClockGoesBack, at, 0);
        }
    }
    if shop.keys != Keys::Missing {
        fault(OrderFault::RedisWiped, 0, 0);
    }
    if shop.rebuild != Rebuild::None {
        fault(OrderFault::RebuildDies, 0, 0);
    }
}

pub fn apply(setup: &OrdersSetup, shop: &mut Shop, step: OrderStep) {
    match step {
        OrderStep::Buy(at) => units::buy(shop, at),
        OrderStep::Land(at) => units::land(shop, at),
        OrderStep::DeadlinePasses(at) => shop.orders[at].due = Due::Passed,
        OrderStep::Choose(bits, process) => {
            for at in (0..BUYERS).filter(|at| bits >> at & 1 == 1) {
                shop.orders[at].chosen[process] = Chosen::Picked;
            }
        }
        OrderStep::ExpireBatch(process) => units::expire(setup, shop, process),
        OrderStep::ReturnApart(process) => units::return_apart(setup, shop, process),
        OrderStep::ReadsGrant(at, of, process) => {
            shop.orders[at].grant_mut(of).giving[process] = Giving::Read(shop.db_epoch);
        }
        OrderStep::GivesGrant(process) => units::give(setup, shop, process),
        OrderStep::Rebuild => units::rebuild(setup, shop),
        OrderStep::Pays(at, one, money) => {
            shop.money_left -= 1;
            let payment = &mut shop.orders[at].payments[one];
            (payment.money, payment.reporting) = (money, true);
        }
        OrderStep::ReportsPayment(at, one) => {
            money::receive(setup, shop, at, one);
            shop.orders[at].payments[one].reporting = false;
        }
        OrderStep::StartsPayment(at) => {
            shop.acts_left -= 1;
            // It moves a deadline that is ahead. Here deadlines pass at any time, so only the table is asked.
            shop.step(setup, at, OrderEvent::PaymentStarted);
        }
        OrderStep::BuyerCancels(at) => {
            shop.acts_left -= 1;
            units::cancel(setup, shop, at, OrderEvent::CancelledByBuyer);
        }
        OrderStep::OperatorCancels(at) => {
            shop.acts_left -= 1;
            units::cancel(setup, shop, at, OrderEvent::CancelledByOperator);
        }
        OrderStep::SendsBack(at, one) => {
            shop.acts_left -= 1;
            money::send_back(shop, at, one);
        }
        OrderStep::Fault(kind, at, k) => {
            shop.faults_left -= 1;
            strike(setup, shop, kind, (at, k));
        }
    }
}

fn strike(setup: &OrdersSetup, shop: &mut Shop, kind: OrderFault, (at, k): (usize, usize)) {
    match kind {
        OrderFault::ProcessDies => shop.forget(k),
        OrderFault::AnswerLost => money::receive(setup, shop, at, k),
        OrderFault::PaymentHalf => money::half(setup, shop, at),
        OrderFault::RedisWiped => (shop.keys, shop.units, shop.rebuild) = (Keys::Missing, 0, Rebuild::None),
        OrderFault::RebuildDies => shop.rebuild = Rebuild::None,
        OrderFault::ClockGoesBack => shop.orders[at].due = Due::Ahead,
    }
}
