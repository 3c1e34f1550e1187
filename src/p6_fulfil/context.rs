//! What P6 may touch: the database, and the keys of a sale that take units.

use crate::domain::ids::SaleId;
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
