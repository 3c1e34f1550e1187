//! Redis follows the database: window, door, limit and state of a sale.
//!
//! Input: the row of a sale, with the time at which it was read. Output: the same on every shard. A crash leaves shards of before and of now,
//! closed to buyers or open as before; aligning again is safe.

use super::contention::again_after_contention;
use super::control::SaleControl;
use super::control_error::SaleControlError;
use crate::domain::ids::SaleId;
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::faults::between_steps;
use crate::store::redis::{ReadAt, RedisFault};

/// Status changes during one alignment that are followed; the rest is left to the next.
const ALIGN_MAX: u32 = 5;

impl SaleControl {
    /// Whether every shard has a warmed sale as this row of it says. Then a warm-up has nothing to do but to give open grants.
    pub(crate) async fn is_aligned(&self, sale: &Sale) -> Result<bool, RedisFault> {
        self.redis.sale_keys.have_terms_of(sale).await
    }

    /// Aligns, and reads the status again: an operator may have changed it in between.
    pub(super) async fn align_with_database(&self, id: &SaleId) -> Result<(), SaleControlError> {
        let keys = &self.redis.sale_keys;
        let mut read_at = keys.clocks().await?;
        between_steps("align: clocks").await;
        let mut sale = self.sale(id).await?;
        between_steps("align: row").await;
        for _ in 0..ALIGN_MAX {
            self.align(&sale, &read_at).await?;
            between_steps("align: set").await;
            let now = (keys.clocks().await?, self.sale(id).await?);
            let limit = |sale: &Sale| sale.in_drop.as_ref().and_then(|drop| drop.limit);
            let terms =
                |sale: &Sale| (sale.status, sale.starts_at_ms, sale.ends_at_ms, sale.policy, sale.door(), limit(sale));
            if terms(&now.1) == terms(&sale) {
                break;
            }
            (read_at, sale) = now;
        }
        Ok(())
    }

    /// Makes Redis follow what another part wrote of a sale: its door.
    ///
    /// # Errors
    /// [`SaleControlError`]; repeating is safe.
    pub(crate) async fn follow_row(&self, id: &SaleId) -> Result<(), SaleControlError> {
        self.redis.sale_cache.forget(id).await?;
        again_after_contention(|| self.align_with_database(id)).await
    }

    /// Makes Redis' window, door, limit and state follow the database. A frozen sale stays frozen. `read_at`: by shard.
    async fn align(&self, sale: &Sale, read_at: &[ReadAt]) -> Result<(), SaleControlError> {
        let (to, from): (MetaState, &[MetaState]) = match sale.status {
            SaleStatus::Draft => return Ok(()),
            SaleStatus::Warmed => (MetaState::Open, &[MetaState::Loaded, MetaState::Paused]),
            SaleStatus::Paused => (MetaState::Paused, &[MetaState::Loaded, MetaState::Open]),
            SaleStatus::Closed => {
                (MetaState::Closed, &[MetaState::Loaded, MetaState::Open, MetaState::Paused, MetaState::Frozen])
            }
        };
        let id = &sale.sale_id;
        for (shard, read_at) in (0..self.shards).zip(read_at) {
            // First, so that no shard is open with another window, door or limit than the database's.
            self.redis.sale_keys.set_terms_read_at(sale, shard, *read_at).await?;
            match self.redis.sale_keys.set_state(id, shard, to, from).await? {
                None if sale.status != SaleStatus::Closed => return Err(SaleControlError::KeysLost(id.clone())),
                Some(MetaState::Frozen) if to != MetaState::Closed => return Err(SaleControlError::Frozen(id.clone())),
                None | Some(_) => {}
            }
            if to != MetaState::Closed && !self.redis.sale_keys.are_complete(id, shard).await? {
                return Err(SaleControlError::KeysLost(id.clone()));
            }
        }
        Ok(())
    }
}
