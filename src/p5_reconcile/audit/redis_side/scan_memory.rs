//! What is remembered of the scans of a sale's ledgers, so that a ledger in which nothing can have changed is not
//! scanned again (E13).

use super::scan::{KnownGaps, LedgerScan};
use crate::store::redis::ShardCount;
use std::collections::HashMap;
use std::time::Duration;

/// Windows after which the ledger is scanned again in any case.
const WINDOWS: u32 = 4;
/// Undecided requests remembered between two scans; with more the ledger is scanned each time.
const OPEN_MAX: usize = 10_000;

/// The last scan of each ledger of a sale.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct ScanMemory {
    shards: HashMap<u16, RememberedScan>,
}

#[derive(Debug)]
struct RememberedScan {
    scan: LedgerScan,
    /// Whether something of it is a finding. It stands in every round, so the ledger is scanned in every round.
    damaged: bool,
}

impl ScanMemory {
    /// The last scan, if another one could find nothing more: no request that came since can be overdue yet, and no
    /// record has become old.
    pub(crate) fn still_good(
        &self,
        shard: u16,
        counts: &ShardCount,
        window: Duration,
        now_ms: i64,
    ) -> Option<&LedgerScan> {
        let RememberedScan { scan, damaged } = self.shards.get(&shard)?;
        let same_keys = (scan.epoch, scan.trimmed_count) == (counts.meta.epoch, counts.trimmed.count);
        let nothing_new = scan.number == counts.meta.number || scan.at.elapsed() < window;
        let nothing_old = scan.next_old_at_ms.is_none_or(|at_ms| now_ms < at_ms);
        // Not for ever: a Redis that went back and came to the same numbers again has other records behind them.
        let young = scan.open.len() < OPEN_MAX && scan.at.elapsed() < window * WINDOWS;
        let whole = counts.accepted.is_some() && !damaged;
        (same_keys && nothing_new && nothing_old && young && whole).then_some(scan)
    }

    pub(crate) fn remember(&mut self, shard: u16, scan: LedgerScan) {
        self.shards.insert(shard, RememberedScan { scan, damaged: false });
    }

    /// The gaps when the ledger was scanned last, if that was in this epoch.
    pub(crate) fn gaps(&self, shard: u16, epoch: u32) -> KnownGaps {
        let last = self.shards.get(&shard).filter(|last| last.scan.epoch == epoch);
        last.map(|last| last.scan.gaps.clone()).unwrap_or_default()
    }

    /// Something is wrong in the last scan, or the database contradicts it.
    pub(crate) fn doubt(&mut self, shard: u16) {
        if let Some(last) = self.shards.get_mut(&shard) {
            last.damaged = true;
        }
    }

    /// Remembers the gaps that an audit worked out with the last scan.
    pub(crate) fn remember_gaps(&mut self, shard: u16, gaps: KnownGaps) {
        if let Some(last) = self.shards.get_mut(&shard) {
            last.scan.gaps = gaps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::OpenRecord;
    use super::*;
    use crate::domain::ids::{RequestId, UserId};
    use crate::domain::ledger::{LedgerRecord, LedgerState};
    use crate::domain::policy::Quantity;
    use crate::domain::sale::MetaState;
    use crate::store::redis::{Meta, Trimmed};
    use std::time::Instant;

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

    fn open(number: u64) -> OpenRecord {
        let record = LedgerRecord {
            state: LedgerState::Queued,
            number,
            quantity: Quantity::new(1).expect("one"),
            epoch: 1,
            accepted_at_ms: 0,
            user_id: UserId::parse("u").expect("a user"),
            person: None,
        };
        OpenRecord { request_id: RequestId::new(number).expect("an id"), record }
    }

    /// A scan of 10 numbers, this number of windows ago.
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
            gap_has_record: false,
        };
        let mut memory = ScanMemory::default();
        memory.remember(0, scan);
        memory
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
