//! One audit under way, the database's side: what became of every number and every unit that Redis gave, and what is wrong.

use super::proof::{Read, Want};
use super::sheet::{Shard, Sheet};
use super::{FindingKind, OpenRequest, SaleAudit, SaleAuditError, SeriesSheet, Window};
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerState;
use crate::faults::Mechanism;
use crate::store::mysql::books::{self, Books, Closed, Series};
use crate::store::mysql::outcomes::{self, Decided};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Runs of missing numbers that are told one by one.
const GAPS_TOLD_MAX: usize = 20;

impl Sheet<'_, '_> {
    /// Reads the database, last of all, and concludes.
    pub(super) async fn judge(mut self) -> Result<SaleAudit, SaleAuditError> {
        let parked = if self.open.is_empty() {
            super::super::parked::Parked { unseen_count: Some(0), ..Default::default() }
        } else {
            self.auditor.parked_ids(&self.sale.sale_id, self.look.seen).await?
        };
        self.unseen_count = parked.unseen_count;
        self.audit.mq_dlq_unseen_count = parked.unseen_count.unwrap_or(0);
        let wants = self.wants();
        let read = self.look.proof.read(&self.auditor.db, &self.sale.sale_id, &wants).await?;
        let Some((books, reads)) = read else { return Ok(self.audit) };
        if books.epoch != self.sale.epoch {
            return Err(SaleAuditError::Moved);
        }
        let reads: BTreeMap<Series, Read> = wants.iter().map(|want| want.series).zip(reads).collect();
        self.forgotten_by_the_database(&reads).await?;
        let open_ids: Vec<RequestId> = self.open.iter().map(|open| open.request_id).collect();
        let fates = outcomes::fates_of(&self.auditor.db, &open_ids).await?;
        for open in &mut self.open {
            open.parked = parked.ids.contains(&open.request_id);
        }
        let undecided = self.judge_open(&reads, &fates);
        self.tell_leaks().await;
        self.numbers(&reads, &books, &undecided).await?;
        self.collect_old(&reads);
        self.close(&books, &reads);
        Ok(self.audit)
    }

    pub(super) fn is_current(&self, series: Series) -> Option<&Shard> {
        let shard = self.shards.get(&series.shard)?;
        (series.epoch == self.sale.epoch && shard.counts.meta.epoch == series.epoch).then_some(shard)
    }

    /// Every series that anybody knows of, up to its last number.
    fn wants(&self) -> Vec<Want> {
        let mut wanted: BTreeMap<Series, u64> = self.known.iter().map(|known| (known.series, known.number)).collect();
        for (shard, seen) in &self.shards {
            if seen.counts.meta.epoch == self.sale.epoch {
                wanted.insert(Series { epoch: self.sale.epoch, shard: *shard }, seen.counts.meta.number);
            }
        }
        let want = |(series, to)| Want { series, to, above: self.is_current(series).is_some() };
        wanted.into_iter().map(want).collect()
    }

    /// Records that say "settled" of numbers that the database does not know: they can be landed again.
    async fn forgotten_by_the_database(&mut self, reads: &BTreeMap<Series, Read>) -> Result<(), SaleAuditError> {
        let mut found = Vec::new();
        for (series, read) in reads {
            let Some(shard) = self.is_current(*series) else { continue };
            let number = shard.walked.number;
            let open =
                self.open.iter().filter(|open| open.shard == series.shard && read.lacks(open.record.number)).count();
            let lacking: u64 =
                read.missing.iter().map(|(first, last)| (*last).min(number).saturating_sub(first - 1)).sum();
            if lacking > open as u64 && !Mechanism::NumberEquation.is_off() {
                let lacks = |number| read.lacks(number);
                found.extend(self.records_of(series.shard, series.epoch, lacks, shard.now_ms).await?);
            }
        }
        self.open.append(&mut found);
        Ok(())
    }

