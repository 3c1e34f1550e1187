//! Rebuild of a sale in Redis from the database after Redis lost data (E7).
//!
//! Input: a sale that is frozen (rewound) or whose keys are missing. Output: the sale under its next epoch, with buyers,
//! limits and replays, and with as much stock as the database can vouch for.
//!
//! Only when nothing is in flight: outboxes without entries of the sale, its queue and the retry queues empty, every record
//! that is left in the ledger decided, and all of that unchanged for a while. The units of numbers that have no fate by then are
//! kept back, so what still lands later than that finds its unit. A crash at any line leaves a frozen sale; the next run begins
//! again, under an epoch of its own.

use super::audit::{Auditor, Look, SaleAudit, SaleAuditError, Window};
use super::mq_reading::MqSeen;
use crate::domain::fate::Fate;
use crate::domain::ids::SaleId;
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::domain::shard::{home_shard, lane, share};
use crate::faults::CrashPoint;
use crate::store::mysql::books::{self, Series, closing};
use crate::store::mysql::decided::{self, DecidedRequest, Opening};
use crate::store::mysql::{outcomes, sales};
use crate::store::rabbit::queue_depths;
use crate::store::redis::DecidedRecord;
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
    /// Decided requests older than this count for their buyers and leave no record, milliseconds.
    pub retention_ms: i64,
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
                    let behind = meta.state == MetaState::Frozen || meta.epoch < sale.epoch;
                    behind || !self.redis.keys_complete(&sale.sale_id, shard).await?
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
        let audit = self.audit_in_round(sale, &mut Look::new(Window::Now, Some(how.seen))).await?;
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
        let rebuilt = self.rebuild_now(sale, how).await?;
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
            Ok(depths) => {
                let mine = format!(".orders.{}", lane(sale.as_str(), self.rabbit.queues));
                let waits = |queue: &str| queue.ends_with(&mine) || queue.contains(".retry.");
                Ok(depths.iter().any(|depth| depth.ready > 0 && waits(&depth.queue)))
            }
            Err(error) => {
                tracing::warn!(phase = "p5_reconcile", %sale, %error, "rebuild waits: the queues cannot be counted");
                Ok(true)
            }
        }
    }

    async fn rebuild_now(&self, sale: &Sale, how: Rebuild<'_>) -> Result<bool, SaleAuditError> {
        let id = &sale.sale_id;
        self.write_ends(sale).await?;
        let began_at_ms = decided::now_ms(&self.db).await?;
        let Some(epoch) = self.next_epoch(sale).await? else { return Ok(false) };
        let next = Sale { epoch, ..sale.clone() };
        for shard in 0..self.shards {
            if !self.redis.rebuild_begin(&next, shard, how.cap).await? {
                return Ok(false);
            }
            CrashPoint::RebuildHalf.reach();
        }
        if !self.load(&next, how.retention_ms).await? {
            return Ok(false);
        }
        CrashPoint::RebuildHalf.reach();
        let Some((units, given)) = self.fix_units(&next, how, began_at_ms).await? else { return Ok(false) };
        let state = if sale.status == SaleStatus::Paused { MetaState::Paused } else { MetaState::Open };
        let mut opened = false;
        for shard in 0..self.shards {
            let share = share(units, shard, self.shards);
            opened |= self.redis.rebuild_end(id, shard, epoch, (share, state, &given)).await?;
        }
        self.redis.uncache_sale(id).await?;
        Ok(opened)
    }

    /// Redis' own count of every number that it is about to forget: a gap shows for ever (`P5-RC4`), whatever becomes of the keys.
    async fn write_ends(&self, sale: &Sale) -> Result<(), SaleAuditError> {
        let id = &sale.sale_id;
        let known = books::known(&self.db, id).await?;
        for shard in 0..self.shards {
            let Some(counts) = self.redis.shard_count(id, shard).await? else { continue };
            let series = Series { epoch: counts.meta.epoch, shard };
            let highest = known.iter().find(|known| known.series == series).map_or(0, |known| known.number);
            // A Redis that is behind the database has forgotten units, too.
            let accepted = counts.accepted.filter(|_| counts.meta.number >= highest);
            let number = counts.meta.number.max(highest);
            if number > 0 {
                closing::end(&self.db, id, series, number, accepted).await?;
            }
        }
        Ok(())
    }

    /// The epoch to build, which is this attempt's alone; `None` when somebody else was quicker.
    async fn next_epoch(&self, sale: &Sale) -> Result<Option<u32>, SaleAuditError> {
        let mut epoch = sale.epoch;
        for shard in 0..self.shards {
            if let Some(meta) = self.redis.meta(&sale.sale_id, shard).await? {
                epoch = epoch.max(meta.epoch);
            }
        }
        Ok(sales::advance_epoch(&self.db, &sale.sale_id, epoch + 1).await?.then_some(epoch + 1))
    }

    /// What the database calls unsold, less what it holds for failures and gaps. Fixed with all grants of the past in one step;
    /// `None` when something moved in between.
    async fn fix_units(
        &self,
        next: &Sale,
        how: Rebuild<'_>,
        began_at_ms: i64,
    ) -> Result<Option<(i64, Vec<String>)>, SaleAuditError> {
        let audit: SaleAudit = self.audit_in_round(next, &mut Look::new(Window::Now, Some(how.seen))).await?;
        let counted = audit.counted;
        let units = (counted.database_stock - counted.failed_held - counted.gaps_held).max(0);
        let (stock, held) = (counted.database_stock, counted.failed_held);
        let opening = Opening { epoch: next.epoch, stock, held, units, began_at_ms };
        let given = decided::open(&self.db, &next.sale_id, &opening).await?;
        Ok(given.map(|given| (units, given)))
    }

    /// Loads everything that was decided; `false` when another rebuild overtook this one.
    async fn load(&self, next: &Sale, retention_ms: i64) -> Result<bool, SaleAuditError> {
        let id = &next.sale_id;
        let mut loading = Loading { epoch: next.epoch, oldest_ms: i64::MAX, pages: HashMap::new() };
        for shard in 0..self.shards {
            loading.oldest_ms = loading.oldest_ms.min(self.redis.clock_ms(shard).await?.saturating_sub(retention_ms));
        }
        for known in books::known(&self.db, id).await? {
            let losers = decided::unnumbered(&self.db, id, known.series).await?;
            if !self.load_page(id, &mut loading, losers).await? {
                return Ok(false);
            }
            let mut after = Some(0);
            while let Some(at) = after {
                let page = decided::page(&self.db, id, known.series, at).await?;
                if !self.load_page(id, &mut loading, page.requests).await? {
                    return Ok(false);
                }
                after = page.next;
            }
        }
        Ok(true)
    }

    async fn load_page(
        &self,
        sale: &SaleId,
        loading: &mut Loading,
        page: Vec<DecidedRequest>,
    ) -> Result<bool, SaleAuditError> {
        let mut by_shard: HashMap<u16, Vec<DecidedRecord>> = HashMap::new();
        for request in page {
            let shard = home_shard(&request.user_id, self.shards);
            by_shard.entry(shard).or_default().push(loading.record(request));
        }
        for (shard, records) in by_shard {
            let page = loading.pages.entry(shard).or_default();
            *page += 1;
            if !self.redis.rebuild_load(sale, shard, (loading.epoch, *page), &records).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A load under way.
struct Loading {
    epoch: u32,
    /// What was decided before this leaves no record.
    oldest_ms: i64,
    /// Pages loaded into each shard.
    pages: HashMap<u16, u64>,
}

impl Loading {
    fn record(&self, request: DecidedRequest) -> DecidedRecord {
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
        let keeps_record = request.at_ms > self.oldest_ms;
        DecidedRecord { request_id: request.request_id, record, counts, keeps_record }
    }
}
