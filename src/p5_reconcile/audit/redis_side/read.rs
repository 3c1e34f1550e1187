//! Reads Redis' side, and what the judge asks of it later. The order of the reads is argued in the head of the audit.

use super::scan::{LedgerReader, OpenRecord};
use super::scan_memory::ScanMemory;
use super::side::{
    BucketsTwice, CountedShard, GrantsInRedis, LostShard, PendingTransfer, RedisSide, ShardSide, TransfersSide,
    Unreadable,
};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::sale::{Sale, SaleStatus};
use crate::p5_reconcile::audit::window::Window;
use crate::p5_reconcile::audit_stage::AuditStage;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::sales::rows::grants;
use crate::store::redis::{Between, Bucket, ShardCount};
use std::collections::BTreeMap;

/// Reads Redis for an audit of one sale.
#[derive(Clone, Copy)]
pub(crate) struct RedisReader<'a> {
    pub context: &'a ReconcileContext,
    pub sale: &'a Sale,
    pub window: Window,
    /// Settled records older than this are collected, milliseconds; `None`: none.
    pub retention_ms: Option<i64>,
}

/// Reads the side: shard after shard.
pub(crate) async fn read(reader: RedisReader<'_>, memory: &mut ScanMemory) -> Result<RedisSide, ReconcileError> {
    let mut redis = RedisSide::default();
    for shard in 0..reader.context.shards {
        reader.context.stage.send_replace(AuditStage::Ledger { shard });
        redis.shards.push(reader.shard(memory, shard).await?);
    }
    Ok(redis)
}

impl<'a> RedisReader<'a> {
    async fn shard(self, memory: &mut ScanMemory, shard: u16) -> Result<ShardSide, ReconcileError> {
        let (redis, sale, id) = (&self.context.redis, self.sale, &self.sale.sale_id);
        let Some(counts) = redis.sale_keys.count(id, shard).await? else { return self.without_counters(shard).await };
        let complete = redis.sale_keys.are_complete(id, shard).await?;
        // A closed sale may leave Redis at this moment, in one step. The next audit finds nothing of it.
        if !complete && sale.status != SaleStatus::Draft && redis.sale_keys.count(id, shard).await?.is_none() {
            return Err(ReconcileError::Moved);
        }
        let now_ms = redis.health.clock_ms(shard).await?;
        if let Some(scan) = memory.still_good(shard, &counts, self.window.duration(), now_ms).cloned() {
            let unreadable = Unreadable::default();
            let counted = CountedShard { counts, complete, scan, fresh: false, unreadable, now_ms };
            return Ok(ShardSide::Counted(Box::new(counted)));
        }
        let gaps = memory.gaps(shard, counts.meta.epoch);
        let (scan, records) = self.ledger(shard, now_ms).scan(&counts, self.retention_ms, gaps).await?;
        self.check_untrimmed(shard, &counts).await?;
        memory.remember(shard, scan.clone());
        let unreadable = Unreadable::first(records, self.context.findings_max);
        Ok(ShardSide::Counted(Box::new(CountedShard { counts, complete, scan, fresh: true, unreadable, now_ms })))
    }

    async fn without_counters(self, shard: u16) -> Result<ShardSide, ReconcileError> {
        if !matches!(self.sale.status, SaleStatus::Warmed | SaleStatus::Paused) {
            return Ok(ShardSide::Absent);
        }
        let now_ms = self.context.redis.health.clock_ms(shard).await?;
        let is_queued = |record: &LedgerRecord| record.state == LedgerState::Queued;
        let queued = self.ledger(shard, now_ms).without_counters(is_queued).await?;
        Ok(ShardSide::Lost(LostShard { now_ms, queued }))
    }

    /// Records that were trimmed meanwhile are missing in a scan and not lost. The next audit reads whole numbers.
    async fn check_untrimmed(self, shard: u16, counts: &ShardCount) -> Result<(), ReconcileError> {
        let now = self.context.redis.sale_keys.count(&self.sale.sale_id, shard).await?;
        if now.is_some_and(|now| now.trimmed != counts.trimmed) { Err(ReconcileError::Moved) } else { Ok(()) }
    }

