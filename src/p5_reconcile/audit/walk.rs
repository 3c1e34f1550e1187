//! The walk over a shard's ledger: who is undecided, who can be told, who is old enough to be forgotten; and what is remembered
//! of it, so that a ledger in which nothing can have changed is not walked again (E13).

use super::sheet::Sheet;
use super::{FindingKind, OpenRequest, SaleAuditError};
use crate::domain::ids::RequestId;
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::faults::crash_point;
use crate::store::redis::{RedisFault, ShardCount};
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Ledger records read at once.
const PAGE: u32 = 1_000;
/// Records collected for being forgotten in one round; the rest goes with the next.
const OLD_MAX: usize = 100_000;
/// Windows after which the ledger is walked again in any case.
const WINDOWS: u32 = 4;
/// Undecided requests remembered between two walks; with more the ledger is walked each time.
const OPEN_MAX: usize = 10_000;

/// What the last walks over a sale's ledgers found.
#[derive(Debug, Default)]
pub(in super::super) struct Walks {
    shards: HashMap<u16, Walked>,
}

/// What one walk found.
#[derive(Debug, Clone)]
pub(super) struct Walked {
    at: Instant,
    epoch: u32,
    pub number: u64,
    trimmed_count: u64,
    /// Undecided, and decided but not told.
    pub open: Vec<OpenRequest>,
    /// Units of all records of the epoch.
    pub units: i64,
    /// Records of the epoch.
    pub count: u64,
    /// When the oldest record that is left becomes old enough to be forgotten, by Redis' clock.
    old_at_ms: Option<i64>,
    /// What can be forgotten.
    pub old: Vec<(RequestId, LedgerRecord)>,
}

impl Walks {
    /// The last walk, if another one could find nothing that this one does not tell: no request that came since can be overdue
    /// yet, and no record has become old enough.
    pub(super) fn still_good(&self, shard: u16, counts: &ShardCount, window: Duration, now_ms: i64) -> Option<&Walked> {
        let walked = self.shards.get(&shard)?;
        let same_keys = (walked.epoch, walked.trimmed_count) == (counts.meta.epoch, counts.trimmed.count);
        let nothing_new = walked.number == counts.meta.number || walked.at.elapsed() < window;
        let nothing_old = walked.old_at_ms.is_none_or(|at_ms| now_ms < at_ms);
        // Not for ever: a Redis that went back and came to the same numbers again has other records behind them.
        let remembered = walked.open.len() < OPEN_MAX && walked.at.elapsed() < window * WINDOWS;
        let remembered = remembered && counts.accepted.is_some();
        (same_keys && nothing_new && nothing_old && remembered).then_some(walked)
    }

    pub(super) fn remember(&mut self, shard: u16, walked: Walked) {
        self.shards.insert(shard, walked);
    }
}

impl Sheet<'_, '_> {
    /// Walks the ledger up to the snapshot's number. Every page is read once; the database is not asked here.
    pub(super) async fn walk(
        &mut self,
        shard: u16,
        counts: &ShardCount,
        now_ms: i64,
    ) -> Result<Walked, SaleAuditError> {
        let (id, number, epoch) = (self.sale.sale_id.clone(), counts.meta.number, counts.meta.epoch);
        let at = Instant::now();
        let mut walked = Walked {
            at,
            epoch,
            number,
            trimmed_count: counts.trimmed.count,
            open: Vec::new(),
            units: 0,
            count: 0,
            old_at_ms: None,
            old: Vec::new(),
        };
        // HSCAN may bring a record twice.
        let mut seen: HashSet<RequestId> = HashSet::new();
        let mut cursor = Some("0".to_owned());
        while let Some(at) = cursor {
            let page = self.auditor.redis.ledger.page(&id, shard, &at, PAGE).await?;
            cursor = page.next;
            for (field, text) in page.unreadable {
                self.find(
                    FindingKind::LedgerDamaged,
                    RequestId::parse(&field).ok(),
                    format!("shard {shard}: record {text:?} of {field:?} is unreadable"),
                );
            }
            for (request_id, record) in page.records {
                let counted = record.epoch == epoch && record.number <= number;
                if (record.epoch == epoch && !counted) || !seen.insert(request_id) {
                    continue;
                }
                if counted {
                    walked.count += 1;
                    walked.units += i64::from(record.quantity.get());
                }
                self.sort_in(&mut walked, (shard, now_ms), request_id, record);
            }
        }
        crash_point!(AfterLedgerRead);
        Ok(walked)
    }

