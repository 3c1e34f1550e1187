//! The steps of a rebuild, in their order: freeze, persist what the ledger has, wait, begin the next epoch, load, open.

use super::in_flight::{WaitsFor, in_flight};
use super::quiescence::{QuiescenceTimer, QuietMark};
use super::{ends, load, terms};
use crate::domain::ids::SaleId;
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::domain::shard::share;
use crate::faults::{between_steps, crash_point, hold, left_out};
use crate::p5_reconcile::audit::{AuditOptions, Window, audit_sale};
use crate::p5_reconcile::compensation::compensate_before_rebuild;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::dlq::{MqDlqContents, MqDlqScan};
use crate::p5_reconcile::rows::opening::{Opening, OpeningUnits};
use crate::sales::rows::changes;
use crate::store::rabbit::{RabbitError, RetryWatch, SeenOfSale};
use crate::store::redis::Replaceable;
use crate::trace_points::trace_point;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for reading all of the MQ DLQ before a rebuild; tens of thousands of messages.
const READ_ALL: Duration = Duration::from_secs(60);

/// How a rebuild is made.
#[derive(Debug, Clone, Copy)]
pub(in crate::p5_reconcile) struct RebuildOptions<'a> {
    /// The last epoch of keys that were found broken; later ones are another rebuild's.
    pub(crate) judged_epoch: u32,
    /// Nothing may have been decided for this long: longer than a transaction of P4 may take.
    pub(crate) quiescent_for: Duration,
    /// Outbox entries at which the admission script refuses.
    pub backlog_max: u64,
    /// Decided requests older than this count for their buyers and get no record, milliseconds.
    pub(crate) retention_ms: i64,
    /// What the round has read of the MQ DLQ.
    pub mq_dlq: &'a MqDlqContents,
}

impl<'a> RebuildOptions<'a> {
    fn audit(self) -> AuditOptions<'a> {
        AuditOptions::from(Window::Now).with_mq_dlq(self.mq_dlq)
    }
}

/// Whether Redis has lost data of a sale that was warmed: then the last epoch among its keys and in `sale`.
pub(in crate::p5_reconcile) async fn broken_epoch(
    context: &ReconcileContext,
    sale: &Sale,
) -> Result<Option<u32>, ReconcileError> {
    if !matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused) {
        return Ok(None);
    }
    let (mut judged_epoch, mut is_broken) = (sale.epoch, false);
    for shard in 0..context.shards {
        let Some(meta) = context.redis.sale_keys.meta(&sale.sale_id, shard).await? else {
            is_broken = true;
            continue;
        };
        judged_epoch = judged_epoch.max(meta.epoch);
        let in_step = meta.state != MetaState::Frozen && (meta.epoch == sale.epoch || left_out!(EpochsCompared));
        is_broken = is_broken || !in_step || !context.redis.sale_keys.are_complete(&sale.sale_id, shard).await?;
    }
    Ok(is_broken.then_some(judged_epoch))
}

/// One step towards the rebuild of a broken sale; `true` when it sells again.
pub(in crate::p5_reconcile) async fn rebuild(
    context: &ReconcileContext,
    sale: &Sale,
    timer: &mut QuiescenceTimer,
    options: RebuildOptions<'_>,
) -> Result<bool, ReconcileError> {
    let id = &sale.sale_id;
    let no_dead_letters = MqDlqContents { unseen_count: Some(0), ..MqDlqContents::default() };
    let options = RebuildOptions {
        mq_dlq: if left_out!(DeadLettersCount) { &no_dead_letters } else { options.mq_dlq },
        quiescent_for: if left_out!(QuietTime) { Duration::ZERO } else { options.quiescent_for },
        ..options
    };
    for shard in 0..context.shards {
        context.redis.sale_keys.freeze(id, shard, options.judged_epoch).await?;
        trace_point!(Frozen { sale: id.as_str(), shard: shard });
    }
    let watched = Watched::of(context, id, timer).await;
    // Requests that only the ledger has are persisted now; the next epoch begins with another ledger.
    let watched = match (waits_for(context, sale, options, watched.as_ref()).await?, watched) {
        (None, Ok(watched)) => watched,
        (Some(reason), _) | (None, Err(reason)) => {
            timer.reset(id);
            timer.waits(id, &reason);
            return Ok(false);
        }
    };
    let decided_count = context.rows.requests.count_of_sale(id).await?;
    if !timer.long_enough(id, QuietMark { decided_count, seen: watched.seen }, options.quiescent_for) {
        timer.waits(id, &WaitsFor::Quiet);
        return Ok(false);
    }
    let began = Instant::now();
    match Box::pin(rebuild_now(context, sale, options, &watched)).await? {
        RebuildAttempt::Rebuilt => {
            timer.reset(id);
            metrics::counter!("seckill_p5_reconcile_rebuilds_total").increment(1);
            tracing::warn!(phase = "p5_reconcile", sale = %id, took_ms = began.elapsed().as_secs_f64() * 1000.0, "rebuilt from the database, the sale goes on");
            Ok(true)
        }
        RebuildAttempt::Waits(reason) => {
            timer.waits(id, &reason);
            Ok(false)
        }
        RebuildAttempt::Overtaken => Ok(false),
    }
}

