//! The units between two buckets: transfer records hold them, and units that left a bucket and are in no record are lost.
//!
//! That happens when Redis promotes a server that lacks a received transfer, after the source has forgotten its record. The
//! buckets are read twice: when both reads are equal, nothing happened between them.

use super::finding::FindingKind;
use super::run::AuditRun;
use crate::p5_reconcile::context::ReconcileError;
use crate::store::redis::Bucket;

/// Reports units that left a bucket and are in no record.
pub(super) async fn compare(run: &mut AuditRun<'_>) -> Result<(), ReconcileError> {
    if run.audit.counted.in_transit <= 0 {
        return Ok(());
    }
    let before = buckets(run).await?;
    let mut recorded = 0;
    for source in 0..run.context.shards {
        let transfers = run.context.redis.transfers.pending(&run.sale.sale_id, source).await?;
        recorded += transfers.iter().map(|transfer| transfer.units).sum::<i64>();
    }
    let after = buckets(run).await?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
    let lost = after.iter().map(|bucket| bucket.sent - bucket.received).sum::<i64>() - recorded;
    if before == after && lost > 0 {
        let detail = format!(
            "{lost} units left a bucket and reached no other: a server was replaced by one that lacked them; `seckill sale rebuild` brings them back"
        );
        run.find(FindingKind::Unbalanced, None, detail);
    }
    Ok(())
}

async fn buckets(run: &AuditRun<'_>) -> Result<Option<Vec<Bucket>>, ReconcileError> {
    let mut buckets = Vec::with_capacity(run.context.shards.into());
    for shard in 0..run.context.shards {
        let Some(bucket) = run.context.redis.transfers.bucket(&run.sale.sale_id, shard).await? else { return Ok(None) };
        buckets.push(bucket);
    }
    Ok(Some(buckets))
}
