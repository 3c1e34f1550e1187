//! Typed calls of the three rebuild scripts (E7).

use super::connection::{RedisFault, integer, list, text};
use super::keyspace::Keyspace;
use super::sale_keys::millis;
use super::scripts::{REBUILD_BEGIN, REBUILD_END, REBUILD_LOAD};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::domain::sale::{MetaState, Sale};
use crate::trace_points::trace_point;
use fred::types::Value;
use std::sync::Arc;

/// The keys that a rebuild finds on a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replaceable {
    /// Their epoch; 0 without a meta.
    pub epoch: u32,
    /// Whether a rebuild was begun on them and not ended.
    pub building: bool,
}

/// A decided request to load: its record, and whether its units count against the buyer's limit.
#[derive(Debug, Clone)]
pub(crate) struct DecidedRecord {
    /// Whose record it is.
    pub request_id: RequestId,
    /// Its ledger record, with its final state.
    pub record: LedgerRecord,
    /// An order counts, a failure does not.
    pub counts: bool,
    /// Whether a replay may still need it; an older record only counts for its buyer.
    pub(crate) keeps_record: bool,
}

/// The keys of a sale while it is rebuilt.
#[derive(Clone)]
pub struct RebuildKeys {
    pub(super) redis: Arc<Keyspace>,
}

impl RebuildKeys {
    /// What a rebuild would replace on a shard.
    pub(crate) async fn replaceable(&self, sale: &SaleId, shard: u16) -> Result<Replaceable, RedisFault> {
        let args = vec![text(self.redis.keys.meta(shard, sale)), text("epoch"), text("page")];
        let fields = list(self.redis.command("HMGET", 0, args).await?)?;
        let epoch = fields.first().and_then(|epoch| epoch.as_string()?.parse().ok()).unwrap_or(0);
        Ok(Replaceable { epoch, building: fields.get(1).is_some_and(|page| !page.is_null()) })
    }

    /// Replaces what is left of `sale` on `shard`, if it is unchanged since it was judged, by empty, frozen keys of `sale.epoch`. `false`:
    /// it has changed, or it sells. After `Unknown`, begin again under the next epoch.
    pub(crate) async fn begin(
        &self,
        sale: &Sale,
        shard: u16,
        cap: u64,
        judged: Replaceable,
    ) -> Result<bool, RedisFault> {
        let id = &sale.sale_id;
        let mut keys = self.redis.keys.of_warmed(shard, id);
        keys.extend([self.redis.keys.transfers(shard, id), self.redis.outbox_key(shard)]);
        let limit = sale.policy.limit().unwrap_or(0);
        let args = vec![
            Value::Integer(sale.epoch.into()),
            Value::Integer(limit.into()),
            text(cap.to_string()),
            text(self.redis.outbox_group()),
            Value::Integer(self.redis.shards.into()),
            Value::Integer(judged.epoch.into()),
            Value::Integer(judged.building.into()),
            millis(sale.starts_at_ms),
            millis(sale.ends_at_ms),
            text(sale.door_in_meta()),
            text(sale.drop_in_meta()),
        ];
        let begun = integer(&self.redis.script(&REBUILD_BEGIN, keys, args).await?)?;
        trace_point!(RebuildBegun { sale: id.as_str(), shard: shard, epoch: sale.epoch, verdict: begun });
        match begun {
            1 => Ok(true),
            -1 => Ok(false),
            other => Err(RedisFault::Contract(format!("rebuild_begin answered {other}"))),
        }
    }

    /// Loads the `page`-th page (from 1) of decided requests of a shard; `false` when the sale is not being rebuilt in this epoch
    /// any more. Repeating with the same number is safe.
    pub(crate) async fn load(
        &self,
        sale: &SaleId,
        shard: u16,
        (epoch, page): (u32, u64),
        records: &[DecidedRecord],
    ) -> Result<bool, RedisFault> {
        let keys = vec![
            self.redis.keys.meta(shard, sale),
            self.redis.keys.buyers(shard, sale),
            self.redis.keys.ledger(shard, sale),
        ];
        let mut args = vec![Value::Integer(epoch.into()), text(page.to_string())];
        for decided in records {
            let units = if decided.counts { decided.record.quantity.get() } else { 0 };
            args.push(text(decided.request_id.to_string()));
            args.push(text(if decided.keeps_record { decided.record.encode() } else { String::new() }));
            args.push(text(decided.record.limit_key().as_str()));
            args.push(Value::Integer(units.into()));
        }
        Ok(integer(&self.redis.script(&REBUILD_LOAD, keys, args).await?)? >= 0)
    }

    /// Sets the stock and opens (or pauses) the sale; the grants of `given` are among `units` and are never given again. `false`
    /// when that was done before. Repeating is safe.
    pub(crate) async fn end(
        &self,
        sale: &SaleId,
        shard: u16,
        epoch: u32,
        (units, state, given): (i64, MetaState, &[String]),
    ) -> Result<bool, RedisFault> {
        let keys = vec![
            self.redis.keys.meta(shard, sale),
            self.redis.keys.stock(shard, sale),
            self.redis.keys.grants(shard, sale),
        ];
        let mut args = vec![Value::Integer(epoch.into()), Value::Integer(units), text(state.code())];
        args.extend(given.iter().map(|id| text(id.as_str())));
        let ended = integer(&self.redis.script(&REBUILD_END, keys, args).await?)? == 1;
        trace_point!(RebuildEnded { sale: sale.as_str(), shard: shard, epoch: epoch, units: units, verdict: ended });
        Ok(ended)
    }
}
