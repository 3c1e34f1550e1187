//! The sales as the entry sees them (A4): thread-local ([`near_views`]) → process-local with logical expiry → Redis → database
//! behind a lock.
//!
//! A stale view is served while one task refreshes it. A sale that is not cached is loaded by one process at a time; the
//! others answer `P1-S4`. While the server of the cached sale, one of several, is away or refuses, each process loads it by
//! itself. The cache has no authority over stock: the reserve script has.
//!
//! Input: a sale id. Output: [`CatalogLookup`]. A crash leaves a load lock that ends by itself.

use super::near_views::{self, CatalogNumber, ChangesSeen};
use super::sale_id_filter::{FilterVerdict, SaleIdFilter};
use crate::config;
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::runtime::now_ms;
use crate::store::mysql::{Db, sales};
use crate::store::redis::{RedisFault, RedisHealth, SaleCache, SoldOutMark, Stock};
use crate::telemetry::count;
use futures::future::join_all;
use moka::future::Cache;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

/// The load lock ends by itself after this time if its owner died.
const LOCK_TTL_MS: u64 = 5_000;
/// Redis keeps a cached sale this many times longer than a process does.
const REDIS_TTL_FACTOR: u64 = 10;

/// A sale, and what this process knows about its stock right now.
#[derive(Debug, Clone)]
pub(crate) struct SaleView {
    /// The sale as the database has it, at most a cache time old.
    pub sale: Sale,
    /// Set when it was found sold out in its present epoch and with its present grants.
    pub sold_out: Option<SoldOutMark>,
    /// Units left as last read; approximate. `None` when Redis does not hold the sale.
    pub remaining: Option<i64>,
}

/// The result of a lookup.
#[derive(Debug, Clone)]
pub(crate) enum CatalogLookup {
    /// There is one.
    Found(Arc<SaleView>),
    /// There is no such sale (`P1-S3`).
    Missing,
    /// Another process is loading it (`P1-S4`).
    Loading,
    /// Neither Redis nor the database answers.
    Unavailable,
}

struct Slot {
    view: RwLock<(Option<Arc<SaleView>>, Instant)>,
    refreshing: AtomicBool,
}

impl Slot {
    fn read(&self) -> (Option<Arc<SaleView>>, Instant) {
        self.view.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn write(&self, view: Option<Arc<SaleView>>) {
        *self.view.write().unwrap_or_else(std::sync::PoisonError::into_inner) = (view, Instant::now());
        near_views::changed();
    }
}

/// What the catalog may touch in Redis.
#[derive(Clone)]
pub(crate) struct CatalogHandles {
    /// The cached sales, their sold-out marks, and the load lock.
    pub(crate) sale_cache: SaleCache,
    /// The units that are left.
    pub(crate) stock: Stock,
    /// Whether another server answers while the server of a cached sale does not.
    pub(crate) health: RedisHealth,
}

/// The lookup over three levels. Clones share the cache.
#[derive(Clone)]
pub struct Catalog {
    number: CatalogNumber,
    local: Cache<SaleId, Arc<Slot>>,
    redis: CatalogHandles,
    db: Db,
    shards: u16,
    ttl: Duration,
    missing_ttl: Duration,
    owner: Arc<str>,
    known: SaleIdFilter,
}

impl Catalog {
    /// An empty catalog; `owner` names this process in the load lock.
    #[must_use]
    pub(crate) fn new(
        redis: CatalogHandles,
        db: Db,
        known: SaleIdFilter,
        settings: &config::Settings,
        owner: &str,
    ) -> Self {
        let (shards, settings) = (settings.redis.shards, &settings.p1_entry);
        Self {
            number: CatalogNumber::next(),
            local: Cache::builder().max_capacity(settings.cache_sales_max).build(),
            redis,
            db,
            shards,
            ttl: Duration::from_millis(settings.cache_ttl_ms),
            missing_ttl: Duration::from_millis(settings.missing_ttl_ms),
            owner: Arc::from(owner),
            known,
        }
    }

