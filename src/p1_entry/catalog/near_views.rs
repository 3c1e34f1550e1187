//! The sales that this thread looked up last: a purchase finds its sale here without touching memory that other threads write.
//!
//! Input: views that the [`Catalog`](super::Catalog) found fresh. Output: the same view again until it is no longer
//! fresh, or until anything changed of its sale in a catalog of this process: a sold-out mark is seen by the very next purchase on
//! every thread. A crash leaves nothing.

use super::sale_view::SaleView;
use crate::domain::ids::SaleId;
use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Sales a thread remembers; when more are sold at once it begins anew.
const SALES_MAX: usize = 256;
/// Counters of changes. Two sales may share one: then a change of one makes the other's views count as old, too. With this number of
/// them that is rare among the sales that are hot at once.
const COUNTERS: usize = 1024;

/// Changes so far, by the hash of the sale's id.
static CHANGES: [AtomicU64; COUNTERS] = [const { AtomicU64::new(0) }; COUNTERS];
/// Catalogs made so far. A process has one, but for tests.
static CATALOGS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NEAR: RefCell<HashMap<SaleId, NearView>> = RefCell::default();
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

/// The counter of a sale's changes, in all catalogs of this process.
#[derive(Debug, Clone, Copy)]
pub(super) struct SaleChanges(&'static AtomicU64);

/// The changes of a sale that had happened when a view was about to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChangesSeen {
    of: SaleChanges,
    count: u64,
}

impl SaleChanges {
    /// Of this sale.
    pub(super) fn of(sale: &SaleId) -> Self {
        let mut hasher = DefaultHasher::new();
        sale.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % COUNTERS as u64).unwrap_or_default();
        Self(&CHANGES[place])
    }

    /// Something changed: no thread uses what it remembers of the sale. To be called after the change.
    pub(super) fn changed(self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// The changes until now. To be taken before the view is read: a change in between makes the view count as old.
    pub(super) fn seen(self) -> ChangesSeen {
        ChangesSeen { of: self, count: self.0.load(Ordering::Acquire) }
    }
}

/// The view of a sale, if this thread has a fresh one.
pub(super) fn get(catalog: CatalogNumber, sale: &SaleId) -> Option<Arc<SaleView>> {
    NEAR.with_borrow(|views| {
        let near = views.get(sale).filter(|near| near.catalog == catalog)?;
        let is_last = near.seen.count == near.seen.of.seen().count;
        (is_last && Instant::now() < near.fresh_until).then(|| near.view.clone())
    })
}

/// Remembers a view that was read after `seen` and is fresh until then.
pub(super) fn put(catalog: CatalogNumber, seen: ChangesSeen, view: &SaleView, fresh_until: Instant) {
    let near = NearView { catalog, seen, view: Arc::new(view.clone()), fresh_until };
    NEAR.with_borrow_mut(|views| {
        if views.len() >= SALES_MAX {
            views.clear();
        }
        views.insert(view.sale.sale_id.clone(), near);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn view(sale: &str) -> SaleView {
        let sale = serde_json::from_value(serde_json::json!({
            "sale_id": sale, "product_id": "p", "title": "t", "price_cents": 1, "currency": "CNY", "granted": 1, "stock": 1,
            "policy": 1, "token_required": false, "starts_at_ms": 0, "ends_at_ms": 1, "status": "warmed", "epoch": 1, "needs": null, "limit_by": "account",
            "challenge": null, "line": null, "by_line": false,
        }));
        SaleView { sale: sale.unwrap(), sold_out: None, remaining: None }
    }

    fn changes(sale: &str) -> SaleChanges {
        SaleChanges::of(&SaleId::parse(sale).unwrap())
    }

    fn found(catalog: CatalogNumber, sale: &str) -> bool {
        get(catalog, &SaleId::parse(sale).unwrap()).is_some()
    }

    /// No other test of this process changes a sale with the counter of one of these.
    fn put_now(catalog: CatalogNumber, sale: &str, fresh_until: Instant) {
        put(catalog, changes(sale).seen(), &view(sale), fresh_until);
    }

    #[test]
    fn a_view_is_found_until_its_sale_changes_or_its_time_is_over() {
        let (mine, other, later) =
            (CatalogNumber::next(), CatalogNumber::next(), Instant::now() + Duration::from_secs(60));
        put_now(mine, "near-a", later);
        assert!(found(mine, "near-a") && !found(other, "near-a") && !found(mine, "near-b"));
        changes("near-a").changed();
        assert!(!found(mine, "near-a"), "a change is seen at once");
        let seen = changes("near-a").seen();
        changes("near-a").changed();
        put(mine, seen, &view("near-a"), later);
        assert!(!found(mine, "near-a"), "it was read before the change");
        put_now(mine, "near-a", Instant::now());
        assert!(!found(mine, "near-a"), "its time is over");
    }

    #[test]
    fn a_change_of_one_sale_leaves_the_views_of_the_others() {
        let (catalog, later) = (CatalogNumber::next(), Instant::now() + Duration::from_secs(60));
        let sales: Vec<String> = (0..50).map(|n| format!("hot-{n}")).collect();
        sales.iter().for_each(|sale| put_now(catalog, sale, later));
        changes(&sales[0]).changed();
        let left = sales.iter().filter(|sale| found(catalog, sale)).count();
        assert!(!found(catalog, &sales[0]) && left >= 47, "{left} of 49");
        for n in 0..2 * SALES_MAX {
            put_now(catalog, &format!("more-{n}"), later);
        }
        assert!(NEAR.with_borrow(HashMap::len) <= SALES_MAX);
    }
}
