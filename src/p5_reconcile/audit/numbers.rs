//! One audit under way, the acceptance numbers: which of them nobody knows a request of (E12), and the units behind those.

use super::proof::Read;
use super::sheet::Sheet;
use super::{FindingKind, SaleAuditError, SeriesSheet, Window};
use crate::faults::left_out;
use crate::store::mysql::books::{self, Books, Closed, Series};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Runs of missing numbers that are told one by one.
const GAPS_TOLD_MAX: usize = 20;

impl Sheet<'_, '_> {
    /// `number = outcomes + undecided + gaps`, for each shard and epoch.
    pub(super) async fn numbers(
        &mut self,
        reads: &BTreeMap<Series, Read>,
        books: &Books,
        undecided: &HashMap<u16, Undecided>,
    ) -> Result<(), SaleAuditError> {
        for (series, read) in reads {
            let known = self.known.iter().find(|known| known.series == *series);
            let current = self.is_current(*series).map(|shard| (shard.accepted(), shard.fresh, shard.walked.number));
            let open = current.and_then(|_| undecided.get(&series.shard)).cloned().unwrap_or_default();
            let number = read.tally.count + read.missing_count();
            let mut gaps = without(&read.missing, &open.numbers);
            let accepted = match current {
                Some((accepted, ..)) => Some(accepted),
                None => known.and_then(|known| known.accepted),
            };
            let rest = accepted.map(|units| units - read.tally.ordered - read.tally.failed - open.units);
            if let Some((_, false, walked_to)) = current {
                // What came after the last walk is on its way: it cannot be overdue yet.
                gaps.retain(|(first, _)| *first <= walked_to);
                if !gaps.is_empty() {
                    return Err(SaleAuditError::Moved);
                }
                self.audit.counted.in_flight += rest.unwrap_or(0);
            } else if current.is_none() {
                self.leave_young(*series, &mut gaps).await?;
            }
            self.compare_decided(*series, read.tally.count, open.numbers.len() as u64);
            let of_series = |closed: &&Closed| (closed.epoch, closed.shard) == (Some(series.epoch), Some(series.shard));
            let closed: Vec<&Closed> = books.closed.iter().filter(of_series).collect();
            if !gaps.is_empty() && !left_out!(NumberEquation) {
                self.keep_back(current.is_some(), length(&gaps), rest, &closed);
            }
            let told = open_gaps(&gaps, &closed);
            self.audit.series.push(SeriesSheet {
                epoch: series.epoch,
                shard: series.shard,
                number,
                outcomes: read.tally.count,
                undecided: number - read.tally.count - length(&gaps),
                closed: length(&gaps) - length(&told),
                gaps: told,
            });
        }
        self.tell_gaps();
        Ok(())
    }

    /// The database decided requests that the ledger does not have.
    fn compare_decided(&mut self, series: Series, decided: u64, undecided: u64) {
        let Some(shard) = self.is_current(series).filter(|shard| shard.fresh) else { return };
        let settled = (shard.walked.count + shard.counts.trimmed.count).saturating_sub(undecided);
        if decided > settled {
            let missing = decided - settled;
            let detail =
                format!("shard {}: the database decided {missing} requests the ledger does not have", series.shard);
            self.find(FindingKind::Orphan, None, detail);
        }
    }

    /// Numbers of an epoch whose ledger is gone may belong to messages that are still on their way: a gap is told when the number
    /// above it has had its outcome for longer than the window.
    async fn leave_young(&self, series: Series, gaps: &mut Vec<(u64, u64)>) -> Result<(), SaleAuditError> {
        let Window::Ms(window_ms) = self.look.window else { return Ok(()) };
        let mut old = Vec::with_capacity(gaps.len());
        for (first, last) in gaps.drain(..) {
            let age_ms = books::age_above_ms(&self.auditor.db, &self.sale.sale_id, series, last).await?;
            let young = age_ms.is_some_and(|age_ms| u64::try_from(age_ms).unwrap_or(0) <= window_ms);
            if !young {
                old.push((first, last));
            }
        }
        *gaps = old;
        Ok(())
    }

    /// The units behind gaps: what Redis accepted less what is known of it; where Redis' sum is lost, one for each number.
    fn keep_back(&mut self, current: bool, numbers: u64, rest: Option<i64>, closed: &[&Closed]) {
        let numbers = i64::try_from(numbers).unwrap_or(i64::MAX);
        let units = rest.map_or(numbers, |rest| rest.max(numbers));
        let sum = |reclaimed: bool| -> i64 {
            closed.iter().filter(|c| c.reclaimed_by.is_some() == reclaimed).map(|c| c.units).sum()
        };
        let counted = &mut self.audit.counted;
        if current {
            counted.gaps += units;
        }
        counted.gaps_held += (units - sum(true)).max(0);
        counted.written_off += sum(false);
    }

    fn tell_gaps(&mut self) {
        if left_out!(NumberEquation) {
            return;
        }
        let all = self.audit.series.iter().flat_map(|of| of.gaps.iter().map(|gap| (of.epoch, of.shard, *gap)));
        let all: Vec<(u32, u16, (u64, u64))> = all.collect();
        for (epoch, shard, (first, last)) in all.iter().take(GAPS_TOLD_MAX) {
            let numbers =
                if first == last { format!("number {first} has") } else { format!("numbers {first} to {last} have") };
            let detail = format!("shard {shard}, epoch {epoch}: {numbers} no outcome, and no ledger knows the request");
            self.find(FindingKind::Gap, None, detail);
        }
        if all.len() > GAPS_TOLD_MAX {
            let detail = format!("{} runs of numbers more have no outcome; see --json", all.len() - GAPS_TOLD_MAX);
            self.find(FindingKind::Gap, None, detail);
        }
    }
}

/// Who is undecided in a shard.
#[derive(Debug, Clone, Default)]
pub(super) struct Undecided {
    pub numbers: BTreeSet<u64>,
    pub units: i64,
}

fn length(runs: &[(u64, u64)]) -> u64 {
    runs.iter().map(|(first, last)| last - first + 1).sum()
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
        Closed { code, epoch: Some(1), shard: Some(0), first, last, units: 0, reclaimed_by: None }
    }

    #[test]
    fn runs_lose_what_is_known_and_what_is_closed() {
        let gaps = [(3, 9), (12, 12)];
        assert_eq!(without(&gaps, &BTreeSet::from([3, 6, 12])), [(4, 5), (7, 9)]);
        assert_eq!(open_gaps(&gaps, &[&closed(5, 20)]), [(3, 4)]);
        assert_eq!(open_gaps(&gaps, &[&closed(5, 5), &closed(1, 3)]), [(4, 4), (6, 9), (12, 12)]);
        assert_eq!(length(&gaps), 8);
    }
}
