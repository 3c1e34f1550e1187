//! Ranks: given by arrival or recomputed from what is public of a draw; and units go by them.
//!
//! How far the order is strict: a leader chooses entries from the front, and writes all requests of one choice at once. So behind an entry
//! that waits without a request, and wants no more units than the one behind, nothing is chosen. Chosen entries ask for their units side by
//! side, and who has no answer asks again: there a higher rank may be first.

use super::{EntryRow, LineTerms, Played, Violation, violation};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A request that is chosen so much later than one of a higher rank was not chosen by its rank. Milliseconds; a leader that sleeps between
/// its ids and its choice may be late by less.
pub(super) const LATER_MS: i64 = 5_000;
/// Clocks of the servers.
const SLACK_MS: i64 = 250;
/// The bits of a request's id below its milliseconds: node and sequence.
const BELOW_MS: u32 = 22;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("into a string");
        text
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2).filter_map(|two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok());
    digits.collect()
}

/// Entry → rank, of a raffle as anybody can recompute it, and the digest of its list.
fn drawn(seed: &str, entries: &[&EntryRow]) -> (BTreeMap<String, i64>, String) {
    let mut ids: Vec<u64> = entries.iter().filter(|row| row.listed).filter_map(|row| row.id.parse().ok()).collect();
    ids.sort_unstable();
    let list: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let (seed, digest) = (bytes(seed), Sha256::digest(list));
    let hash =
        |id: &u64| Sha256::new().chain_update(&seed).chain_update(digest).chain_update(id.to_string()).finalize();
    ids.sort_by_key(|id| (hash(id).to_vec(), *id));
    ((1..).zip(ids).map(|(rank, id)| (id.to_string(), rank)).collect(), hex(&digest))
}

/// An entry with its rank.
type Ranked<'a> = (i64, &'a EntryRow);

/// Entries by rank; those that have none are not there.
fn ranked<'a>(played: &Played<'_>, sale: &str, entries: &[&'a EntryRow]) -> (Vec<Ranked<'a>>, Vec<String>) {
    let mut found = Vec::new();
    let is_raffle = played.terms.sale(sale).is_some_and(|sale| matches!(sale.line, Some(LineTerms::Raffle(_))));
    let line = played.books.lines.get(sale).cloned().unwrap_or_default();
    let mut ranks: BTreeMap<String, i64> = entries.iter().filter_map(|row| Some((row.id.clone(), row.rank?))).collect();
    if is_raffle {
        let (drawn, digest) = drawn(&line.seed, entries);
        if line.digest.as_ref() != Some(&digest) {
            found.push(format!("{sale}: the list has the digest {digest}, it was drawn with {:?}", line.digest));
        }
        let wrong = ranks.iter().filter(|(id, rank)| drawn.get(*id) != Some(rank));
        found.extend(wrong.map(|(id, rank)| format!("{sale}: {id} has rank {rank}, drawn {:?}", drawn.get(id))));
        ranks = drawn;
    } else {
        let without = entries.iter().filter(|row| row.rank.is_none());
        found.extend(without.map(|row| format!("{row:?} has no rank")));
    }
    for seen in played.log.seen.iter().filter(|seen| seen.sale == sale) {
        let rank = ranks.get(&seen.entry);
        if seen.rank.is_some() && rank.is_some() && seen.rank.as_ref() != rank {
            found.push(format!("{seen:?}: its rank is {rank:?}"));
        }
    }
    let mut by_rank: Vec<Ranked<'_>> = entries.iter().filter_map(|row| Some((*ranks.get(&row.id)?, *row))).collect();
    by_rank.sort_unstable_by_key(|(rank, _)| *rank);
    for pair in by_rank.windows(2) {
        let ((first, before), (second, behind)) = (pair[0], pair[1]);
        if first == second || !is_raffle && before.entered_ms > behind.entered_ms + SLACK_MS {
            found.push(format!("{before:?} is before {behind:?}"));
        }
    }
    (by_rank, found)
}

/// When a request was chosen, milliseconds since the ids' own epoch.
fn chosen_ms(rid: &str) -> i64 {
    rid.parse::<i64>().unwrap_or(0) >> BELOW_MS
}

/// Whether units went past `before` to `behind`.
fn is_passed(played: &Played<'_>, before: &EntryRow, behind: &EntryRow) -> bool {
    let Some(of_behind) = behind.rid.as_deref() else { return false };
    if before.quantity > behind.quantity || before.state == "LEFT" {
        return false;
    }
    let Some(of_before) = before.rid.as_deref() else { return before.state == "WAITING" };
    let accepted = |rid: &str| played.books.order(rid).map(|order| order.accepted_ms);
    let is_later = matches!((accepted(of_before), accepted(of_behind)), (Some(a), Some(b)) if a > b + SLACK_MS);
    is_later && chosen_ms(of_before) > chosen_ms(of_behind) + LATER_MS
}

/// RANK.
pub(super) fn ranks(played: &Played<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for sale in played.terms.sales.iter().filter(|sale| sale.line.is_some()) {
        let entries: Vec<&EntryRow> = played.books.entries.iter().filter(|entry| entry.sale == sale.sale_id).collect();
        let (by_rank, wrong) = ranked(played, &sale.sale_id, &entries);
        found.extend(wrong);
        for (at, (rank, before)) in by_rank.iter().enumerate() {
            let past = by_rank[at + 1..].iter().find(|(_, behind)| is_passed(played, before, behind));
            found.extend(past.map(|(other, behind)| {
                format!("{}: rank {other} got units past rank {rank}: {behind:?}, {before:?}", sale.sale_id)
            }));
        }
    }
    found.into_iter().map(|what| violation("RANK", what)).collect()
}
