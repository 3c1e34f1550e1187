//! What became of each request that had an answer: lost, in limbo, torn, refused, twice.

use super::super::read::{Attempt, Order};
use super::{Case, SaleState, Trouble};
use std::collections::{BTreeMap, BTreeSet};

/// Reasons of a final failure that are not the buyer's and not an operator's: Redis promised what was not there, and the audit has to say
/// so. It does not of a number that was given twice: that is one unit, one order, and a recorded failure (guarantees, "Numbers"), and
/// what Redis has too much or too little by it is a trouble of its own.
const PROMISED_TOO_MUCH: [&str; 2] = ["SOLD_OUT", "UNKNOWN_SALE"];

pub(super) fn check(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    answered(case, sale, state);
    limbo(case, sale, state);
    torn(case, sale, state);
    twice(case, sale, state);
}

/// A client that got the answer "accepted" has an outcome, or its request is somewhere.
fn answered(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let end = case.end;
    let accepted = |attempt: &&Attempt| attempt.sale == sale && attempt.kind == "buy" && attempt.result == "accepted";
    let answered: BTreeSet<&str> =
        end.input.attempts.iter().filter(accepted).filter_map(|attempt| attempt.rid.as_deref()).collect();
    state.answered = answered.len() as u64;
    for rid in answered {
        let somewhere = end.outcomes.contains_key(rid)
            || end.orders.contains_key(rid)
            || end.ledger.contains_key(rid)
            || end.moving.contains(rid)
            || end.parked.contains(rid);
        if somewhere {
            continue;
        }
        if case.numbers.could_be_known(rid) {
            state.add(Trouble::Lost, format!("request {rid} was answered as accepted and is in no place at all"));
        } else {
            state.unseeable.push(rid.to_owned());
        }
    }
}

/// Nothing is on its way any more, so what has no outcome and is not parked never gets one.
fn limbo(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let end = case.end;
    let records = end.ledger.values().filter(|record| record.sale == sale).map(|record| record.rid.as_str());
    let open = end.undecided.iter().filter(|(_, open)| open.sale == sale).map(|(rid, _)| *rid);
    let all: BTreeSet<&str> = records.chain(open).collect();
    for rid in all {
        let decided = end.outcomes.contains_key(rid);
        if !decided && !end.parked.contains(rid) {
            state.add(Trouble::Limbo, format!("request {rid} has no outcome and is not parked"));
        }
    }
}

fn torn(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let end = case.end;
    for (rid, outcome) in end.outcomes.iter().filter(|(_, outcome)| outcome.sale_id == sale) {
        let reason = outcome.reason.as_deref().unwrap_or("");
        match outcome.kind.as_str() {
            "ORDER" if !end.orders.contains_key(rid) => {
                state.add(Trouble::Torn, format!("request {rid}: its outcome is ORDER, there is no order"));
            }
            "FAILED" if !end.failed.contains_key(rid) => {
                state
                    .add(Trouble::Torn, format!("request {rid}: its outcome is FAILED, the register does not know it"));
            }
            "FAILED" if end.orders.contains_key(rid) => {
                state.add(Trouble::Twice, format!("request {rid}: its outcome is FAILED, and there is an order"));
            }
            "FAILED" if PROMISED_TOO_MUCH.contains(&reason) => {
                state.add(Trouble::Refused, format!("request {rid} was accepted, and then refused: {reason}"));
            }
            _ => {}
        }
    }
    let orders = end.orders.values().filter(|order| order.sale_id == sale);
    for order in orders.filter(|order| !end.outcomes.contains_key(order.request_id.as_str())) {
        state.add(Trouble::Torn, format!("request {}: there is an order, but no outcome", order.request_id));
    }
}

/// More for a buyer than the limit.
fn twice(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let Some(limit) = case.end.sales.get(sale).and_then(|row| row.per_user_limit) else { return };
    let mut owned: BTreeMap<&str, i64> = BTreeMap::new();
    for Order { user_id, quantity, .. } in case.end.input.orders.iter().filter(|order| order.sale_id == sale) {
        *owned.entry(user_id).or_default() += quantity;
    }
    for (user, units) in owned.into_iter().filter(|(_, units)| *units > limit) {
        state.add(Trouble::Twice, format!("buyer {user} has {units} units, the limit is {limit}"));
    }
}
