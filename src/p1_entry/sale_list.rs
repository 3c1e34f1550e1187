//! The list of sales for buyers: made at most once a second, by one task at a time, whatever number asks.
//!
//! Input: the table of sales, and what the entry knows of those that sell. Output: the sales that are not closed and did not end
//! long ago, with the list's age. A list of up to `p1_entry.cache_stale_max_ms` is answered at once, while the next one is made. An
//! older one waits a moment for the next, but never for servers that stand still: then it is answered, old as it is. A crash leaves
//! nothing.

use super::catalog::{Catalog, SaleView};
use crate::domain::ids::{DropId, SaleId};
use crate::domain::sale::{Sale, SaleStatus};
use crate::http::problem::{Kind, Problem};
use crate::runtime::{SingleFlight, now_ms};
use crate::sales::rows::SaleRows;
use crate::store::mysql::DbError;
use futures::StreamExt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::time::timeout_at;

/// The list is made at most this often.
const LIST_TTL: Duration = Duration::from_secs(1);
/// Longest time that a list which is being made keeps an old one back, from its beginning.
const LIST_WAIT: Duration = Duration::from_millis(500);
/// A sale is listed for a day after its end; its own address goes on answering.
const LISTED_AFTER_END_MS: i64 = 86_400_000;
/// Sales whose stock is read again for one list, in turn: so Redis sees as many commands a second as these sales have shards,
/// however many sales there are and however many ask.
const REFRESHED_MAX: usize = 50;
/// Reads of the entry's sales under way at once.
const READS_MAX: usize = 8;

/// A sale of the list.
pub(crate) struct ListedSale {
    /// As the database has it.
    pub(crate) sale: Sale,
    /// The same with its stock as the entry knows it; `None` when it does not.
    pub(crate) view: Option<Arc<SaleView>>,
    /// When it gets its next units, Unix milliseconds.
    pub(crate) next_release_ms: Option<i64>,
}

/// One list.
pub(crate) struct ListedSales {
    /// Newest first.
    pub(crate) sales: Vec<ListedSale>,
    /// When its making began.
    pub(crate) made_at: Instant,
    /// The body of the answer, made by the first request that needs it.
    pub(crate) body: OnceLock<Arc<str>>,
    /// The same of each drop that has a sale in the list.
    pub(crate) drop_bodies: OnceLock<HashMap<DropId, Arc<str>>>,
}

/// The last list that was made.
pub struct SaleList {
    maker: Arc<ListMaker>,
    making: SingleFlight<()>,
}

struct ListMaker {
    sales: SaleRows,
    catalog: Catalog,
    last: Mutex<LastList>,
}

#[derive(Default)]
struct LastList {
    /// When the last try ended.
    tried_at: Option<Instant>,
    has_failed: bool,
    list: Option<Arc<ListedSales>>,
    /// Where the next list begins to refresh.
    refresh_from: usize,
}

impl SaleList {
    /// Nothing read yet.
    #[must_use]
    pub(crate) fn new(sales: SaleRows, catalog: Catalog) -> Self {
        let maker = ListMaker { sales, catalog, last: Mutex::default() };
        Self { maker: Arc::new(maker), making: SingleFlight::default() }
    }

    /// The sales that are not closed and did not end more than a day ago.
    pub(super) async fn get(&self) -> Result<Arc<ListedSales>, Problem> {
        let (list, is_due, has_failed) = self.maker.last_made();
        if is_due {
            let (making, begun) = self.making.join(|| {
                let maker = self.maker.clone();
                async move { maker.make().await }
            });
            match &list {
                // The first one: the database's deadlines are this one's.
                None => drop(making.await),
                Some(list) if !has_failed && list.made_at.elapsed() > self.maker.catalog.stale_max() => {
                    drop(timeout_at((begun + LIST_WAIT).into(), making).await);
                }
                // An old list is better than none, and better than one that comes late.
                Some(_) => {}
            }
        }
        self.maker.last().list.clone().ok_or_else(|| {
            Kind::Unavailable.because_both("the sales cannot be listed right now", "活动列表暂时无法读取")
        })
    }
}

impl ListMaker {
    fn last(&self) -> MutexGuard<'_, LastList> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last list, whether the next one is due, and whether the last try failed.
    fn last_made(&self) -> (Option<Arc<ListedSales>>, bool, bool) {
        let last = self.last();
        (last.list.clone(), last.tried_at.is_none_or(|at| at.elapsed() >= LIST_TTL), last.has_failed)
    }

    async fn make(&self) {
        let made_at = Instant::now();
        let made = match self.read().await {
            Ok((found, releases)) => Some(self.looked_up(found, &releases).await),
            Err(error) => {
                tracing::warn!(phase = "p1_entry", %error, "the list of sales cannot be read");
                None
            }
        };
        let mut last = self.last();
        // After a failure too: who waited for this try does not make another one each.
        (last.tried_at, last.has_failed) = (Some(Instant::now()), made.is_none());
        if let Some(sales) = made {
            last.list =
                Some(Arc::new(ListedSales { sales, made_at, body: OnceLock::new(), drop_bodies: OnceLock::new() }));
        }
    }

    /// The sales, and when those that wait for units get them.
    async fn read(&self) -> Result<(Vec<Sale>, HashMap<SaleId, i64>), DbError> {
        let found = self.sales.not_over(now_ms() - LISTED_AFTER_END_MS).await?;
        Ok((found, self.sales.next_releases().await?))
    }

    /// The sales with what the entry knows of their stock. Of those that are open a bounded number is refreshed, in turn.
    async fn looked_up(&self, found: Vec<Sale>, releases: &HashMap<SaleId, i64>) -> Vec<ListedSale> {
        let now = now_ms();
        let is_open = |sale: &Sale| sale.status != SaleStatus::Draft && now < sale.ends_at_ms;
        let open_count = found.iter().filter(|sale| is_open(sale)).count();
        let from = {
            let refresh_from = &mut self.last().refresh_from;
            let from = if *refresh_from < open_count { *refresh_from } else { 0 };
            *refresh_from = from + REFRESHED_MAX;
            from
        };
        let mut turn = 0;
        let mut reads = Vec::with_capacity(found.len());
        for sale in found {
            let mut is_its_turn = false;
            if is_open(&sale) {
                is_its_turn = (turn + open_count - from) % open_count < REFRESHED_MAX;
                turn += 1;
            }
            let next_release_ms = releases.get(&sale.sale_id).copied();
            reads.push(self.read_one(sale, is_its_turn, next_release_ms));
        }
        futures::stream::iter(reads).buffered(READS_MAX).collect().await
    }

    /// The row as it was read, with the stock as the entry knows it: a view may be older than the row, and the stock is not in it.
    async fn read_one(&self, sale: Sale, refresh: bool, next_release_ms: Option<i64>) -> ListedSale {
        let known = match refresh {
            true => self.catalog.shown(&sale.sale_id).await.ok().map(|(view, _age)| view),
            false => self.catalog.listed_stock(&sale.sale_id).await,
        };
        let known = known.filter(|view| (view.sale.epoch, view.sale.granted) == (sale.epoch, sale.granted));
        let view = known.map(|view| Arc::new(SaleView { sale: sale.clone(), ..(*view).clone() }));
        ListedSale { sale, view, next_release_ms }
    }
}
