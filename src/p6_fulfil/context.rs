//! What P6 may touch: the database, and the keys of a sale that take units.

use crate::domain::ids::SaleId;
use crate::domain::sale::MetaState;
use crate::sales::SaleHandles;
use crate::sales::grants;
use crate::store::mysql::Db;

/// The servers of P6.
#[derive(Clone)]
pub(crate) struct FulfilContext {
    pub(crate) db: Db,
    pub(crate) redis: SaleHandles,
    /// Shards of every sale.
    pub(crate) shards: u16,
}

impl FulfilContext {
    /// Whether the sale is being rebuilt. A rebuild looks at the database's stock and at what it kept back, and begins again when they
    /// change meanwhile: orders that expire one after the other would keep it from its end. While Redis does not answer no rebuild
    /// goes on.
    pub(super) async fn is_frozen(&self, sale_id: &SaleId) -> bool {
        for shard in 0..self.shards {
            let meta = self.redis.sale_keys.meta(sale_id, shard).await;
            if meta.is_ok_and(|meta| meta.is_some_and(|meta| meta.state == MetaState::Frozen)) {
                return true;
            }
        }
        false
    }

    /// Gives Redis the open grants of a sale. `false`: later; the sweep and P5 try again.
    pub(super) async fn give(&self, sale_id: &SaleId) -> bool {
        match grants::apply_open(&self.db, &self.redis, self.shards, sale_id).await {
            Ok(_progress) => true,
            Err(error) => {
                tracing::warn!(phase = "p6_fulfil", sale = %sale_id, %error, "redis gets the units later");
                false
            }
        }
    }
}
