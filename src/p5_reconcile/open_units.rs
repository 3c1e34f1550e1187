//! Units that another process has left under way: grants that Redis was not given yet, withdrawals that have not ended.
//!
//! Input: a sale. Output: its open grants in Redis, its open withdrawals ended. A crash leaves them open for the next round.

use super::context::{ReconcileContext, ReconcileError};
use crate::domain::ids::SaleId;
use crate::faults::left_out;
use crate::sales::{grants, withdrawals};

/// Finishes what is open of a sale; whether no withdrawal is open any more. A frozen sale keeps all of it until its rebuild.
pub(super) async fn finish(context: &ReconcileContext, id: &SaleId) -> Result<bool, ReconcileError> {
    let (rows, redis, shards) = (&context.rows.giving, context.redis.of_sale(), context.shards);
    if !left_out!(OthersGive) {
        grants::apply_open(rows, &redis, shards, id).await?;
    }
    Ok(withdrawals::finish_open(rows, &redis, shards, id).await?)
}
