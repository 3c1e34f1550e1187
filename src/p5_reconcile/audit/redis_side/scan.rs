//! The scan of a shard's ledger: requests that are undecided, requests that are decided and not marked, records that
//! are older than the retention.
//!
//! A request is as old as its record, by Redis' clock: an outbox entry's idle time begins anew with each relay that
//! touches it.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::faults::crash_point;
use crate::p5_reconcile::pages::each_record;
use crate::store::redis::{RedisFault, RequestLedger, ShardCount};
use std::time::Instant;

/// Old records collected in one round; the next round collects the rest.
const OLD_MAX: usize = 100_000;

/// A request by its record in the ledger.
#[derive(Debug, Clone)]
pub(crate) struct OpenRecord {
    pub request_id: RequestId,
    pub record: LedgerRecord,
}

/// What one scan found.
#[derive(Debug, Clone)]
pub(crate) struct LedgerScan {
    pub at: Instant,
    pub epoch: u32,
    /// The shard's last number then.
    pub number: u64,
    /// Records that were forgotten before it.
    pub trimmed_count: u64,
    /// Undecided, or decided and not marked.
    pub open: Vec<OpenRecord>,
    /// Units of all records of the epoch.
    pub units: i64,
    /// Records of the epoch.
    pub count: u64,
    /// When the next record becomes old, by Redis' clock.
    pub next_old_at_ms: Option<i64>,
    /// Settled records that are old.
    pub old: Vec<(RequestId, LedgerRecord)>,
    /// The gaps, as an audit worked them out with this scan; with the scan before it until then.
    pub gaps: KnownGaps,
    /// Whether the scan saw a record of a number that was in a gap before.
    pub gap_has_record: bool,
}

/// Acceptance numbers of a shard that have no outcome and no record. They stay so until a person does something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct KnownGaps {
    /// First and last of each run.
    pub runs: Vec<(u64, u64)>,
    /// Units accepted under them.
    pub units: i64,
}

/// The ledger of one shard of a sale.
#[derive(Clone, Copy)]
pub(super) struct LedgerReader<'a> {
    pub ledger: &'a RequestLedger,
    pub sale: &'a SaleId,
    pub shard: u16,
    /// Redis' clock, Unix milliseconds.
    pub now_ms: i64,
}

impl LedgerReader<'_> {
    /// Reads the ledger up to the snapshot's number. Returns also the unreadable records, field and text.
    pub(crate) async fn scan(
        self,
        counts: &ShardCount,
        retention_ms: Option<i64>,
        gaps: KnownGaps,
    ) -> Result<(LedgerScan, Vec<(String, String)>), RedisFault> {
        let mut scan = LedgerScan::begun(counts, gaps);
        let visit = |request_id, record| scan.visit(request_id, record, retention_ms, self.now_ms);
        let unreadable = each_record(self.ledger, self.sale, self.shard, visit).await?;
        crash_point!(AfterLedgerRead);
        Ok((scan, unreadable))
    }

    /// The records that are `wanted`.
    pub(crate) async fn wanted(self, wanted: impl Fn(&LedgerRecord) -> bool) -> Result<Vec<OpenRecord>, RedisFault> {
        let mut found = Vec::new();
        let keep = |request_id, record| found.extend(wanted(&record).then_some(OpenRecord { request_id, record }));
        each_record(self.ledger, self.sale, self.shard, keep).await?;
        Ok(found)
    }

    /// The same of a shard whose counters are lost: the undecided ones are persisted before a rebuild drops the ledger.
    pub(crate) async fn without_counters(
        self,
        wanted: impl Fn(&LedgerRecord) -> bool,
    ) -> Result<Vec<OpenRecord>, RedisFault> {
        match self.wanted(wanted).await {
            // The key is of another kind: there is no ledger to read, and the rebuild must not wait for one.
            Err(RedisFault::Refused(_)) => Ok(Vec::new()),
            done => done,
        }
    }
}

impl LedgerScan {
    /// A scan that has seen no record yet, up to the number of `counts`.
    pub(crate) fn begun(counts: &ShardCount, gaps: KnownGaps) -> Self {
        Self {
            at: Instant::now(),
            epoch: counts.meta.epoch,
            number: counts.meta.number,
            trimmed_count: counts.trimmed.count,
            open: Vec::new(),
            units: 0,
            count: 0,
            next_old_at_ms: None,
            old: Vec::new(),
            gaps,
            gap_has_record: false,
        }
    }

    /// Counts a record, and keeps it if it is open or old.
    pub(crate) fn visit(
        &mut self,
        request_id: RequestId,
        record: LedgerRecord,
        retention_ms: Option<i64>,
        now_ms: i64,
    ) {
        let is_present = record.epoch == self.epoch;
        if is_present && record.number > self.number {
            return;
        }
        if is_present {
            self.count += 1;
            self.units += i64::from(record.quantity.get());
            self.gap_has_record |= self.gaps.runs.iter().any(|(first, last)| (*first..=*last).contains(&record.number));
        }
        if record.state == LedgerState::Queued {
            self.wait_for_outcome(&record, retention_ms, now_ms);
            self.open.push(OpenRecord { request_id, record });
        } else if let Some(retention_ms) = retention_ms {
            self.collect_old(request_id, record, retention_ms, now_ms);
        }
    }

    /// An undecided record will be settled, and old later: the ledger is scanned again by then.
    fn wait_for_outcome(&mut self, record: &LedgerRecord, retention_ms: Option<i64>, now_ms: i64) {
        if let Some(retention_ms) = retention_ms {
            let old_at_ms = record.accepted_at_ms.saturating_add(retention_ms).max(now_ms);
            self.scan_again_at(old_at_ms + retention_ms / 10);
        }
    }

    fn collect_old(&mut self, request_id: RequestId, record: LedgerRecord, retention_ms: i64, now_ms: i64) {
        let old_at_ms = record.accepted_at_ms.saturating_add(retention_ms);
        if old_at_ms > now_ms {
            // Not a scan for each record that becomes old: a tenth of the retention later more of them are.
            self.scan_again_at(old_at_ms.saturating_add(retention_ms / 10));
        } else if self.old.len() < OLD_MAX {
            self.old.push((request_id, record));
        } else {
            self.next_old_at_ms = Some(now_ms);
        }
    }

    fn scan_again_at(&mut self, at_ms: i64) {
        self.next_old_at_ms = Some(self.next_old_at_ms.map_or(at_ms, |before| before.min(at_ms)));
    }
}
