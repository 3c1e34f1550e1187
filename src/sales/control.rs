//! Warm-up (A7), and every other change that an operator makes to a sale: grants and states, from the database to Redis.
//!
//! The database always comes first, and every step can be repeated. A crash in between leaves a sale that is closed to
//! buyers, never one that is open by half:
//!
//! 1. activate: keys in state `loaded`, which sells nothing
//! 2. database: the sale is `warmed`, then its first grant is applied
//! 3. open
//!
//! Lost after 1: the sale is a draft, nothing was sold, activating again is right. Lost after 2: Redis has to have the keys;
//! if it does not, it lost data, and the sale stays closed (A6).

use super::contention::again_after_contention;
use super::control_error::SaleControlError;
use super::grants::{self as open_grants, GrantError, GrantProgress};
use super::handles::SaleHandles;
use crate::domain::grant_names::FIRST_GRANT;
use crate::domain::ids::SaleId;
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use crate::domain::shard::share;
use crate::faults::{crash_point, left_out};
use crate::sales::grants::SaleAndGrantRows;
use crate::sales::rows::acts::off_record;
use crate::sales::rows::error::SaleError;
use crate::sales::rows::grants::Reclaimed;
use crate::sales::rows::{ActRows, ArchivedRows};
use crate::store::redis::Activation;

/// Carries sales from the database to Redis. Repeating any call is safe.
#[derive(Clone)]
pub struct SaleControl {
    /// Where sales are sold.
    pub(crate) redis: SaleHandles,
    /// Where sales are known.
    pub(crate) rows: SaleAndGrantRows,
    pub(crate) archived: ArchivedRows,
    pub(crate) acts: ActRows,
    /// Shards of every sale.
    pub(crate) shards: u16,
    /// Outbox entries at which the script refuses.
    pub(crate) backlog_max: u64,
}

impl SaleControl {
    pub(super) async fn sale(&self, id: &SaleId) -> Result<Sale, SaleControlError> {
        self.rows.sales.get(id).await?.ok_or_else(|| SaleControlError::NoSuchSale(id.clone()))
    }

    /// The sale, if its keys in Redis are split as this process would split them.
    pub(super) async fn sale_of_ours(&self, id: &SaleId) -> Result<Sale, SaleControlError> {
        let sale = self.sale(id).await?;
        match self.redis.sale_keys.shards_of(id).await? {
            Some(other) if other != self.shards => Err(SaleControlError::OtherShards(id.clone(), other, self.shards)),
            Some(_) | None => Ok(sale),
        }
    }

