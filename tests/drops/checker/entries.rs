//! Entries of lines: what was answered is there, nothing else is, each buyer or person once, and none behind the close.

use super::{Came, EntryRow, Played, Violation, violation};
use std::collections::{BTreeMap, BTreeSet};

/// Calls to leave these entries, whose answer was not that they stay.
fn may_have_left<'a>(played: &Played<'a>) -> BTreeSet<&'a str> {
    let leaving = played.log.leaving.iter().filter(|leaving| leaving.left != Some(false));
    leaving.map(|leaving| leaving.entry.as_str()).collect()
}

/// ENTRY.
pub(super) fn entries(played: &Played<'_>) -> Vec<Violation> {
    let parts: [fn(&Played<'_>) -> Vec<String>; 4] = [answered, from_somewhere, once, left_for_good];
    let found = parts.iter().flat_map(|part| part(played));
    found.map(|what| violation("ENTRY", what)).collect()
}

/// Each 201 is its buyer's entry, unless it left.
fn answered(played: &Played<'_>) -> Vec<String> {
    let rows: BTreeMap<&str, &EntryRow> = played.books.entries.iter().map(|row| (row.id.as_str(), row)).collect();
    let left = may_have_left(played);
    let mut found = Vec::new();
    for call in &played.log.entering {
        let Came::Accepted(id) = &call.came else { continue };
        let same = |row: &&EntryRow| {
            (&row.buyer, &row.sale, row.quantity) == (&call.buyer, &call.sale, i64::from(call.quantity))
        };
        match rows.get(id.as_str()) {
            Some(row) if !same(row) => found.push(format!("{call:?} is {row:?}")),
            None if !left.contains(id.as_str()) => found.push(format!("{call:?} has no entry, and did not leave")),
            Some(_) | None => {}
        }
        let closes_ms = played.terms.sale(&call.sale).and_then(super::SaleTerms::raffle_closes_ms);
        if closes_ms.is_some_and(|closes_ms| call.begun_ms > closes_ms) {
            found.push(format!("{call:?}: the line closed at {closes_ms:?}"));
        }
    }
    for seen in &played.log.seen {
        let row = rows.get(seen.entry.as_str());
        if row.is_none() && !left.contains(seen.entry.as_str()) || row.is_some_and(|row| row.buyer != seen.buyer) {
            found.push(format!("{seen:?} is {row:?}"));
        }
    }
    found
}

/// Each entry has a call that it may come from, and the real person of its account.
fn from_somewhere(played: &Played<'_>) -> Vec<String> {
    let comes_from = |row: &EntryRow| {
        played.log.entering.iter().any(|call| {
            let may_be = match &call.came {
                Came::Accepted(id) => *id == row.id,
                Came::Unknown => true,
                Came::Refused { .. } | Came::Unsent => false,
            };
            may_be && call.buyer == row.buyer && call.sale == row.sale && i64::from(call.quantity) == row.quantity
        })
    };
    let mut found = Vec::new();
    for row in &played.books.entries {
        let sale = played.terms.sale(&row.sale);
        if sale.is_none_or(|sale| sale.line.is_none()) || !comes_from(row) {
            found.push(format!("{row:?}: no such call"));
        }
        if sale.and_then(super::SaleTerms::raffle_closes_ms).is_some_and(|closes_ms| row.entered_ms >= closes_ms) {
            found.push(format!("{row:?} is behind the close"));
        }
        let real = played.log.who.get(&row.buyer).map(|who| &who.person);
        if if played.terms.by_person { row.person.as_ref() != real } else { row.person.is_some() } {
            found.push(format!("{row:?} is of {real:?}"));
        }
    }
    found
}

/// A buyer, or a person, is in a line once.
fn once(played: &Played<'_>) -> Vec<String> {
    let mut of_key: BTreeMap<(&str, String), Vec<&EntryRow>> = BTreeMap::new();
    for row in &played.books.entries {
        of_key.entry((&row.sale, played.key(&row.buyer))).or_default().push(row);
    }
    let more = of_key.into_iter().filter(|(_, rows)| rows.len() > 1);
    more.map(|((sale, key), rows)| format!("{key} is {} times in the line of {sale}", rows.len())).collect()
}

/// Who left is out, by a call of its own, and no other entry is.
fn left_for_good(played: &Played<'_>) -> Vec<String> {
    let owner = |id: &str| {
        let called = played.log.entering.iter().find(|call| matches!(&call.came, Came::Accepted(of) if of == id));
        let row = played.books.entries.iter().find(|row| row.id == id);
        called.map(|call| &call.buyer).or(row.map(|row| &row.buyer))
    };
    let foreign = played.log.leaving.iter().filter(|leaving| {
        leaving.left == Some(true) && owner(&leaving.entry).is_some_and(|owner| *owner != leaving.buyer)
    });
    let foreign: Vec<String> =
        foreign.map(|leaving| format!("{leaving:?} is of {:?}", owner(&leaving.entry))).collect();
    let may = may_have_left(played);
    let left: BTreeSet<&str> = played
        .log
        .leaving
        .iter()
        .filter(|leaving| leaving.left == Some(true))
        .map(|leaving| leaving.entry.as_str())
        .collect();
    let wrong = played.books.entries.iter().filter(|row| {
        let is_out = row.state == "LEFT";
        if is_out { !may.contains(row.id.as_str()) } else { left.contains(row.id.as_str()) }
    });
    let wrong = wrong.map(|row| format!("{row:?}: left is {}", left.contains(row.id.as_str())));
    wrong.chain(foreign).collect()
}
