//! Acceptance numbers: who had which, which is the highest that anyone can still know of, and which are missing below it.

use super::super::index::Index;
use super::super::read::{Body, Input};
use super::{Case, SaleState, Trouble};
use std::collections::{BTreeMap, BTreeSet};

/// Most holes listed one by one.
const NAMED_MAX: usize = 10;

/// A sale's shard in an epoch.
pub type Series<'a> = (&'a str, u16, u64);

/// Where a request stood, and what it took.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    series: Series<'a>,
    number: u64,
    units: i64,
}

/// All numbers of all series.
pub struct Numbers<'a> {
    /// Where each request stood, as far as it was ever seen.
    places: BTreeMap<&'a str, Place<'a>>,
    /// The highest number that something left after the strike shows.
    tops: BTreeMap<Series<'a>, u64>,
    /// Numbers with a request that is decided or on its way at the end, and whose.
    present: BTreeMap<Series<'a>, BTreeMap<u64, &'a str>>,
}

/// Every request that something in a dump names, with its place.
fn seen(input: &Input) -> Vec<(&str, Place<'_>)> {
    let ordered = input.orders.iter().map(|order| (order.request_id.as_str(), order.quantity));
    let failed = input.failed.iter().map(|failed| (failed.request_id.as_str(), failed.quantity));
    let units: BTreeMap<&str, i64> = failed.chain(ordered).collect();
    let of_outcome = input.outcomes.iter().filter_map(|outcome| {
        let (rid, series) = (outcome.request_id.as_str(), (outcome.sale_id.as_str(), outcome.shard, outcome.epoch));
        let units = units.get(rid).copied().unwrap_or(0);
        Some((rid, Place { series, number: outcome.number?, units }))
    });
    let readable = input.ledger.iter().filter(|record| record.unreadable.is_none());
    let of_record = readable.map(|record| {
        let series = (record.sale.as_str(), record.shard, record.epoch);
        (record.rid.as_str(), Place { series, number: record.number, units: record.quantity })
    });
    let entries = input.outbox.iter().chain(&input.relay_dlq).filter_map(|entry| entry.body.as_ref());
    let bodies = entries.chain(input.rabbit.iter().filter_map(|message| message.body.as_ref()));
    let of_body = bodies.map(|body: &Body| {
        let series = (body.sale.as_str(), body.shard, body.epoch);
        (body.rid.as_str(), Place { series, number: body.no, units: body.qty })
    });
    // A loser of a number that was given twice is remembered without one.
    of_outcome.chain(of_record).chain(of_body).filter(|(_, place)| place.number > 0).collect()
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
        let [before, after, now] = [seen(before), seen(strike), seen(end.input)];
        for (rid, place) in before.iter().chain(&after).chain(&now) {
            places.insert(*rid, *place);
        }
        let mut tops: BTreeMap<Series<'_>, u64> = BTreeMap::new();
        let left = after.iter().chain(&now).map(|(_, place)| (place.series, place.number));
        for (series, number) in left.chain(counters(strike)).chain(counters(end.input)) {
            let top = tops.entry(series).or_default();
            *top = number.max(*top);
        }
        let mut present: BTreeMap<Series<'_>, BTreeMap<u64, &str>> = BTreeMap::new();
        for (outcome, number) in end.input.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.number?))) {
            let series = (outcome.sale_id.as_str(), outcome.shard, outcome.epoch);
            present.entry(series).or_default().insert(number, &outcome.request_id);
        }
        for (rid, open) in &end.undecided {
            present.entry((open.sale, open.shard, open.epoch)).or_default().entry(open.number).or_insert(rid);
        }
        Self { places, tops, present }
    }

    /// Whether somebody who reads what was left could know that this request, which is nowhere, is missing. One that was
    /// never seen in any place cannot be placed, and counts as one that could be known: the judge does not excuse it.
    pub fn could_be_known(&self, rid: &str) -> bool {
        let Some(Place { series, number, .. }) = self.places.get(rid) else { return true };
        let top = self.tops.get(series).copied().unwrap_or(0);
        let taken = self.present.get(series).is_some_and(|present| present.contains_key(number));
        *number <= top && !taken
    }

    /// Numbers of a sale below the highest known one that no request has.
    fn holes(&self, sale: &str) -> BTreeMap<Series<'a>, (u64, BTreeSet<u64>)> {
        let of_sale = self.tops.iter().filter(|((of, _, _), _)| *of == sale);
        let holes = of_sale.map(|(series, top)| {
            let present = self.present.get(series);
            let missing = (1..=*top).filter(|number| present.is_none_or(|present| !present.contains_key(number)));
            (*series, (*top, missing.collect::<BTreeSet<u64>>()))
        });
        holes.filter(|(_, (_, missing))| !missing.is_empty()).collect()
    }

    /// Most units that may stand behind the holes of a sale: the units of the requests that had the numbers, as far as any
    /// dump shows them.
    pub fn units_of_holes(&self, sale: &str) -> i64 {
        let holes = self.holes(sale);
        let is_missing =
            |place: &&Place<'_>| holes.get(&place.series).is_some_and(|(_, missing)| missing.contains(&place.number));
        self.places.values().filter(is_missing).map(|place| place.units).sum()
    }
}

/// Holes in the sale's series.
pub(super) fn check(case: &Case<'_>, sale: &str, state: &mut SaleState) {
    let numbers = &case.numbers;
    for ((_, shard, epoch), (top, missing)) in numbers.holes(sale) {
        let named: Vec<&u64> = missing.iter().take(NAMED_MAX).collect();
        let detail = format!("shard {shard} epoch {epoch}: {} of {top} are missing: {named:?}", missing.len());
        state.add(Trouble::Hole, detail);
        state.holes.extend(missing.iter().map(|number| (epoch, shard, *number)));
    }
}
