//! Marks decided requests in the ledger, and removes settled records and closed sales from Redis.

use crate::domain::sale::Sale;
use crate::faults::crash_point;
use crate::p5_reconcile::audit::{AuditOptions, SaleAudit, Window, audit_sale};
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::rows::books::Series;
use crate::store::redis::{RedisFault, RequestLedger};

/// Marks the decided requests in the ledger that are still undecided there: P4 died between the two. Repeating is safe.
pub async fn mark_outcomes(ledger: &RequestLedger, audit: &SaleAudit) -> Result<(), RedisFault> {
    for (shard, outcomes) in &audit.unmarked {
        ledger.mark_outcomes(&audit.sale_id, *shard, outcomes).await?;
    }
    Ok(())
}

/// Removes the settled records that the audit found old, and a closed sale's keys once its ledger is empty (E9). The numbers of
/// these records have outcomes: this audit counted them. Returns how many records were removed.
pub(in crate::p5_reconcile) async fn trim(
    context: &ReconcileContext,
    audit: &SaleAudit,
    retention_ms: i64,
    closed: bool,
) -> Result<i64, ReconcileError> {
    let mut removed = 0;
    for (shard, old) in audit.old.iter().filter(|(_, old)| !old.is_empty()) {
        let cutoff_ms = context.redis.health.clock_ms(*shard).await? - retention_ms;
        removed += context.redis.ledger.trim(&audit.sale_id, *shard, cutoff_ms, old).await?;
        crash_point!(AfterTrim);
    }
    if closed && audit.consistent() {
        for shard in 0..context.shards {
            write_end(context, audit, shard).await?;
            if context.redis.sale_keys.archive(&audit.sale_id, shard).await? {
                tracing::info!(phase = "p5_reconcile", sale = %audit.sale_id, shard, "the closed sale's keys were removed from redis");
            }
        }
    }
    Ok(removed)
}

/// Removes every settled record that is older than `retention_ms` at once, without waiting for the rounds. Returns how many.
/// Repeating is safe.
pub async fn trim_all(
    context: &ReconcileContext,
    sale: &Sale,
    retention_ms: i64,
    closed: bool,
) -> Result<i64, ReconcileError> {
    let mut removed = 0;
    loop {
        let audit = audit_sale(context, sale, AuditOptions::from(Window::Now).collecting(retention_ms)).await?;
        match trim(context, &audit, retention_ms, closed).await? {
            0 => return Ok(removed),
            more => removed += more,
        }
    }
}

/// Writes down where a closed sale's numbers ended, before its keys go: a later audit shows by it that the database went back.
async fn write_end(context: &ReconcileContext, audit: &SaleAudit, shard: u16) -> Result<(), ReconcileError> {
    if let Some(counts) = context.redis.sale_keys.count(&audit.sale_id, shard).await?
        && counts.meta.number > 0
    {
        let series = Series { epoch: counts.meta.epoch, shard };
        context.rows.books.end(&audit.sale_id, series, counts.meta.number, counts.accepted).await?;
    }
    Ok(())
}
