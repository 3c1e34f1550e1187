//! A sale's keys on one shard as a whole: warm-up, grants, state, counts, removal.

use super::connection::{RedisFault, integer, list, text};
use super::keyspace::Keyspace;
use super::scripts::{ACTIVATE, ARCHIVE, COUNT, GRANT};
use crate::domain::ids::SaleId;
use crate::domain::order_life::ReturnedPurchase;
use crate::domain::sale::{MetaState, Sale};
use crate::trace_points::trace_point;
use fred::types::Value;
use std::sync::Arc;

/// The result of the warm-up of one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// The keys were created now, in state `loaded`.
    Created,
    /// They were there, in the same epoch.
    Present,
    /// They were there, in another epoch.
    OtherEpoch,
    /// Some keys are there and some are missing: Redis lost data.
    Damaged,
    /// They were there, for another number of shards.
    OtherShards,
}

/// The result of giving a grant to one shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// The units were added now.
    Now,
    /// They were added before.
    Before,
    /// The sale's keys are missing.
    KeysMissing,
    /// The sale is in another epoch.
    OtherEpoch,
    /// The sale is frozen; its rebuild gives the units.
    Frozen,
}

/// The `meta` hash of a sale on one shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// State the reserve script obeys.
    pub state: MetaState,
    /// Epoch of the keys.
    pub epoch: u32,
    /// Newest acceptance number.
    pub number: u64,
}

/// Settled ledger records that were forgotten (E9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trimmed {
    /// Records that were forgotten.
    pub count: u64,
    /// Units of those that became orders.
    pub ordered: i64,
    /// Units of those that failed for good.
    pub failed: i64,
}

/// What one shard holds of a sale, units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardCount {
    /// State, epoch, number.
    pub meta: Meta,
    /// Units in the bucket.
    pub stock: i64,
    /// Units of all grants given to this shard.
    pub granted: i64,
    /// Units sent to other shards less units received from them. Over all shards: units between two buckets.
    pub in_transit: i64,
    /// Number of grants given.
    pub grants: u64,
    /// Settled ledger records that were forgotten in this epoch.
    pub trimmed: Trimmed,
    /// Units ever accepted in this epoch; `None` where not all of them were counted. Keys of 0.1 have no such count, and a closed sale
    /// keeps its keys until it is archived. And `count.lua` gives none once another version has accepted without counting.
    pub accepted: Option<i64>,
}

fn read_meta(fields: &[Value]) -> Option<Meta> {
    Some(Meta {
        state: MetaState::from_code(&fields.first()?.as_string()?)?,
        epoch: fields.get(1)?.as_string()?.parse().ok()?,
        number: fields.get(2)?.as_string()?.parse().ok()?,
    })
}

/// A time as the reserve script reads it: no sign.
pub(super) fn millis(unix_ms: i64) -> Value {
    Value::Integer(unix_ms.max(0))
}

/// A sale's keys on a shard as a whole: made, opened, granted to, counted, removed.
#[derive(Clone)]
pub struct SaleKeys {
    pub(super) redis: Arc<Keyspace>,
}

impl SaleKeys {
    /// Creates the keys of `sale` on `shard` with the units of its first grant, or finds them there. Repeating is safe.
    pub async fn activate(
        &self,
        sale: &Sale,
        shard: u16,
        cap: u64,
        grant: (&str, i64),
    ) -> Result<Activation, RedisFault> {
        let id = &sale.sale_id;
        let mut keys = self.redis.keys.of_warmed(shard, id);
        keys.push(self.redis.outbox_key(shard));
        let args = vec![
            Value::Integer(sale.epoch.into()),
            Value::Integer(sale.policy.limit().unwrap_or(0).into()),
            text(cap.to_string()),
            text(self.redis.outbox_group()),
            text(grant.0),
            Value::Integer(grant.1),
            Value::Integer(self.redis.shards.into()),
            millis(sale.starts_at_ms),
            millis(sale.ends_at_ms),
            text(sale.door_in_meta()),
            text(sale.drop_in_meta()),
        ];
        match integer(&self.redis.script(&ACTIVATE, keys, args).await?)? {
            1 => Ok(Activation::Created),
            0 => Ok(Activation::Present),
            -1 => Ok(Activation::OtherEpoch),
            -2 => Ok(Activation::Damaged),
            -3 => Ok(Activation::OtherShards),
            other => Err(RedisFault::Contract(format!("activate answered {other}"))),
        }
    }

