//! The acceptance numbers: gaps, which have no outcome and no known request (E12), and the units behind them.

use super::finding::FindingKind;
use super::ledger_scan::KnownGaps;
use super::options::Window;
use super::outcome_counts::SeriesCounted;
use super::result::{SeriesAudit, numbers_in};
use super::run::{AuditRun, ShardRead};
use crate::faults::left_out;
use crate::p5_reconcile::context::ReconcileError;
use crate::p5_reconcile::rows::books::{self, Books, Closed, Series};
use std::collections::{BTreeMap, BTreeSet};

/// Runs of missing numbers that have a finding each.
const GAPS_REPORTED_MAX: usize = 20;

/// `number = outcomes + undecided + gaps`, for each shard and epoch.
pub(super) async fn compare(
    run: &mut AuditRun<'_>,
    series: &BTreeMap<Series, SeriesCounted>,
    books: &Books,
    undecided: &BTreeMap<Series, UndecidedOfSeries>,
) -> Result<(), ReconcileError> {
    let none = UndecidedOfSeries::default();
    for (series, read) in series {
        let known = run.known.iter().find(|known| known.series == *series);
        let current = run.current(*series).map(CurrentShard::of);
        let in_ledger = undecided.get(series).unwrap_or(&none);
        // Without its counters a shard adds nothing to the sums: the units of its open requests are held like those of gaps.
        let open = if current.is_some() { in_ledger } else { &none };
        let number = read.tally.count + read.missing_count();
        let mut gaps = without(&read.missing, &open.numbers);
        let accepted = match &current {
            Some(shard) => Some(shard.accepted),
            None => known.and_then(|known| known.accepted),
        };
        let mut rest = accepted.map(|units| units - read.tally.ordered - read.tally.failed - open.units);
        match &current {
            Some(CurrentShard { scanned_before: Some(scan), .. }) => {
                // Requests after the last scan are on their way: none can be overdue yet.
                gaps = up_to(&gaps, scan.number);
                // All of them were there with that scan, or everything is read again.
                if gaps != scan.gaps.runs {
                    return Err(ReconcileError::Moved);
                }
                run.audit.counted.in_flight += rest.unwrap_or(0) - scan.gaps.units;
                rest = Some(scan.gaps.units);
            }
            Some(_) => {
                let units = if gaps.is_empty() { 0 } else { rest.unwrap_or(0) };
                run.gaps.push((series.shard, KnownGaps { runs: gaps.clone(), units }));
            }
            None => remove_young(run, *series, &mut gaps).await?,
        }
        compare_decided(run, *series, read.tally.count, open.numbers.len() as u64);
        let of_series = |closed: &&Closed| (closed.epoch, closed.shard) == (Some(series.epoch), Some(series.shard));
        let closed: Vec<&Closed> = books.closed.iter().filter(of_series).collect();
        if !gaps.is_empty() && !left_out!(NumberEquation) {
            hold_units(run, &UnitsBehind { current: current.is_some(), numbers: numbers_in(&gaps), rest }, &closed);
        }
        let not_closed = open_gaps(&gaps, &closed);
        let closed = numbers_in(&gaps) - numbers_in(&not_closed);
        let unknown = without(&not_closed, &in_ledger.numbers);
        run.audit.series.push(SeriesAudit {
            epoch: series.epoch,
            shard: series.shard,
            number,
            outcomes: read.tally.count,
            undecided: number - read.tally.count - closed - numbers_in(&unknown),
            closed,
            gaps: unknown,
        });
    }
    report_gaps(run);
    Ok(())
}

/// Reports how many requests the database decided and the ledger does not have.
fn compare_decided(run: &mut AuditRun<'_>, series: Series, decided: u64, undecided: u64) {
    let Some(shard) = run.current(series).filter(|shard| shard.fresh) else { return };
    let settled = (shard.scan.count + shard.counts.trimmed.count).saturating_sub(undecided);
    if decided > settled {
        let missing = decided - settled;
        let detail =
            format!("shard {}: the database decided {missing} requests the ledger does not have", series.shard);
        run.find_part(FindingKind::Orphan, format!("shard {}, decided", series.shard), detail);
        run.orphaned.push(series.shard);
    }
}

/// Numbers of an epoch whose ledger is gone may belong to messages that are still on their way: a gap is reported when the
/// number above it has had its outcome for longer than the window.
async fn remove_young(run: &AuditRun<'_>, series: Series, gaps: &mut Vec<(u64, u64)>) -> Result<(), ReconcileError> {
    let Window::Ms(window_ms) = run.options.window else { return Ok(()) };
    let lasts: Vec<u64> = gaps.iter().map(|(_, last)| *last).collect();
    let mut ages = books::ages_above_ms(&run.context.db, &run.sale.sale_id, series, &lasts).await?.into_iter();
    let is_young = |age_ms: i64| u64::try_from(age_ms).unwrap_or(0) <= window_ms;
    gaps.retain(|_| !ages.next().flatten().is_some_and(is_young));
    Ok(())
}

