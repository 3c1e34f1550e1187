//! Units: sold by Redis, written down by the database, returned by orders that end, carried back to Redis by a grant, counted
//! anew by a rebuild (`orders/rows`, `src/sales/grants.rs`, `lua/grant.lua`).

use super::money;
use super::setup::{OrdersSetup, Skipped};
use super::state::{BUYERS, Chosen, Due, Giving, Keys, Of, Purchase, Rebuild, Return, Shop};
use seckill::domain::order_life::{OrderEvent, OrderState};

pub fn buy(shop: &mut Shop, at: usize) {
    shop.units -= 1;
    shop.orders[at].purchase = Purchase::Accepted;
}

pub fn land(shop: &mut Shop, at: usize) {
    let order = &mut shop.orders[at];
    if shop.stock == 0 {
        order.purchase = Purchase::Failed;
        return;
    }
    shop.stock -= 1;
    (order.purchase, order.state) = (Purchase::Ordered, Some(OrderState::Unpaid));
}

/// One transaction: the conditional UPDATE of what was chosen, stock, one grant with the lowest name.
pub fn expire(setup: &OrdersSetup, shop: &mut Shop, process: usize) {
    let mut expired = Vec::new();
    for at in 0..BUYERS {
        if std::mem::take(&mut shop.orders[at].chosen[process]) != Chosen::Picked {
            continue;
        }
        let due = shop.orders[at].due == Due::Passed;
        if !due && !setup.lacks(Skipped::DeadlineCondition) {
            continue;
        }
        if setup.lacks(Skipped::StateCondition) {
            shop.force(at, OrderEvent::DeadlinePassed, OrderState::Expired);
        } else if !shop.step(setup, at, OrderEvent::DeadlinePassed) {
            continue;
        }
        shop.early |= !due;
        expired.push(at);
    }
    if setup.lacks(Skipped::ReturnInTransaction) {
        for at in expired {
            shop.orders[at].chosen[process] = Chosen::RefundDue;
        }
        return;
    }
    return_units(setup, shop, process, &expired);
}

/// The second transaction of a sweep that has the return apart.
pub fn return_apart(setup: &OrdersSetup, shop: &mut Shop, process: usize) {
    let due: Vec<_> = (0..BUYERS).filter(|at| shop.orders[*at].chosen[process] == Chosen::RefundDue).collect();
    for at in &due {
        shop.orders[*at].chosen[process] = Chosen::No;
    }
    return_units(setup, shop, process, &due);
}

fn return_units(setup: &OrdersSetup, shop: &mut Shop, process: usize, expired: &[usize]) {
    let Some(lowest) = expired.first() else { return };
    for at in expired {
        shop.stock += 1;
        shop.orders[*at].returned += 1;
    }
    let units = u8::try_from(expired.len()).unwrap_or(u8::MAX);
    let epoch = shop.db_epoch;
    let grant = &mut shop.orders[*lowest].batch;
    *grant = Return { units, epoch, ..Return::default() };
    if setup.lacks(Skipped::OthersGive) {
        grant.giving[process] = Giving::Read(epoch);
    }
}

/// One transaction: the order, its payment that has to go back now, stock, a grant of its own.
pub fn cancel(setup: &OrdersSetup, shop: &mut Shop, at: usize, event: OrderEvent) {
    let before = shop.orders[at].state;
    if !shop.step(setup, at, event) {
        return;
    }
    if before == Some(OrderState::Paid) && !setup.lacks(Skipped::CancelRefunds) {
        money::demand_refund(&mut shop.orders[at]);
    }
    shop.stock += 1;
    let epoch = shop.db_epoch;
    let order = &mut shop.orders[at];
    order.returned += 1;
    order.cancel = Return { units: 1, epoch, ..Return::default() };
}

/// The next step of a process that gives: `grant.lua`, then the mark.
pub fn give(setup: &OrdersSetup, shop: &mut Shop, process: usize) {
    for at in 0..BUYERS {
        for of in [Of::Batch, Of::Cancel] {
            let grant = *shop.orders[at].grant(of);
            let next = match grant.giving[process] {
                Giving::No => continue,
                Giving::Read(epoch) if shop.keys != Keys::Open || shop.epoch != epoch => Return::default().giving[0],
                Giving::Read(_) => {
                    into_redis(setup, shop, at, of);
                    Giving::Given
                }
                Giving::Given => {
                    shop.orders[at].grant_mut(of).marked = true;
                    Giving::No
                }
            };
            shop.orders[at].grant_mut(of).giving[process] = next;
        }
    }
}

/// Redis takes each name once.
fn into_redis(setup: &OrdersSetup, shop: &mut Shop, at: usize, of: Of) {
    let grant = shop.orders[at].grant_mut(of);
    if grant.named {
        shop.twice = true;
        return;
    }
    grant.named = !setup.lacks(Skipped::GrantName);
    grant.inside = true;
    shop.units += i8::try_from(grant.units).unwrap_or(i8::MAX);
}

/// The next step of a rebuild. The searches about the books have all of its steps; here: empty frozen keys of a new epoch, a
/// snapshot of the stock in which every grant of an epoch before counts as given, open. Those of the new epoch are given then.
pub fn rebuild(setup: &OrdersSetup, shop: &mut Shop) {
    shop.rebuild = match shop.rebuild {
        Rebuild::None => {
            shop.db_epoch += 1;
            (shop.keys, shop.epoch, shop.units) = (Keys::Frozen, shop.db_epoch, 0);
            for grant in shop.orders.iter_mut().flat_map(|order| [&mut order.batch, &mut order.cancel]) {
                (grant.named, grant.inside) = (false, false);
            }
            Rebuild::Begun
        }
        Rebuild::Begun => Rebuild::Snapped(snapshot(setup, shop)),
        Rebuild::Snapped(units) => {
            (shop.keys, shop.units) = (Keys::Open, units);
            Rebuild::None
        }
    };
}

fn snapshot(setup: &OrdersSetup, shop: &mut Shop) -> i8 {
    let (epoch, mut units) = (shop.db_epoch, shop.stock);
    let grants = shop.orders.iter_mut().flat_map(|order| [&mut order.batch, &mut order.cancel]);
    for grant in grants.filter(|grant| grant.units > 0) {
        if setup.lacks(Skipped::RebuildMarks) {
            grant.inside = true;
        } else if grant.epoch < epoch {
            (grant.inside, grant.named, grant.marked) = (true, true, true);
        } else {
            units -= i8::try_from(grant.units).unwrap_or(i8::MAX);
        }
    }
    units
}