    /// Gives the units of a grant to one shard, once. Repeating is safe.
    pub async fn grant(
        &self,
        sale: &SaleId,
        shard: u16,
        epoch: u32,
        grant: (&str, i64),
    ) -> Result<Granted, RedisFault> {
        self.grant_returning(sale, (shard, epoch), grant, &[]).await
    }

    /// The same, of units that come back with their buyers' limits; `returned` are those of this shard.
    pub(crate) async fn grant_returning(
        &self,
        sale: &SaleId,
        (shard, epoch): (u16, u32),
        grant: (&str, i64),
        returned: &[&ReturnedPurchase],
    ) -> Result<Granted, RedisFault> {
        let keys = vec![
            self.redis.keys.meta(shard, sale),
            self.redis.keys.stock(shard, sale),
            self.redis.keys.grants(shard, sale),
            self.redis.keys.buyers(shard, sale),
        ];
        let mut args = vec![Value::Integer(epoch.into()), text(grant.0), Value::Integer(grant.1)];
        for ReturnedPurchase(user, request, units) in returned {
            args.extend([text(user.as_str()), text(request.to_string()), Value::Integer((*units).into())]);
        }
        let given = integer(&self.redis.script_replicated(&GRANT, keys, args).await?)?;
        trace_point!(Granted {
            sale: sale.as_str(),
            shard: shard,
            epoch: epoch,
            grant: grant.0,
            units: grant.1,
            verdict: given
        });
        match given {
            1 => Ok(Granted::Now),
            0 => Ok(Granted::Before),
            -1 => Ok(Granted::KeysMissing),
            -2 => Ok(Granted::OtherEpoch),
            -3 => Ok(Granted::Frozen),
            other => Err(RedisFault::Contract(format!("grant answered {other}"))),
        }
    }

    /// The sale's meta on one shard; `None` when the key is missing.
    pub async fn meta(&self, sale: &SaleId, shard: u16) -> Result<Option<Meta>, RedisFault> {
        let args = vec![text(self.redis.keys.meta(shard, sale)), text("state"), text("epoch"), text("number")];
        let fields = list(self.redis.command("HMGET", 0, args).await?)?;
        let odd = || RedisFault::Contract(format!("meta of {sale} is {fields:?}"));
        if fields.iter().all(Value::is_null) { Ok(None) } else { read_meta(&fields).map(Some).ok_or_else(odd) }
    }

    /// The grants that one shard was given in this epoch, and how many units of each. A person may have written others. `None`:
    /// they are more than `most`, and were not read. Each cancelled order is a grant: reading a million holds up every buyer.
    pub(crate) async fn grants(
        &self,
        sale: &SaleId,
        shard: u16,
        most: i64,
    ) -> Result<Option<Vec<(String, i64)>>, RedisFault> {
        let key = vec![text(self.redis.keys.grants(shard, sale))];
        if integer(&self.redis.command("HLEN", 0, key.clone()).await?)? > most {
            return Ok(None);
        }
        let fields = list(self.redis.command("HGETALL", 0, key).await?)?;
        let read = |pair: &[Value]| Some((pair.first()?.as_string()?, pair.get(1)?.as_i64()?));
        Ok(Some(fields.chunks_exact(2).filter_map(read).collect()))
    }

