//! Single steps of P5, for the tests that play the protocol's model against the code. Only with the feature `faults`.
//!
//! Each is what a round does for one sale, narrowed to the one request or the one attempt that the model moves. A crash leaves what
//! a crash of the round leaves.

use super::audit::{AuditOptions, SaleAudit, Window, audit_sale};
use super::compensation::{freeze_when_sold_twice, trim};
use super::context::{ReconcileContext, ReconcileError};
use super::dlq::MqDlqContents;
use super::rebuild::{QuiescenceTimer, RebuildOptions, broken_epoch, rebuild};
use crate::domain::ids::RequestId;
use crate::domain::sale::Sale;
use crate::store::rabbit::RetryWatch;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;

/// The watch over the retry queues, of all attempts that are under way: only one may be there. A leader that sleeps in the product
/// keeps its own until its connection is given up, and another one waits for that; the model has no such wait.
#[derive(Debug, Default, Clone)]
pub struct SharedWatch(Arc<Mutex<Weak<RetryWatch>>>);

impl SharedWatch {
    /// A timer with this watch.
    async fn timer(&self, context: &ReconcileContext) -> QuiescenceTimer {
        let mut shared = self.0.lock().await;
        let mut timer = QuiescenceTimer::watching(shared.upgrade());
        // Without a watch the attempt says so, and waits.
        if let Ok(watch) = timer.watch(&context.rabbit).await {
            *shared = Arc::downgrade(&watch);
        }
        timer
    }
}

/// One attempt at the rebuild of a broken sale, without a quiet time. `false`: it waits, was overtaken, or nothing is broken.
///
/// # Errors
/// [`ReconcileError`]; the next attempt begins again.
pub async fn attempt_rebuild(
    context: &ReconcileContext,
    sale: &Sale,
    backlog_max: u64,
    watch: &SharedWatch,
) -> Result<bool, ReconcileError> {
    let Some(judged_epoch) = broken_epoch(context, sale).await? else { return Ok(false) };
    let unread = MqDlqContents::default();
    let options = RebuildOptions {
        judged_epoch,
        quiescent_for: Duration::ZERO,
        backlog_max,
        retention_ms: i64::MAX / 2,
        mq_dlq: &unread,
    };
    let mut timer = watch.timer(context).await;
    let rebuilt = rebuild(context, sale, &mut timer, options).await;
    timer.end().await;
    rebuilt
}

/// The first step of such an attempt: a sale that Redis sells in another epoch than the database's is frozen. Repeating is safe.
///
/// # Errors
/// [`ReconcileError`]; repeating is safe.
pub async fn freeze_broken(context: &ReconcileContext, sale: &Sale) -> Result<(), ReconcileError> {
    let Some(judged_epoch) = broken_epoch(context, sale).await? else { return Ok(()) };
    for shard in 0..context.shards {
        context.redis.sale_keys.freeze(&sale.sale_id, shard, judged_epoch).await?;
    }
    Ok(())
}

/// Audits a sale, and keeps of what is to be repaired only what is about one request; `None`: nothing is.
///
/// # Errors
/// As [`audit_sale`].
pub async fn audit_of_request(
    context: &ReconcileContext,
    sale: &Sale,
    request_id: RequestId,
) -> Result<Option<SaleAudit>, ReconcileError> {
    let mut audit = audit_sale(context, sale, Window::Now).await?;
    audit.overdue.retain(|open| open.request_id == request_id);
    audit.void.clear();
    audit.unmarked.clear();
    Ok((!audit.overdue.is_empty()).then_some(audit))
}

/// Marks a decided request in the ledger and trims its record, as two rounds do once it is old. Returns how many records went.
///
/// # Errors
/// [`ReconcileError`]; repeating is safe.
pub async fn trim_request(
    context: &ReconcileContext,
    sale: &Sale,
    request_id: RequestId,
) -> Result<i64, ReconcileError> {
    let is_it = |id: &RequestId| *id == request_id;
    let decided = context.rows.requests.outcomes_of(&[request_id]).await?;
    let outcomes: Vec<_> = decided.into_iter().map(|(id, decided)| (id, decided.outcome)).collect();
    for shard in 0..context.shards {
        context.redis.ledger.mark_outcomes(&sale.sale_id, shard, &outcomes).await?;
    }
    // Records of this very moment, too.
    let older_than_ms = -60_000;
    let mut audit = audit_sale(context, sale, AuditOptions::from(Window::Now).collecting(older_than_ms)).await?;
    audit.old.values_mut().for_each(|old| old.retain(is_it));
    trim(context, &audit, older_than_ms, false).await
}

/// Audits a sale, and freezes it if units of it are in two buckets. Repeating is safe.
///
/// # Errors
/// [`ReconcileError`]; repeating is safe.
pub async fn freeze_sold_twice(context: &ReconcileContext, sale: &Sale) -> Result<(), ReconcileError> {
    let audit = audit_sale(context, sale, Window::Now).await?;
    Ok(freeze_when_sold_twice(context, sale, &audit).await?)
}
