//! Redis' side of an audit as a value. Nothing here reads or judges.

use super::scan::{LedgerScan, OpenRecord};
use crate::domain::sale::MetaState;
use crate::domain::transfer_marks::Rewound;
use crate::p5_reconcile::rows::books::Series;
use crate::store::redis::{Bucket, ShardCount, Transfer};
use std::collections::BTreeMap;

/// What Redis has of the sale.
#[derive(Debug, Clone, Default)]
pub(crate) struct RedisSide {
    /// One for each shard, in their order.
    pub shards: Vec<ShardSide>,
    /// Settled records whose numbers have no outcome, by shard; `None`: not read.
    pub settled: Option<Vec<(u16, Vec<OpenRecord>)>>,
    /// The grants by name; `None`: not read.
    pub grants: Option<GrantsInRedis>,
    /// The units between two buckets; `None`: not read.
    pub transfers: Option<TransfersSide>,
}

/// What one shard has.
#[derive(Debug, Clone)]
pub(crate) enum ShardSide {
    /// Nothing, and it need not have anything.
    Absent,
    /// No counters, although the sale was warmed.
    Lost(LostShard),
    /// Counters and a ledger.
    Counted(Box<CountedShard>),
}

/// A shard whose counters are lost.
#[derive(Debug, Clone)]
pub(crate) struct LostShard {
    /// Redis' clock, Unix milliseconds.
    pub now_ms: i64,
    /// The undecided records of what is left of its ledger.
    pub queued: Vec<OpenRecord>,
}

/// A shard that could be counted.
#[derive(Debug, Clone)]
pub(crate) struct CountedShard {
    /// One snapshot of the counters.
    pub counts: ShardCount,
    /// Whether all keys of the sale are there, and of their kind.
    pub complete: bool,
    /// Its ledger up to that snapshot, or as it was at an earlier scan.
    pub scan: LedgerScan,
    /// Whether the ledger was scanned by this audit.
    pub fresh: bool,
    /// Records that cannot be read.
    pub unreadable: Unreadable,
    /// Redis' clock, Unix milliseconds.
    pub now_ms: i64,
}

/// Records that cannot be read, as many as an audit can report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unreadable {
    /// Field and text.
    pub records: Vec<(String, String)>,
    /// How many more there are.
    pub more: u64,
}

/// The grants in Redis.
#[derive(Debug, Clone)]
pub(crate) enum GrantsInRedis {
    /// Units by name, over all shards.
    Named(BTreeMap<String, i64>),
    /// More than are read one by one.
    TooMany,
    /// A shard has none at all.
    Missing,
}

/// The units between two buckets.
#[derive(Debug, Clone, Default)]
pub(crate) struct TransfersSide {
    /// Pairs of which one side went back in time.
    pub rewound: Vec<Rewound>,
    /// The buckets, with the transfers that were read between two readings of them; `None`: not asked for, or a bucket
    /// is missing.
    pub twice: Option<BucketsTwice>,
}

/// The buckets of all shards, read before and after the transfers between them. When both are equal, nothing happened
/// meanwhile.
#[derive(Debug, Clone)]
pub(crate) struct BucketsTwice {
    pub before: Vec<Bucket>,
    pub pending: Vec<PendingTransfer>,
    pub after: Vec<Bucket>,
}

/// A transfer that was begun and not forgotten.
#[derive(Debug, Clone)]
pub(crate) struct PendingTransfer {
    pub transfer: Transfer,
    /// What the target was given last from its source; `None` when that cannot be read.
    pub last_given: Option<u64>,
}

impl CountedShard {
    /// Units ever accepted in the epoch: as Redis counted them; for keys from before that counter, as the ledger has
    /// them.
    pub(crate) fn accepted(&self) -> i64 {
        self.counts.accepted.unwrap_or_else(|| self.known_units())
    }

    /// Accepted requests of the epoch that the ledger has, or had.
    pub(crate) const fn known_count(&self) -> u64 {
        self.scan.count + self.counts.trimmed.count
    }

    /// Units of those.
    pub(crate) const fn known_units(&self) -> i64 {
        self.scan.units + self.counts.trimmed.ordered + self.counts.trimmed.failed
    }

    /// Whether it sells in this epoch, or could.
    pub(crate) fn is_in_step(&self, epoch: u32) -> bool {
        self.counts.meta.epoch == epoch && self.counts.meta.state != MetaState::Frozen
    }
}

impl RedisSide {
    /// The shards that could be counted.
    pub(crate) fn counted(&self) -> impl Iterator<Item = (u16, &CountedShard)> {
        (0..).zip(&self.shards).filter_map(|(shard, side)| match side {
            ShardSide::Counted(counted) => Some((shard, &**counted)),
            ShardSide::Lost(_) | ShardSide::Absent => None,
        })
    }

    /// The shard of a series, if Redis is in its epoch.
    pub(crate) fn counted_in(&self, series: Series) -> Option<&CountedShard> {
        match self.shards.get(usize::from(series.shard))? {
            ShardSide::Counted(counted) => (counted.counts.meta.epoch == series.epoch).then_some(&**counted),
            ShardSide::Lost(_) | ShardSide::Absent => None,
        }
    }

    /// Shards whose counters are lost.
    pub(crate) fn lost(&self) -> impl Iterator<Item = u16> {
        (0..).zip(&self.shards).filter(|(_, side)| matches!(side, ShardSide::Lost(_))).map(|(shard, _)| shard)
    }

    /// Records that are undecided in the ledger, and the settled ones that were read because the database lacks their
    /// outcomes.
    pub(crate) fn open(&self) -> impl Iterator<Item = (u16, &OpenRecord)> {
        let of_shards = (0..).zip(&self.shards).flat_map(|(shard, side)| {
            let open: &[OpenRecord] = match side {
                ShardSide::Absent => &[],
                ShardSide::Lost(lost) => &lost.queued,
                ShardSide::Counted(counted) => &counted.scan.open,
            };
            open.iter().map(move |record| (shard, record))
        });
        let settled = self.settled.iter().flatten();
        of_shards.chain(settled.flat_map(|(shard, records)| records.iter().map(move |record| (*shard, record))))
    }

    /// The clock of a shard when it was read, Unix milliseconds; 0 of a shard that has nothing.
    pub(crate) fn now_ms(&self, shard: u16) -> i64 {
        match self.shards.get(usize::from(shard)) {
            Some(ShardSide::Counted(counted)) => counted.now_ms,
            Some(ShardSide::Lost(lost)) => lost.now_ms,
            Some(ShardSide::Absent) | None => 0,
        }
    }

    /// Units between two buckets.
    pub(crate) fn in_transit(&self) -> i64 {
        self.counted().map(|(_, counted)| counted.counts.in_transit).sum()
    }

    /// Whether the shards that could be counted are in step with the database, the first among them.
    pub(crate) fn is_in_step(&self, epoch: u32) -> bool {
        let first = matches!(self.shards.first(), Some(ShardSide::Counted(_)));
        first && self.counted().all(|(_, counted)| counted.is_in_step(epoch))
    }

    /// Whether every shard could be counted: the units of a missing one would seem lost.
    pub(crate) fn is_whole(&self) -> bool {
        self.counted().count() == self.shards.len()
    }
}
