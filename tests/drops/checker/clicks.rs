//! Clicks: none gets a unit while an entry waits.
//!
//! By rows an entry waits from when it was written until its own order was accepted, or until it got its state if it has no order; of one that
//! left and came again the last time only is known. By what buyers saw it waits from the answer 201 to the last call that showed it WAITING.

use super::answers::accepted;
use super::{Came, EntryRow, Played, Violation, violation};
use std::collections::BTreeMap;

/// Clocks of the servers: so much of the time in which an entry waits is not judged, at each end.
pub(super) const SLACK_MS: i64 = 250;

/// When it waited, by rows; none: that is not known.
fn waits(played: &Played<'_>, entry: &EntryRow) -> Option<(i64, i64)> {
    let until = match (entry.state.as_str(), &entry.rid) {
        ("WAITING", _) => i64::MAX,
        (_, None) => entry.state_ms,
        (_, Some(rid)) => match played.books.order(rid) {
            Some(order) => order.accepted_ms.min(entry.state_ms),
            // It was accepted at a moment that no row has, and failed.
            None if played.books.failed.contains_key(rid) => return None,
            None => entry.state_ms,
        },
    };
    Some((entry.entered_ms.saturating_add(SLACK_MS), until.saturating_sub(SLACK_MS)))
}

/// Entry → sale, and when it waited, as its buyer saw it.
fn seen<'a>(played: &Played<'a>) -> BTreeMap<&'a str, (&'a str, i64, i64)> {
    let mut waits = BTreeMap::new();
    for call in &played.log.entering {
        if let Came::Accepted(id) = &call.came {
            waits.insert(id.as_str(), (call.sale.as_str(), call.ended_ms, i64::MIN));
        }
    }
    for seen in played.log.seen.iter().filter(|seen| seen.state == "WAITING") {
        if let Some((_, _, until)) = waits.get_mut(seen.entry.as_str()) {
            *until = seen.begun_ms.max(*until);
        }
    }
    waits
}

/// CLICK.
pub(super) fn clicks(played: &Played<'_>) -> Vec<Violation> {
    let Played { terms, log, books } = played;
    let with_line = |id: &str| terms.sale(id).is_some_and(|sale| sale.line.is_some());
    let is_click = |rid: &str| books.entries_of(rid).next().is_none();
    let mut found = Vec::new();
    for order in books.orders.iter().filter(|order| with_line(&order.sale) && is_click(&order.rid)) {
        let waits = books.entries.iter().filter(|entry| entry.sale == order.sale).find(|entry| {
            let waited = waits(played, entry);
            waited.is_some_and(|(from, until)| (from..until).contains(&order.accepted_ms))
        });
        found.extend(waits.map(|entry| format!("{order:?} was a click while an entry waited: {entry:?}")));
    }
    let seen = seen(played);
    for (rid, attempts) in accepted(played).into_iter().filter(|(rid, _)| is_click(rid)) {
        let first = attempts[0];
        // Whatever attempt with its token it was.
        let tries = log.attempts.iter().filter(|one| one.token.is_some() && one.token == first.token);
        let begun = tries.chain(attempts.iter().copied()).map(|one| one.begun_ms).min().unwrap_or(0);
        let ended = attempts.iter().filter(|one| matches!(one.came, Came::Accepted(_))).map(|one| one.ended_ms).min();
        let ended = ended.unwrap_or(i64::MAX);
        let waits =
            seen.iter().find(|(_, (sale, from, until))| *sale == first.sale && *from <= begun && ended <= *until);
        found.extend(waits.map(|(entry, waited)| {
            format!("{rid} was a click of {} from {begun} to {ended}, {entry} waited {waited:?}", first.buyer)
        }));
    }
    for (sale, line) in &books.lines {
        let waits = books.entries.iter().find(|entry| entry.sale == *sale && entry.state == "WAITING");
        found.extend(waits.filter(|_| !line.by_line).map(|entry| format!("{sale}: clicks may buy, and {entry:?}")));
    }
    found.into_iter().map(|what| violation("CLICK", what)).collect()
}
