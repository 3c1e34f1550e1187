//! Limits, by buyer or by person: at any moment, and in Redis.

use super::terms::summed;
use super::{OrderRow, Played, Violation, violation};
use std::collections::{BTreeMap, BTreeSet};

/// When an order counts against limits: from its acceptance on, for good or until it ended unpaid in a sale that gives limits back.
fn counts(played: &Played<'_>, order: &OrderRow) -> (i64, Option<i64>) {
    let returns = played.terms.sale(&order.sale).is_some_and(|sale| sale.limit_returns);
    let until = if returns && !order.holds_units() { order.state_ms } else { None };
    (order.accepted_ms, until)
}

/// The most units that these orders have at one moment. What ends at a moment makes room for what begins then.
fn peak(played: &Played<'_>, orders: &[&OrderRow]) -> i64 {
    let mut steps: Vec<(i64, i64)> = Vec::new();
    for order in orders {
        let (from, until) = counts(played, order);
        steps.push((from, order.quantity));
        steps.extend(until.map(|until| (until, -order.quantity)));
    }
    steps.sort_unstable();
    let running = steps.iter().scan(0, |sum, (_, units)| {
        *sum += units;
        Some(*sum)
    });
    running.max().unwrap_or(0)
}

/// LIMIT.
pub(super) fn at_any_moment(played: &Played<'_>) -> Vec<Violation> {
    let Played { terms, books, .. } = played;
    let mut of_key: BTreeMap<String, Vec<&OrderRow>> = BTreeMap::new();
    for order in &books.orders {
        of_key.entry(played.key(&order.buyer)).or_default().push(order);
    }
    let mut found = Vec::new();
    for (key, orders) in of_key {
        let mut check = |of: &str, limit: Option<u64>, orders: &[&OrderRow]| {
            let most = peak(played, orders);
            if limit.is_some_and(|limit| most > i64::try_from(limit).unwrap_or(i64::MAX)) {
                found.push(violation("LIMIT", format!("{key} has {most} units of {of} at once, limit {limit:?}")));
            }
        };
        check("the drop", terms.limit, &orders);
        for sale in &terms.sales {
            let of_sale: Vec<&OrderRow> = orders.iter().copied().filter(|order| order.sale == sale.sale_id).collect();
            check(&sale.sale_id, sale.limit, &of_sale);
        }
    }
    found
}

/// PERSON.
pub(super) fn persons(played: &Played<'_>) -> Vec<Violation> {
    let wrong = played.books.orders.iter().filter(|order| {
        let real = played.log.who.get(&order.buyer).map(|who| &who.person);
        if played.terms.by_person { order.person.as_ref() != real || real.is_none() } else { order.person.is_some() }
    });
    let says =
        |order: &OrderRow| violation("PERSON", format!("{} of {} is of {:?}", order.rid, order.buyer, order.person));
    wrong.map(says).collect()
}

/// HELD.
pub(super) fn held(played: &Played<'_>) -> Vec<Violation> {
    let Played { books, .. } = played;
    let counted = books.orders.iter().filter(|order| counts(played, order).1.is_none());
    let by_orders = summed(counted.map(|order| ((order.sale.clone(), played.key(&order.buyer)), order.quantity)));
    let keys: BTreeSet<_> = by_orders.keys().chain(books.held.keys()).collect();
    let units = |of: &BTreeMap<(String, String), i64>, key: &(String, String)| of.get(key).copied().unwrap_or(0);
    // A recorded failure keeps its buyer's units in Redis, and has no order.
    let wrong = keys.into_iter().filter(|key| {
        let (redis, orders) = (units(&books.held, key), units(&by_orders, key));
        redis < orders || (redis > orders && books.failed.is_empty())
    });
    let says = |key: &(String, String)| {
        let (redis, orders) = (units(&books.held, key), units(&by_orders, key));
        violation("HELD", format!("{} of {}: {redis} units in Redis, {orders} in orders", key.1, key.0))
    };
    wrong.map(says).collect()
}
