//! One audit under way, the database's side: what became of every number and every unit that Redis gave, and what is wrong.

use super::numbers::Undecided;
use super::proof::{Read, Want};
use super::sheet::{Shard, Sheet};
use super::{FindingKind, OpenRequest, SaleAudit, SaleAuditError, Window};
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerState;
use crate::faults::left_out;
use crate::store::mysql::books::Series;
use crate::store::mysql::outcomes::{self, RequestOutcome};
use std::collections::{BTreeMap, HashMap};

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
        let outcomes = outcomes::outcomes_of(&self.auditor.db, &open_ids).await?;
        for open in &mut self.open {
            open.parked = parked.ids.contains(&open.request_id);
        }
        let undecided = self.judge_open(&reads, &outcomes);
        self.tell_leaks().await;
        self.numbers(&reads, &books, &undecided).await?;
        self.collect_old(&reads);
        self.close(&books, &reads);
        if books.grants_known && !left_out!(UnitBridge) {
            self.compare_grants().await?;
            self.compare_transit().await?;
        }
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
            if lacking > open as u64 && !left_out!(NumberEquation) {
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
        outcomes: &HashMap<RequestId, RequestOutcome>,
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
            let decided = outcomes.get(&open.request_id);
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
                self.tell_outcome(&open, decided);
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
    fn tell_outcome(&mut self, open: &OpenRequest, decided: &RequestOutcome) {
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
            self.audit.unmarked.entry(open.shard).or_default().push((open.request_id, decided.outcome));
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
