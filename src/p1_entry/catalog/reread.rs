//! A sale that this process knows already is read again: by one task, whatever number waits for it.
//!
//! Input: the slot of a sale. Output: a view that may decide. While the database does not answer, a sale goes on selling by the terms
//! that Redis has: a view is confirmed by them, or it decides nothing. So an outage of the database stops no sale, and what was
//! changed before it is not decided by memory. A crash leaves nothing.

use super::Catalog;
use super::sale_view::{CatalogLookup, SaleView};
use super::slot::Slot;
use crate::domain::ids::SaleId;
use crate::runtime::Flight;
use futures::future::select_ok;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::{Instant as Deadline, timeout, timeout_at};

/// A database that has not answered by then is taken as away for now.
const SLOW: Duration = Duration::from_secs(1);
/// How often a view is confirmed while the reading goes on. Well below what a view may decide for.
const CONFIRM_EVERY: Duration = Duration::from_millis(300);
/// How often a waiting call checks whether the view was confirmed meanwhile.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// How long it is until the next turn, `since` the first one began; turns that take no time are always now.
fn until_next(turn: Duration, since: Duration) -> Duration {
    let into_turn = since.as_nanos().checked_rem(turn.as_nanos()).unwrap_or_default();
    turn.saturating_sub(Duration::from_nanos(u64::try_from(into_turn).unwrap_or_default()))
}

impl Catalog {
    /// How long it is until those that are due by then are read.
    pub(super) fn until_next_turn(&self) -> Duration {
        until_next(self.gather, self.made_at.elapsed())
    }

    /// The reading of a sale that is under way, or a new one, which begins after this pause.
    pub(super) fn start_reading(&self, id: &SaleId, slot: &Arc<Slot>, pause: Duration) -> Flight<CatalogLookup> {
        slot.reading(|| {
            let (catalog, id, slot) = (self.clone(), id.clone(), slot.clone());
            async move {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                catalog.read_into(&id, &slot).await
            }
        })
    }

    /// The sale of a slot whose view is too old to decide anything.
    pub(super) async fn read_anew(&self, id: &SaleId, slot: &Arc<Slot>, wait: Duration) -> CatalogLookup {
        let (reading, until) = (self.start_reading(id, slot, Duration::ZERO), Deadline::now() + wait);
        loop {
            let read = timeout(CHECK_EVERY, reading.clone()).await;
            let view = slot.read();
            if let Some(view) = view.view.filter(|_| view.read_at.elapsed() <= self.stale_max) {
                return CatalogLookup::Found(view);
            }
            match read {
                // It began long ago, on a server that stood still.
                Ok(Some(CatalogLookup::Found(_))) => return CatalogLookup::Loading,
                Ok(read) => return read.unwrap_or(CatalogLookup::Unavailable),
                Err(_) if Deadline::now() >= until => return CatalogLookup::Unavailable,
                Err(_) => {}
            }
        }
    }

    async fn read_into(&self, id: &SaleId, slot: &Slot) -> CatalogLookup {
        let read_at = Instant::now();
        let mut load = pin!(self.load(id));
        let mut next = Deadline::now() + SLOW;
        let found = loop {
            match timeout_at(next, &mut load).await {
                Ok(found) => break found,
                Err(_slow) => {
                    self.confirm(slot).await;
                    next = Deadline::now() + CONFIRM_EVERY;
                }
            }
        };
        match &found {
            CatalogLookup::Found(view) => slot.write(Some(view.clone()), read_at),
            CatalogLookup::Missing => slot.write(None, read_at),
            // What was read before stays, with its age; the next look-up tries again.
            CatalogLookup::Loading | CatalogLookup::Unavailable => {
                if let Some(view) = self.confirm(slot).await {
                    return CatalogLookup::Found(view);
                }
            }
        }
        found
    }

    /// The view of a slot with the stock of now, if Redis sells by exactly its terms: then it is as good as one that was read now.
    async fn confirm(&self, slot: &Slot) -> Option<Arc<SaleView>> {
        let (now, known) = (Instant::now(), slot.read().view?);
        // All at once: of several servers one may be away, and its time-out is longer than a view may decide for.
        let terms = (0..self.shards).map(|shard| Box::pin(self.redis.stock.has_terms_of(&known.sale, shard)));
        let (has_them, _) = select_ok(terms).await.ok()?;
        if !has_them {
            return None;
        }
        // Before the stock is read, which may take its time. No mark that came meanwhile is lost by it.
        slot.write(Some(known.clone()), now);
        let view = self.with_stock(known.sale.clone(), known.sold_out).await;
        slot.write(Some(Arc::new(view)), now);
        slot.read().view
    }
}

#[cfg(test)]
mod tests {
    use super::super::load::STOCK_WAIT;
    use super::{CONFIRM_EVERY, until_next};
    use crate::config::CACHE_STALE_MAX_LEAST_MS;
    use std::time::Duration;

    #[test]
    fn what_is_confirmed_may_decide_until_it_is_confirmed_again() {
        assert!(CONFIRM_EVERY + STOCK_WAIT <= Duration::from_millis(CACHE_STALE_MAX_LEAST_MS));
    }

    #[test]
    fn what_is_due_in_one_turn_is_read_at_its_end() {
        let ms = Duration::from_millis;
        for (since, until) in [(0, 25), (1, 24), (24, 1), (25, 25), (1_049, 1)] {
            assert_eq!(until_next(ms(25), ms(since)), ms(until), "{since} ms");
        }
        assert_eq!(until_next(Duration::ZERO, ms(7)), Duration::ZERO);
    }
}
