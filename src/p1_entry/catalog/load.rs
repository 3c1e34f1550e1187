//! A sale as it is read anew: from Redis' copy, or from the database by one process at a time.
//!
//! Input: a sale id. Output: the view, or why there is none. A crash leaves a load lock that ends by itself.

use super::Catalog;
use super::sale_view::{CatalogLookup, SaleView};
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::runtime::now_ms;
use crate::store::redis::{CachedSale, RedisFault, SoldOutMark};
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The load lock ends by itself after this time if its owner died.
const LOCK_TTL_MS: u64 = 5_000;
/// How long a process waits for what another one is loading, before it says so. Longer than a load takes.
const LOAD_WAIT: Duration = Duration::from_millis(300);
/// Pause between two checks of it.
const LOAD_CHECK: Duration = Duration::from_millis(20);
/// How long a reading waits for the units of a shard: one server of several that stands still must not make the others' sales old.
pub(super) const STOCK_WAIT: Duration = Duration::from_millis(200);
/// Redis keeps a cached sale this many times longer than a process does.
const REDIS_TTL_FACTOR: u64 = 10;

impl Catalog {
    /// How long Redis keeps its copy.
    pub(super) fn redis_ttl_ms(&self) -> u64 {
        u64::try_from(self.ttl.as_millis()).unwrap_or(500).saturating_mul(REDIS_TTL_FACTOR)
    }

    /// Reads a sale: Redis' copy of it, else the database's row.
    pub(super) async fn load(&self, id: &SaleId) -> CatalogLookup {
        let until = Instant::now() + LOAD_WAIT;
        loop {
            let cached = match self.redis.sale_cache.get(id).await {
                Ok(cached) => cached,
                Err(fault) => return self.load_past_cache(id, &CachedSale::default(), &fault).await,
            };
            // JSON that this build cannot read counts as not cached.
            if let Some(sale) = cached.sale.as_ref().and_then(|json| serde_json::from_str::<Sale>(json).ok()) {
                return CatalogLookup::Found(Arc::new(self.with_stock(sale, cached.sold_out).await));
            }
            match self.redis.sale_cache.lock(id, &self.owner, LOCK_TTL_MS).await {
                Ok(true) => return self.load_locked(id, &cached).await,
                Ok(false) if Instant::now() >= until => return CatalogLookup::Loading,
                Ok(false) => tokio::time::sleep(LOAD_CHECK).await,
                // It answers reads, and takes no writes: full, without its replicas, or unable to write its disk.
                Err(fault) => return self.load_past_cache(id, &cached, &fault).await,
            }
        }
    }

    async fn load_locked(&self, id: &SaleId, cached: &CachedSale) -> CatalogLookup {
        let found = self.load_from_database(id, cached).await;
        if let Err(error) = self.redis.sale_cache.unlock(id, &self.owner).await {
            tracing::debug!(phase = "p1_entry", sale = %id, %error, "load lock ends with its time");
        }
        found
    }

    /// The server of the cached sale is away or refuses. If it is one of several, buyers of the other shards go on. A process
    /// reads the database once at a time here too, and only for sales that exist.
    async fn load_past_cache(&self, id: &SaleId, cached: &CachedSale, fault: &RedisFault) -> CatalogLookup {
        if self.shards > 1 && self.redis.health.is_connected() {
            return self.load_from_database(id, cached).await;
        }
        tracing::debug!(phase = "p1_entry", sale = %id, error = %fault, "cached sale");
        CatalogLookup::Unavailable
    }

    async fn load_from_database(&self, id: &SaleId, cached: &CachedSale) -> CatalogLookup {
        match self.sales.get(id).await {
            Ok(None) => CatalogLookup::Missing,
            Ok(Some(sale)) => {
                let json = serde_json::to_string(&sale).unwrap_or_default();
                let put = self.redis.sale_cache.put(id, &json, self.redis_ttl_ms(), cached).await;
                if let Err(error) = put {
                    tracing::debug!(phase = "p1_entry", sale = %id, %error, "sale not cached");
                }
                CatalogLookup::Found(Arc::new(self.with_stock(sale, cached.sold_out).await))
            }
            Err(error) => {
                tracing::warn!(phase = "p1_entry", sale = %id, %error, "sale cannot be loaded");
                CatalogLookup::Unavailable
            }
        }
    }

    pub(super) async fn with_stock(&self, sale: Sale, mark: Option<SoldOutMark>) -> SaleView {
        // A mark of an earlier epoch, or from before a top-up, is void.
        let mark = mark.filter(|mark| mark.epoch == sale.epoch && mark.granted == sale.granted);
        let (id, stock) = (&sale.sale_id, &self.redis.stock);
        // Empty buckets make no other mark where there is one: whether a rebuild has emptied them need not be asked.
        let units = async |shard| match mark {
            Some(_) => stock.units(id, shard).await,
            None => stock.on_sale(id, shard).await,
        };
        let reads = (0..self.shards).map(|shard| timeout(STOCK_WAIT, units(shard)));
        let stocks = join_all(reads).await.into_iter().flatten().flatten().flatten();
        let remaining = stocks.reduce(|sum, stock| sum + stock);
        // The mark ends with the cached sale's time, and a top-up may overtake it; the buckets are what it stands for.
        let sold_out = match remaining {
            // Several buckets, read one by one: a moving unit can be missed. Only P2 says that all of them are empty.
            Some(0) if self.shards > 1 => mark,
            Some(0) => mark.or_else(|| Some(SoldOutMark { epoch: sale.epoch, granted: sale.granted, at_ms: now_ms() })),
            Some(_) => None,
            None => mark,
        };
        SaleView { sale, sold_out, remaining }
    }
}
