//! A sale's keys on one shard: warm-up, grants, state, counts.

use super::client::{RedisStore, integer, list, optional_text, text};
use super::fault::RedisFault;
use super::scripts::{ACTIVATE, ARCHIVE, COUNT, GRANT, SET_STATE};
use crate::domain::ids::SaleId;
use crate::domain::sale::{MetaState, Sale};
use fred::types::Value;

/// What a warm-up of one shard found.
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

/// What giving a grant to one shard did.
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
    /// How many.
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
    /// Units sent to other shards less units received from them. Over all shards: what lies between two buckets.
    pub in_transit: i64,
    /// Number of grants given.
    pub grants: u64,
    /// Settled ledger records that were forgotten in this epoch.
    pub trimmed: Trimmed,
    /// Units ever accepted in this epoch; `None` for keys from before they were counted.
    pub accepted: Option<i64>,
}

/// State, epoch, number.
fn read_meta(fields: &[Value]) -> Option<Meta> {
    Some(Meta {
        state: MetaState::from_code(&fields.first()?.as_string()?)?,
        epoch: fields.get(1)?.as_string()?.parse().ok()?,
        number: fields.get(2)?.as_string()?.parse().ok()?,
    })
}

impl RedisStore {
    /// Creates the keys of `sale` on `shard` with the units of its first grant, or finds them there.
    ///
    /// # Errors
    /// [`RedisFault`]; after `Unknown`, calling again is safe.
    pub async fn activate(
        &self,
        sale: &Sale,
        shard: u16,
        cap: u64,
        grant: (&str, i64),
    ) -> Result<Activation, RedisFault> {
        let id = &sale.sale_id;
        let mut keys = self.keys.of_warmed(shard, id);
        keys.push(self.outbox_key(shard));
        let args = vec![
            Value::Integer(sale.epoch.into()),
            Value::Integer(sale.policy.limit().unwrap_or(0).into()),
            text(cap.to_string()),
            text(self.group()),
            text(grant.0),
            Value::Integer(grant.1),
            Value::Integer(self.shards.into()),
        ];
        match integer(&self.script(&ACTIVATE, keys, args).await?)? {
            1 => Ok(Activation::Created),
            0 => Ok(Activation::Present),
            -1 => Ok(Activation::OtherEpoch),
            -2 => Ok(Activation::Damaged),
            -3 => Ok(Activation::OtherShards),
            other => Err(RedisFault::Contract(format!("activate answered {other}"))),
        }
    }

    /// Gives the units of a grant to one shard, once.
    ///
    /// # Errors
    /// [`RedisFault`]; after `Unknown`, calling again is safe.
    pub async fn grant(
        &self,
        sale: &SaleId,
        shard: u16,
        epoch: u32,
        grant: (&str, i64),
    ) -> Result<Granted, RedisFault> {
        let keys = vec![self.keys.meta(shard, sale), self.keys.stock(shard, sale), self.keys.grants(shard, sale)];
        let args = vec![Value::Integer(epoch.into()), text(grant.0), Value::Integer(grant.1)];
        match integer(&self.kept(&GRANT, keys, args).await?)? {
            1 => Ok(Granted::Now),
            0 => Ok(Granted::Before),
            -1 => Ok(Granted::KeysMissing),
            -2 => Ok(Granted::OtherEpoch),
            -3 => Ok(Granted::Frozen),
            other => Err(RedisFault::Contract(format!("grant answered {other}"))),
        }
    }

    /// Moves the sale to `to` if it is in one of `from`; returns the state before, `None` when the keys are missing.
    ///
    /// # Errors
    /// [`RedisFault`]; after `Unknown`, calling again is safe.
    pub async fn set_state(
        &self,
        sale: &SaleId,
        shard: u16,
        to: MetaState,
        from: &[MetaState],
    ) -> Result<Option<MetaState>, RedisFault> {
        let mut args = vec![text(to.code())];
        args.extend(from.iter().map(|state| text(state.code())));
        let before = self.script(&SET_STATE, vec![self.keys.meta(shard, sale)], args).await?;
        match before.as_string().unwrap_or_default().as_str() {
            "" => Ok(None),
            code => MetaState::from_code(code)
                .map(Some)
                .ok_or_else(|| RedisFault::Contract(format!("meta has state {code:?}"))),
        }
    }

    /// The sale's meta on one shard; `None` when the key is missing.
    ///
    /// # Errors
    /// [`RedisFault`], `Contract` when a field is missing or unreadable.
    pub async fn meta(&self, sale: &SaleId, shard: u16) -> Result<Option<Meta>, RedisFault> {
        let args = vec![text(self.keys.meta(shard, sale)), text("state"), text("epoch"), text("number")];
        let fields = list(self.command("HMGET", 0, args).await?)?;
        if fields.iter().all(Value::is_null) {
            return Ok(None);
        }
        read_meta(&fields).map(Some).ok_or_else(|| RedisFault::Contract(format!("meta of {sale} is {fields:?}")))
    }

    /// Units left in the bucket; `None` when the key is missing.
    ///
    /// # Errors
    /// [`RedisFault`], `Contract` when it is not a number.
    pub async fn stock(&self, sale: &SaleId, shard: u16) -> Result<Option<i64>, RedisFault> {
        let value = self.command("GET", 0, vec![text(self.keys.stock(shard, sale))]).await?;
        if value.is_null() { Ok(None) } else { integer(&value).map(Some) }
    }

    /// The grants that one shard was given in this epoch, and how many units of each. A person may have written others.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away.
    pub async fn grants(&self, sale: &SaleId, shard: u16) -> Result<Vec<(String, i64)>, RedisFault> {
        let fields = list(self.command("HGETALL", 0, vec![text(self.keys.grants(shard, sale))]).await?)?;
        let read = |pair: &[Value]| Some((pair.first()?.as_string()?, pair.get(1)?.as_i64()?));
        Ok(fields.chunks_exact(2).filter_map(read).collect())
    }

    /// Everything one shard holds of a sale, of one moment; `None` when the meta is missing.
    ///
    /// # Errors
    /// [`RedisFault`], `Contract` when a field is missing or unreadable.
    pub async fn shard_count(&self, sale: &SaleId, shard: u16) -> Result<Option<ShardCount>, RedisFault> {
        let keys = vec![self.keys.meta(shard, sale), self.keys.stock(shard, sale), self.keys.grants(shard, sale)];
        let fields = list(self.script(&COUNT, keys, vec![]).await?)?;
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

    /// Removes the keys of a closed sale whose ledger is empty; whether they went.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn archive(&self, sale: &SaleId, shard: u16) -> Result<bool, RedisFault> {
        let mut keys = self.keys.of_warmed(shard, sale);
        keys.push(self.keys.transfers(shard, sale));
        Ok(integer(&self.script(&ARCHIVE, keys, vec![]).await?)? == 1)
    }

    /// The clock of the server that has a shard, Unix milliseconds: ages are only compared within one clock (window 95).
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away.
    pub async fn clock_ms(&self, shard: u16) -> Result<i64, RedisFault> {
        let parts = list(self.node_of_shard(shard)?.command("TIME", vec![]).await?)?;
        let part = |at: usize| parts.get(at).and_then(optional_text).and_then(|part| part.parse::<i64>().ok());
        match (part(0), part(1)) {
            (Some(seconds), Some(micros)) => Ok(seconds * 1000 + micros / 1000),
            (None, _) | (_, None) => Err(RedisFault::Contract(format!("TIME answered {parts:?}"))),
        }
    }
}
