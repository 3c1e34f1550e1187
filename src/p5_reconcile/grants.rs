//! Finishing grants (E8): units the database released and Redis is not known to have.
//!
//! Whoever released them went from the database to Redis and died, or Redis was away. Redis takes each grant once, by its
//! id, so finishing it here, at the entry and by the operator's repeat at the same time adds it once. A crash between
//! Redis and the mark leaves a grant that is given again, to no effect.

use super::audit::{Auditor, SaleAuditError};
use crate::domain::sale::{Sale, SaleStatus};
use crate::domain::shard::share;
use crate::store::mysql::grants;
use crate::store::redis::Granted;

impl Auditor {
    /// Gives Redis the sale's unfinished grants. Returns how many it finished.
    ///
    /// # Errors
    /// [`SaleAuditError`] when a server is away; repeating is safe.
    pub async fn finish_grants(&self, sale: &Sale) -> Result<usize, SaleAuditError> {
        if !matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused) {
            return Ok(0);
        }
        let (id, mut finished) = (&sale.sale_id, 0);
        for grant in grants::unapplied(&self.db, id).await? {
            for shard in 0..self.shards {
                let units = share(grant.quantity, shard, self.shards);
                match self.redis.grant(id, shard, sale.epoch, (&grant.grant_id, units)).await? {
                    Granted::Now | Granted::Before => {}
                    // Frozen or lost: the rebuild comes first, and its next epoch is given the grant.
                    Granted::KeysMissing | Granted::OtherEpoch => return Ok(finished),
                }
            }
            if grants::mark_applied(&self.db, id, &grant.grant_id).await? {
                finished += 1;
                tracing::info!(phase = "p5_reconcile", sale = %id, grant = %grant.grant_id, units = grant.quantity, "grant finished");
            }
            // A sold-out mark must not outlive the units.
            self.redis.uncache_sale(id).await?;
        }
        Ok(finished)
    }
}
