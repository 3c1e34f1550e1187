//! The entries of drawn raffles in the order of their ranks, of the lines that are served.
//!
//! Input: a drawn line. Output: the next entries, page by page. Of each of the last few lines the ids are kept in memory, 8 bytes an entry. A
//! crash leaves nothing: the ranks follow from the list again.

use super::OfferFault;
use crate::domain::ids::SaleId;
use crate::lines::list::read_list;
use crate::lines::rows::{LineRows, OFFERS_MAX, Waiter};
use std::collections::HashMap;
use std::sync::Arc;

/// Raffles whose order is kept, of 5,000,000 entries at most.
const KEPT_MAX: usize = 4;

/// A raffle's entries by rank, from rank 1.
struct RaffleOrder {
    ids: Arc<[u64]>,
    /// Those before this place do not wait any more.
    first: usize,
}

/// Those of one process.
pub(super) struct RaffleOrders {
    rows: LineRows,
    kept: HashMap<SaleId, RaffleOrder>,
}

/// A page of entries in the order of ranks.
pub(super) struct NextByRank {
    /// Those of the page that wait and are not in hand, with their ranks.
    pub(super) waiters: Vec<(u32, Waiter)>,
    /// Where the next page begins; `None`: this is the last one.
    pub(super) next: Option<usize>,
}

impl RaffleOrders {
    pub(super) fn new(rows: LineRows) -> Self {
        Self { rows, kept: HashMap::new() }
    }

    /// The page of entries that begins at `from`; from the first that may wait when it is `None`.
    pub(super) async fn page(&mut self, sale: &SaleId, from: Option<usize>) -> Result<NextByRank, OfferFault> {
        if !self.kept.contains_key(sale) {
            let order = self.read(sale).await?;
            if self.kept.len() >= KEPT_MAX {
                self.kept.clear();
            }
            self.kept.insert(sale.clone(), order);
        }
        let Some(order) = self.kept.get_mut(sale) else { return Ok(NextByRank { waiters: Vec::new(), next: None }) };
        let begins = from.unwrap_or(order.first);
        let page = order.ids.get(begins..order.ids.len().min(begins + OFFERS_MAX)).unwrap_or_default();
        let mut found: HashMap<u64, Waiter> =
            self.rows.waiters_of(sale, page).await?.into_iter().map(|waiter| (waiter.id.get(), waiter)).collect();
        let ranked = (begins..).zip(page).filter_map(|(at, id)| Some((at, found.remove(id)?)));
        let waits: Vec<(usize, Waiter)> = ranked.collect();
        if begins == order.first {
            order.first = waits.first().map_or(begins + page.len(), |(at, _)| *at);
        }
        let ends = begins + page.len();
        let next = (ends < order.ids.len() && !page.is_empty()).then_some(ends);
        let rank = |at: usize| u32::try_from(at + 1).unwrap_or(u32::MAX);
        let fresh = waits.into_iter().filter(|(_, waiter)| waiter.request_id.is_none());
        Ok(NextByRank { waiters: fresh.map(|(at, waiter)| (rank(at), waiter)).collect(), next })
    }

    async fn read(&self, sale: &SaleId) -> Result<RaffleOrder, OfferFault> {
        let line = self.rows.line(sale).await?;
        let sealed = line.as_ref().and_then(|line| line.sealed.clone());
        let (Some(line), Some(sealed)) = (line, sealed) else {
            return Ok(RaffleOrder { ids: Arc::default(), first: 0 });
        };
        let ranks = read_list(&self.rows, sale, (sealed, line.beacon)).await?;
        Ok(RaffleOrder { ids: ranks.first(usize::MAX).into(), first: 0 })
    }
}
