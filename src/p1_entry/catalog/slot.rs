//! What one process knows of one sale: the view, when it was read, and the reading that is under way.
//!
//! Input: a reading. Output: the view with its age. A crash leaves nothing.

use super::near_views::SaleChanges;
use super::sale_view::{CatalogLookup, SaleView};
use crate::domain::ids::SaleId;
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
    /// When the view got a mark of this process.
    marked_at: Option<Instant>,
}

/// The place of one sale in the cache.
pub(super) struct Slot {
    read: RwLock<ReadView>,
    readings: SingleFlight<CatalogLookup>,
    changes: SaleChanges,
}

impl Slot {
    pub(super) fn new(sale: &SaleId, view: Option<Arc<SaleView>>, read_at: Instant) -> Self {
        let read = ReadView { view, read_at, marked_at: None };
        Self { read: RwLock::new(read), readings: SingleFlight::default(), changes: SaleChanges::of(sale) }
    }

    pub(super) fn read(&self) -> ReadView {
        self.read.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was read, unless a later reading is there already. A mark that came while it was read stays: the reading may have been
    /// before it. The next one decides.
    pub(super) fn write(&self, view: Option<Arc<SaleView>>, read_at: Instant) {
        {
            let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
            if read_at < read.read_at {
                return;
            }
            let marked_at = read.marked_at.filter(|marked_at| *marked_at >= read_at);
            let mark = read.view.as_ref().filter(|_| marked_at.is_some()).and_then(|marked| marked.sold_out);
            let view = view.map(|view| mark.and_then(|mark| view.marked(mark)).map_or(view, Arc::new));
            *read = ReadView { view, read_at, marked_at };
        }
        self.changes.changed();
    }

    /// The view gets a mark, if it is of the same epoch and grants. Its age stays: a mark that made it young again would keep an old
    /// sale for as long as marks come.
    pub(super) fn mark_sold_out(&self, mark: SoldOutMark) {
        {
            let mut read = self.read.write().unwrap_or_else(PoisonError::into_inner);
            let Some(marked) = read.view.as_ref().and_then(|view| view.marked(mark)) else { return };
            read.view = Some(Arc::new(marked));
            read.marked_at = Some(Instant::now());
        }
        self.changes.changed();
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

    fn view() -> Arc<SaleView> {
        let sale: Sale = serde_json::from_value(serde_json::json!({
            "sale_id": "s", "product_id": "p", "title": "t", "price_cents": 1, "currency": "CNY", "granted": 5, "stock": 1,
            "policy": 1, "token_required": false, "starts_at_ms": 0, "ends_at_ms": 1, "status": "warmed", "epoch": 2, "needs": null, "limit_by": "account",
            "challenge": null, "line": null, "by_line": false,
        }))
        .unwrap();
        Arc::new(SaleView { sale, sold_out: None, remaining: Some(3) })
    }

    fn slot(read_at: Instant) -> Slot {
        Slot::new(&view().sale.sale_id, Some(view()), read_at)
    }

    const MARK: SoldOutMark = SoldOutMark { epoch: 2, granted: 5, at_ms: 1 };

    fn is_sold_out(slot: &Slot) -> bool {
        slot.read().view.unwrap().sold_out.is_some()
    }

    #[test]
    fn a_mark_makes_no_view_young_again_and_counts_for_its_epoch_and_grants_only() {
        let read_at = Instant::now().checked_sub(Duration::from_secs(1)).unwrap_or_else(Instant::now);
        let slot = slot(read_at);
        for (epoch, granted) in [(1, 5), (2, 4)] {
            slot.mark_sold_out(SoldOutMark { epoch, granted, at_ms: 1 });
            assert!(!is_sold_out(&slot), "the sale was rebuilt or topped up since");
        }
        slot.mark_sold_out(MARK);
        assert!(is_sold_out(&slot) && slot.read().read_at == read_at);
    }

    #[test]
    fn a_mark_that_comes_while_the_sale_is_read_outlives_this_reading_and_not_the_next() {
        let slot = slot(Instant::now());
        let reading = Instant::now();
        let (stock_before_the_mark, confirmed_before_it) = (view(), slot.read().view);
        slot.mark_sold_out(MARK);
        slot.write(confirmed_before_it, reading);
        assert!(is_sold_out(&slot), "its view was taken before the mark");
        slot.write(Some(stock_before_the_mark), reading);
        assert!(is_sold_out(&slot), "and so was its stock");
        assert_eq!(slot.read().read_at, reading);
        let mut topped_up = (*view()).clone();
        topped_up.sale.granted = 6;
        slot.write(Some(Arc::new(topped_up)), reading);
        assert!(!is_sold_out(&slot), "a mark of before the top-up is void");
        slot.mark_sold_out(SoldOutMark { granted: 6, ..MARK });
        assert!(is_sold_out(&slot));
        slot.write(Some(view()), later_than(slot.read().marked_at));
        assert!(!is_sold_out(&slot), "a reading that began later decides");
    }

    #[test]
    fn an_older_reading_does_not_replace_a_later_one() {
        let (old, new) = (Instant::now(), later_than(Some(Instant::now())));
        let slot = slot(new);
        slot.write(None, old);
        assert!(slot.read().view.is_some() && slot.read().read_at == new);
        slot.write(None, new);
        assert!(slot.read().view.is_none());
    }

    fn later_than(moment: Option<Instant>) -> Instant {
        moment.unwrap() + Duration::from_millis(1)
    }
}
