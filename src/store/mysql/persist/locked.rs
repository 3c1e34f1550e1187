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

/// How long a sale is left alone at first: as long as a statement waits for a lock at most. Each time it is found locked again,
/// for twice as long.
const LEFT_ALONE: Duration = Duration::from_secs(LOCK_WAIT_MAX_S);
/// The longest. Each try costs the call that makes it a lock wait, and all orders of its group.
const LEFT_ALONE_MAX: Duration = LEFT_ALONE.saturating_mul(8);

/// A sale that was found locked.
#[derive(Debug, Clone, Copy)]
struct LeftAlone {
    until: Instant,
    pause: Duration,
}

/// Until when each of them is left alone. A sale stays in it until it was tried with success.
#[derive(Debug, Default)]
pub(in crate::store::mysql) struct LockedSales(Mutex<BTreeMap<SaleId, LeftAlone>>);

/// What a call does with sales that were found locked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LockedNow {
    /// Not tried.
    pub(super) left_alone: BTreeSet<SaleId>,
    /// Tried in a transaction of its own, after all others: this call finds out for the others. One sale at most, because each may
    /// cost a lock wait, and the other orders of the call are acknowledged after it.
    pub(super) tried_apart: Option<SaleId>,
}

impl LockedSales {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SaleId, LeftAlone>> {
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
            if locked.tried_apart.as_ref() == Some(sale) {
                continue;
            }
            let Some(alone) = known.get_mut(sale) else { continue };
            if now < alone.until || locked.tried_apart.is_some() {
                locked.left_alone.insert(sale.clone());
            } else {
                alone.until = now + alone.pause;
                locked.tried_apart = Some(sale.clone());
            }
        }
        locked
    }

    pub(super) fn met(&self, sale: &SaleId, now: Instant) {
        let mut known = self.lock();
        let pause = known.get(sale).map_or(LEFT_ALONE, |alone| (alone.pause * 2).min(LEFT_ALONE_MAX));
        if known.insert(sale.clone(), LeftAlone { until: now + pause, pause }).is_none() {
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

    fn sale(id: &str) -> SaleId {
        SaleId::parse(id).unwrap()
    }

    #[test]
    fn a_locked_sale_is_left_alone_then_tried_by_one_call_and_forgotten_when_it_is_free() {
        let (sales, start, s) = (LockedSales::default(), Instant::now(), sale("s"));
        let among = |now: Instant| sales.among([&s, &s].into_iter(), now);
        assert_eq!(among(start), LockedNow::default());
        sales.met(&s, start);
        let alone = || LockedNow { left_alone: BTreeSet::from([sale("s")]), tried_apart: None };
        assert_eq!(among(start), alone());
        let later = start + LEFT_ALONE;
        assert_eq!(among(later), LockedNow { tried_apart: Some(sale("s")), ..LockedNow::default() });
        assert_eq!(among(later), alone(), "one call tries it");
        sales.freed(&s);
        assert_eq!(among(later), LockedNow::default());
        sales.met(&s, later);
        sales.forget();
        assert_eq!(among(later), LockedNow::default());
    }

    #[test]
    fn a_call_tries_one_of_many_locked_sales_and_each_less_and_less_often() {
        let (sales, mut now) = (LockedSales::default(), Instant::now());
        let three = ["a", "b", "c"].map(sale);
        three.iter().for_each(|s| sales.met(s, now));
        now += LEFT_ALONE;
        let among = |now: Instant| sales.among(three.iter(), now);
        assert_eq!(
            among(now),
            LockedNow { left_alone: three[1..].iter().cloned().collect(), tried_apart: Some(sale("a")) }
        );
        assert_eq!(among(now).tried_apart, Some(sale("b")), "the next call tries the next one");
        for pause in [2, 4, 8, 8] {
            sales.met(&three[2], now);
            let until = now + LEFT_ALONE * pause;
            let of_c = |now: Instant| sales.among([&three[2]].into_iter(), now).tried_apart;
            assert_eq!((of_c(until - Duration::from_millis(1)), of_c(until)), (None, Some(sale("c"))));
            now = until;
        }
        sales.freed(&three[2]);
        sales.met(&three[2], now);
        assert_eq!(
            sales.among([&three[2]].into_iter(), now + LEFT_ALONE).tried_apart,
            Some(sale("c")),
            "from the start"
        );
    }
}