/// The watch over the retry queues, and what it had seen of the sale before this attempt.
struct Watched {
    watch: Arc<RetryWatch>,
    seen: Option<SeenOfSale>,
}

impl Watched {
    async fn of(context: &ReconcileContext, sale: &SaleId, timer: &mut QuiescenceTimer) -> Result<Self, WaitsFor> {
        let blind = |why: String| WaitsFor::Broker(format!("the retry queues cannot be watched: {why}"));
        let watch = timer.watch(&context.rabbit).await.map_err(|error| blind(error.to_string()))?;
        let seen = watch.seen_of(sale).map_err(blind)?;
        Ok(Self { watch, seen: (!left_out!(RetriesWatched)).then_some(seen) })
    }

    /// Whether something of the sale has come through a retry queue since, or may have.
    fn has_changed(&self, sale: &SaleId) -> bool {
        self.seen.is_some_and(|before| self.watch.seen_of(sale) != Ok(before))
    }
}

/// What became of an attempt.
enum RebuildAttempt {
    /// The sale sells again.
    Rebuilt,
    /// Something of the sale may still come.
    Waits(WaitsFor),
    /// Another process was quicker, or something moved in between: the next round judges again.
    Overtaken,
}

/// Persists the undecided requests of the ledger. Returns what of the sale is on its way or undecided after that.
async fn waits_for(
    context: &ReconcileContext,
    sale: &Sale,
    options: RebuildOptions<'_>,
    watched: Result<&Watched, &WaitsFor>,
) -> Result<Option<WaitsFor>, ReconcileError> {
    let audit = audit_sale(context, sale, options.audit()).await?;
    compensate_before_rebuild(context, &audit).await?;
    match (audit.overdue.len(), watched) {
        (0, Ok(watched)) => {
            let found = Box::pin(in_flight(context, &sale.sale_id, &watched.watch)).await?;
            Ok(found.or_else(|| watched.has_changed(&sale.sale_id).then_some(WaitsFor::Quiet)))
        }
        (0, Err(reason)) => Ok(Some(reason.clone())),
        (undecided, _) => Ok(Some(WaitsFor::Undecided(undecided))),
    }
}

/// Begins the keys of all shards in the next epoch; `false`: another process has done more.
async fn begin_all(
    context: &ReconcileContext,
    next: &Sale,
    options: RebuildOptions<'_>,
    judged: Vec<Replaceable>,
) -> Result<bool, ReconcileError> {
    for (shard, judged) in (0..context.shards).zip(judged) {
        // Only without `OwnEpoch`: an attempt in this epoch has begun them.
        let begun = judged.epoch == next.epoch;
        if !begun && !context.redis.rebuild.begin(next, shard, options.backlog_max, judged).await? {
            return Ok(false);
        }
        crash_point!(RebuildHalf);
    }
    Ok(true)
}

