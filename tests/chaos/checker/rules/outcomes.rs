//! C3: every accepted request has exactly one outcome, or is known to be open. C10: never two.

use super::super::Found;
use super::super::index::Index;
use std::collections::BTreeSet;

/// Checks C3 and what of C10 the database shows.
pub fn check(index: &Index<'_>, found: &mut Found) {
    accepted(index, found);
    torn(index, found);
    twice(index, found);
}

fn accepted(index: &Index<'_>, found: &mut Found) {
    let answered = index.attempts.keys().copied().filter(|rid| index.was_answered_accepted(rid));
    let known: BTreeSet<&str> =
        answered.chain(index.ledger.keys().copied()).chain(index.moving.iter().copied()).collect();
    for rid in known {
        // A half-written outcome is reported as such.
        if index.outcomes.contains_key(rid) || index.orders.contains_key(rid) || index.parked.contains(rid) {
            continue;
        }
        let answered = if index.was_answered_accepted(rid) { "answered as accepted" } else { "answered to no client" };
        let places: Vec<&str> =
            [(index.ledger.contains_key(rid), "ledger"), (index.moving.contains(rid), "outbox or queues")]
                .into_iter()
                .filter_map(|(there, place)| there.then_some(place))
                .collect();
        if places.is_empty() {
            found.add("C3-lost", format!("lost: request {rid}, {answered}, is in no place at all"));
        } else {
            found.add(
                "C3-limbo",
                format!("limbo: request {rid}, {answered}, has no outcome; it is in {}", places.join(", ")),
            );
        }
    }
}

fn torn(index: &Index<'_>, found: &mut Found) {
    for (rid, outcome) in &index.outcomes {
        match outcome.kind.as_str() {
            "ORDER" if !index.orders.contains_key(rid) => {
                found.add("C3-torn", format!("request {rid}: its outcome is ORDER, but there is no order"));
            }
            "FAILED" if !index.failed.contains_key(rid) => {
                found
                    .add("C3-torn", format!("request {rid}: its outcome is FAILED, but the register does not know it"));
            }
            "ORDER" | "FAILED" => {}
            other => found.add("C3-torn", format!("request {rid}: unknown outcome {other}")),
        }
    }
    for rid in index.orders.keys().filter(|rid| !index.outcomes.contains_key(*rid)) {
        found.add("C3-torn", format!("request {rid}: there is an order without an outcome"));
    }
    let finals = index.failed.iter().filter(|(_, row)| row.status == "failed_final");
    for (rid, _) in finals.filter(|(rid, _)| !index.outcomes.contains_key(*rid)) {
        found.add("C3-torn", format!("request {rid}: the register says failed_final, but there is no outcome"));
    }
    let mut seen = BTreeSet::new();
    for outcome in index.input.outcomes.iter().filter(|outcome| !seen.insert(&outcome.request_id)) {
        found.add("C3-torn", format!("request {}: it has two outcomes", outcome.request_id));
    }
}

fn twice(index: &Index<'_>, found: &mut Found) {
    for (rid, outcome) in &index.outcomes {
        if outcome.kind == "FAILED" && index.orders.contains_key(rid) {
            found.add("C10", format!("request {rid}: its outcome is FAILED, and there is an order"));
        }
        let failed = index.failed.get(rid).is_some_and(|row| row.status == "failed_final");
        if outcome.kind == "ORDER" && failed {
            found.add("C10", format!("request {rid}: its outcome is ORDER, and the register says failed_final"));
        }
    }
    for (rid, attempts) in &index.attempts {
        let got: BTreeSet<&str> = attempts
            .iter()
            .filter(|attempt| attempt.kind == "status")
            .map(|attempt| attempt.result.as_str())
            .filter(|result| ["confirmed", "failed"].contains(result))
            .collect();
        if got.len() > 1 {
            found.add("C10", format!("request {rid}: a client got both CONFIRMED and FAILED"));
        }
    }
}
