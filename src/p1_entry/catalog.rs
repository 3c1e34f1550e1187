//! The sales as the entry sees them (A4): process-local with logical expiry → Redis → database behind a lock.
//!
//! A stale view is served while one task refreshes it. A sale nobody has cached is loaded by one process at a time; the
//! others answer `P1-S4`. What is cached is never authority over stock: the script is.

use super::known::{Judgement, Known};
use crate::config;
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::runtime::now_ms;
use crate::store::mysql::{Db, sales};
use crate::store::redis::{RedisFault, RedisStore, SoldOutMark};
use futures::future::join_all;
use moka::future::Cache;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

/// The load lock ends by itself after this time if its owner died.
const LOCK_TTL_MS: u64 = 5_000;
/// Redis keeps a cached sale this many times longer than a process does.
const REDIS_TTL_FACTOR: u64 = 10;

/// A sale, and what is known about its stock right now.
#[derive(Debug, Clone)]
pub struct View {
    /// The sale.
    pub sale: Sale,
    /// Set when it was found sold out in its present epoch and with its present grants.
    pub sold_out: Option<SoldOutMark>,
    /// Units left as last read; approximate. `None` when Redis does not hold the sale.
    pub remaining: Option<i64>,
}

/// What a look-up found.
#[derive(Debug, Clone)]
pub enum Look {
    /// The sale.
    Found(Arc<View>),
    /// There is no such sale (`P1-S3`).
    Missing,
    /// Someone else is loading it (`P1-S4`).
    Loading,
    /// Neither Redis nor the database can be asked.
    Unavailable,
}

struct Slot {
    view: RwLock<(Option<Arc<View>>, Instant)>,
    refreshing: AtomicBool,
}

