//! The sales as the entry sees them (A4): thread-local ([`near_views`]) → process-local with logical expiry → Redis → database
//! behind a lock.
//!
//! A view has three ages. Up to nearly `p1_entry.cache_ttl_ms` it is fresh. Up to `p1_entry.cache_stale_max_ms` it is served while
//! one task reads the sale again: with all others that are due in the same moment, so that the questions about many sales share
//! their way to a server. Older, it decides nothing: who asks waits for the reading ([`reread`]), and when the sale cannot be
//! read the answer is 503. Only what is shown ([`Catalog::shown`]) may be older, while the servers cannot be asked.
//!
//! A sale that is not cached is loaded by one process at a time; the others wait a moment for it, then answer `P1-S4`. While the
//! server of the cached sale, one of several, is away or refuses, each process loads it by itself. The cache has no authority
//! over stock, door and window: the reserve script has.
//!
//! Input: a sale id. Output: [`CatalogLookup`]. A crash leaves a load lock that ends by itself.

mod load;
mod near_views;
mod reread;
mod sale_view;
mod slot;

pub(crate) use sale_view::{CatalogLookup, SaleView};

use super::sale_id_filter::{FilterVerdict, SaleIdFilter};
use crate::config;
use crate::domain::ids::SaleId;
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::runtime::now_ms;
use crate::sales::rows::SaleRows;
use crate::store::redis::{RedisHealth, SaleCache, SoldOutMark, Stock};
use crate::telemetry::count;
use moka::future::Cache;
use near_views::{CatalogNumber, SaleChanges};
use slot::{ReadView, Slot};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait for a view that is young enough to decide by. Redis and database have deadlines of their own.
const READING_WAIT: Duration = Duration::from_secs(5);
/// The same where an older view will do: what was known before is shown then.
const SHOWN_WAIT: Duration = Duration::from_millis(500);
/// Longest time in which sales that are due are gathered, to be read together.
const GATHER_MAX: Duration = Duration::from_millis(25);
/// A view is shown for this time while the sale cannot be read.
const SHOWN_MAX: Duration = Duration::from_secs(600);
/// "No such sale" is said by the filter of sale ids for this time after it was complete, milliseconds; it is read again every second.
const UNKNOWN_MAX_MS: i64 = 10_000;
/// Units left are listed for this time after they were read.
const LISTED_STOCK_MAX: Duration = Duration::from_secs(60);

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
    sales: SaleRows,
    shards: u16,
    /// Redis' copy is kept by this, and a view is read again within it.
    ttl: Duration,
    /// Those that are due in this time are read together.
    gather: Duration,
    /// Begin of the first of these times.
    made_at: Instant,
    stale_max: Duration,
    missing_ttl: Duration,
    owner: Arc<str>,
    sale_ids: SaleIdFilter,
}

impl Catalog {
    /// An empty catalog; `owner` names this process in the load lock.
    #[must_use]
    pub(crate) fn new(
        redis: CatalogHandles,
        sales: SaleRows,
        known: SaleIdFilter,
        settings: &config::Settings,
        owner: &str,
    ) -> Self {
        let (shards, settings) = (settings.redis.shards, &settings.p1_entry);
        let ttl = Duration::from_millis(settings.cache_ttl_ms);
        Self {
            number: CatalogNumber::next(),
            local: Cache::builder().max_capacity(settings.cache_sales_max).build(),
            redis,
            sales,
            shards,
            ttl,
            gather: GATHER_MAX.min(ttl / 20),
            made_at: Instant::now(),
            stale_max: Duration::from_millis(settings.cache_stale_max_ms),
            missing_ttl: Duration::from_millis(settings.missing_ttl_ms),
            owner: Arc::from(owner),
            sale_ids: known,
        }
    }

    /// The sale to decide by, or the problem to answer with when it cannot be had.
    ///
    /// # Errors
    /// 404, also when it is hidden, or 503 while it is loaded elsewhere or no server answers.
    pub(crate) async fn view(&self, id: &SaleId) -> Result<Arc<SaleView>, Problem> {
        Self::for_buyers(id, self.lookup(id).await)
    }

