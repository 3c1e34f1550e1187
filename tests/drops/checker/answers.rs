//! What buyers were answered, held against what is there.

use super::{Attempt, Came, OrderRow, Played, Violation, violation};
use std::collections::{BTreeMap, BTreeSet};

/// The request that an attempt is, where it is known.
fn request<'a>(played: &'a Played<'_>, attempt: &'a Attempt) -> Option<&'a str> {
    let by_token = || attempt.token.as_ref().and_then(|token| played.log.issued.get(token));
    match &attempt.came {
        Came::Accepted(rid) => Some(rid),
        Came::Unknown => by_token().map(|issued| issued.rid.as_str()),
        Came::Refused { .. } | Came::Unsent => None,
    }
}

/// Attempts by the request that they are, of those that were accepted at least once.
pub(super) fn accepted<'a>(played: &'a Played<'_>) -> BTreeMap<&'a str, Vec<&'a Attempt>> {
    let mut by_request: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in &played.log.attempts {
        if let Some(rid) = request(played, attempt) {
            by_request.entry(rid).or_default().push(attempt);
        }
    }
    by_request.retain(|_, attempts| attempts.iter().any(|attempt| matches!(attempt.came, Came::Accepted(_))));
    by_request
}

/// NEEDS. What was accepted once needs nothing when it is repeated: one attempt has to have shown what the sale needs.
pub(super) fn needs(played: &Played<'_>) -> Vec<Violation> {
    let of_orders = played.books.orders.iter().filter(|order| {
        let sale = played.terms.sale(&order.sale);
        let who = played.log.who.get(&order.buyer).cloned().unwrap_or_default();
        sale.is_some_and(|sale| !sale.are_needs_met(&who.facts, who.has_pass))
    });
    let of_orders = of_orders.map(|order| {
        violation("NEEDS", format!("{} of {} in {}: it has not what is needed", order.rid, order.buyer, order.sale))
    });
    let shown = accepted(played).into_iter().filter(|(_, attempts)| !attempts.iter().any(|attempt| attempt.shows));
    let of_answers = shown.map(|(rid, attempts)| {
        let Attempt { buyer, sale, trick, .. } = attempts[0];
        violation("NEEDS", format!("{rid} of {buyer} in {sale}: accepted without what is needed, {trick:?}"))
    });
    of_orders.chain(of_answers).collect()
}

/// WINDOW.
pub(super) fn windows(played: &Played<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut outside = |rid: &str, sale: &str, (from, to): (i64, i64)| {
        let Some(terms) = played.terms.sale(sale) else { return };
        let opens = terms.starts_ms.max(terms.hidden_until_ms.unwrap_or(0));
        if to < opens || from > terms.ends_ms {
            found.push(violation(
                "WINDOW",
                format!("{rid}: accepted at {from} to {to}, {sale} sells from {opens} to {}", terms.ends_ms),
            ));
        }
    };
    for order in &played.books.orders {
        outside(&order.rid, &order.sale, (order.accepted_ms, order.accepted_ms));
    }
    for (rid, attempts) in accepted(played) {
        // The first of them may have been it, and only who was answered "accepted" knows.
        let begun = attempts.iter().map(|attempt| attempt.begun_ms).min().unwrap_or(0);
        let ended = attempts.iter().filter(|attempt| matches!(attempt.came, Came::Accepted(_)));
        outside(rid, &attempts[0].sale, (begun, ended.map(|attempt| attempt.ended_ms).min().unwrap_or(0)));
    }
    found
}

/// TOKEN.
pub(super) fn tokens(played: &Played<'_>) -> Vec<Violation> {
    let by_rid: BTreeMap<&str, _> = played.log.issued.values().map(|issued| (issued.rid.as_str(), issued)).collect();
    let mut found = Vec::new();
    for order in &played.books.orders {
        let needs_token = played.terms.sale(&order.sale).is_some_and(|sale| sale.token_required);
        let has = by_rid.get(order.rid.as_str());
        if has.is_none() && needs_token || has.is_some_and(|has| has.buyer != order.buyer || has.sale != order.sale) {
            found.push(violation(
                "TOKEN",
                format!("{} of {} in {}: its token is {has:?}", order.rid, order.buyer, order.sale),
            ));
        }
    }
    let mut by_token: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for attempt in &played.log.attempts {
        if let (Some(token), Came::Accepted(rid)) = (&attempt.token, &attempt.came) {
            by_token.entry(token).or_default().insert(rid);
        }
    }
    for (token, mut rids) in by_token {
        rids.extend(played.log.issued.get(token).map(|issued| issued.rid.as_str()));
        if rids.len() > 1 {
            found.push(violation("TOKEN", format!("one token, issued or accepted as {rids:?}")));
        }
    }
    found
}

