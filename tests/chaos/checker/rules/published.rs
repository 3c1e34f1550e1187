//! C12: what became of requests, orders and payments was published to downstream systems, each at least once. C15: and a shop got all of it
//! by webhook. Its deliveries are written with the change, so nothing excuses one that is missing. C16: so were the events of sales.
//!
//! The consumer publishes an outcome between its commit and its acknowledgement, also when it loses its queue meanwhile. Where it dies in
//! between, or does not know of its commit, the redelivery publishes it, and who destroys the messages of the broker destroys that: such
//! outcomes are counted, and are no violation. Everything after the outcome is written with its change, and nothing excuses it.

use super::super::Found;
use super::super::index::Index;
use super::super::read::{Input, Outcome};
use chrono::{DateTime, NaiveDateTime};
use std::collections::{BTreeMap, BTreeSet};

/// Between the loss of a consumer, whose message returns to its queue, and the row of what it had in hand: it writes on without its
/// connection, for as long as a transaction may wait. Milliseconds.
const IN_HAND_MAX_MS: i64 = 10_000;
/// Between the commit of an outcome and the end of its message's redeliveries, however many faults come together. Milliseconds.
const REDELIVERED_MAX_MS: i64 = 30_000;

/// Checks C12.
pub fn check(index: &Index<'_>, found: &mut Found) {
    for outcome in unpublished_outcomes(index).filter(|outcome| !is_destroyed(index, outcome)) {
        found.add("C12", unpublished(index, outcome));
    }
    orders(index, found);
    refunds(index, found);
}

/// Checks C16: the events of a sale have the versions from 1 on, each one event, however often it was published.
pub fn check_announced(input: &Input, found: &mut Found) {
    let mut sales: BTreeMap<&str, BTreeMap<u64, BTreeSet<&str>>> = BTreeMap::new();
    for event in &input.announced {
        sales.entry(&event.sale_id).or_default().entry(event.version).or_default().insert(&event.key);
    }
    for (sale, versions) in sales {
        let last = versions.keys().copied().max().unwrap_or(0);
        for version in (1..=last).filter(|version| !versions.contains_key(version)) {
            found.add("C16", format!("event {version} of sale {sale} was never published, {last} was"));
        }
        for (version, keys) in versions.iter().filter(|(_, keys)| keys.len() > 1) {
            found.add("C16", format!("version {version} of sale {sale} is of several events: {keys:?}"));
        }
    }
}

/// What a reader of the report needs to find out why: no run's folder outlives the next run.
fn unpublished(index: &Index<'_>, outcome: &Outcome) -> String {
    let (rid, status) = (&outcome.request_id, status(outcome));
    let decided = outcome.created_at.as_deref().unwrap_or("at an unknown time");
    let order = index.input.orders.iter().find(|order| order.request_id == *rid);
    let source = order.map_or("no order", |order| &order.source);
    let time =
        |ms: i64| DateTime::from_timestamp_millis(ms).map_or_else(String::new, |at| at.format("%T%.3f").to_string());
    let losses: Vec<String> = index
        .input
        .destroyed
        .iter()
        .map(|fault| format!("{} to {}", time(fault.began_ms), time(fault.healed_ms)))
        .collect();
    let losses = losses.join(", ");
    format!(
        "request {rid} is {status}, and that was never published; decided {decided} ({source}); messages lost: {losses}"
    )
}

/// Checks C15.
pub fn check_received(index: &Index<'_>, found: &mut Found) {
    let Some(received) = &index.input.received else { return };
    let input = Input { published: received.clone(), destroyed: Vec::new(), ..index.input.clone() };
    let mut missing = Found::default();
    check(&Index::of(&input), &mut missing);
    for missing in missing.0 {
        found.add("C15", format!("no webhook: {}", missing.detail));
    }
}

/// Outcomes that no system got, because their messages were destroyed.
pub fn destroyed_count(index: &Index<'_>) -> usize {
    unpublished_outcomes(index).filter(|outcome| is_destroyed(index, outcome)).count()
}

fn status(outcome: &Outcome) -> &'static str {
    if outcome.kind == "FAILED" { "FAILED" } else { "CONFIRMED" }
}

fn unpublished_outcomes<'a>(index: &'a Index<'_>) -> impl Iterator<Item = &'a Outcome> {
    let published = statuses(index);
    let outcomes = index.input.outcomes.iter();
    outcomes.filter(move |outcome| !published.contains(&(outcome.request_id.as_str(), status(outcome))))
}

/// Request and status of everything that was published.
fn statuses<'a>(index: &'a Index<'_>) -> BTreeSet<(&'a str, &'a str)> {
    index.input.published.iter().map(|published| (published.rid.as_str(), published.status.as_str())).collect()
}

fn is_destroyed(index: &Index<'_>, outcome: &Outcome) -> bool {
    let read = |text: &str| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").ok();
    let Some(decided) = outcome.created_at.as_deref().and_then(read) else { return false };
    let decided_ms = decided.and_utc().timestamp_millis();
    let held = decided_ms - IN_HAND_MAX_MS..decided_ms + REDELIVERED_MAX_MS;
    index.input.destroyed.iter().any(|fault| fault.began_ms < held.end && fault.healed_ms >= held.start)
}

/// The state of an order, and each of its versions: every change has one, and an event with it.
fn orders(index: &Index<'_>, found: &mut Found) {
    let published = statuses(index);
    let versions: BTreeSet<(&str, u64)> = index
        .input
        .published
        .iter()
        .filter_map(|published| Some((published.rid.as_str(), published.version?)))
        .collect();
    for order in &index.input.orders {
        let rid = order.request_id.as_str();
        let ended = order.state.as_deref().filter(|state| ["PAID", "EXPIRED", "CANCELLED"].contains(state));
        let state = ended.or(order.cancelled_at.as_ref().map(|_| "CANCELLED"));
        if let Some(state) = state.filter(|state| !published.contains(&(rid, *state))) {
            found.add("C12", format!("order {rid} is {state}, and that was never published"));
        }
        let unpublished: Vec<u64> =
            (2..=order.version).filter(|version| !versions.contains(&(rid, *version))).collect();
        if !unpublished.is_empty() {
            found.add(
                "C12",
                format!("order {rid}: of its {} versions {unpublished:?} were never published", order.version),
            );
        }
    }
}

/// Money that has to go back, also if it went back since.
fn refunds(index: &Index<'_>, found: &mut Found) {
    let events = index.input.published.iter().filter(|published| published.status == "REFUND_NEEDED");
    let published: BTreeSet<(&str, &str)> =
        events.filter_map(|published| Some((published.rid.as_str(), published.payment_id.as_deref()?))).collect();
    for payment in index.input.payments.iter().filter(|payment| payment.state != "APPLIED") {
        if !published.contains(&(payment.request_id.as_str(), payment.payment_id.as_str())) {
            let (id, state) = (&payment.payment_id, &payment.state);
            found.add("C12", format!("payment {id} is {state}, and that it has to go back was never published"));
        }
    }
}
