//! Acceptance numbers: who had which, which is the highest that anyone can still know of, and which are missing below it.

use super::super::index::Index;
use super::super::read::{Body, Input};
use super::{Case, SaleState, Trouble};
use std::collections::{BTreeMap, BTreeSet};

/// Most holes told one by one.
const TOLD_MAX: usize = 10;

/// A sale's shard in an epoch.
pub type Series<'a> = (&'a str, u16, u64);

/// All numbers of all series.
pub struct Numbers<'a> {
    /// Where each request stood, as far as it was ever seen.
    places: BTreeMap<&'a str, (Series<'a>, u64)>,
    /// The highest number that something left after the strike shows.
    tops: BTreeMap<Series<'a>, u64>,
    /// Numbers with a request that is decided or on its way at the end, and whose.
    present: BTreeMap<Series<'a>, BTreeMap<u64, &'a str>>,
}

/// Every request that something in a dump names, with its place.
fn seen(input: &Input) -> impl Iterator<Item = (&str, (Series<'_>, u64))> {
    let of_outcome = input.outcomes.iter().map(|outcome| {
        let series = (outcome.sale_id.as_str(), outcome.shard, outcome.epoch);
        (outcome.request_id.as_str(), (series, outcome.number))
    });
    let readable = input.ledger.iter().filter(|record| record.unreadable.is_none());
    let of_record = readable
        .map(|record| (record.rid.as_str(), ((record.sale.as_str(), record.shard, record.epoch), record.number)));
    let entries = input.outbox.iter().chain(&input.relay_dlq).filter_map(|entry| entry.body.as_ref());
    let bodies = entries.chain(input.rabbit.iter().filter_map(|message| message.body.as_ref()));
    let of_body =
        bodies.map(|body: &Body| (body.rid.as_str(), ((body.sale.as_str(), body.shard, body.epoch), body.no)));
    of_outcome.chain(of_record).chain(of_body)
}

/// Redis' own counters.
fn counters(input: &Input) -> impl Iterator<Item = (Series<'_>, u64)> {
    input.meta.iter().filter_map(|meta| {
        let field = |name: &str| meta.fields.get(name).and_then(|text| text.parse::<u64>().ok());
        Some(((meta.sale.as_str(), meta.shard, field("epoch")?), field("number")?))
    })
}

impl<'a> Numbers<'a> {
    /// Of the three dumps. What was there before the strike only shows where a request had stood, not that anyone could know it.
    pub fn of(before: &'a Input, strike: &'a Input, end: &Index<'a>) -> Self {
        let mut places = BTreeMap::new();
        for (rid, place) in seen(before).chain(seen(strike)).chain(seen(end.input)) {
            places.insert(rid, place);
        }
        let mut tops: BTreeMap<Series<'_>, u64> = BTreeMap::new();
        let left = seen(strike).chain(seen(end.input)).map(|(_, place)| place);
        for (series, number) in left.chain(counters(strike)).chain(counters(end.input)) {
            let top = tops.entry(series).or_default();
            *top = number.max(*top);
        }
        let mut present: BTreeMap<Series<'_>, BTreeMap<u64, &str>> = BTreeMap::new();
        for outcome in &end.input.outcomes {
            let series = (outcome.sale_id.as_str(), outcome.shard, outcome.epoch);
            present.entry(series).or_default().insert(outcome.number, &outcome.request_id);
        }
        for (rid, open) in &end.undecided {
            present.entry((open.sale, open.shard, open.epoch)).or_default().entry(open.number).or_insert(rid);
        }
        Self { places, tops, present }
    }

    /// Whether somebody who looks at what was left could know that this request, which is nowhere, is missing. One that was
    /// never seen in any place cannot be placed, and counts as one that could be known: the judge does not excuse it.
    pub fn could_be_known(&self, rid: &str) -> bool {
        let Some((series, number)) = self.places.get(rid) else { return true };
        let top = self.tops.get(series).copied().unwrap_or(0);
        let taken = self.present.get(series).is_some_and(|present| present.contains_key(number));
        *number <= top && !taken
    }
}

/// Holes in the sale's series.
pub(super) fn check(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let numbers = &case.numbers;
    for ((_, shard, epoch), top) in numbers.tops.iter().filter(|((of, _, _), _)| *of == sale) {
        let present = numbers.present.get(&(sale, *shard, *epoch));
        let is_there = |number: &u64| present.is_some_and(|present| present.contains_key(number));
        let missing: BTreeSet<u64> = (1..=*top).filter(|number| !is_there(number)).collect();
        if !missing.is_empty() {
            let told: Vec<&u64> = missing.iter().take(TOLD_MAX).collect();
            let detail = format!("shard {shard} epoch {epoch}: {} of {top} are missing: {told:?}", missing.len());
            state.add(Trouble::Hole, detail);
        }
    }
}
