//! Units that another process has left under way: grants that Redis was not given yet, withdrawals that have not ended.
//!
//! Input: a sale. Output: its open grants in Redis, its open withdrawals ended. A crash leaves them open for the next round.

use super::context::{ReconcileContext, ReconcileError};
use crate::domain::sale::{Sale, SaleStatus};
use crate::faults::left_out;
use crate::sales::{grants, withdrawals};

/// Finishes what is open of a sale; whether nothing will come of it when it is closed. A frozen sale keeps all of it until its rebuild.
pub(super) async fn finish(context: &ReconcileContext, sale: &Sale) -> Result<bool, ReconcileError> {
    let id = &sale.sale_id;
    let (rows, redis, shards) = (&context.rows.giving, context.redis.of_sale(), context.shards);
    if !left_out!(OthersGive) {
        grants::apply_open(rows, &redis, shards, id).await?;
    }
    withdrawals::finish_open(rows, &redis, shards, id).await?;
    // Young ones are left to their own process.
    Ok(sale.status != SaleStatus::Closed || !rows.grants.is_withdrawing(id).await?)
}
