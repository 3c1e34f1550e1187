//! Rebuild of a sale in Redis from the database after Redis lost data (E7).
//!
//! Input: a sale that is frozen (rewound) or whose keys are missing. Output: the sale under its next epoch, with buyers,
//! limits and replays, and with as much stock as the database can vouch for.
//!
//! Only when nothing is in flight: outboxes without entries of the sale, its queue and the retry queues empty, every record
//! that is left in the ledger decided, and all of that unchanged for a while. The units of numbers that have no outcome by then are
//! kept back, so what still lands later than that finds its unit. A crash at any line leaves a frozen sale; the next run begins
//! again, under an epoch of its own.

use super::audit::{Auditor, Look, SaleAudit, SaleAuditError, Window};
use super::mq_reading::{MqSeen, Reading};
use crate::domain::ids::SaleId;
use crate::domain::message;
use crate::domain::request::Accepted;
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::domain::shard::{order_queue_index, share};
use crate::faults::crash_point;
use crate::store::mysql::books::{self, Series, closing};
use crate::store::mysql::codes::FailureStatus;
use crate::store::mysql::decided::{self, Opening};
use crate::store::mysql::failed_requests::{self, FailedRequestFilter};
use crate::store::mysql::{outcomes, sales};
use crate::store::rabbit::{RabbitError, queue_depths};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time for reading all of the MQ DLQ before a rebuild; tens of thousands of messages.
const READ_ALL: Duration = Duration::from_secs(60);
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
                    let apart = meta.state == MetaState::Frozen || meta.epoch != sale.epoch;
                    apart || !self.redis.keys_complete(&sale.sale_id, shard).await?
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
        if !self.is_quiet(sale, how).await? {
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

    /// Lands what the ledger still knows. Whether nothing of the sale is on its way or undecided after that.
    async fn is_quiet(&self, sale: &Sale, how: Rebuild<'_>) -> Result<bool, SaleAuditError> {
        let audit = self.audit_in_round(sale, &mut Look::new(Window::Now, Some(how.seen))).await?;
        self.compensate(&audit).await?;
        Ok(audit.overdue.is_empty() && !self.in_flight(&sale.sale_id).await?)
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
                let mine = format!(".orders.{}", order_queue_index(sale.as_str(), self.rabbit.queues));
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
        // All of the MQ DLQ: a request that nothing else knows any more has a unit, too.
        let mut all = MqSeen::default();
        let how = if how.seen.unseen_count == Some(0) {
            how
        } else {
            if let Err(error) = self.read_all(&mut all).await {
                tracing::warn!(phase = "p5_reconcile", sale = %id, %error, "rebuild waits: the MQ DLQ cannot be read");
            }
            Rebuild { seen: &all, ..how }
        };
        if how.seen.unseen_count != Some(0) {
            tracing::warn!(phase = "p5_reconcile", sale = %id, unseen = how.seen.unseen_count, "rebuild waits: the MQ DLQ is too long to be read as a whole; replay or give up what lies there");
            return Ok(false);
        }
        let began_at_ms = decided::now_ms(&self.db).await?;
        let Some(epoch) = self.next_epoch(sale).await? else { return Ok(false) };
        let next = Sale { epoch, ..sale.clone() };
        // Judged once more, now that no other process can build this epoch: one that slept since its first look has lost it.
        let mut judged = Vec::with_capacity(self.shards.into());
        for shard in 0..self.shards {
            judged.push(self.redis.replaceable(id, shard).await?);
        }
        if judged.iter().any(|keys| keys.epoch > sale.epoch) || !self.is_quiet(&next, how).await? {
            return Ok(false);
        }
        self.write_ends(sale, how.seen).await?;
        for (shard, judged) in (0..self.shards).zip(judged) {
            if !self.redis.rebuild_begin(&next, shard, how.cap, judged).await? {
                return Ok(false);
            }
            crash_point!(RebuildHalf);
        }
        if !self.load(&next, how.retention_ms).await? {
            return Ok(false);
        }
        crash_point!(RebuildHalf);
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

    /// The last number of each series that anybody knows of, before Redis forgets its own: a gap shows for ever (`P5-RC4`), whatever
    /// becomes of the keys, and its unit is kept back. Parked requests know their numbers, too.
    async fn write_ends(&self, sale: &Sale, seen: &MqSeen) -> Result<(), SaleAuditError> {
        let id = &sale.sale_id;
        let mut ends: HashMap<Series, (u64, Option<i64>)> = HashMap::new();
        for known in books::known(&self.db, id).await? {
            ends.insert(known.series, (known.number, known.accepted));
        }
        for shard in 0..self.shards {
            let Some(counts) = self.redis.shard_count(id, shard).await? else { continue };
            let end = ends.entry(Series { epoch: counts.meta.epoch, shard }).or_default();
            // A Redis that is behind the database has forgotten units, too.
            if counts.meta.number >= end.0 {
                *end = (counts.meta.number, counts.accepted);
            }
        }
        for accepted in self.parked_requests(id, seen).await? {
            let end = ends.entry(Series { epoch: accepted.epoch, shard: accepted.shard }).or_default();
            if accepted.number > end.0 {
                *end = (accepted.number, None);
            }
        }
        for (series, (number, accepted)) in ends {
            if number > 0 && series.epoch > 0 {
                closing::end(&self.db, id, series, number, accepted).await?;
            }
        }
        Ok(())
    }

    /// Reads the MQ DLQ to its end, and leaves it as it is.
    async fn read_all(&self, seen: &mut MqSeen) -> Result<(), RabbitError> {
        let mut reading = Reading::within(READ_ALL, &self.rabbit, usize::MAX, seen).await?;
        while reading.next().await?.is_some() {}
        reading.close().await
    }

    /// What is parked of a sale: in the MQ DLQ as the round has seen it, and in the register.
    async fn parked_requests(&self, sale: &SaleId, seen: &MqSeen) -> Result<Vec<Accepted>, SaleAuditError> {
        let mut parked: Vec<Accepted> =
            seen.requests.iter().filter(|accepted| accepted.purchase.sale_id == *sale).cloned().collect();
        let (status, sale_id) = (Some(FailureStatus::Open), Some(sale.clone()));
        let mut wanted =
            FailedRequestFilter { status, sale_id, limit: failed_requests::PAGE_MAX, ..FailedRequestFilter::default() };
        loop {
            let page = failed_requests::list(&self.db, &wanted).await?;
            parked.extend(page.iter().filter_map(|row| message::decode(&row.payload).ok()));
            match page.last() {
                Some(last) if i64::try_from(page.len()) == Ok(failed_requests::PAGE_MAX) => {
                    wanted.after = Some(last.request_id);
                }
                Some(_) | None => return Ok(parked),
            }
        }
    }

    /// The epoch to build, which is this attempt's alone; `None` when somebody else was quicker, or when the database is behind
    /// Redis: it gets Redis' epoch first, and the sale is looked at anew.
    async fn next_epoch(&self, sale: &Sale) -> Result<Option<u32>, SaleAuditError> {
        let mut newest = sale.epoch;
        for shard in 0..self.shards {
            newest = newest.max(self.redis.replaceable(&sale.sale_id, shard).await?.epoch);
        }
        let to = if newest > sale.epoch { newest } else { sale.epoch + 1 };
        let moved = sales::advance_epoch(&self.db, &sale.sale_id, (sale.epoch, to)).await?;
        Ok((moved && newest == sale.epoch).then_some(to))
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
}
