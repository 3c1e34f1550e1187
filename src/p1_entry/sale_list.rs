//! The list of sales for buyers: made at most once a second, by one request at a time, whatever number asks.
//!
//! Input: the table of sales, and what the entry knows of those that sell. Output: the sales that are not closed and did not end
//! long ago; an old list while the database does not answer. A crash leaves nothing.

use super::catalog::{Catalog, SaleView};
use crate::domain::sale::{Sale, SaleStatus};
use crate::http::problem::{Kind, Problem};
use crate::runtime::now_ms;
use crate::store::mysql::{Db, sales};
use futures::StreamExt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// The list is made at most this often.
const LIST_TTL: Duration = Duration::from_secs(1);
/// A sale is listed for a day after its end; its own address goes on answering.
const LISTED_AFTER_END_MS: i64 = 86_400_000;
/// Sales whose stock is read again for one list, in turn: so Redis sees as many commands a second as these sales have shards,
/// however many sales there are and however many ask.
const REFRESHED_MAX: usize = 50;
/// Looks at the entry's sales under way at once.
const LOOKS_MAX: usize = 8;

/// A sale of the list.
pub(crate) struct ListedSale {
    /// As the database has it.
    pub(crate) sale: Sale,
    /// As the entry knows it, which is fresher; `None` when it does not.
    pub(crate) view: Option<Arc<SaleView>>,
}

/// One list.
pub(crate) struct ListedSales {
    /// Newest first.
    pub(crate) sales: Vec<ListedSale>,
    /// The body of the answer, made by the first request that needs it.
    pub(crate) body: OnceLock<Arc<str>>,
}

/// The last list that was made.
pub struct SaleList {
    db: Db,
    catalog: Catalog,
    last: Mutex<LastList>,
}

#[derive(Default)]
struct LastList {
    /// When the last try ended.
    tried_at: Option<Instant>,
    list: Option<Arc<ListedSales>>,
    /// Where the next list begins to refresh.
    refresh_from: usize,
}

impl SaleList {
    /// Nothing read yet.
    #[must_use]
    pub(crate) fn new(db: Db, catalog: Catalog) -> Self {
        Self { db, catalog, last: Mutex::default() }
    }

    /// The sales that are not closed and did not end more than a day ago.
    pub(super) async fn get(&self) -> Result<Arc<ListedSales>, Problem> {
        let mut last = self.last.lock().await;
        if last.tried_at.is_none_or(|at| at.elapsed() >= LIST_TTL) {
            match sales::not_over(&self.db, now_ms() - LISTED_AFTER_END_MS).await {
                Ok(found) => {
                    let sales = self.looked_up(found, &mut last.refresh_from).await;
                    last.list = Some(Arc::new(ListedSales { sales, body: OnceLock::new() }));
                }
                Err(error) => tracing::warn!(phase = "p1_entry", %error, "the list of sales cannot be read"),
            }
            // After a failure too: who waited for this try does not make another one each.
            last.tried_at = Some(Instant::now());
        }
        // An old list is better than none.
        last.list.clone().ok_or_else(|| {
            Kind::Unavailable.because_both("the sales cannot be listed right now", "活动列表暂时无法读取")
        })
    }

    /// The sales with what the entry knows of their stock. Of those that are open a bounded number is refreshed, in turn.
    async fn looked_up(&self, found: Vec<Sale>, refresh_from: &mut usize) -> Vec<ListedSale> {
        let now = now_ms();
        let is_open = |sale: &Sale| sale.status != SaleStatus::Draft && now < sale.ends_at_ms;
        let open_count = found.iter().filter(|sale| is_open(sale)).count();
        let from = if *refresh_from < open_count { *refresh_from } else { 0 };
        *refresh_from = from + REFRESHED_MAX;
        let mut turn = 0;
        let mut looks = Vec::with_capacity(found.len());
        for sale in found {
            let mut is_its_turn = false;
            if is_open(&sale) {
                is_its_turn = (turn + open_count - from) % open_count < REFRESHED_MAX;
                turn += 1;
            }
            looks.push(self.look(sale, is_its_turn));
        }
        futures::stream::iter(looks).buffered(LOOKS_MAX).collect().await
    }

    async fn look(&self, sale: Sale, refresh: bool) -> ListedSale {
        if refresh {
            let view = self.catalog.view(&sale.sale_id).await.ok();
            return ListedSale { sale, view };
        }
        // The database's word on the sale is newer than what this process knows; the stock is not in it.
        let known = self.catalog.known(&sale.sale_id).await;
        let known = known.filter(|view| (view.sale.epoch, view.sale.granted) == (sale.epoch, sale.granted));
        let view = known.map(|view| Arc::new(SaleView { sale: sale.clone(), ..(*view).clone() }));
        ListedSale { sale, view }
    }
}
