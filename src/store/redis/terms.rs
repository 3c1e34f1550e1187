//! The terms by which Redis sells a sale: set as the database has them, and compared with what a process knows.
//!
//! Input: a sale, and when it was read. Output: its window, limit and door in `meta`; whether they are so. A crash leaves some shards with
//! terms of before; setting them again is safe.

use super::connection::{RedisFault, integer, list, optional_text, text};
use super::keyspace::Keyspace;
use super::sale_keys::{SaleKeys, millis};
use super::scripts::SET_TERMS;
use super::stock::Stock;
use crate::domain::sale::{MetaState, Sale, SaleStatus};
use fred::types::Value;

/// A moment before a sale was read, by the clock of one shard's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAt(i64);

impl Keyspace {
    /// Whether the sale's meta on this shard has exactly this status, epoch, window, limits and door, for as many shards as here.
    async fn has_terms_of(&self, sale: &Sale, shard: u16) -> Result<bool, RedisFault> {
        let state = match sale.status {
            SaleStatus::Draft => return Ok(false),
            SaleStatus::Warmed => MetaState::Open,
            SaleStatus::Paused => MetaState::Paused,
            SaleStatus::Closed => MetaState::Closed,
        };
        let terms = [
            ("drop", sale.drop_in_meta()),
            ("state", state.code().to_owned()),
            ("epoch", sale.epoch.to_string()),
            ("starts", sale.starts_at_ms.max(0).to_string()),
            ("ends", sale.ends_at_ms.max(0).to_string()),
            ("limit", sale.policy.limit().unwrap_or(0).to_string()),
            ("door", sale.door_in_meta().to_owned()),
            ("shards", self.shards.to_string()),
        ];
        let mut args = vec![text(self.keys.meta(shard, &sale.sale_id))];
        args.extend(terms.iter().map(|(field, _)| text(*field)));
        let found = list(self.command("HMGET", 0, args).await?)?;
        Ok(found.len() == terms.len()
            && found.iter().zip(&terms).all(|(found, (_, term))| optional_text(found).unwrap_or_default() == *term))
    }
}

impl Stock {
    /// Whether this shard sells by exactly the terms of this sale.
    pub(crate) async fn has_terms_of(&self, sale: &Sale, shard: u16) -> Result<bool, RedisFault> {
        self.redis.has_terms_of(sale, shard).await
    }
}

impl SaleKeys {
    /// The clock of the server of `shard`: taken before a sale is read, it says how old the reading is.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub async fn clock(&self, shard: u16) -> Result<ReadAt, RedisFault> {
        self.redis.clock_us(shard).await.map(ReadAt)
    }

    /// The clocks of all shards, before a sale is read.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub(crate) async fn clocks(&self) -> Result<Vec<ReadAt>, RedisFault> {
        futures::future::try_join_all((0..self.redis.shards).map(|shard| self.clock(shard))).await
    }

    /// Makes `shard` sell `sale`, as it was read just now, within the sale's window and limits, and through its door; `false` when its keys
    /// are missing. Repeating is safe.
    pub async fn set_terms(&self, sale: &Sale, shard: u16) -> Result<bool, RedisFault> {
        let read_at = self.clock(shard).await?;
        self.set_terms_read_at(sale, shard, read_at).await
    }

    /// The same of a sale that was read at or after `read_at`. Terms that were read later stay.
    ///
    /// # Errors
    /// [`RedisFault`]; repeating is safe.
    pub async fn set_terms_read_at(&self, sale: &Sale, shard: u16, read_at: ReadAt) -> Result<bool, RedisFault> {
        let keys = vec![self.redis.keys.meta(shard, &sale.sale_id)];
        let limit = Value::Integer(sale.policy.limit().unwrap_or(0).into());
        let (starts, ends) = (millis(sale.starts_at_ms), millis(sale.ends_at_ms));
        let (door, drop, read_at) = (text(sale.door_in_meta()), text(sale.drop_in_meta()), text(read_at.0.to_string()));
        let args = vec![starts, ends, limit, door, drop, read_at];
        Ok(integer(&self.redis.script(&SET_TERMS, keys, args).await?)? >= 0)
    }

    /// Whether every shard has exactly the terms of this sale. All shards are asked at once.
    pub(crate) async fn have_terms_of(&self, sale: &Sale) -> Result<bool, RedisFault> {
        let asked = (0..self.redis.shards).map(|shard| self.redis.has_terms_of(sale, shard));
        Ok(futures::future::try_join_all(asked).await?.into_iter().all(|has_them| has_them))
    }
}
