//! What one process knows of one sale: the view, when it was read, and the reading that is under way.
//!
//! Input: a reading. Output: the view with its age. A crash leaves nothing.

use super::{CatalogLookup, SaleView};
use crate::p1_entry::near_views;
use crate::runtime::{Flight, SingleFlight};
use crate::store::redis::SoldOutMark;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

/// A view, and when its reading began: it may be as old as that.
#[derive(Clone)]
pub(super) struct ReadView {
    /// `None`: there is no such sale.
    pub view: Option<Arc<SaleView>>,
    pub read_at: Instant,
}

/// The place of one sale in the cache.
pub(super) struct Slot {
    read: RwLock<ReadView>,
    readings: SingleFlight<CatalogLookup>,
}

impl Slot {
    pub(super) fn new(view: Option<Arc<SaleView>>, read_at: Instant) -> Self {
        Self { read: RwLock::new(ReadView { view, read_at }), readings: SingleFlight::default() }
    }

    pub(super) fn read(&self) -> ReadView {
        self.read.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was read, unless a later reading is there already.
    pub(super) fn write(&self, view: Option<Arc<SaleView>>, read_at: Instant) {
        {
            let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
            if read_at < read.read_at {
                return;
            }
            *read = ReadView { view, read_at };
        }
        near_views::changed();
    }

    /// The view gets a mark, if it is of the same epoch and grants. Its age stays: a mark that made it young again would keep an old
    /// sale for as long as marks come.
    pub(super) fn mark_sold_out(&self, mark: SoldOutMark) {
        {
            let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
            let Some(view) = &read.view else { return };
            if (view.sale.epoch, view.sale.granted) != (mark.epoch, mark.granted) {
                return;
            }
            let marked = SaleView { sale: view.sale.clone(), sold_out: Some(mark), remaining: Some(0) };
            read.view = Some(Arc::new(marked));
        }
        near_views::changed();
    }

    /// The reading that is under way, or `read` as a new one.
    pub(super) fn reading<F>(&self, read: impl FnOnce() -> F) -> Flight<CatalogLookup>
    where
        F: Future<Output = CatalogLookup> + Send + 'static,
    {
        self.readings.join(read).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sale::Sale;
    use std::time::Duration;

    #[test]
    fn a_mark_makes_no_view_young_again_and_counts_for_its_epoch_and_grants_only() {
        let sale: Sale = serde_json::from_value(serde_json::json!({
            "sale_id": "s", "product_id": "p", "title": "t", "price_cents": 1, "currency": "CNY", "granted": 5, "stock": 1,
            "policy": 1, "token_required": false, "starts_at_ms": 0, "ends_at_ms": 1, "status": "warmed", "epoch": 2,
        }))
        .unwrap();
        let read_at = Instant::now().checked_sub(Duration::from_secs(1)).unwrap_or_else(Instant::now);
        let slot = Slot::new(Some(Arc::new(SaleView { sale, sold_out: None, remaining: Some(3) })), read_at);
        let sold_out = || slot.read().view.unwrap().sold_out.is_some();
        for (epoch, granted) in [(1, 5), (2, 4)] {
            slot.mark_sold_out(SoldOutMark { epoch, granted, at_ms: 1 });
            assert!(!sold_out(), "the sale was rebuilt or topped up since");
        }
        slot.mark_sold_out(SoldOutMark { epoch: 2, granted: 5, at_ms: 1 });
        assert!(sold_out() && slot.read().read_at == read_at);
    }
}
