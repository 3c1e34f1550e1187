//! Redis' side of an audit, which is read first: the counters of each shard and its ledger up to them.
//!
//! Order of the files: `scan` (the ledger of one shard) ← `scan_memory` (what is remembered of it) and `side` (the side
//! as a value) ← `read`.

mod read;
mod scan;
mod scan_memory;
mod side;

pub(super) use read::{RedisReader, read};
#[cfg(test)]
pub(super) use scan::LedgerScan;
pub(super) use scan::{KnownGaps, OpenRecord};
pub(super) use scan_memory::ScanMemory;
pub(super) use side::{
    BucketsTwice, CountedShard, GrantsInRedis, PendingTransfer, RedisSide, ShardSide, TransfersSide,
};
#[cfg(test)]
pub(super) use side::{LostShard, Unreadable};
