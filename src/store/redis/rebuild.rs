//! Typed calls of the three rebuild scripts (E7).

use super::client::{RedisStore, integer, list, text};
use super::fault::RedisFault;
use super::scripts::{REBUILD_BEGIN, REBUILD_END, REBUILD_LOAD};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::domain::sale::{MetaState, Sale};
use fred::types::Value;

/// What the beginning of a rebuild found on one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RebuildBegin {
    /// Empty keys of the new epoch are there now, or were there before: go on loading.
    Begun,
    /// The sale sells in this epoch or a later one: nothing to rebuild.
    Selling,
}

/// A decided request to load: its record, and whether its units count against the buyer's limit.
#[derive(Debug, Clone)]
pub struct DecidedRecord {
    /// The request.
    pub request_id: RequestId,
    /// Its ledger record, with its final state.
    pub record: LedgerRecord,
    /// An order counts, a failure does not.
    pub counts: bool,
}

impl RedisStore {
    /// Replaces what is left of `sale` on `shard` by empty, frozen keys of `sale.epoch`.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn rebuild_begin(
        &self,
        sale: &Sale,
        shard: u16,
        cap: u64,
        grant_ids: &[String],
    ) -> Result<RebuildBegin, RedisFault> {
        let id = &sale.sale_id;
        let mut keys = self.keys.of_warmed(shard, id);
        keys.extend([self.keys.transfers(shard, id), self.outbox_key(shard)]);
        let limit = sale.policy.limit().unwrap_or(0);
        let mut args = vec![
            Value::Integer(sale.epoch.into()),
            Value::Integer(limit.into()),
            text(cap.to_string()),
            text(self.group()),
            Value::Integer(self.shards.into()),
        ];
        args.extend(grant_ids.iter().map(|id| text(id.as_str())));
        match integer(&self.script(&REBUILD_BEGIN, keys, args).await?)? {
            0 | 1 => Ok(RebuildBegin::Begun),
            -1 => Ok(RebuildBegin::Selling),
            other => Err(RedisFault::Contract(format!("rebuild_begin answered {other}"))),
        }
    }

    /// Whether a rebuild of `epoch` was begun on this shard and not ended: the keys are frozen and were made by it.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away.
    pub async fn rebuild_begun(&self, sale: &SaleId, shard: u16, epoch: u32) -> Result<bool, RedisFault> {
        let args = vec![text(self.keys.meta(shard, sale)), text("state"), text("epoch"), text("building")];
        let fields = list(self.command("HMGET", 0, args).await?)?;
        let [state, of_epoch, building] = fields.as_slice() else { return Ok(false) };
        let frozen = state.as_string().as_deref() == Some(MetaState::Frozen.code());
        let same = of_epoch.as_string().as_deref() == Some(epoch.to_string().as_str());
        Ok(frozen && same && building.as_string().as_deref() == Some("1"))
    }

    /// Whether all five keys of a sale are there, and of their kind.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away.
    pub async fn keys_complete(&self, sale: &SaleId, shard: u16) -> Result<bool, RedisFault> {
        let keys = [
            (self.keys.meta(shard, sale), "hash"),
            (self.keys.stock(shard, sale), "string"),
            (self.keys.buyers(shard, sale), "hash"),
            (self.keys.ledger(shard, sale), "hash"),
            (self.keys.grants(shard, sale), "hash"),
        ];
        for (key, kind) in keys {
            if self.command("TYPE", 0, vec![text(key)]).await?.as_string().as_deref() != Some(kind) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Loads a page of decided requests; `false` when the sale is not being rebuilt in this epoch any more.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn rebuild_load(
        &self,
        sale: &SaleId,
        shard: u16,
        epoch: u32,
        page: &[DecidedRecord],
    ) -> Result<bool, RedisFault> {
        let keys = vec![self.keys.meta(shard, sale), self.keys.buyers(shard, sale), self.keys.ledger(shard, sale)];
        let mut args = vec![Value::Integer(epoch.into())];
        for decided in page {
            let units = if decided.counts { decided.record.quantity.get() } else { 0 };
            args.push(text(decided.request_id.to_string()));
            args.push(text(decided.record.encode()));
            args.push(text(decided.record.user_id.as_str()));
            args.push(Value::Integer(units.into()));
        }
        Ok(integer(&self.script(&REBUILD_LOAD, keys, args).await?)? >= 0)
    }

    /// Sets the stock and opens (or pauses) the sale; `false` when that was done before.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn rebuild_end(
        &self,
        sale: &SaleId,
        shard: u16,
        epoch: u32,
        (units, state): (i64, MetaState),
    ) -> Result<bool, RedisFault> {
        let keys = vec![self.keys.meta(shard, sale), self.keys.stock(shard, sale), self.keys.grants(shard, sale)];
        let args = vec![Value::Integer(epoch.into()), Value::Integer(units), text(state.code())];
        Ok(integer(&self.script(&REBUILD_END, keys, args).await?)? == 1)
    }
}
