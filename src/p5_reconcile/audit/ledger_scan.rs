//! The scan of a shard's ledger: requests that are undecided, requests that are decided and not marked, records that are older
//! than the retention; and what is remembered of it, so that a ledger in which nothing can have changed is not scanned again (E13).
//! A request is as old as its record, by Redis' clock: an outbox entry's idle time begins anew with each relay that touches it.

use super::result::OpenRequest;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::faults::crash_point;
use crate::p5_reconcile::pages::each_record;
use crate::store::redis::{RedisFault, RequestLedger, ShardCount};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Old records collected in one round; the next round collects the rest.
const OLD_MAX: usize = 100_000;
/// Windows after which the ledger is scanned again in any case.
const WINDOWS: u32 = 4;
/// Undecided requests remembered between two scans; with more the ledger is scanned each time.
const OPEN_MAX: usize = 10_000;

/// The last scan of each ledger of a sale.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct ScanMemory {
    shards: HashMap<u16, LedgerScan>,
}

/// What one scan found.
#[derive(Debug, Clone)]
pub(super) struct LedgerScan {
    at: Instant,
    epoch: u32,
    pub number: u64,
    trimmed_count: u64,
    /// Undecided, or decided and not marked.
    pub open: Vec<OpenRequest>,
    /// Units of all records of the epoch.
    pub units: i64,
    /// Records of the epoch.
    pub count: u64,
    /// When the next record becomes old, by Redis' clock.
    next_old_at_ms: Option<i64>,
    /// Settled records that are old.
    pub old: Vec<(RequestId, LedgerRecord)>,
    /// The gaps, as an audit worked them out with this scan; with the scan before it until then.
    pub gaps: KnownGaps,
    /// Whether something of it is a finding. It stands in every round, so the ledger is scanned in every round.
    pub damaged: bool,
    /// Whether the scan saw a record of a number that was in a gap before.
    pub gap_has_record: bool,
}

/// Acceptance numbers of a shard that have no outcome and no record. They stay so until a person does something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct KnownGaps {
    /// First and last of each run.
    pub runs: Vec<(u64, u64)>,
    /// Units accepted under them.
    pub units: i64,
}

impl ScanMemory {
    /// The last scan, if another one could find nothing more: no request that came since can be overdue yet, and no record has
    /// become old.
    pub(super) fn still_good(
        &self,
        shard: u16,
        counts: &ShardCount,
        window: Duration,
        now_ms: i64,
    ) -> Option<&LedgerScan> {
        let scan = self.shards.get(&shard)?;
        let same_keys = (scan.epoch, scan.trimmed_count) == (counts.meta.epoch, counts.trimmed.count);
        let nothing_new = scan.number == counts.meta.number || scan.at.elapsed() < window;
        let nothing_old = scan.next_old_at_ms.is_none_or(|at_ms| now_ms < at_ms);
        // Not for ever: a Redis that went back and came to the same numbers again has other records behind them.
        let young = scan.open.len() < OPEN_MAX && scan.at.elapsed() < window * WINDOWS;
        let whole = counts.accepted.is_some() && !scan.damaged;
        (same_keys && nothing_new && nothing_old && young && whole).then_some(scan)
    }

    pub(super) fn remember(&mut self, shard: u16, scan: LedgerScan) {
        self.shards.insert(shard, scan);
    }

    /// The gaps when the ledger was scanned last, if that was in this epoch.
    pub(super) fn gaps(&self, shard: u16, epoch: u32) -> KnownGaps {
        let scan = self.shards.get(&shard).filter(|scan| scan.epoch == epoch);
        scan.map(|scan| scan.gaps.clone()).unwrap_or_default()
    }

    /// The database contradicts the last scan.
    pub(super) fn doubt(&mut self, shard: u16) {
        if let Some(scan) = self.shards.get_mut(&shard) {
            scan.damaged = true;
        }
    }