impl Slot {
    fn read(&self) -> (Option<Arc<View>>, Instant) {
        self.view.read().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    fn write(&self, view: Option<Arc<View>>) {
        *self.view.write().unwrap_or_else(std::sync::PoisonError::into_inner) = (view, Instant::now());
    }
}

/// The three-level look-up. Clones share the cache.
#[derive(Clone)]
pub struct Catalog {
    local: Cache<SaleId, Arc<Slot>>,
    redis: RedisStore,
    db: Db,
    shards: u16,
    ttl: Duration,
    missing_ttl: Duration,
    owner: Arc<str>,
    known: Known,
}

impl Catalog {
    /// An empty catalog; `owner` names this process in the load lock.
    #[must_use]
    pub fn new(redis: RedisStore, db: Db, known: Known, settings: &config::Settings, owner: &str) -> Self {
        let (shards, settings) = (settings.redis.shards, &settings.p1_entry);
        Self {
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

    /// Looks a sale up.
    pub async fn look(&self, id: &SaleId) -> Look {
        if let Some(slot) = self.local.get(id).await {
            match slot.read() {
                (Some(view), read_at) => {
                    if read_at.elapsed() > self.ttl {
                        self.refresh_behind(id, &slot);
                    }
                    return Look::Found(view);
                }
                (None, read_at) if read_at.elapsed() <= self.missing_ttl => return Look::Missing,
                (None, _) => self.forget(id).await,
            }
        }
        // Boxed, here and below: a future of several kilobytes that nearly no request needs, and each would carry.
        Box::pin(self.look_up(id)).await
    }

    async fn look_up(&self, id: &SaleId) -> Look {
        let loaded = self.local.try_get_with(id.clone(), async {
            // In here, because those who ask for the same id at once are one look-up.
            if self.known.judge(id) != Judgement::LookUp {
                return Err(Look::Missing);
            }
            let view = match self.load(id).await {
                Look::Found(view) => {
                    self.known.exists(id);
                    Some(view)
                }
                Look::Missing => None,
                other @ (Look::Loading | Look::Unavailable) => return Err(other),
            };
            Ok(Arc::new(Slot { view: RwLock::new((view, Instant::now())), refreshing: AtomicBool::new(false) }))
        });
        match loaded.await {
            Ok(slot) => slot.read().0.map_or(Look::Missing, Look::Found),
            Err(look) => (*look).clone(),
        }
    }

    /// Records here and in Redis that the sale is sold out as `view` knows it.
    pub async fn mark_sold_out(&self, view: &View) {
        let mark = SoldOutMark { epoch: view.sale.epoch, granted: view.sale.granted, at_ms: now_ms() };
        if let Some(slot) = self.local.get(&view.sale.sale_id).await {
            slot.write(Some(Arc::new(View { sale: view.sale.clone(), sold_out: Some(mark), remaining: Some(0) })));
        }
        // A mark that is not written costs other processes one script call.
        if let Err(error) = Box::pin(self.redis.sale_cache.mark_sold_out(&view.sale.sale_id, mark)).await {
            tracing::debug!(phase = "p1_entry", %error, "sold-out mark");
        }
    }

    /// Forgets what this process knows of a sale; the next look loads it.
    pub async fn forget(&self, id: &SaleId) {
        Box::pin(self.local.invalidate(id)).await;
    }

    fn refresh_behind(&self, id: &SaleId, slot: &Arc<Slot>) {
        if slot.refreshing.swap(true, Ordering::AcqRel) {
            return;
        }
        let (catalog, id, slot) = (self.clone(), id.clone(), slot.clone());
        tokio::spawn(async move {
            match catalog.load(&id).await {
                Look::Found(view) => slot.write(Some(view)),
                Look::Missing => slot.write(None),
                // The stale view goes on; the next look tries again.
                Look::Loading | Look::Unavailable => {}
            }
            slot.refreshing.store(false, Ordering::Release);
        });
    }

    async fn load(&self, id: &SaleId) -> Look {
        let cached = match self.redis.sale_cache.get(id).await {
            Ok(cached) => cached,
            // Of several servers the one with the cached sale is away, and buyers of the others' shards go on. Here too a
            // process asks the database once at a time, and only for sales that exist.
            Err(RedisFault::NotSent(_) | RedisFault::Unknown(_)) if self.shards > 1 && self.redis.is_connected() => {
                return self.load_from_database(id, None).await;
            }
            Err(error) => {
                tracing::debug!(phase = "p1_entry", sale = %id, %error, "cached sale");
                return Look::Unavailable;
            }
        };
        // JSON of another build that cannot be read counts as not cached.
        if let Some(sale) = cached.sale.and_then(|json| serde_json::from_str::<Sale>(&json).ok()) {
            return Look::Found(Arc::new(self.view(sale, cached.sold_out).await));
        }
        match self.redis.sale_cache.lock(id, &self.owner, LOCK_TTL_MS).await {
            Ok(true) => {}
            Ok(false) => return Look::Loading,
            Err(_) => return Look::Unavailable,
        }
        let look = self.load_from_database(id, cached.sold_out).await;
        if let Err(error) = self.redis.sale_cache.unlock(id, &self.owner).await {
            tracing::debug!(phase = "p1_entry", sale = %id, %error, "load lock ends with its time");
        }
        look
    }

    async fn load_from_database(&self, id: &SaleId, mark: Option<SoldOutMark>) -> Look {
        match sales::get(&self.db, id).await {
            Ok(None) => Look::Missing,
            Ok(Some(sale)) => {
                let ttl_ms = u64::try_from(self.ttl.as_millis()).unwrap_or(500) * REDIS_TTL_FACTOR;
                let json = serde_json::to_string(&sale).unwrap_or_default();
                if let Err(error) = self.redis.sale_cache.put(id, &json, ttl_ms).await {
                    tracing::debug!(phase = "p1_entry", sale = %id, %error, "sale not cached");
                }
                Look::Found(Arc::new(self.view(sale, mark).await))
            }
            Err(error) => {
                tracing::warn!(phase = "p1_entry", sale = %id, %error, "sale cannot be loaded");
                Look::Unavailable
            }
        }
    }

    async fn view(&self, sale: Sale, mark: Option<SoldOutMark>) -> View {
        let looks = (0..self.shards).map(|shard| self.redis.stock.units(&sale.sale_id, shard));
        let stocks = join_all(looks).await.into_iter().flatten().flatten();
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
        View { sale, sold_out, remaining }
    }
}