    fn for_buyers(id: &SaleId, found: CatalogLookup) -> Result<Arc<SaleView>, Problem> {
        match found {
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

    /// The sale to show, and its age: as [`Catalog::view`], but while the sale cannot be read as it was known last, for up to
    /// ten minutes.
    ///
    /// # Errors
    /// As [`Catalog::view`].
    pub(crate) async fn shown(&self, id: &SaleId) -> Result<(Arc<SaleView>, Duration), Problem> {
        let found = self.lookup_within(id, SHOWN_WAIT).await;
        if matches!(found, CatalogLookup::Loading | CatalogLookup::Unavailable)
            && let Some((view, age)) = self.known(id, SHOWN_MAX).await
            && !view.sale.hidden
        {
            return Ok((view, age));
        }
        Self::for_buyers(id, found).map(|view| (view, Duration::ZERO))
    }

    /// The sale as this process knows it, and how old that is, `age_max` at most; asks no server.
    async fn known(&self, id: &SaleId, age_max: Duration) -> Option<(Arc<SaleView>, Duration)> {
        let ReadView { view, read_at, .. } = self.local.get(id).await?.read();
        let age = read_at.elapsed();
        view.filter(|_| age <= age_max).map(|view| (view, age))
    }

    /// A view that is older decides nothing.
    pub(crate) const fn stale_max(&self) -> Duration {
        self.stale_max
    }

    /// What this process knows of a sale's stock, for a list; asks no server.
    pub(crate) async fn listed_stock(&self, id: &SaleId) -> Option<Arc<SaleView>> {
        self.known(id, LISTED_STOCK_MAX).await.map(|(view, _age)| view)
    }

    /// Looks a sale up: in this process, then in Redis, then in the database. What is found is not older than
    /// `p1_entry.cache_stale_max_ms`.
    pub(crate) async fn lookup(&self, id: &SaleId) -> CatalogLookup {
        self.lookup_within(id, READING_WAIT).await
    }

    /// The same with a wait of its own, for a sale that is known and has to be read again; the first reading has the deadlines of
    /// the servers only.
    pub(crate) async fn lookup_within(&self, id: &SaleId, wait: Duration) -> CatalogLookup {
        if let Some(view) = near_views::get(self.number, id) {
            return CatalogLookup::Found(view);
        }
        let seen = SaleChanges::of(id).seen();
        if let Some(slot) = self.local.get(id).await {
            let ReadView { view, read_at, .. } = slot.read();
            let age = read_at.elapsed();
            match view {
                // What is gathered then is read before the time is over.
                Some(view) if age + self.gather <= self.ttl => {
                    near_views::put(self.number, seen, &view, read_at + (self.ttl - self.gather));
                    return CatalogLookup::Found(view);
                }
                Some(view) if age <= self.stale_max => {
                    // Only this wait is dropped: the reading is a task of its own and goes on.
                    drop(self.start_reading(id, &slot, self.until_next_turn()));
                    return CatalogLookup::Found(view);
                }
                // Boxed, here and below: a future of several kilobytes that nearly no request needs, and each would carry.
                Some(_) => return Box::pin(self.read_anew(id, &slot, wait)).await,
                None if age <= self.missing_ttl => return CatalogLookup::Missing,
                None => self.forget(id).await,
            }
        }
        Box::pin(self.load_once(id)).await
    }

    async fn load_once(&self, id: &SaleId) -> CatalogLookup {
        let loaded = self.local.try_get_with(id.clone(), async {
            // Inside, so that concurrent requests for one id are one lookup.
            match self.sale_ids.check(id) {
                FilterVerdict::MayExist => {}
                // A filter that could not be read again for long does not know the new sales.
                FilterVerdict::UnknownAt(at_ms) if now_ms() - at_ms > UNKNOWN_MAX_MS => {
                    return Err(CatalogLookup::Unavailable);
                }
                FilterVerdict::UnknownAt(_) => return Err(CatalogLookup::Missing),
            }
            let read_at = Instant::now();
            let view = match self.load(id).await {
                CatalogLookup::Found(view) => {
                    self.sale_ids.exists(id);
                    Some(view)
                }
                CatalogLookup::Missing => None,
                // An error is not kept in the cache: the next request reads again.
                other @ (CatalogLookup::Loading | CatalogLookup::Unavailable) => return Err(other),
            };
            Ok(Arc::new(Slot::new(id, view, read_at)))
        });
        match loaded.await {
            Ok(slot) => slot.read().view.map_or(CatalogLookup::Missing, CatalogLookup::Found),
            Err(not_found) => (*not_found).clone(),
        }
    }

    /// Records here and in Redis that the sale is sold out as `view` knows it.
    pub(crate) async fn mark_sold_out(&self, view: &SaleView) {
        let mark = SoldOutMark { epoch: view.sale.epoch, granted: view.sale.granted, at_ms: now_ms() };
        match self.local.get(&view.sale.sale_id).await {
            Some(slot) => slot.mark_sold_out(mark),
            // Evicted: the next lookup reads it anew.
            None => SaleChanges::of(&view.sale.sale_id).changed(),
        }
        // A mark that is not written costs other processes one script call.
        let marked = self.redis.sale_cache.mark_sold_out(&view.sale.sale_id, mark, self.redis_ttl_ms());
        if let Err(error) = Box::pin(marked).await {
            tracing::debug!(phase = "p1_entry", %error, "sold-out mark");
        }
    }

    /// Forgets what this process knows of a sale; the next lookup loads it.
    pub(crate) async fn forget(&self, id: &SaleId) {
        Box::pin(self.local.invalidate(id)).await;
        SaleChanges::of(id).changed();
    }
}
