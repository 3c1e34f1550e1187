//! Offers: each order of a line has one entry, each entry at most one order, and both say the same.

use super::{EntryRow, OrderRow, Played, Violation, violation};

/// What the order of an entry has to be, by the entry's state; the text says what is not so.
fn differs(played: &Played<'_>, entry: &EntryRow) -> Option<String> {
    let order = entry.rid.as_deref().and_then(|rid| played.books.order(rid));
    let failed = entry.rid.as_deref().is_some_and(|rid| played.books.failed.contains_key(rid));
    let pays = played.terms.sale(&entry.sale).is_some_and(|sale| sale.pays);
    let state = order.map(|order| order.state.as_deref());
    let is_so = match (entry.state.as_str(), entry.reason.as_deref()) {
        // At rest no offer is open: where nothing is paid an order is taken at once.
        ("WAITING", None) => order.is_none() && !failed,
        ("TAKEN", None) => state == Some(pays.then_some("PAID")),
        ("LAPSED", Some("EXPIRED" | "CANCELLED")) => match state {
            Some(Some(ended)) => Some(ended) == entry.reason.as_deref(),
            Some(None) => !pays,
            None => false,
        },
        ("LAPSED", Some("BLOCKED" | "LIMIT" | "LOST")) => order.is_none(),
        ("LAPSED", Some(_failure)) => order.is_none() && failed,
        ("LEFT", _) => entry.rid.is_none(),
        _ => false,
    };
    (!is_so).then(|| format!("{entry:?}: its order is {order:?}, failed: {failed}"))
}

/// An order of a sale with a line, and the entries that name it.
fn mismatch(played: &Played<'_>, order: &OrderRow) -> Option<String> {
    let entries: Vec<&EntryRow> = played.books.entries_of(&order.rid).collect();
    match entries.as_slice() {
        // A click; whether it was one in time the rule CLICK says.
        [] => None,
        [entry] => {
            let same = (&entry.buyer, &entry.sale, entry.quantity) == (&order.buyer, &order.sale, order.quantity);
            (!same).then(|| format!("{order:?} is the offer of {entry:?}"))
        }
        _ => Some(format!("{} is the offer of {} entries", order.rid, entries.len())),
    }
}

/// OFFER.
pub(super) fn offers(played: &Played<'_>) -> Vec<Violation> {
    let of_entries = played.books.entries.iter().filter_map(|entry| differs(played, entry));
    let of_orders = played.books.orders.iter().filter_map(|order| mismatch(played, order));
    // What a buyer was shown as its offer stays its offer.
    let shown = played.log.seen.iter().filter_map(|seen| {
        let rid = seen.rid.as_ref()?;
        let row = played.books.entries.iter().find(|row| row.id == seen.entry);
        let went_back = seen.is_made() && row.is_some_and(|row| !matches!(row.state.as_str(), "TAKEN" | "LAPSED"));
        let is_so = row.is_some_and(|row| row.rid.as_ref() == Some(rid)) && !went_back;
        (!is_so).then(|| format!("{seen:?} is {row:?}"))
    });
    of_entries.chain(of_orders).chain(shown).map(|what| violation("OFFER", what)).collect()
}
