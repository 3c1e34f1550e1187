//! What is published beside the verdict.

use super::index::Index;
use super::rules::published;
use std::collections::{BTreeMap, BTreeSet};

/// Counts of one run.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize)]
pub struct Figures {
    /// Attempts to buy.
    pub sent: u64,
    /// Requests for which some client got "accepted": the n of the rule of three.
    pub accepted: u64,
    /// Attempts to buy whose answer was unknown.
    pub unknown: u64,
    /// Attempts to buy by their answer, "accepted" and "unknown" aside.
    pub refused: BTreeMap<String, u64>,
    /// Repeats of an accepted request that got "accepted" again.
    pub replays_same: u64,
    /// Attempts to buy per request id that was used.
    pub attempts_per_purchase: f64,
    /// Questions for a status.
    pub asked: u64,
    /// Orders.
    pub orders: u64,
    /// Orders by sale.
    pub orders_by_sale: BTreeMap<String, u64>,
    /// Orders by the path that persisted them.
    pub orders_by_source: BTreeMap<String, u64>,
    /// Orders of sales with a payment step by state.
    pub orders_by_state: BTreeMap<String, u64>,
    /// Payments by state and reason.
    pub payments: BTreeMap<String, u64>,
    /// Final failures by reason.
    pub failed: BTreeMap<String, u64>,
    /// Requests in a DLQ, or open in the register, without an outcome.
    pub parked: u64,
    /// Units that were granted and neither ordered nor in stock of a sale that answered "sold out".
    pub undersold_units: i64,
    /// Accepted requests that no client learned of.
    pub unknown_to_clients: u64,
    /// Samples of the database, and samples at which it was down.
    pub samples: u64,
    /// Samples at which the database was down.
    pub samples_away: u64,
    /// Sales that should sell and whose keys are frozen or gone at the end; Redis' sums cannot be checked for them.
    pub frozen_sales: u64,
    /// Sales that were rebuilt.
    pub rebuilt_sales: u64,
    /// Messages whose body cannot be read.
    pub unreadable_messages: u64,
    /// Acts of operators that were answered with success.
    pub acts: BTreeMap<String, u64>,
    /// Events that downstream systems got.
    pub published_events: u64,
    /// Events that the shop got by webhook.
    pub received_events: u64,
    /// Outcomes that they did not get, because a fault destroyed their messages.
    pub destroyed_events: u64,
    /// C9, if the caller measured it.
    pub drain_ms: Option<u64>,
    /// Upper bound of the share of accepted requests that may be harmed, when none was (3/n, 95 %).
    pub rule_of_three: Option<f64>,
}

fn count<'a>(values: impl Iterator<Item = &'a str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for value in values {
        *counts.entry(value.to_owned()).or_default() += 1;
    }
    counts
}

fn total(count: usize) -> u64 {
    u64::try_from(count).expect("a count")
}

impl Figures {
    /// Counts.
    pub(super) fn of(index: &Index<'_>) -> Self {
        let input = index.input;
        let buys = || input.attempts.iter().filter(|attempt| attempt.kind == "buy");
        let got = |result: &str| buys().filter(|attempt| attempt.result == result).count();
        let accepted = index.attempts.keys().filter(|rid| index.was_answered_accepted(rid)).count();
        let used: BTreeSet<&str> = buys().filter_map(|attempt| attempt.rid.as_deref()).collect();
        let answered: BTreeSet<&str> =
            buys().filter(|attempt| attempt.result == "accepted").filter_map(|a| a.rid.as_deref()).collect();
        let with_rid = buys().filter(|attempt| attempt.rid.is_some()).count();
        let others = buys().map(|attempt| attempt.result.as_str());
        let failed = input.outcomes.iter().filter_map(|outcome| outcome.reason.as_deref());
        let payments: Vec<String> = input
            .payments
            .iter()
            .map(|payment| {
                format!("{} {}", payment.state, payment.reason.as_deref().unwrap_or_default()).trim().to_owned()
            })
            .collect();
        let known: BTreeSet<&str> = index.outcomes.keys().chain(index.undecided.keys()).copied().collect();
        Self {
            sent: total(buys().count()),
            accepted: total(accepted),
            unknown: total(got("unknown")),
            refused: count(others.filter(|result| !["accepted", "unknown"].contains(result))),
            replays_same: total(got("accepted").saturating_sub(answered.len())),
            attempts_per_purchase: if used.is_empty() { 0.0 } else { with_rid as f64 / used.len() as f64 },
            asked: total(input.attempts.iter().filter(|attempt| attempt.kind == "status").count()),
            orders: total(input.orders.len()),
            orders_by_sale: count(input.orders.iter().map(|order| order.sale_id.as_str())),
            orders_by_source: count(input.orders.iter().map(|order| order.source.as_str())),
            orders_by_state: count(input.orders.iter().filter_map(|order| order.state.as_deref())),
            payments: count(payments.iter().map(String::as_str)),
            failed: count(failed),
            parked: total(index.parked.iter().filter(|rid| !index.outcomes.contains_key(*rid)).count()),
            undersold_units: undersold(index),
            unknown_to_clients: total(known.iter().filter(|rid| !index.was_answered_accepted(rid)).count()),
            samples: total(input.samples.iter().filter(|sample| sample.sale.is_some()).count()),
            samples_away: total(input.samples.iter().filter(|sample| sample.sale.is_none()).count()),
            frozen_sales: total(frozen(index)),
            rebuilt_sales: total(input.sales.iter().filter(|sale| sale.epoch > 1).count()),
            unreadable_messages: total(input.rabbit.iter().filter(|message| message.body.is_none()).count()),
            acts: count(input.acts.iter().filter(|act| act.result == "done").map(|act| act.act.as_str())),
            published_events: total(input.published.len()),
            received_events: input.received.as_ref().map_or(0, |received| total(received.len())),
            destroyed_events: total(published::destroyed_count(index)),
            drain_ms: input.drain_ms,
            rule_of_three: (accepted > 0).then(|| 3.0 / accepted as f64),
        }
    }
}

/// Units that stayed unsold in sales that answered "sold out".
fn undersold(index: &Index<'_>) -> i64 {
    let answered = index.input.attempts.iter().filter(|attempt| attempt.result == "sold_out");
    let answered: BTreeSet<&str> = answered.map(|attempt| attempt.sale.as_str()).collect();
    answered
        .into_iter()
        .filter_map(|id| index.sales.get(id))
        .map(|sale| sale.granted - index.ordered_units(&sale.sale_id))
        .sum()
}

/// Sales that should sell and cannot.
fn frozen(index: &Index<'_>) -> usize {
    let sells = |sale: &&str| {
        let mut metas = index.input.meta.iter().filter(|meta| meta.sale == **sale).peekable();
        metas.peek().is_some() && metas.all(|meta| meta.fields.get("state").is_some_and(|state| state != "frozen"))
    };
    let should = index.input.sales.iter().filter(|sale| ["warmed", "paused"].contains(&sale.status.as_str()));
    should.map(|sale| sale.sale_id.as_str()).filter(|sale| !sells(sale)).count()
}