    fn ledger(self, shard: u16, now_ms: i64) -> LedgerReader<'a> {
        LedgerReader { ledger: &self.context.redis.ledger, sale: &self.sale.sale_id, shard, now_ms }
    }

    /// The settled records of a shard that are `forgotten`, of all epochs. Without its counters the ledger may be of
    /// another kind.
    pub(crate) async fn settled(
        self,
        redis: &RedisSide,
        shard: u16,
        forgotten: impl Fn(&LedgerRecord) -> bool,
    ) -> Result<Vec<OpenRecord>, ReconcileError> {
        let ledger = self.ledger(shard, redis.now_ms(shard));
        let wanted = |record: &LedgerRecord| record.state != LedgerState::Queued && forgotten(record);
        match redis.shards.get(usize::from(shard)) {
            Some(ShardSide::Counted(_)) => Ok(ledger.wanted(wanted).await?),
            Some(ShardSide::Lost(_)) => Ok(ledger.without_counters(wanted).await?),
            Some(ShardSide::Absent) | None => Ok(Vec::new()),
        }
    }

    /// The grants of all shards by name, until there are too many on one of them, or none.
    pub(crate) async fn grants(self) -> Result<GrantsInRedis, ReconcileError> {
        let mut given: BTreeMap<String, i64> = BTreeMap::new();
        for shard in 0..self.context.shards {
            let keys = &self.context.redis.sale_keys;
            let Some(of_shard) = keys.grants(&self.sale.sale_id, shard, grants::OF_EPOCH_MAX).await? else {
                return Ok(GrantsInRedis::TooMany);
            };
            if of_shard.is_empty() {
                return Ok(GrantsInRedis::Missing);
            }
            for (name, units) in of_shard {
                *given.entry(name).or_default() += units;
            }
        }
        Ok(GrantsInRedis::Named(given))
    }

    /// Both sides of each pair of buckets; with `buckets` also what is between them.
    pub(crate) async fn transfers(self, buckets: bool) -> Result<TransfersSide, ReconcileError> {
        let sale = self.sale;
        let (rewound, _unread) = self.context.redis.transfers.rewound(&sale.sale_id, sale.epoch).await;
        if !buckets {
            return Ok(TransfersSide { rewound, twice: None });
        }
        let before = self.buckets().await?;
        let pending = self.pending().await?;
        let after = self.buckets().await?;
        let twice = before.zip(after).map(|(before, after)| BucketsTwice { before, pending, after });
        Ok(TransfersSide { rewound, twice })
    }

    async fn pending(self) -> Result<Vec<PendingTransfer>, ReconcileError> {
        let (transfers, sale, mut found) = (&self.context.redis.transfers, &self.sale.sale_id, Vec::new());
        for source in 0..self.context.shards {
            for transfer in transfers.pending(sale, source).await? {
                let last_given = transfers.last_given(sale, Between { source, target: transfer.target }).await?;
                found.push(PendingTransfer { transfer, last_given });
            }
        }
        Ok(found)
    }

    async fn buckets(self) -> Result<Option<Vec<Bucket>>, ReconcileError> {
        let mut buckets = Vec::with_capacity(self.context.shards.into());
        for shard in 0..self.context.shards {
            let bucket = self.context.redis.transfers.bucket(&self.sale.sale_id, shard).await?;
            let Some(bucket) = bucket else { return Ok(None) };
            buckets.push(bucket);
        }
        Ok(Some(buckets))
    }
}

impl Unreadable {
    /// The first ones of all, at most `most`.
    fn first(mut records: Vec<(String, String)>, most: usize) -> Self {
        let more = records.len().saturating_sub(most) as u64;
        records.truncate(most);
        Self { records, more }
    }
}