    /// Remembers the gaps that an audit worked out with the last scan.
    pub(super) fn remember_gaps(&mut self, shard: u16, gaps: KnownGaps) {
        if let Some(scan) = self.shards.get_mut(&shard) {
            scan.gaps = gaps;
        }
    }
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
        let (number, epoch) = (counts.meta.number, counts.meta.epoch);
        let mut scan = LedgerScan {
            at: Instant::now(),
            epoch,
            number,
            trimmed_count: counts.trimmed.count,
            open: Vec::new(),
            units: 0,
            count: 0,
            next_old_at_ms: None,
            old: Vec::new(),
            gaps,
            damaged: false,
            gap_has_record: false,
        };
        let unreadable = each_record(self.ledger, self.sale, self.shard, |request_id, record| {
            if record.epoch == epoch && record.number > number {
                return;
            }
            if record.epoch == epoch {
                scan.count += 1;
                scan.units += i64::from(record.quantity.get());
                scan.gap_has_record |=
                    scan.gaps.runs.iter().any(|(first, last)| (*first..=*last).contains(&record.number));
            }
            if record.state == LedgerState::Queued {
                scan.wait_for_outcome(&record, retention_ms, self.now_ms);
                scan.open.push(self.open(request_id, record));
            } else if let Some(retention_ms) = retention_ms {
                scan.collect_old(request_id, record, retention_ms, self.now_ms);
            }
        })
        .await?;
        crash_point!(AfterLedgerRead);
        Ok((scan, unreadable))
    }

    /// The records of a shard whose counters are lost, as far as they are `wanted`: the undecided ones are persisted before a rebuild
    /// drops the ledger.
    pub(crate) async fn without_counters(
        self,
        wanted: impl Fn(&LedgerRecord) -> bool,
    ) -> Result<Vec<OpenRequest>, RedisFault> {
        let mut found = Vec::new();
        let keep = |id, record| found.extend(wanted(&record).then(|| self.open(id, record)));
        match each_record(self.ledger, self.sale, self.shard, keep).await {
            // The key is of another kind: there is no ledger to read, and the rebuild must not wait for one.
            Ok(_) | Err(RedisFault::Refused(_)) => Ok(found),
            Err(fault) => Err(fault),
        }
    }

    /// Records of the epoch that are settled although their numbers have no outcome: the database went back.
    pub(crate) async fn settled(self, epoch: u32, lacks: impl Fn(u64) -> bool) -> Result<Vec<OpenRequest>, RedisFault> {
        let mut found = Vec::new();
        each_record(self.ledger, self.sale, self.shard, |id, record| {
            if record.state != LedgerState::Queued && record.epoch == epoch && lacks(record.number) {
                found.push(self.open(id, record));
            }
        })
        .await?;
        Ok(found)
    }

    fn open(self, request_id: RequestId, record: LedgerRecord) -> OpenRequest {
        let age_ms = (self.now_ms - record.accepted_at_ms).max(0);
        OpenRequest { request_id, shard: self.shard, record, age_ms, parked: false }
    }
}

impl LedgerScan {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::UserId;
    use crate::domain::policy::Quantity;
    use crate::domain::sale::MetaState;
    use crate::store::redis::{Meta, Trimmed};

    const WINDOW: Duration = Duration::from_secs(60);
    const NOW_MS: i64 = 1_000_000;

    fn counts(number: u64) -> ShardCount {
        ShardCount {
            meta: Meta { state: MetaState::Open, epoch: 1, number },
            stock: 0,
            granted: 0,
            in_transit: 0,
            grants: 1,
            trimmed: Trimmed::default(),
            accepted: Some(0),
        }
    }

    fn open(number: u64) -> OpenRequest {
        let record = LedgerRecord {
            state: LedgerState::Queued,
            number,
            quantity: Quantity::new(1).expect("one"),
            epoch: 1,
            accepted_at_ms: 0,
            user_id: UserId::parse("u").expect("a user"),
        };
        OpenRequest { request_id: RequestId::new(number).expect("an id"), shard: 0, record, age_ms: 0, parked: false }
    }

    /// A scan of 10 numbers, so many windows ago.
    fn scanned(windows: u32, open_count: usize) -> ScanMemory {
        let scan = LedgerScan {
            at: Instant::now().checked_sub(WINDOW * windows).expect("a machine that runs for some minutes"),
            epoch: 1,
            number: 10,
            trimmed_count: 0,
            open: (1..=open_count as u64).map(open).collect(),
            units: 10,
            count: 10,
            next_old_at_ms: Some(NOW_MS + 1),
            old: Vec::new(),
            gaps: KnownGaps::default(),
            damaged: false,
            gap_has_record: false,
        };
        ScanMemory { shards: HashMap::from([(0, scan)]) }
    }

    #[test]
    fn a_scan_is_good_until_there_is_news_or_four_windows_are_over() {
        let good =
            |memory: &ScanMemory, counts: &ShardCount, now_ms| memory.still_good(0, counts, WINDOW, now_ms).is_some();
        assert!(good(&scanned(WINDOWS - 1, 0), &counts(10), NOW_MS));
        assert!(!good(&scanned(WINDOWS, 0), &counts(10), NOW_MS), "not for ever");
        assert!(good(&scanned(0, 0), &counts(11), NOW_MS), "no new request can be overdue yet");
        assert!(!good(&scanned(1, 0), &counts(11), NOW_MS));
        assert!(!good(&scanned(0, 0), &counts(10), NOW_MS + 1), "a record has become old");
        assert!(good(&scanned(0, OPEN_MAX - 1), &counts(10), NOW_MS));
        assert!(!good(&scanned(0, OPEN_MAX), &counts(10), NOW_MS), "too many to remember");
        let mut doubted = scanned(0, 0);
        doubted.doubt(0);
        assert!(!good(&doubted, &counts(10), NOW_MS), "a finding of the ledger stands");
    }

    #[test]
    fn gaps_are_those_of_the_last_scan_of_the_same_epoch() {
        let mut memory = scanned(0, 0);
        let gaps = KnownGaps { runs: vec![(3, 4)], units: 2 };
        memory.remember_gaps(0, gaps.clone());
        assert_eq!(memory.gaps(0, 1), gaps);
        assert_eq!(memory.gaps(0, 2), KnownGaps::default());
        assert_eq!(memory.gaps(1, 1), KnownGaps::default());
    }
}
