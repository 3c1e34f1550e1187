//! One audit under way, the units between two buckets: they lie in transfer records, and what no record has is lost.
//!
//! That happens when a server is promoted that lacks a gift, and its source has forgotten the record by then. Two looks that
//! are equal had nothing happen between them, as at a sell-out (`p2_reserve::gather`).

use super::sheet::Sheet;
use super::{FindingKind, SaleAuditError};
use crate::store::redis::Bucket;

impl Sheet<'_, '_> {
    /// Tells units that left a bucket and are in no record.
    pub(super) async fn compare_transit(&mut self) -> Result<(), SaleAuditError> {
        if self.audit.counted.in_transit <= 0 {
            return Ok(());
        }
        let before = self.buckets().await?;
        let mut recorded = 0;
        for source in 0..self.auditor.shards {
            let transfers = self.auditor.redis.transfers.pending(&self.sale.sale_id, source).await?;
            recorded += transfers.iter().map(|transfer| transfer.units).sum::<i64>();
        }
        let after = self.buckets().await?;
        let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
        let lost = after.iter().map(|bucket| bucket.sent - bucket.received).sum::<i64>() - recorded;
        if before == after && lost > 0 {
            let detail = format!(
                "{lost} units left a bucket and reached no other: a server was replaced by one that lacked them; `seckill sale rebuild` brings them back"
            );
            self.find(FindingKind::Unbalanced, None, detail);
        }
        Ok(())
    }

    async fn buckets(&self) -> Result<Option<Vec<Bucket>>, SaleAuditError> {
        let mut buckets = Vec::with_capacity(self.auditor.shards.into());
        for shard in 0..self.auditor.shards {
            let Some(bucket) = self.auditor.redis.transfers.bucket(&self.sale.sale_id, shard).await? else {
                return Ok(None);
            };
            buckets.push(bucket);
        }
        Ok(Some(buckets))
    }
}
