//! The acceptance numbers: gaps, which have no outcome and no known request (E12), and the units behind them.

use super::case::SaleCase;
use super::open::UndecidedOfSeries;
use super::runs::{open_gaps, up_to, without};
use crate::faults::left_out;
use crate::p5_reconcile::audit::database_side::SeriesCounted;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};
use crate::p5_reconcile::audit::redis_side::{CountedShard, KnownGaps};
use crate::p5_reconcile::audit::result::{SeriesAudit, numbers_in};
use crate::p5_reconcile::audit::window::Window;
use crate::p5_reconcile::rows::books::{Closed, Series};
use std::collections::BTreeMap;

/// Runs of missing numbers that have a finding each.
const GAPS_REPORTED_MAX: usize = 20;

/// What the numbers came to.
#[derive(Debug, Default)]
pub(super) struct NumbersCompared {
    pub series: Vec<SeriesAudit>,
    /// Units on their way that came after the last scan.
    pub in_flight: i64,
    /// Units of gaps of the present epoch.
    pub gaps: i64,
    /// Units of gaps of all epochs that are kept back.
    pub gaps_held: i64,
    /// Of those, what a person wrote off.
    pub written_off: i64,
    /// The gaps of each shard whose ledger this audit scanned.
    pub known: Vec<(u16, KnownGaps)>,
    /// Shards whose ledger lacks requests that the database decided.
    pub orphaned: Vec<u16>,
}

/// `number = outcomes + undecided + gaps`, for each shard and epoch. `None`: Redis has moved since its last scan.
pub(super) fn compare(
    case: &SaleCase<'_>,
    undecided: &BTreeMap<Series, UndecidedOfSeries>,
    found: &mut FoundSoFar,
) -> Option<NumbersCompared> {
    let mut compared = NumbersCompared::default();
    let none = UndecidedOfSeries::default();
    for (series, counted) in &case.snapshot.series {
        let in_ledger = undecided.get(series).unwrap_or(&none);
        let of_series = SeriesNumbers { case, series: *series, counted, in_ledger };
        let SeriesGaps { runs: gaps, rest } = of_series.gaps(&mut compared)?;
        if let Some(missing) = of_series.decided_and_unknown() {
            let shard = series.shard;
            let detail = format!("shard {shard}: the database decided {missing} requests the ledger does not have");
            found.add_part(FindingKind::Orphan, format!("shard {shard}, decided"), detail);
            compared.orphaned.push(shard);
        }
        let closed = of_series.closed();
        if !gaps.is_empty() && !left_out!(NumberEquation) {
            let is_current = of_series.current().is_some();
            compared.hold_units(&UnitsBehind { is_current, numbers: numbers_in(&gaps), rest }, &closed);
        }
        compared.series.push(of_series.audit(&gaps, &closed));
    }
    report_gaps(&compared.series, found);
    Some(compared)
}

/// The numbers of one shard in one epoch.
struct SeriesNumbers<'a> {
    case: &'a SaleCase<'a>,
    series: Series,
    counted: &'a SeriesCounted,
    in_ledger: &'a UndecidedOfSeries,
}

/// The gaps of one series.
struct SeriesGaps {
    /// First and last number of each run.
    runs: Vec<(u64, u64)>,
    /// Accepted units less the known ones, if Redis' sum is known.
    rest: Option<i64>,
}

