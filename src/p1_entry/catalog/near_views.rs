//! The sales that this thread looked up last: a purchase finds its sale here without touching memory that other threads write.
//!
//! Input: views that the [`Catalog`](super::Catalog) found fresh. Output: the same view again until it is no longer
//! fresh, or until anything changed in a catalog of this process: a sold-out mark is seen by the very next purchase on every
//! thread. A crash leaves nothing.

use super::sale_view::SaleView;
use crate::domain::ids::SaleId;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Sales a thread remembers; of more that are sold at once the oldest goes.
const SALES_MAX: usize = 16;

/// Changes in all catalogs of this process so far.
static CHANGES: AtomicU64 = AtomicU64::new(0);
/// Catalogs made so far. A process has one, but for tests.
static CATALOGS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NEAR: RefCell<Vec<NearView>> = const { RefCell::new(Vec::new()) };
}

struct NearView {
    catalog: CatalogNumber,
    seen: ChangesSeen,
    /// A copy for this thread alone: the count of a shared one would move between all threads with each purchase.
    view: Arc<SaleView>,
    fresh_until: Instant,
}

/// Which catalog a view is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CatalogNumber(u64);

impl CatalogNumber {
    /// Of a new catalog.
    pub(super) fn next() -> Self {
        Self(CATALOGS.fetch_add(1, Ordering::Relaxed))
    }
}

/// The changes that had happened when a view was about to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChangesSeen(u64);

impl ChangesSeen {
    /// Now. To be taken before the view is read: a change in between makes the view count as old.
    pub(super) fn now() -> Self {
        Self(CHANGES.load(Ordering::Acquire))
    }
}

/// Something changed: no thread uses what it remembers. To be called after the change.
pub(super) fn changed() {
    CHANGES.fetch_add(1, Ordering::AcqRel);
}

/// The view of a sale, if this thread has a fresh one.
pub(super) fn get(catalog: CatalogNumber, sale: &SaleId) -> Option<Arc<SaleView>> {
    NEAR.with_borrow(|views| {
        let view = views.iter().find(|near| near.catalog == catalog && near.view.sale.sale_id == *sale)?;
        (view.seen == ChangesSeen::now() && Instant::now() < view.fresh_until).then(|| view.view.clone())
    })
}

/// Remembers a view that was read after `seen` and is fresh until then.
pub(super) fn put(catalog: CatalogNumber, seen: ChangesSeen, view: &SaleView, fresh_until: Instant) {
    let near = NearView { catalog, seen, view: Arc::new(view.clone()), fresh_until };
    NEAR.with_borrow_mut(|views| {
        views.retain(|old| old.catalog != catalog || old.view.sale.sale_id != near.view.sale.sale_id);
        if views.len() >= SALES_MAX {
            views.remove(0);
        }
        views.push(near);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn view(sale: &str) -> SaleView {
        let sale = serde_json::from_value(serde_json::json!({
            "sale_id": sale, "product_id": "p", "title": "t", "price_cents": 1, "currency": "CNY", "granted": 1, "stock": 1,
            "policy": 1, "token_required": false, "starts_at_ms": 0, "ends_at_ms": 1, "status": "warmed", "epoch": 1,
        }));
        SaleView { sale: sale.unwrap(), sold_out: None, remaining: None }
    }

    /// The other tests of this process change catalogs, too, so a view can count as old at any time; a new one never does.
    fn found(catalog: CatalogNumber, sale: &str) -> bool {
        get(catalog, &SaleId::parse(sale).unwrap()).is_some()
    }

    fn eventually_found(catalog: CatalogNumber, sale: &str, fresh_until: Instant) {
        loop {
            put(catalog, ChangesSeen::now(), &view(sale), fresh_until);
            if found(catalog, sale) {
                return;
            }
        }
    }

    #[test]
    fn a_view_is_found_until_something_changes_or_its_time_is_over() {
        let (mine, other, later) =
            (CatalogNumber::next(), CatalogNumber::next(), Instant::now() + Duration::from_secs(60));
        eventually_found(mine, "a", later);
        assert!(!found(other, "a") && !found(mine, "b"));
        changed();
        assert!(!found(mine, "a"), "a change is seen at once");
        let seen = ChangesSeen::now();
        changed();
        put(mine, seen, &view("a"), later);
        assert!(!found(mine, "a"), "it was read before the change");
        put(mine, ChangesSeen::now(), &view("a"), Instant::now());
        assert!(!found(mine, "a"), "its time is over");
        for n in 0..3 * SALES_MAX {
            put(mine, ChangesSeen::now(), &view(&format!("sale-{n}")), later);
        }
        assert_eq!(NEAR.with_borrow(Vec::len), SALES_MAX);
    }
}
