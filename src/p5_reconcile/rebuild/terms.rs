//! The terms of a sale that is about to open: they may have changed since the rebuild read the sale.
//!
//! Input: the sale's row of this moment. Output: window, door and limit on keys that do not sell yet. A crash leaves frozen keys, and the
//! next attempt begins again.

use crate::domain::ids::SaleId;
use crate::faults::{between_steps, left_out};
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};

/// Sets window, door and limit as the sale has them now, on keys that do not sell yet: they may have changed since the sale was read.
pub(super) async fn set_now(context: &ReconcileContext, id: &SaleId) -> Result<(), ReconcileError> {
    let keys = &context.redis.sale_keys;
    let clocks = keys.clocks().await?;
    let Some(sale) = context.rows.giving.sales.get(id).await? else { return Ok(()) };
    between_steps("rebuild: terms read").await;
    if left_out!(TermsOfRebuild) {
        return Ok(());
    }
    for (shard, read_at) in (0..context.shards).zip(clocks) {
        keys.set_terms_read_at(&sale, shard, read_at).await?;
    }
    Ok(())
}