async fn rebuild_now(
    context: &ReconcileContext,
    sale: &Sale,
    options: RebuildOptions<'_>,
    watched: &Watched,
) -> Result<RebuildAttempt, ReconcileError> {
    let id = &sale.sale_id;
    // All of the MQ DLQ: a request that only this queue has needs its unit, too. Read now, after the quiet time: what a consumer had in
    // hand may have been parked since the round read it.
    let mut all = MqDlqContents::default();
    let options = if left_out!(DeadLettersCount) {
        options
    } else {
        if let Err(error) = read_all(context, &mut all).await {
            tracing::warn!(phase = "p5_reconcile", sale = %id, %error, "rebuild waits: the MQ DLQ cannot be read");
        }
        RebuildOptions { mq_dlq: &all, ..options }
    };
    if options.mq_dlq.unseen_count != Some(0) {
        tracing::warn!(phase = "p5_reconcile", sale = %id, unseen = options.mq_dlq.unseen_count, "rebuild waits: the MQ DLQ is too long to be read as a whole; replay or give up its messages");
        return Ok(RebuildAttempt::Waits(WaitsFor::DeadLetters));
    }
    let began_at_ms = context.rows.decided.now_ms().await?;
    hold!(LeaderJudged);
    let Some(epoch) = next_epoch(context, sale).await? else { return Ok(RebuildAttempt::Overtaken) };
    let next = Sale { epoch, ..sale.clone() };
    between_steps("rebuild: numbered").await;
    // Checked once more, now that no other process can build this epoch: a process that slept since its first check has lost it.
    let mut judged = Vec::with_capacity(context.shards.into());
    for shard in 0..context.shards {
        judged.push(context.redis.rebuild.replaceable(id, shard).await?);
    }
    if judged.iter().any(|keys| keys.epoch > sale.epoch) {
        return Ok(RebuildAttempt::Overtaken);
    }
    if !left_out!(EpochBeforeJudging)
        && let Some(reason) = waits_for(context, &next, options, Ok(watched)).await?
    {
        return Ok(RebuildAttempt::Waits(reason));
    }
    ends::write(context, sale, options.mq_dlq).await?;
    hold!(LeaderNumbered);
    between_steps("rebuild: judged").await;
    if !begin_all(context, &next, options, judged).await? {
        return Ok(RebuildAttempt::Overtaken);
    }
    between_steps("rebuild: begun").await;
    if !load::load(context, &next, options.retention_ms).await? {
        return Ok(RebuildAttempt::Overtaken);
    }
    crash_point!(RebuildHalf);
    hold!(LeaderLoaded);
    between_steps("rebuild: loaded").await;
    let Some(OpeningUnits { units, given }) = fix_units(context, &next, options, began_at_ms).await? else {
        return Ok(RebuildAttempt::Overtaken);
    };
    trace_point!(RebuildFixed { sale: id.as_str(), epoch: epoch, units: units });
    between_steps("rebuild: snapped").await;
    let state = if sale.status == SaleStatus::Paused { MetaState::Paused } else { MetaState::Open };
    let mut opened = false;
    terms::set_now(context, id).await?;
    for shard in 0..context.shards {
        let share = share(units, shard, context.shards);
        opened |= context.redis.rebuild.end(id, shard, epoch, (share, state, &given)).await?;
    }
    context.redis.sale_cache.forget(id).await?;
    Ok(if opened { RebuildAttempt::Rebuilt } else { RebuildAttempt::Overtaken })
}

/// Reads the MQ DLQ to its end, and leaves it as it is.
async fn read_all(context: &ReconcileContext, contents: &mut MqDlqContents) -> Result<(), RabbitError> {
    let mut scan = MqDlqScan::within(READ_ALL, &context.rabbit, usize::MAX, contents).await?;
    while scan.next().await?.is_some() {}
    scan.close().await
}

/// The epoch to build, which is this attempt's alone; `None` when another process was quicker, or when the database is behind
/// Redis: the database gets Redis' epoch, and the next round begins again.
async fn next_epoch(context: &ReconcileContext, sale: &Sale) -> Result<Option<u32>, ReconcileError> {
    let (mut newest, mut building) = (sale.epoch, true);
    for shard in 0..context.shards {
        let keys = context.redis.rebuild.replaceable(&sale.sale_id, shard).await?;
        newest = newest.max(keys.epoch);
        building &= keys.building && keys.epoch == sale.epoch;
    }
    if building && left_out!(OwnEpoch) {
        return Ok(Some(sale.epoch));
    }
    let to = if newest > sale.epoch { newest } else { sale.epoch + 1 };
    let moved =
        context.rows.giving.sales.advance_epoch(&sale.sale_id, changes::EpochStep { from: sale.epoch, to }).await?;
    Ok((moved && newest == sale.epoch).then_some(to))
}

/// The units to sell: the database's stock less what it holds for failures and gaps. Written down together with all earlier grants
/// in one step; `None` when something moved in between.
async fn fix_units(
    context: &ReconcileContext,
    next: &Sale,
    options: RebuildOptions<'_>,
    began_at_ms: i64,
) -> Result<Option<OpeningUnits>, ReconcileError> {
    let counted = audit_sale(context, next, options.audit()).await?.counted;
    let opening = Opening {
        epoch: next.epoch,
        stock: counted.database_stock,
        held: counted.failed_held,
        gaps: if left_out!(GapsHeld) { 0 } else { counted.gaps_held },
        granted: counted.granted_in_epoch,
        began_at_ms,
    };
    hold!(LeaderCounted);
    let fixed = context.rows.decided.open(&next.sale_id, &opening).await?;
    hold!(LeaderMarked);
    Ok(fixed.map(|fixed| if left_out!(GrantIds) { OpeningUnits { given: Vec::new(), ..fixed } } else { fixed }))
}
