//! What P6 may touch: the database, the keys of a sale that take units, and the ledger.

use crate::domain::ids::SaleId;
use crate::domain::sale::{MetaState, SaleStatus};
use crate::orders::rows::{OrderRows, RequestRows};
use crate::sales::SaleHandles;
use crate::sales::grants::{self, SaleAndGrantRows};
use crate::sales::rows::ActRows;
use crate::store::mysql::DbError;
use crate::store::redis::RequestLedger;
use std::time::Duration;
use tokio::time::timeout;

/// Longest time in which one grant is given.
const GIVE_ONE: Duration = Duration::from_secs(3);

/// The servers of P6.
#[derive(Clone)]
pub(crate) struct FulfilContext {
    /// The sales, and the grants that carry units to Redis.
    pub(crate) rows: SaleAndGrantRows,
    /// What is on record of requests.
    pub(crate) requests: RequestRows,
    /// The record of what operators did.
    pub(crate) acts: ActRows,
    pub(crate) orders: OrderRows,
    pub(crate) redis: SaleHandles,
    /// The records of accepted requests.
    pub(crate) ledger: RequestLedger,
    /// Shards of every sale.
    pub(crate) shards: u16,
}

impl FulfilContext {
    /// Whether the sale is being rebuilt. A rebuild reads the database's stock and at what it kept back, and begins again when they
    /// change meanwhile: orders that expire one after the other would keep it from its end. While a shard does not answer no rebuild
    /// goes on, and the others are not asked: each could keep the caller waiting.
    pub(super) async fn is_frozen(&self, sale_id: &SaleId) -> bool {
        for shard in 0..self.shards {
            match self.redis.sale_keys.meta(sale_id, shard).await {
                Ok(Some(meta)) if meta.state == MetaState::Frozen => return true,
                Ok(Some(_) | None) => {}
                Err(_) => return false,
            }
        }
        false
    }

    /// Whether a cancellation has to wait until the sale was rebuilt, as the sweep waits. Never for a closed sale, which is not rebuilt:
    /// Redis may not know of the close yet, and call its keys frozen.
    pub(super) async fn waits_for_rebuild(&self, sale_id: &SaleId) -> Result<bool, DbError> {
        if !self.is_frozen(sale_id).await {
            return Ok(false);
        }
        let sale = self.rows.sales.get(sale_id).await?;
        Ok(sale.is_some_and(|sale| matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused)))
    }

    /// Gives Redis one grant of a sale, within a few seconds: a buyer waits for it. `false`: later; P6 and P5 give what is open.
    pub(super) async fn give_one(&self, sale_id: &SaleId, grant_id: &str) -> bool {
        let giving = grants::apply_one(&self.rows, &self.redis, self.shards, (sale_id, grant_id));
        match timeout(GIVE_ONE, giving).await {
            Ok(Ok(_progress)) => true,
            Ok(Err(error)) => {
                tracing::warn!(phase = "p6_fulfil", sale = %sale_id, grant_id, %error, "redis gets the units later");
                false
            }
            Err(_elapsed) => {
                tracing::warn!(phase = "p6_fulfil", sale = %sale_id, grant_id, "redis gets the units later: too slow now");
                false
            }
        }
    }

    /// Gives Redis the open grants of a sale. `false`: later; the sweep and P5 try again.
    pub(super) async fn give(&self, sale_id: &SaleId) -> bool {
        match grants::apply_open(&self.rows, &self.redis, self.shards, sale_id).await {
            Ok(_progress) => true,
            Err(error) => {
                tracing::warn!(phase = "p6_fulfil", sale = %sale_id, %error, "redis gets the units later");
                false
            }
        }
    }
}