    fn sort_in(&self, walked: &mut Walked, (shard, now_ms): (u16, i64), request_id: RequestId, record: LedgerRecord) {
        if record.state == LedgerState::Queued {
            let age_ms = (now_ms - record.accepted_at_ms).max(0);
            // It will be settled, and then old: whoever finds it queued has to look again.
            if let Some(retention_ms) = self.look.retention_ms {
                let again = record.accepted_at_ms.saturating_add(retention_ms).max(now_ms) + retention_ms / 10;
                walked.old_at_ms = Some(walked.old_at_ms.map_or(again, |before| before.min(again)));
            }
            walked.open.push(OpenRequest { request_id, shard, record, age_ms, parked: false });
            return;
        }
        let Some(retention_ms) = self.look.retention_ms else { return };
        let old_at_ms = record.accepted_at_ms.saturating_add(retention_ms);
        if old_at_ms <= now_ms && walked.old.len() < OLD_MAX {
            walked.old.push((request_id, record));
        } else if old_at_ms <= now_ms {
            walked.old_at_ms = Some(now_ms);
        } else {
            // Not at once for each of them: a tenth of the retention later more of them go together.
            let soon = old_at_ms.saturating_add(retention_ms / 10);
            walked.old_at_ms = Some(walked.old_at_ms.map_or(soon, |before| before.min(soon)));
        }
    }

    /// Every record of a shard whose counters are lost: who has no fate is landed before a rebuild forgets the ledger.
    pub(super) async fn records_without_counters(&mut self, shard: u16) -> Result<(), SaleAuditError> {
        let now_ms = self.auditor.redis.health.clock_ms(shard).await?;
        let (mut seen, mut cursor) = (HashSet::new(), Some("0".to_owned()));
        while let Some(at) = cursor {
            let page = match self.auditor.redis.ledger.page(&self.sale.sale_id, shard, &at, PAGE).await {
                // Of another kind: there is no ledger to read, and the rebuild must not wait for one.
                Err(RedisFault::Refused(_)) => return Ok(()),
                page => page?,
            };
            cursor = page.next;
            for (request_id, record) in page.records.into_iter().filter(|(id, _)| seen.insert(*id)) {
                let age_ms = (now_ms - record.accepted_at_ms).max(0);
                self.open.push(OpenRequest { request_id, shard, record, age_ms, parked: false });
            }
        }
        Ok(())
    }

    /// Finds the records of numbers that have no outcome although their record says settled: the database went back.
    pub(super) async fn records_of(
        &self,
        shard: u16,
        epoch: u32,
        lacks: impl Fn(u64) -> bool,
        now_ms: i64,
    ) -> Result<Vec<OpenRequest>, SaleAuditError> {
        let (mut found, mut seen) = (Vec::new(), HashSet::new());
        let mut cursor = Some("0".to_owned());
        while let Some(at) = cursor {
            let page = self.auditor.redis.ledger.page(&self.sale.sale_id, shard, &at, PAGE).await?;
            cursor = page.next;
            for (request_id, record) in page.records {
                let settled = record.state != LedgerState::Queued && record.epoch == epoch;
                if settled && lacks(record.number) && seen.insert(request_id) {
                    let age_ms = (now_ms - record.accepted_at_ms).max(0);
                    found.push(OpenRequest { request_id, shard, record, age_ms, parked: false });
                }
            }
        }
        Ok(found)
    }
}
