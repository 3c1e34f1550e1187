//! Rebuild of a sale in Redis from the database after Redis lost data (E7).
//!
//! Input: a sale that is frozen (rewound) or whose keys are missing. Output: the sale under its next epoch, with buyers,
//! limits and replays, and with as much stock as the database can vouch for.
//!
//! Only when nothing is in flight: outboxes without entries of the sale, empty queues, every record that is left in the
//! ledger decided, and all of that unchanged for a while. What still lands later than that finds its stock gone in the
//! worst case and is recorded as refused; nothing is oversold by it. A crash at any line leaves a frozen sale; the next run
//! begins again where it can.

use super::audit::{Auditor, SaleAuditError, Window};
use super::mq_reading::MqSeen;
use crate::domain::fate::Fate;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::domain::shard::{home_shard, share};
use crate::faults::CrashPoint;
use crate::store::mysql::{decided, grants, outcomes, sales};
use crate::store::rabbit::queue_depths;
use crate::store::redis::{DecidedRecord, RebuildBegin};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Outbox entries looked at in one page.
const PAGE: usize = 500;

/// How a rebuild is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rebuild<'a> {
    /// Nothing may have been decided for this long: longer than a landing transaction may take.
    pub quiet: Duration,
    /// Outbox entries at which the script refuses.
    pub cap: u64,
    /// What the round has seen of the MQ DLQ.
    pub seen: &'a MqSeen,
}

/// Remembers since when each broken sale has been quiet.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    since: HashMap<SaleId, (Instant, u64)>,
}

impl Quiet {
    /// Whether nothing has been decided for `sale` for `quiet`.
    fn long_enough(&mut self, sale: &SaleId, decided_count: u64, quiet: Duration) -> bool {
        let entry = self.since.entry(sale.clone()).or_insert_with(|| (Instant::now(), decided_count));
        if entry.1 != decided_count {
            *entry = (Instant::now(), decided_count);
        }
        entry.0.elapsed() >= quiet
    }

    fn disturb(&mut self, sale: &SaleId) {
        self.since.remove(sale);
    }
}