    /// The sale, or the problem to answer with when it cannot be had.
    ///
    /// # Errors
    /// 404, also when it is hidden, or 503 while it is loaded elsewhere or no server answers.
    pub(crate) async fn view(&self, id: &SaleId) -> Result<Arc<SaleView>, Problem> {
        match self.lookup(id).await {
            CatalogLookup::Found(view) if !view.sale.hidden => Ok(view),
            // To buyers a hidden sale is one that is not there, in every word.
            CatalogLookup::Found(_) | CatalogLookup::Missing => {
                count(State::P1(P1Entry::NotFound), 1);
                Err(Kind::SaleNotFound.because_both(format!("there is no sale {id}"), format!("没有活动 {id}")))
            }
            CatalogLookup::Loading => {
                count(State::P1(P1Entry::Loading), 1);
                Err(Kind::Loading.because_both("the sale is being loaded", "活动正在加载"))
            }
            CatalogLookup::Unavailable => {
                Err(Kind::Unavailable.because_both("the sale cannot be looked up right now", "活动暂时无法查询"))
            }
        }
    }

    /// The sale as this process knows it, however old that is; asks no server.
    pub(crate) async fn known(&self, id: &SaleId) -> Option<Arc<SaleView>> {
        self.local.get(id).await?.read().0
    }

    /// Looks a sale up: in this process, then in Redis, then in the database.
    pub(crate) async fn lookup(&self, id: &SaleId) -> CatalogLookup {
        if let Some(view) = near_views::get(self.number, id) {
            return CatalogLookup::Found(view);
        }
        let seen = ChangesSeen::now();
        if let Some(slot) = self.local.get(id).await {
            match slot.read() {
                (Some(view), read_at) => {
                    if read_at.elapsed() > self.ttl {
                        self.refresh_behind(id, &slot);
                    } else {
                        near_views::put(self.number, seen, &view, read_at + self.ttl);
                    }
                    return CatalogLookup::Found(view);
                }
                (None, read_at) if read_at.elapsed() <= self.missing_ttl => return CatalogLookup::Missing,
                (None, _) => self.forget(id).await,
            }
        }
        // Boxed, here and below: a future of several kilobytes that nearly no request needs, and each would carry.
        Box::pin(self.load_once(id)).await
    }

    async fn load_once(&self, id: &SaleId) -> CatalogLookup {
        let loaded = self.local.try_get_with(id.clone(), async {
            // Inside, so that concurrent requests for one id are one lookup.
            if self.known.check(id) != FilterVerdict::MayExist {
                return Err(CatalogLookup::Missing);
            }
            let view = match self.load(id).await {
                CatalogLookup::Found(view) => {
                    self.known.exists(id);
                    Some(view)
                }
                CatalogLookup::Missing => None,
                other @ (CatalogLookup::Loading | CatalogLookup::Unavailable) => return Err(other),
            };
            Ok(Arc::new(Slot { view: RwLock::new((view, Instant::now())), refreshing: AtomicBool::new(false) }))
        });
        match loaded.await {
            Ok(slot) => slot.read().0.map_or(CatalogLookup::Missing, CatalogLookup::Found),
            Err(not_found) => (*not_found).clone(),
        }
    }

    /// Records here and in Redis that the sale is sold out as `view` knows it.
    pub(crate) async fn mark_sold_out(&self, view: &SaleView) {
        let mark = SoldOutMark { epoch: view.sale.epoch, granted: view.sale.granted, at_ms: now_ms() };
        match self.local.get(&view.sale.sale_id).await {
            Some(slot) => slot.write(Some(Arc::new(SaleView {
                sale: view.sale.clone(),
                sold_out: Some(mark),
                remaining: Some(0),
            }))),
            // Evicted: the next lookup reads it anew.
            None => near_views::changed(),
        }
        // A mark that is not written costs other processes one script call.
        if let Err(error) = Box::pin(self.redis.sale_cache.mark_sold_out(&view.sale.sale_id, mark)).await {
            tracing::debug!(phase = "p1_entry", %error, "sold-out mark");
        }
    }