impl SeriesNumbers<'_> {
    fn current(&self) -> Option<&CountedShard> {
        self.case.current(self.series)
    }

    /// Numbers without an outcome that are no open request's. `None`: Redis has moved since its last scan.
    fn gaps(&self, compared: &mut NumbersCompared) -> Option<SeriesGaps> {
        let none = UndecidedOfSeries::default();
        // Without its counters a shard adds nothing to the sums: the units of its open requests are held like those of
        // gaps.
        let open = if self.current().is_some() { self.in_ledger } else { &none };
        let gaps = without(&self.counted.missing, &open.numbers);
        let tally = &self.counted.tally;
        let rest = |accepted: i64| accepted - tally.ordered - tally.failed - open.units;
        let Some(shard) = self.current() else {
            let accepted = self.case.known(self.series).and_then(|known| known.accepted);
            return Some(SeriesGaps { runs: self.without_young(gaps), rest: accepted.map(rest) });
        };
        let rest = rest(shard.accepted());
        if shard.fresh {
            let units = if gaps.is_empty() { 0 } else { rest };
            compared.known.push((self.series.shard, KnownGaps { runs: gaps.clone(), units }));
            return Some(SeriesGaps { runs: gaps, rest: Some(rest) });
        }
        // Requests after the last scan are on their way: none can be overdue yet. All gaps were there with that scan,
        // or everything is read again.
        let scan = &shard.scan;
        let gaps = up_to(&gaps, scan.number);
        if gaps != scan.gaps.runs {
            return None;
        }
        compared.in_flight += rest - scan.gaps.units;
        Some(SeriesGaps { runs: gaps, rest: Some(scan.gaps.units) })
    }

    /// Numbers of an epoch whose ledger is gone may belong to messages that are still on their way: a gap is reported
    /// when the number above it has had its outcome for longer than the window.
    fn without_young(&self, mut gaps: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
        let Window::Ms(window_ms) = self.case.terms.window else { return gaps };
        let ages = self.case.database.ages.as_ref().and_then(|ages| ages.get(&self.series));
        let mut ages = ages.into_iter().flatten();
        let is_young = |age_ms: i64| u64::try_from(age_ms).unwrap_or(0) <= window_ms;
        gaps.retain(|_| !ages.next().copied().flatten().is_some_and(is_young));
        gaps
    }

    /// How many requests the database decided and the ledger does not have, if there are any.
    fn decided_and_unknown(&self) -> Option<u64> {
        let shard = self.current().filter(|shard| shard.fresh)?;
        let undecided = self.in_ledger.numbers.len() as u64;
        let settled = shard.known_count().saturating_sub(undecided);
        Some(self.counted.tally.count.saturating_sub(settled)).filter(|missing| *missing > 0)
    }

    /// What of the series was closed.
    fn closed(&self) -> Vec<&Closed> {
        let Series { epoch, shard } = self.series;
        let closed = self.case.snapshot.books.closed.iter();
        closed.filter(|closed| (closed.epoch, closed.shard) == (Some(epoch), Some(shard))).collect()
    }

    fn audit(&self, gaps: &[(u64, u64)], closed: &[&Closed]) -> SeriesAudit {
        let number = self.counted.tally.count + self.counted.missing_count();
        let not_closed = open_gaps(gaps, closed);
        let closed = numbers_in(gaps) - numbers_in(&not_closed);
        let unknown = without(&not_closed, &self.in_ledger.numbers);
        SeriesAudit {
            epoch: self.series.epoch,
            shard: self.series.shard,
            number,
            outcomes: self.counted.tally.count,
            undecided: number - self.counted.tally.count - closed - numbers_in(&unknown),
            closed,
            gaps: unknown,
        }
    }
}

/// What is known of the gaps of a series.
struct UnitsBehind {
    /// Redis is still in the epoch of the series.
    is_current: bool,
    /// How many numbers the gaps have.
    numbers: u64,
    /// Accepted units less the known ones, if Redis' sum is known.
    rest: Option<i64>,
}

impl NumbersCompared {
    /// Counts the units behind gaps: what Redis accepted less what is known of it; where Redis' sum is lost, one for
    /// each number.
    fn hold_units(&mut self, behind: &UnitsBehind, closed: &[&Closed]) {
        let numbers = i64::try_from(behind.numbers).unwrap_or(i64::MAX);
        let units = behind.rest.map_or(numbers, |rest| rest.max(numbers));
        let sum = |reclaimed: bool| -> i64 {
            closed.iter().filter(|c| c.reclaimed_by.is_some() == reclaimed).map(|c| c.units).sum()
        };
        if behind.is_current {
            self.gaps += units;
        }
        self.gaps_held += (units - sum(true)).max(0);
        self.written_off += sum(false);
    }
}

fn report_gaps(series: &[SeriesAudit], found: &mut FoundSoFar) {
    if left_out!(NumberEquation) {
        return;
    }
    let all = series.iter().flat_map(|of| of.gaps.iter().map(|gap| (of.epoch, of.shard, *gap)));
    let all: Vec<(u32, u16, (u64, u64))> = all.collect();
    for (epoch, shard, (first, last)) in all.iter().take(GAPS_REPORTED_MAX) {
        let numbers =
            if first == last { format!("number {first} has") } else { format!("numbers {first} to {last} have") };
        let detail = format!("shard {shard}, epoch {epoch}: {numbers} no outcome, and no ledger knows the request");
        found.add_part(FindingKind::Gap, format!("shard {shard}, epoch {epoch}, from {first}"), detail);
    }
    if all.len() > GAPS_REPORTED_MAX {
        let detail = format!("{} runs of numbers more have no outcome; see --json", all.len() - GAPS_REPORTED_MAX);
        found.add_part(FindingKind::Gap, "more", detail);
    }
}