    /// Everything one shard holds of a sale, of one moment; `None` when the meta is missing.
    pub async fn count(&self, sale: &SaleId, shard: u16) -> Result<Option<ShardCount>, RedisFault> {
        let keys = vec![
            self.redis.keys.meta(shard, sale),
            self.redis.keys.stock(shard, sale),
            self.redis.keys.grants(shard, sale),
        ];
        let fields = list(self.redis.script(&COUNT, keys, vec![]).await?)?;
        if fields.is_empty() {
            return Ok(None);
        }
        let read = || {
            Some(ShardCount {
                meta: read_meta(&fields)?,
                // A stock that is gone or no number counts as none: the equations of the audit then show the difference.
                stock: fields.get(3)?.as_i64().unwrap_or(0),
                granted: fields.get(4)?.as_i64()?,
                grants: u64::try_from(fields.get(5)?.as_i64()?).ok()?,
                in_transit: fields.get(6)?.as_i64()?,
                trimmed: Trimmed {
                    count: u64::try_from(fields.get(7)?.as_i64()?).ok()?,
                    ordered: fields.get(8)?.as_i64()?,
                    failed: fields.get(9)?.as_i64()?,
                },
                accepted: fields.get(10)?.as_i64(),
            })
        };
        read().map(Some).ok_or_else(|| RedisFault::Contract(format!("counts of {sale} are {fields:?}")))
    }

    /// Removes the keys of a closed sale whose ledger is empty; whether they were removed. Repeating is safe.
    pub async fn archive(&self, sale: &SaleId, shard: u16) -> Result<bool, RedisFault> {
        let mut keys = self.redis.keys.of_warmed(shard, sale);
        keys.push(self.redis.keys.transfers(shard, sale));
        Ok(integer(&self.redis.script(&ARCHIVE, keys, vec![]).await?)? == 1)
    }

    /// Whether all five keys of a sale are there, and of their kind.
    pub(crate) async fn are_complete(&self, sale: &SaleId, shard: u16) -> Result<bool, RedisFault> {
        let keys = [
            (self.redis.keys.meta(shard, sale), "hash"),
            (self.redis.keys.stock(shard, sale), "string"),
            (self.redis.keys.buyers(shard, sale), "hash"),
            (self.redis.keys.ledger(shard, sale), "hash"),
            (self.redis.keys.grants(shard, sale), "hash"),
        ];
        for (key, kind) in keys {
            if self.redis.command("TYPE", 0, vec![text(key)]).await?.as_string().as_deref() != Some(kind) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// When a rebuild began these keys (Unix ms, Redis' clock; `None`: a warm-up did), and whether the sale limits by person.
    pub(crate) async fn ledger_terms(&self, sale: &SaleId, shard: u16) -> Result<(Option<i64>, bool), RedisFault> {
        let key = text(self.redis.keys.meta(shard, sale));
        let found = list(self.redis.command("HMGET", 0, vec![key, text("rebuilt"), text("door")]).await?)?;
        let rebuilt_at_ms = found.first().filter(|value| !value.is_null()).map(integer).transpose()?;
        Ok((rebuilt_at_ms, found.get(1).and_then(Value::as_string).is_some_and(|door| Sale::limits_person(&door))))
    }

    /// The number of shards that the sale was warmed for; `None` when it is not in Redis.
    pub(crate) async fn shards_of(&self, sale: &SaleId) -> Result<Option<u16>, RedisFault> {
        // Shard 0 is there for any number of shards; the others help when its keys are lost.
        for shard in 0..self.redis.shards {
            let args = vec![text(self.redis.keys.meta(shard, sale)), text("epoch"), text("shards")];
            let fields = list(self.redis.command("HMGET", 0, args).await?)?;
            let [_, shards] = fields.as_slice() else { continue };
            if fields.iter().all(Value::is_null) {
                continue;
            }
            let number = shards.as_string().and_then(|number| number.parse().ok());
            let odd = || RedisFault::Contract(format!("meta of {sale} has {shards:?} shards"));
            return number.map(Some).ok_or_else(odd);
        }
        Ok(None)
    }
}