    /// Forgets what this process knows of a sale; the next lookup loads it.
    pub(crate) async fn forget(&self, id: &SaleId) {
        Box::pin(self.local.invalidate(id)).await;
        near_views::changed();
    }

    fn refresh_behind(&self, id: &SaleId, slot: &Arc<Slot>) {
        if slot.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (catalog, id, slot) = (self.clone(), id.clone(), slot.clone());
        tokio::spawn(async move {
            match catalog.load(&id).await {
                CatalogLookup::Found(view) => slot.write(Some(view)),
                CatalogLookup::Missing => slot.write(None),
                // The stale view stays; the next lookup tries again.
                CatalogLookup::Loading | CatalogLookup::Unavailable => {}
            }
            slot.refreshing.store(false, Ordering::Release);
        });
    }

    async fn load(&self, id: &SaleId) -> CatalogLookup {
        let cached = match self.redis.sale_cache.get(id).await {
            Ok(cached) => cached,
            Err(fault) => return self.load_past_cache(id, None, &fault).await,
        };
        // JSON that this build cannot read counts as not cached.
        if let Some(sale) = cached.sale.and_then(|json| serde_json::from_str::<Sale>(&json).ok()) {
            return CatalogLookup::Found(Arc::new(self.with_stock(sale, cached.sold_out).await));
        }
        match self.redis.sale_cache.lock(id, &self.owner, LOCK_TTL_MS).await {
            Ok(true) => {}
            Ok(false) => return CatalogLookup::Loading,
            // It answers reads, and takes no writes: full, without its replicas, or unable to write its disk.
            Err(fault) => return self.load_past_cache(id, cached.sold_out, &fault).await,
        }
        let found = self.load_from_database(id, cached.sold_out).await;
        if let Err(error) = self.redis.sale_cache.unlock(id, &self.owner).await {
            tracing::debug!(phase = "p1_entry", sale = %id, %error, "load lock ends with its time");
        }
        found
    }

    /// The server of the cached sale is away or refuses. If it is one of several, buyers of the other shards go on. A process
    /// reads the database once at a time here too, and only for sales that exist.
    async fn load_past_cache(&self, id: &SaleId, mark: Option<SoldOutMark>, fault: &RedisFault) -> CatalogLookup {
        if self.shards > 1 && self.redis.health.is_connected() {
            return self.load_from_database(id, mark).await;
        }
        tracing::debug!(phase = "p1_entry", sale = %id, error = %fault, "cached sale");
        CatalogLookup::Unavailable
    }

    async fn load_from_database(&self, id: &SaleId, mark: Option<SoldOutMark>) -> CatalogLookup {
        match sales::get(&self.db, id).await {
            Ok(None) => CatalogLookup::Missing,
            Ok(Some(sale)) => {
                let ttl_ms = u64::try_from(self.ttl.as_millis()).unwrap_or(500) * REDIS_TTL_FACTOR;
                let json = serde_json::to_string(&sale).unwrap_or_default();
                if let Err(error) = self.redis.sale_cache.put(id, &json, ttl_ms).await {
                    tracing::debug!(phase = "p1_entry", sale = %id, %error, "sale not cached");
                }
                CatalogLookup::Found(Arc::new(self.with_stock(sale, mark).await))
            }
            Err(error) => {
                tracing::warn!(phase = "p1_entry", sale = %id, %error, "sale cannot be loaded");
                CatalogLookup::Unavailable
            }
        }
    }

    async fn with_stock(&self, sale: Sale, mark: Option<SoldOutMark>) -> SaleView {
        let reads = (0..self.shards).map(|shard| self.redis.stock.units(&sale.sale_id, shard));
        let stocks = join_all(reads).await.into_iter().flatten().flatten();
        let remaining = stocks.reduce(|sum, stock| sum + stock);
        // A mark of an earlier epoch, or from before a top-up, is void.
        let mark = mark.filter(|mark| mark.epoch == sale.epoch && mark.granted == sale.granted);
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
