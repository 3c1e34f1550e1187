//! The cached sale (`<prefix>:sale:<sale>`), its sold-out mark, and the lock that guards loading it from the database.
//!
//! A cache and nothing more: it has a TTL from its first field on, losing it costs a database read, and the sold-out mark is derived.
//! The reserve script never reads it. A copy that was read before a change is not written after it: each change leaves its moment,
//! and the writer says which moment it had seen before it read the database.

use super::connection::{RedisFault, list, optional_text, text};
use super::keyspace::Keyspace;
use super::scripts::{CACHE_SALE, FORGET_SALE, UNLOCK};
use crate::domain::ids::SaleId;
use fred::types::Value;
use std::sync::Arc;

/// The cached sale as bytes the entry encodes, and the sold-out mark.
#[derive(Debug, Clone, Default)]
pub struct CachedSale {
    /// The sale as JSON; `None` when it is not cached.
    pub sale: Option<String>,
    /// Set when the sale was found sold out.
    pub sold_out: Option<SoldOutMark>,
    /// Moment of the last change that the cache knows; empty: none lately.
    pub(crate) changed_at: String,
}

/// How long a change keeps copies out that were read before it, milliseconds: longer than a load takes.
const CHANGE_KEPT_MS: u64 = 60_000;

/// When a sale was found sold out, and in which state of its stock: a later epoch or grant makes the mark void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoldOutMark {
    /// The sale's epoch.
    pub epoch: u32,
    /// Units granted when the mark was set.
    pub granted: i64,
    /// When the mark was set, Unix milliseconds.
    pub at_ms: i64,
}

impl SoldOutMark {
    fn encode(self) -> String {
        format!("{} {} {}", self.epoch, self.granted, self.at_ms)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        Some(Self {
            epoch: parts.next()?.parse().ok()?,
            granted: parts.next()?.parse().ok()?,
            at_ms: parts.next()?.parse().ok()?,
        })
    }
}

/// The cached sale, its sold-out mark, and the lock that guards loading it.
#[derive(Clone)]
pub struct SaleCache {
    pub(super) redis: Arc<Keyspace>,
}

impl SaleCache {
    /// Reads the cached sale.
    pub async fn get(&self, sale: &SaleId) -> Result<CachedSale, RedisFault> {
        let args = vec![text(self.redis.keys.sale(sale)), text("sale"), text("sold_out"), text("changed_at")];
        let fields = list(self.redis.command("HMGET", 0, args).await?)?;
        Ok(CachedSale {
            sale: fields.first().and_then(optional_text),
            sold_out: fields.get(1).and_then(optional_text).and_then(|mark| SoldOutMark::parse(&mark)),
            changed_at: fields.get(2).and_then(optional_text).unwrap_or_default(),
        })
    }

    /// Caches a sale for `ttl_ms`, unless it changed since `seen`, which was read before the database was.
    pub async fn put(&self, sale: &SaleId, json: &str, ttl_ms: u64, seen: &CachedSale) -> Result<(), RedisFault> {
        let args = vec![text("sale"), text(json), text(ttl_ms.to_string()), text(seen.changed_at.as_str())];
        self.redis.script(&CACHE_SALE, vec![self.redis.keys.sale(sale)], args).await.map(|_written| ())
    }

    /// Forgets the cached sale, so that the next look-up reads the database. The sold-out mark goes with it.
    pub async fn forget(&self, sale: &SaleId) -> Result<(), RedisFault> {
        let args = vec![text(CHANGE_KEPT_MS.to_string())];
        self.redis.script(&FORGET_SALE, vec![self.redis.keys.sale(sale)], args).await.map(|_forgotten| ())
    }

    /// Sets the sold-out mark, which every process reads; for `ttl_ms` where no sale is cached.
    pub async fn mark_sold_out(&self, sale: &SaleId, mark: SoldOutMark, ttl_ms: u64) -> Result<(), RedisFault> {
        let args = vec![text("sold_out"), text(mark.encode()), text(ttl_ms.to_string())];
        self.redis.script(&CACHE_SALE, vec![self.redis.keys.sale(sale)], args).await.map(|_written| ())
    }

    /// Takes the load lock for `ttl_ms`; `false` when another process has it.
    pub async fn lock(&self, sale: &SaleId, owner: &str, ttl_ms: u64) -> Result<bool, RedisFault> {
        let ttl = ttl_ms.to_string();
        let args = [self.redis.keys.sale_lock(sale).as_str(), owner, "NX", "PX", &ttl].map(text).to_vec();
        Ok(!matches!(self.redis.command("SET", 0, args).await?, Value::Null))
    }

    /// Releases the load lock if it is still the owner's. When Redis does not answer, the lock ends with its TTL.
    pub async fn unlock(&self, sale: &SaleId, owner: &str) -> Result<(), RedisFault> {
        self.redis.script(&UNLOCK, vec![self.redis.keys.sale_lock(sale)], vec![text(owner)]).await.map(|_released| ())
    }
}