/// LOST.
pub(super) fn lost(played: &Played<'_>) -> Vec<Violation> {
    let orders: BTreeMap<&str, &OrderRow> =
        played.books.orders.iter().map(|order| (order.rid.as_str(), order)).collect();
    let mut found = Vec::new();
    for (rid, attempts) in accepted(played) {
        let Attempt { buyer, sale, quantity, .. } = attempts[0];
        let failed = played.books.failed.get(rid).map(|(sale, units)| (sale, *units));
        let order = orders.get(rid).map(|order| (&order.sale, order.quantity));
        match order.or(failed) {
            None => found.push(violation("LOST", format!("{rid} of {buyer} in {sale}: no order and no failure"))),
            Some(has) if has != (sale, i64::from(*quantity)) => {
                found.push(violation("LOST", format!("{rid}: {quantity} of {sale} were accepted, it is {has:?}")));
            }
            Some(_) if orders.get(rid).is_some_and(|order| order.buyer != *buyer) => {
                found.push(violation(
                    "LOST",
                    format!("{rid} was answered to {buyer}, and is an order of {}", orders[rid].buyer),
                ));
            }
            Some(_) => {}
        }
    }
    found
}

/// UNKNOWN.
pub(super) fn unknown(played: &Played<'_>) -> Vec<Violation> {
    let accepted = accepted(played);
    // Attempts that may have been anything: by buyer, sale and quantity, less those whose request is known by its token.
    let mut open: BTreeMap<(&str, &str, u32), usize> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for attempt in played.log.attempts.iter().filter(|attempt| attempt.came == Came::Unknown) {
        match request(played, attempt) {
            Some(rid) => _ = known.insert(rid),
            None => *open.entry((&attempt.buyer, &attempt.sale, attempt.quantity)).or_default() += 1,
        }
    }
    let mut found = Vec::new();
    for order in &played.books.orders {
        // That of an entry is judged by the rules of lines.
        let is_offer = played.books.entries_of(&order.rid).next().is_some();
        if is_offer || accepted.contains_key(order.rid.as_str()) || known.contains(order.rid.as_str()) {
            continue;
        }
        let quantity = u32::try_from(order.quantity).unwrap_or(0);
        match open.get_mut(&(order.buyer.as_str(), order.sale.as_str(), quantity)) {
            Some(left) if *left > 0 => *left -= 1,
            _ => found.push(violation(
                "UNKNOWN",
                format!("{} of {} in {}: no such purchase", order.rid, order.buyer, order.sale),
            )),
        }
    }
    found
}

/// PRICE.
pub(super) fn prices(played: &Played<'_>) -> Vec<Violation> {
    let Played { terms, log, books } = played;
    let mut found = Vec::new();
    for order in &books.orders {
        let price = terms.sale(&order.sale).map_or(-1, |sale| sale.price_cents * order.quantity);
        if order.amount_cents != price {
            found
                .push(violation("PRICE", format!("{} costs {}, the file says {price}", order.rid, order.amount_cents)));
        }
        let paid = order.state.as_deref() == Some("PAID");
        let reported: Vec<_> = log.reported.iter().filter(|reported| reported.rid == order.rid).collect();
        let right = reported.iter().any(|reported| reported.amount == price && reported.paid != Some(false));
        if paid && (!right || books.payments.get(&order.rid) != Some(&price)) {
            let has = books.payments.get(&order.rid);
            found.push(violation("PRICE", format!("{} is paid with {has:?} and costs {price}", order.rid)));
        }
        let answered =
            reported.iter().find(|reported| reported.paid == Some(true) && (!paid || reported.amount != price));
        // An operator who cancels a paid order is none of these runs.
        found.extend(answered.map(|reported| {
            violation("PRICE", format!("{reported:?} was answered \"paid\" for {price}, {:?}", order.state))
        }));
    }
    found
}
