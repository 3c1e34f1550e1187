//! The cached sale (`<prefix>:sale:<sale>`), its sold-out mark, and the lock that guards loading it from the database.
//!
//! A cache and nothing more: it has a TTL, losing it costs a database read, and the sold-out mark is derived. The reserve
//! script never reads it.

use super::connection::{RedisFault, list, optional_text, text};
use super::keyspace::Keyspace;
use super::scripts::UNLOCK;
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
}

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
        let args = vec![text(self.redis.keys.sale(sale)), text("sale"), text("sold_out")];
        let fields = list(self.redis.command("HMGET", 0, args).await?)?;
        Ok(CachedSale {
            sale: fields.first().and_then(optional_text),
            sold_out: fields.get(1).and_then(optional_text).and_then(|mark| SoldOutMark::parse(&mark)),
        })
    }

    /// Caches a sale for `ttl_ms`.
    pub(crate) async fn put(&self, sale: &SaleId, json: &str, ttl_ms: u64) -> Result<(), RedisFault> {
        let key = self.redis.keys.sale(sale);
        self.redis.command("HSET", 0, vec![text(key.as_str()), text("sale"), text(json)]).await?;
        self.redis.command("PEXPIRE", 0, vec![text(key), text(ttl_ms.to_string())]).await.map(|_set| ())
    }

    /// Forgets the cached sale, so that the next look-up reads the database. The sold-out mark goes with it.
    pub(crate) async fn forget(&self, sale: &SaleId) -> Result<(), RedisFault> {
        self.redis.command("DEL", 0, vec![text(self.redis.keys.sale(sale))]).await.map(|_count| ())
    }

    /// Sets the sold-out mark, which every process reads.
    pub(crate) async fn mark_sold_out(&self, sale: &SaleId, mark: SoldOutMark) -> Result<(), RedisFault> {
        self.redis
            .command("HSET", 0, vec![text(self.redis.keys.sale(sale)), text("sold_out"), text(mark.encode())])
            .await
            .map(|_n| ())
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