/// Counts the units behind gaps: what Redis accepted less what is known of it; where Redis' sum is lost, one for each number.
fn hold_units(run: &mut AuditRun<'_>, behind: &UnitsBehind, closed: &[&Closed]) {
    let numbers = i64::try_from(behind.numbers).unwrap_or(i64::MAX);
    let units = behind.rest.map_or(numbers, |rest| rest.max(numbers));
    let sum = |reclaimed: bool| -> i64 {
        closed.iter().filter(|c| c.reclaimed_by.is_some() == reclaimed).map(|c| c.units).sum()
    };
    let counted = &mut run.audit.counted;
    if behind.current {
        counted.gaps += units;
    }
    counted.gaps_held += (units - sum(true)).max(0);
    counted.written_off += sum(false);
}

fn report_gaps(run: &mut AuditRun<'_>) {
    if left_out!(NumberEquation) {
        return;
    }
    let all = run.audit.series.iter().flat_map(|of| of.gaps.iter().map(|gap| (of.epoch, of.shard, *gap)));
    let all: Vec<(u32, u16, (u64, u64))> = all.collect();
    for (epoch, shard, (first, last)) in all.iter().take(GAPS_REPORTED_MAX) {
        let numbers =
            if first == last { format!("number {first} has") } else { format!("numbers {first} to {last} have") };
        let detail = format!("shard {shard}, epoch {epoch}: {numbers} no outcome, and no ledger knows the request");
        run.find_part(FindingKind::Gap, format!("shard {shard}, epoch {epoch}, from {first}"), detail);
    }
    if all.len() > GAPS_REPORTED_MAX {
        let detail = format!("{} runs of numbers more have no outcome; see --json", all.len() - GAPS_REPORTED_MAX);
        run.find_part(FindingKind::Gap, "more", detail);
    }
}

/// The shard of a series of the present epoch.
struct CurrentShard {
    /// Units ever accepted.
    accepted: i64,
    /// What an earlier audit found in its ledger, if this one did not scan it.
    scanned_before: Option<ScannedBefore>,
}

struct ScannedBefore {
    /// The last number then.
    number: u64,
    gaps: KnownGaps,
}

impl CurrentShard {
    fn of(shard: &ShardRead) -> Self {
        let before = || ScannedBefore { number: shard.scan.number, gaps: shard.scan.gaps.clone() };
        Self { accepted: shard.accepted(), scanned_before: (!shard.fresh).then(before) }
    }
}

/// The runs as far as `last`.
fn up_to(runs: &[(u64, u64)], last: u64) -> Vec<(u64, u64)> {
    runs.iter().filter(|(first, _)| *first <= last).map(|(first, end)| (*first, last.min(*end))).collect()
}

/// The undecided requests of a series.
#[derive(Debug, Default)]
pub(super) struct UndecidedOfSeries {
    pub numbers: BTreeSet<u64>,
    pub units: i64,
}

/// What is known of the gaps of a series.
struct UnitsBehind {
    /// Redis is still in the epoch of the series.
    current: bool,
    /// How many numbers the gaps have.
    numbers: u64,
    /// Accepted units less the known ones, if Redis' sum is known.
    rest: Option<i64>,
}

/// The runs without some numbers.
fn without(runs: &[(u64, u64)], numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for (first, last) in runs {
        let mut next = *first;
        for number in numbers.range(first..=last) {
            if *number > next {
                left.push((next, number - 1));
            }
            next = number + 1;
        }
        if next <= *last {
            left.push((next, *last));
        }
    }
    left
}

/// The runs that no closing covers.
fn open_gaps(gaps: &[(u64, u64)], closed: &[&Closed]) -> Vec<(u64, u64)> {
    let mut open = gaps.to_vec();
    for (from, to) in closed.iter().filter_map(|closed| closed.first.zip(closed.last)) {
        let cut = |(first, last): &(u64, u64)| {
            let before = (*first, (*last).min(from.saturating_sub(1)));
            let behind = ((*first).max(to + 1), *last);
            [before, behind].into_iter().filter(|(first, last)| first <= last).collect::<Vec<_>>()
        };
        open = open.iter().flat_map(cut).collect();
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(first: u64, last: u64) -> Closed {
        let code = "P5-RC4".to_owned();
        let (first, last) = (Some(first), Some(last));
        Closed { code, epoch: Some(1), shard: Some(0), first, last, units: 0, reclaimed_by: None, is_void: false }
    }

    #[test]
    fn runs_lose_what_is_known_and_what_is_closed() {
        let gaps = [(3, 9), (12, 12)];
        assert_eq!(without(&gaps, &BTreeSet::from([3, 6, 12])), [(4, 5), (7, 9)]);
        assert_eq!(open_gaps(&gaps, &[&closed(5, 20)]), [(3, 4)]);
        assert_eq!(open_gaps(&gaps, &[&closed(5, 5), &closed(1, 3)]), [(4, 4), (6, 9), (12, 12)]);
        assert_eq!(numbers_in(&gaps), 8);
        assert_eq!(up_to(&gaps, 5), [(3, 5)]);
    }
}