    /// Warms a sale up and opens it (its window still decides when it sells). Also repairs a warm-up that was cut off. The drafts of its
    /// drop come with it, and come first: the script sells nothing of a drop while one of its sales has no keys.
    pub async fn warm(&self, id: &SaleId) -> Result<(), SaleControlError> {
        if let Some(drop) = self.sale(id).await?.in_drop {
            let is_other_draft = |sale: &Sale| sale.status == SaleStatus::Draft && sale.sale_id != *id;
            for Sale { sale_id, .. } in self.rows.sales.sales_of(&drop).await?.into_iter().filter(is_other_draft) {
                match off_record(again_after_contention(|| self.warm_once(&sale_id))).await {
                    Ok(()) | Err(SaleControlError::Closed(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        again_after_contention(|| self.warm_once(id)).await
    }

    async fn warm_once(&self, id: &SaleId) -> Result<(), SaleControlError> {
        let sale = self.sale_of_ours(id).await?;
        match sale.status {
            SaleStatus::Closed => return Err(SaleControlError::Closed(id.clone())),
            SaleStatus::Draft => self.first_time(&sale).await?,
            SaleStatus::Warmed | SaleStatus::Paused => self.apply_grants(id).await?,
        }
        self.align_with_database(id).await
    }

    async fn first_time(&self, sale: &Sale) -> Result<(), SaleControlError> {
        let id = &sale.sale_id;
        // `sale create` wrote it together with the sale.
        let Some(first) = self.rows.grants.get(id, FIRST_GRANT).await? else {
            return Err(SaleControlError::NotWarmed(id.clone()));
        };
        for shard in 0..self.shards {
            let units = share(first.quantity, shard, self.shards);
            match self.redis.sale_keys.activate(sale, shard, self.backlog_max, (&first.grant_id, units)).await? {
                Activation::Created | Activation::Present => {}
                Activation::OtherEpoch | Activation::Damaged | Activation::OtherShards => {
                    return Err(SaleControlError::KeysLost(id.clone()));
                }
            }
            crash_point!(ActivationHalf);
        }
        // A sale that was closed or paused since it was read stays so.
        match self.rows.sales.set_status(id, SaleStatus::Warmed, &[SaleStatus::Draft, SaleStatus::Warmed]).await {
            Ok(()) | Err(SaleError::Status(_, SaleStatus::Paused)) => {}
            Err(error) => return Err(self.overtaken(id, error).await),
        }
        crash_point!(ActivationHalf);
        self.redis.sale_cache.forget(id).await?;
        self.apply_grants(id).await
    }

    /// Gives Redis one grant, if it is open; whether it was marked now. Repeating is safe.
    ///
    /// # Errors
    /// [`SaleControlError`]; repeating is safe.
    #[cfg(feature = "faults")]
    pub async fn give_one(&self, id: &SaleId, grant_id: &str) -> Result<bool, SaleControlError> {
        match open_grants::apply_one(&self.rows, &self.redis, self.shards, (id, grant_id)).await {
            Ok(progress) => Ok(progress == GrantProgress::Done(1)),
            Err(GrantError::Redis(error)) => Err(error.into()),
            Err(GrantError::Database(error)) => Err(error.into()),
        }
    }

    /// Gives Redis every grant the database has and Redis was not given yet.
    pub(super) async fn apply_grants(&self, id: &SaleId) -> Result<(), SaleControlError> {
        match open_grants::apply_open(&self.rows, &self.redis, self.shards, id).await {
            Ok(GrantProgress::Done(_) | GrantProgress::NotSelling) => Ok(()),
            Ok(GrantProgress::Frozen) => Err(SaleControlError::Frozen(id.clone())),
            Ok(GrantProgress::KeysLost) => Err(SaleControlError::KeysLost(id.clone())),
            Err(GrantError::Redis(error)) => Err(error.into()),
            Err(GrantError::Database(error)) => Err(error.into()),
        }
    }

    /// Stops a sale; it can be resumed.
    pub async fn pause(&self, id: &SaleId) -> Result<(), SaleControlError> {
        again_after_contention(|| self.move_to(id, SaleStatus::Paused)).await
    }

    /// Resumes a paused sale.
    pub async fn resume(&self, id: &SaleId) -> Result<(), SaleControlError> {
        again_after_contention(|| self.move_to(id, SaleStatus::Warmed)).await
    }

    /// Freezes a sale that sells: the reconciler then rebuilds it from the database.
    pub(crate) async fn freeze(&self, id: &SaleId) -> Result<(), SaleControlError> {
        let sale = self.sale_of_ours(id).await?;
        match sale.status {
            SaleStatus::Closed => return Err(SaleControlError::Closed(id.clone())),
            SaleStatus::Draft => return Err(SaleControlError::NotWarmed(id.clone())),
            SaleStatus::Warmed | SaleStatus::Paused => {}
        }
        self.acts.record_pending(id).await?;
        for shard in 0..self.shards {
            let from = [MetaState::Loaded, MetaState::Open, MetaState::Paused];
            self.redis.sale_keys.set_state(id, shard, MetaState::Frozen, &from).await?;
        }
        Ok(())
    }

    /// Ends a sale for good. Accepted purchases still become orders.
    pub async fn close(&self, id: &SaleId) -> Result<(), SaleControlError> {
        if let Some(drop) = self.sale(id).await?.in_drop
            && !left_out!(ClosedTogether)
        {
            return Err(SaleControlError::OfDrop(id.clone(), drop.drop_id.clone()));
        }
        again_after_contention(|| self.move_to(id, SaleStatus::Closed)).await
    }

    async fn move_to(&self, id: &SaleId, to: SaleStatus) -> Result<(), SaleControlError> {
        self.sale_of_ours(id).await?;
        // The database judges by the status of this moment, which may be another one than was read.
        let from: &[SaleStatus] = match to {
            SaleStatus::Closed => &SaleStatus::ALL,
            SaleStatus::Warmed | SaleStatus::Paused => &[SaleStatus::Warmed, SaleStatus::Paused],
            SaleStatus::Draft => &[],
        };
        if let Err(error) = self.rows.sales.set_status(id, to, from).await {
            return Err(self.overtaken(id, error).await);
        }
        crash_point!(SaleChanged);
        self.redis.sale_cache.forget(id).await?;
        self.align_with_database(id).await
    }

    /// Why a status was not set. A sale that is closed is closed in Redis too, whatever was done to it meanwhile.
    async fn overtaken(&self, id: &SaleId, error: SaleError) -> SaleControlError {
        let SaleError::Status(_, status) = &error else { return error.into() };
        match status {
            SaleStatus::Closed => match self.align_with_database(id).await {
                Ok(()) => SaleControlError::Closed(id.clone()),
                Err(error) => error,
            },
            SaleStatus::Draft => SaleControlError::NotWarmed(id.clone()),
            SaleStatus::Warmed | SaleStatus::Paused => error.into(),
        }
    }

    /// Adds units to a sale (E8): database first, then Redis, once for each grant id.
    ///
    /// # Errors
    /// [`SaleControlError`]; after any of them, repeating with the same grant id is safe.
    pub async fn top_up(&self, id: &SaleId, grant_id: &str, units: u32) -> Result<(), SaleControlError> {
        again_after_contention(|| self.top_up_once(id, || self.rows.grants.top_up(id, grant_id, units))).await
    }

    /// `write` writes the grant.
    pub(super) async fn top_up_once<F>(&self, id: &SaleId, write: impl Fn() -> F) -> Result<(), SaleControlError>
    where
        F: Future<Output = Result<bool, SaleError>>,
    {
        let sale = self.sale_of_ours(id).await?;
        if sale.status == SaleStatus::Closed {
            return Err(SaleControlError::Closed(id.clone()));
        }
        write().await?;
        self.redis.sale_cache.forget(id).await?;
        // A draft's grants are given at its warm-up.
        if sale.status == SaleStatus::Draft { Ok(()) } else { self.apply_grants(id).await }
    }

    /// Sells the units of final failures again, and those of gaps that were written off, each once; an operator's decision, never
    /// automatic. Returns what was offered now, if anything was. Repeating is safe.
    pub async fn reclaim(&self, id: &SaleId) -> Result<Option<Reclaimed>, SaleControlError> {
        let sale = self.sale_of_ours(id).await?;
        match sale.status {
            SaleStatus::Closed => return Err(SaleControlError::Closed(id.clone())),
            SaleStatus::Draft => return Err(SaleControlError::NotWarmed(id.clone())),
            SaleStatus::Warmed | SaleStatus::Paused => {}
        }
        // Each by itself: after a second call for both no caller would know what the first one offered.
        let reclaimed = again_after_contention(|| async { Ok(self.rows.grants.reclaim(id).await?) }).await?;
        again_after_contention(|| self.apply_grants(id)).await?;
        Ok(reclaimed)
    }
}
