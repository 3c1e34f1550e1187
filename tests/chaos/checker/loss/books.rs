//! Units: the database's own sums, and the bridge between the database's unsold units and Redis.
//!
//! The letters are those of docs/architecture.md, "The books".

use super::{Case, SaleState, Trouble};
use std::collections::BTreeMap;

/// Final failures that took a unit which nothing offers again by itself.
const TOOK_A_UNIT: [&str; 3] = ["GIVEN_UP", "DUPLICATE_BUYER", "LIMIT_EXCEEDED"];

pub(super) fn check(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let is_sold = super::redis::has_accepted(case, sale);
    let Some(row) = case.end.sales.get(sale) else {
        let trouble = if is_sold { Trouble::Unknown } else { Trouble::Books };
        state.add(trouble, "the database does not know the sale".to_owned());
        return;
    };
    if row.status == "draft" && is_sold {
        state.add(Trouble::Unknown, "the database has the sale as a draft".to_owned());
    }
    let ordered = ordered(case, sale);
    if ordered > row.granted || row.stock < 0 {
        let detail = format!("{ordered} ordered, {} granted, stock {}", row.granted, row.stock);
        state.add(Trouble::Oversold, detail);
    }
    if row.granted != row.stock + ordered {
        let detail = format!("granted {} is not stock {} and orders {ordered}", row.granted, row.stock);
        state.add(Trouble::Books, detail);
    }
    let flow: i64 = case.end.input.flow.iter().filter(|flow| flow.sale_id == sale).map(|flow| flow.delta).sum();
    if flow != row.stock {
        state.add(Trouble::Books, format!("stock is {}, its journal says {flow}", row.stock));
    }
    // Without its keys, or with some of them, the sale has no side in Redis to compare.
    if row.status != "draft" && super::redis::is_whole(case, sale, row.epoch) {
        bridge(case, sale, row.stock, state);
        grants(case, sale, state);
    }
}

/// Each grant, by its name: Redis has what the database says that it was given in this epoch, and nothing else.
fn grants(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let input = case.end.input;
    let epoch = case.end.sales.get(sale).map_or(0, |row| row.epoch);
    let mut given: BTreeMap<&str, i64> = BTreeMap::new();
    for grant in input.redis_grants.iter().filter(|grant| grant.sale == sale) {
        *given.entry(&grant.id).or_default() += grant.units.parse().unwrap_or(0);
    }
    for grant in input.grants.iter().filter(|grant| grant.sale_id == sale && grant.epoch == epoch) {
        let units = given.remove(grant.grant_id.as_str()).unwrap_or(0);
        let is_right = if grant.applied_at.is_some() { units == grant.quantity } else { units <= grant.quantity };
        if !is_right {
            let detail = format!("grant {}: {} units, redis was given {units}", grant.grant_id, grant.quantity);
            state.add(Trouble::Bridge, detail);
        }
    }
    for (id, units) in given.into_iter().filter(|(_, units)| *units != 0) {
        let detail = format!("redis was given {units} units of grant {id}, the database knows none of this epoch");
        state.add(Trouble::Bridge, detail);
    }
}

/// Units of orders that stand.
fn ordered(case: &Case<'_>, sale: &str) -> i64 {
    let of_sale = case.end.input.orders.iter().filter(|order| order.sale_id == sale);
    of_sale.filter(|order| order.cancelled_at.is_none()).map(|order| order.quantity).sum()
}

/// `D = R + T + U + P + X`, and what lost requests took.
fn bridge(case: &Case<'_>, sale: &str, stock: i64, state: &mut SaleState) {
    let input = case.end.input;
    let units = |text: &str| text.parse::<i64>().unwrap_or(0);
    let buckets: i64 = input.stock.iter().filter(|row| row.sale == sale).map(|row| units(&row.value)).sum();
    let moving: i64 = input.transfers.iter().filter(|row| row.sale == sale).map(|row| units(&row.units)).sum();
    let epoch = case.end.sales.get(sale).map_or(0, |row| row.epoch);
    let records = input.ledger.iter().filter(|record| record.sale == sale && record.epoch == epoch);
    let undecided = records.filter(|record| !case.end.outcomes.contains_key(record.rid.as_str()));
    let undecided: i64 = undecided.map(|record| record.quantity).sum();
    let waiting = input.grants.iter().filter(|grant| grant.sale_id == sale && grant.applied_at.is_none());
    let given = |id: &str| -> i64 {
        let shards = input.redis_grants.iter().filter(|given| given.sale == sale && given.id == id);
        shards.map(|given| units(&given.units)).sum()
    };
    let waiting: i64 = waiting.map(|grant| grant.quantity - given(&grant.grant_id)).sum();
    let offered_again = |rid: &str| case.end.failed.get(rid).is_some_and(|row| row.reclaimed_by.is_some());
    let failed = case.end.outcomes.values().filter(|outcome| {
        let took = outcome.reason.as_deref().is_some_and(|reason| TOOK_A_UNIT.contains(&reason));
        outcome.sale_id == sale && took && !offered_again(&outcome.request_id)
    });
    let failed: i64 = failed.filter_map(|outcome| case.end.units(&outcome.request_id)).sum();
    let there = buckets + moving + undecided + waiting + failed;
    // The unit of a lost request is for sale again, or kept back until a person has said what became of it. Both is right.
    let lost = case.numbers.units_of_holes(sale);
    if !(0..=lost).contains(&(stock - there)) {
        state.add(
            Trouble::Bridge,
            format!(
                "{stock} unsold in the database; in redis {buckets}, between buckets {moving}, undecided {undecided}, not \
                 given yet {waiting}, of failures {failed}: {there}, and up to {lost} lost"
            ),
        );
    }
}
