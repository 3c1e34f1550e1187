//! Finishing transfers between buckets (B4): units that someone took from one bucket and did not live to give to the other.
//!
//! Input: the transfer records of every shard. Output: the units in their bucket, the records forgotten. Whoever moves units
//! right now does the same at the same time; each transfer is given once, by its number. A crash here leaves a record that
//! is given or not given, and the next run goes on.

use super::audit::{Auditor, SaleAuditError};
use crate::domain::sale::{Sale, SaleStatus};
use crate::store::redis::Given;

impl Auditor {
    /// Gives what lies between two buckets of the sale. Returns how many transfers it finished.
    ///
    /// # Errors
    /// [`SaleAuditError`] when Redis is away; repeating is safe.
    pub async fn finish_transfers(&self, sale: &Sale) -> Result<usize, SaleAuditError> {
        let (id, mut finished) = (&sale.sale_id, 0);
        if self.shards == 1 || sale.status == SaleStatus::Draft {
            return Ok(0);
        }
        for source in 0..self.shards {
            for transfer in self.redis.transfers.pending(id, source).await? {
                match self.redis.transfers.give(id, &transfer).await? {
                    Given::Now => {
                        finished += 1;
                        metrics::counter!("seckill_p5_reconcile_transfers_finished_total").increment(1);
                        tracing::warn!(phase = "p5_reconcile", sale = %id, ?transfer, "units lay between two buckets, they are in their bucket now");
                    }
                    Given::Before => {}
                    // Of a closed sale whose keys went already: nobody can buy the units any more.
                    Given::KeysMissing if sale.status == SaleStatus::Closed => {}
                    // Frozen or lost: the rebuild comes first, and counts these units anew.
                    Given::KeysMissing | Given::Refused => continue,
                }
                self.redis.transfers.forget(id, &transfer).await?;
            }
        }
        Ok(finished)
    }

    /// Fails when the sale was warmed for another number of shards: every count would be wrong, and a repair too.
    ///
    /// # Errors
    /// [`SaleAuditError::OtherShards`]; others when Redis is away.
    pub async fn check_shards(&self, sale: &Sale) -> Result<(), SaleAuditError> {
        match self.redis.sale_keys.shards_of(&sale.sale_id).await? {
            Some(warmed) if warmed != self.shards => Err(SaleAuditError::OtherShards(warmed, self.shards)),
            Some(_) | None => Ok(()),
        }
    }
}
