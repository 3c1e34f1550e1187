//! Sales whose stock row was found locked by another session. For a moment they are not tried again: orders of other sales come
//! behind them in the same queue, and would wait for the same lock again and again (H6).
//!
//! Input: what the transactions of this process met. Output: which sales are left alone, and which are tried apart from the
//! others. A crash forgets it: the next transaction meets the lock.

use super::super::sessions::LOCK_WAIT_MAX_S;
use crate::domain::ids::SaleId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a sale is left alone: as long as a statement waits for a lock at most.
const LEFT_ALONE: Duration = Duration::from_secs(LOCK_WAIT_MAX_S);

/// Until when each of them is left alone. A sale stays in it until it was tried with success.
#[derive(Debug, Default)]
pub(in crate::store::mysql) struct LockedSales(Mutex<BTreeMap<SaleId, Instant>>);

/// What a call does with sales that were found locked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LockedNow {
    /// Not tried.
    pub(super) left_alone: BTreeSet<SaleId>,
    /// Tried in transactions of their own, after all others: this call finds out for the others.
    pub(super) tried_apart: BTreeSet<SaleId>,
}

impl LockedSales {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SaleId, Instant>> {
        // A panic elsewhere leaves the map whole: every change is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of these sales, those that were found locked. A sale whose time is up is given to one caller, and left alone by the others
    /// meanwhile.
    pub(super) fn among<'a>(&self, sales: impl Iterator<Item = &'a SaleId>, now: Instant) -> LockedNow {
        let (mut known, mut locked) = (self.lock(), LockedNow::default());
        if known.is_empty() {
            return locked;
        }
        for sale in sales {
            if locked.tried_apart.contains(sale) {
                continue;
            }
            match known.get_mut(sale) {
                Some(until) if now < *until => locked.left_alone.insert(sale.clone()),
                Some(until) => {
                    *until = now + LEFT_ALONE;
                    locked.tried_apart.insert(sale.clone())
                }
                None => continue,
            };
        }
        locked
    }

    pub(super) fn met(&self, sale: &SaleId, now: Instant) {
        let is_new = self.lock().insert(sale.clone(), now + LEFT_ALONE).is_none();
        if is_new {
            tracing::warn!(%sale, "another session holds the sale's row: its orders are sent back, the sale is tried every few seconds");
        }
    }

    /// The database is in trouble. What was found before says nothing any more, and the next call has to ask: orders that are sent
    /// back unasked would look like answers of a database that is well (D6).
    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    pub(super) fn freed(&self, sale: &SaleId) {
        self.lock().remove(sale);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locked_sale_is_left_alone_then_tried_by_one_call_and_forgotten_when_it_is_free() {
        let (sales, start) = (LockedSales::default(), Instant::now());
        let sale = SaleId::parse("s").unwrap();
        let among = |now: Instant| sales.among([&sale, &sale].into_iter(), now);
        assert_eq!(among(start), LockedNow::default());
        sales.met(&sale, start);
        let only = || BTreeSet::from([sale.clone()]);
        assert_eq!(among(start), LockedNow { left_alone: only(), ..LockedNow::default() });
        let later = start + LEFT_ALONE;
        assert_eq!(among(later), LockedNow { tried_apart: only(), ..LockedNow::default() });
        assert_eq!(among(later), LockedNow { left_alone: only(), ..LockedNow::default() }, "one call tries it");
        sales.freed(&sale);
        assert_eq!(among(later), LockedNow::default());
        sales.met(&sale, later);
        sales.forget();
        assert_eq!(among(later), LockedNow::default());
    }
}