impl Auditor {
    /// Whether Redis has lost data of a sale that was warmed.
    ///
    /// # Errors
    /// [`SaleAuditError`] when Redis cannot be asked.
    pub async fn is_broken(&self, sale: &Sale) -> Result<bool, SaleAuditError> {
        if !matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused) {
            return Ok(false);
        }
        for shard in 0..self.shards {
            let broken = match self.redis.meta(&sale.sale_id, shard).await? {
                None => true,
                Some(meta) => {
                    meta.state == MetaState::Frozen || !self.redis.keys_complete(&sale.sale_id, shard).await?
                }
            };
            if broken {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One step towards the rebuild of a broken sale; `true` when it sells again.
    pub(super) async fn rebuild(
        &self,
        sale: &Sale,
        quiet: &mut Quiet,
        how: Rebuild<'_>,
    ) -> Result<bool, SaleAuditError> {
        let id = &sale.sale_id;
        for shard in 0..self.shards {
            let from = [MetaState::Loaded, MetaState::Open, MetaState::Paused];
            self.redis.set_state(id, shard, MetaState::Frozen, &from).await?;
        }
        // Whatever the ledger still knows is landed now; it is gone after the next epoch began.
        let audit = self.audit_in_round(sale, Window::Now, Some(how.seen)).await?;
        self.compensate(&audit).await?;
        if !audit.overdue.is_empty() || self.in_flight(id).await? {
            quiet.disturb(id);
            return Ok(false);
        }
        let decided_count = outcomes::count_of_sale(&self.db, id).await?;
        if !quiet.long_enough(id, decided_count, how.quiet) {
            return Ok(false);
        }
        let began = Instant::now();
        let rebuilt = self.rebuild_now(sale, how.cap).await?;
        if rebuilt {
            quiet.disturb(id);
            metrics::counter!("seckill_p5_reconcile_rebuilds_total").increment(1);
            tracing::warn!(phase = "p5_reconcile", sale = %id, took_ms = began.elapsed().as_secs_f64() * 1000.0, "rebuilt from the database, the sale goes on");
        }
        Ok(rebuilt)
    }

    /// Whether any request of the sale may still be on its way.
    async fn in_flight(&self, sale: &SaleId) -> Result<bool, SaleAuditError> {
        for shard in 0..self.shards {
            let mut start = "-".to_owned();
            loop {
                let page = self.redis.outbox_walk(shard, &start, PAGE).await?;
                if page.lying.iter().any(|lying| lying.entry.field("s") == Some(sale.as_str().as_bytes())) {
                    return Ok(true);
                }
                let Some(next) = page.next else { break };
                start = next;
            }
        }
        match queue_depths(&self.rabbit).await {
            // The MQ DLQ's requests are decided by now (they are in the ledger) or are nowhere else either.
            Ok(depths) => Ok(depths.iter().any(|depth| depth.ready > 0 && !depth.queue.ends_with(".dlq"))),
            Err(error) => {
                tracing::warn!(phase = "p5_reconcile", %sale, %error, "rebuild waits: the queues cannot be counted");
                Ok(true)
            }
        }
    }

    async fn rebuild_now(&self, sale: &Sale, cap: u64) -> Result<bool, SaleAuditError> {
        let id = &sale.sale_id;
        let epoch = self.next_epoch(sale).await?;
        let next = Sale { epoch, ..sale.clone() };
        let applied: Vec<String> = grants::list(&self.db, id)
            .await?
            .into_iter()
            .filter(|grant| grant.applied_at_ms.is_some())
            .map(|grant| grant.grant_id)
            .collect();
        for shard in 0..self.shards {
            if self.redis.rebuild_begin(&next, shard, cap, &applied).await? == RebuildBegin::Selling {
                return Ok(false);
            }
            CrashPoint::RebuildHalf.reach();
        }
        if !self.load(id, epoch).await? {
            return Ok(false);
        }
        CrashPoint::RebuildHalf.reach();
        let units = decided::sellable(&self.db, id).await?;
        let state = if sale.status == SaleStatus::Paused { MetaState::Paused } else { MetaState::Open };
        let mut opened = false;
        for shard in 0..self.shards {
            let share = share(units, shard, self.shards);
            opened |= self.redis.rebuild_end(id, shard, epoch, (share, state)).await?;
        }
        self.redis.uncache_sale(id).await?;
        Ok(opened)
    }

    /// The epoch to build. One that was begun and never opened is gone on with, not left behind.
    async fn next_epoch(&self, sale: &Sale) -> Result<u32, SaleAuditError> {
        let mut begun = 0;
        for shard in 0..self.shards {
            if let Some(meta) = self.redis.meta(&sale.sale_id, shard).await? {
                begun = begun.max(meta.epoch);
            }
        }
        let started_empty = begun == sale.epoch && self.redis_is_being_rebuilt(sale).await?;
        let epoch = if started_empty { sale.epoch } else { sale.epoch.max(begun) + 1 };
        let holds = sales::set_epoch(&self.db, &sale.sale_id, epoch).await;
        holds.map_err(|error| SaleAuditError::Refused(error.to_string()))
    }

    /// Whether the rebuild of this epoch was begun and has opened no shard yet. One that is open may have sold, and units may
    /// have left it for another: only a further epoch counts them anew.
    async fn redis_is_being_rebuilt(&self, sale: &Sale) -> Result<bool, SaleAuditError> {
        let mut begun = false;
        for shard in 0..self.shards {
            if self.redis.meta(&sale.sale_id, shard).await?.is_none_or(|meta| meta.epoch != sale.epoch) {
                continue;
            }
            if !self.redis.rebuild_begun(&sale.sale_id, shard, sale.epoch).await? {
                return Ok(false);
            }
            begun = true;
        }
        Ok(begun)
    }

    /// Loads everything that was decided; `false` when another rebuild overtook this one.
    async fn load(&self, sale: &SaleId, epoch: u32) -> Result<bool, SaleAuditError> {
        let mut after: Option<RequestId> = None;
        loop {
            let page = decided::page(&self.db, sale, after).await?;
            let Some(last) = page.last() else { return Ok(true) };
            after = Some(last.request_id);
            let mut by_shard: HashMap<u16, Vec<DecidedRecord>> = HashMap::new();
            for request in page {
                let (state, counts) = match request.fate {
                    Fate::Ordered => (LedgerState::Confirmed, true),
                    Fate::Failed(reason) => (LedgerState::Failed(reason), false),
                };
                let record = LedgerRecord {
                    state,
                    number: request.number,
                    quantity: request.quantity,
                    epoch: request.epoch,
                    accepted_at_ms: request.at_ms,
                    user_id: request.user_id,
                };
                let shard = home_shard(&record.user_id, self.shards);
                by_shard.entry(shard).or_default().push(DecidedRecord {
                    request_id: request.request_id,
                    record,
                    counts,
                });
            }
            for (shard, records) in by_shard {
                if !self.redis.rebuild_load(sale, shard, epoch, &records).await? {
                    return Ok(false);
                }
            }
        }
    }
}