    /// Where the undecided requests are. By number and in the snapshot, so that units are counted once; by id and later, so that
    /// one that was on its way while this audit read is no false alarm. Returns who they are in each shard.
    fn judge_open(
        &mut self,
        reads: &BTreeMap<Series, Read>,
        fates: &HashMap<RequestId, Decided>,
    ) -> HashMap<u16, Undecided> {
        let window_ms = match self.look.window {
            Window::Ms(ms) => i64::try_from(ms).unwrap_or(i64::MAX),
            Window::Now => -1,
        };
        let mut undecided: HashMap<u16, Undecided> = HashMap::new();
        for open in std::mem::take(&mut self.open) {
            let units = i64::from(open.record.quantity.get());
            let series = Series { epoch: open.record.epoch, shard: open.shard };
            let current = self.is_current(series).is_some();
            let lacking = current && reads.get(&series).is_some_and(|read| read.lacks(open.record.number));
            if lacking {
                let of_shard = undecided.entry(open.shard).or_default();
                of_shard.numbers.insert(open.record.number);
                of_shard.units += units;
            }
            let decided = fates.get(&open.request_id);
            let overdue = decided.is_none() && open.age_ms > window_ms;
            if lacking {
                let counted = &mut self.audit.counted;
                let place = match (open.parked, overdue) {
                    (true, _) if decided.is_none() => &mut counted.parked,
                    (_, true) => &mut counted.leaked,
                    (_, false) => &mut counted.in_flight,
                };
                *place += units;
            }
            if let Some(decided) = decided {
                self.tell_fate(&open, decided);
                continue;
            }
            self.audit.oldest_open_ms = self.audit.oldest_open_ms.max(open.age_ms);
            if overdue {
                self.audit.overdue.push(open);
            }
        }
        undecided
    }

    /// The ledger has not been told; or what it was told is not what was decided.
    fn tell_fate(&mut self, open: &OpenRequest, decided: &Decided) {
        let accepted = open.record.accepted(open.request_id, &self.sale.sale_id, open.shard);
        if decided.number.is_some() && decided.payload_hash != accepted.payload_hash() {
            let detail = format!(
                "shard {}: the ledger accepted {} units as number {}, the database decided something else under this id",
                open.shard,
                open.record.quantity.get(),
                open.record.number
            );
            self.find(FindingKind::LedgerDamaged, Some(open.request_id), detail);
        }
        if open.record.state == LedgerState::Queued {
            self.audit.unmarked.entry(open.shard).or_default().push((open.request_id, decided.fate));
        }
    }

    /// `number = outcomes + undecided + gaps`, for each shard and epoch.
    async fn numbers(
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
            if !gaps.is_empty() && !Mechanism::NumberEquation.is_off() {
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
        if Mechanism::NumberEquation.is_off() {
            return;
        }
        let all = self.audit.series.iter().flat_map(|of| of.gaps.iter().map(|gap| (of.epoch, of.shard, *gap)));
        let all: Vec<(u32, u16, (u64, u64))> = all.collect();
        for (epoch, shard, (first, last)) in all.iter().take(GAPS_TOLD_MAX) {
            let numbers =
                if first == last { format!("number {first} has") } else { format!("numbers {first} to {last} have") };
            let detail = format!("shard {shard}, epoch {epoch}: {numbers} no fate, and no ledger knows the request");
            self.find(FindingKind::Gap, None, detail);
        }
        if all.len() > GAPS_TOLD_MAX {
            let detail = format!("{} runs of numbers more have no fate; see --json", all.len() - GAPS_TOLD_MAX);
            self.find(FindingKind::Gap, None, detail);
        }
    }

    /// What is settled by the books and old enough may be forgotten.
    fn collect_old(&mut self, reads: &BTreeMap<Series, Read>) {
        for (shard, seen) in &self.shards {
            let settled = seen.walked.old.iter().filter(|(_, record)| {
                let series = Series { epoch: record.epoch, shard: *shard };
                let decided = reads.get(&series).is_some_and(|read| !read.lacks(record.number));
                // A loser of a number given twice has none of its own.
                decided || record.number == 0
            });
            self.audit.old.insert(*shard, settled.map(|(id, _)| *id).collect());
        }
    }

    /// The findings of the leaks, with where each of them lies.
    async fn tell_leaks(&mut self) {
        let overdue = std::mem::take(&mut self.audit.overdue);
        let leaks = || overdue.iter().filter(|open| !open.parked);
        if let Some(since_ms) = leaks().map(|open| open.record.accepted_at_ms).min() {
            let places = self.auditor.whereabouts(since_ms, self.unseen_count == Some(0)).await;
            let unseen = match self.unseen_count {
                None => "; the MQ DLQ could not be read".to_owned(),
                Some(0) => String::new(),
                Some(unseen) => format!("; {unseen} messages of the MQ DLQ were not looked at"),
            };
            for open in leaks() {
                let (age_s, number) = (open.age_ms / 1000, open.record.number);
                let place = places.of(open.request_id);
                let was = if open.record.state == LedgerState::Queued { "" } else { "settled once, " };
                let detail =
                    format!("{was}accepted {age_s} s ago as number {number} (shard {}), {place}{unseen}", open.shard);
                self.find(FindingKind::Leak, Some(open.request_id), detail);
            }
        }
        self.audit.overdue = overdue;
    }
}

/// Who is undecided in a shard.
#[derive(Debug, Clone, Default)]
pub(super) struct Undecided {
    numbers: BTreeSet<u64>,
    units: i64,
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
