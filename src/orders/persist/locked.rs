//! Sales whose stock row was found locked by another session. For a moment they are not tried: orders of other sales come behind
//! them in the same queue, and would wait for the same lock again and again (H6). Whether the row is free again is asked without
//! waiting for it, a few times a second, so that a sale lands again as soon as it can (H3).
//!
//! The question takes a row that other writers hold for a moment each for one that is stuck. So a sale whose row was found locked
//! several times in a row is tried once unasked, and waits for its turn with the others.
//!
//! Input: what the transactions of this process met. Output: which sales are left alone, and which are tried apart from the
//! others. A crash forgets it: the next transaction meets the lock.

use super::call::PersistCall;
use crate::domain::ids::SaleId;
use crate::faults::left_out;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Db;
use crate::store::mysql::schema::sales;
use crate::store::mysql::sessions::LOCK_WAIT_MAX_S;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often it is asked whether the row is free: a statement that waits for nothing.
const ASKED_EVERY: Duration = Duration::from_millis(250);
/// How long a sale is left alone whose row was free when it was asked, and locked when it was written to: each such try costs its
/// call a lock wait.
const LEFT_ALONE: Duration = Duration::from_secs(LOCK_WAIT_MAX_S);

/// So often is a row found locked before it is waited for, unasked.
const ASKED_MAX: u32 = 8;
/// After waits in vain it is found locked more often before, and at most so often: a row that is stuck costs the others few waits.
const ASKED_MAX_MAX: u32 = 64;

/// What is known of them. A sale stays in it until it was tried with success.
#[derive(Debug, Default)]
pub(crate) struct LockedSales(Mutex<BTreeMap<SaleId, LockedSale>>);

/// A sale whose row was found locked.
#[derive(Debug, Clone, Copy)]
struct LockedSale {
    /// Until then it is left alone.
    until: Instant,
    /// How often the question found its row locked since it was waited for.
    found_locked: u32,
    /// How often that is to be so before it is waited for.
    asked_max: u32,
}

impl LockedSale {
    const fn new(until: Instant) -> Self {
        Self { until, found_locked: 0, asked_max: ASKED_MAX }
    }
}

/// What a call does with sales that were found locked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LockedNow {
    /// Not tried.
    pub(crate) left_alone: BTreeSet<SaleId>,
    /// Asked for, and if its row is free tried in a transaction of its own, after all others: this call finds out for the others. One
    /// sale at most, because each may cost a lock wait, and the other orders of the call are acknowledged after it.
    pub(crate) tried_apart: Option<SaleId>,
}

impl LockedSales {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SaleId, LockedSale>> {
        // A panic elsewhere leaves the map whole: every change is one insert.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of these sales, those that were found locked. A sale whose time is up is given to one caller, and left alone by the others
    /// meanwhile.
    pub(crate) fn among<'a>(&self, sales: impl Iterator<Item = &'a SaleId>, now: Instant) -> LockedNow {
        let (mut known, mut locked) = (self.lock(), LockedNow::default());
        if known.is_empty() {
            return locked;
        }
        for sale in sales {
            if locked.tried_apart.as_ref() == Some(sale) {
                continue;
            }
            let Some(LockedSale { until, .. }) = known.get_mut(sale) else { continue };
            if now < *until || locked.tried_apart.is_some() || left_out!(LockedTriedAgain) {
                locked.left_alone.insert(sale.clone());
            } else {
                *until = now + LEFT_ALONE;
                locked.tried_apart = Some(sale.clone());
            }
        }
        locked
    }

    /// A call has waited for the row in vain. Several may have waited at the same time, so that says nothing of how long it is locked.
    pub(crate) fn met(&self, sale: &SaleId, now: Instant) {
        let until = now + ASKED_EVERY;
        match self.lock().entry(sale.clone()) {
            Entry::Occupied(mut known) => known.get_mut().until = until,
            Entry::Vacant(unknown) => {
                unknown.insert(LockedSale::new(until));
                tracing::warn!(%sale, "another session holds the sale's row: its orders are sent back until the row is free");
            }
        }
    }

    /// Whether the row is to be asked for before it is written to; else it was found locked so often that only a wait for it shows
    /// whether it is stuck, or busy.
    fn is_to_be_asked(&self, sale: &SaleId) -> bool {
        self.lock().get(sale).is_none_or(|known| known.found_locked < known.asked_max)
    }

    /// The row was asked for, and is locked.
    fn found_locked(&self, sale: &SaleId, now: Instant) {
        let mut all = self.lock();
        let known = all.entry(sale.clone()).or_insert_with(|| LockedSale::new(now));
        known.until = now + ASKED_EVERY;
        known.found_locked += 1;
    }

    /// The row was free when it was asked for, or was not asked for again, and was waited for in vain.
    pub(crate) fn met_after_asking(&self, sale: &SaleId, now: Instant) {
        let mut all = self.lock();
        let known = all.entry(sale.clone()).or_insert_with(|| LockedSale::new(now));
        known.until = now + LEFT_ALONE;
        if known.found_locked >= known.asked_max {
            known.asked_max = (known.asked_max * 2).min(ASKED_MAX_MAX);
        }
        known.found_locked = 0;
    }

    /// The database is in trouble. What was found before says nothing any more, and the next call has to ask: orders that are sent
    /// back unasked would seem answers of a database that is well (D6).
    pub(crate) fn forget(&self) {
        self.lock().clear();
    }

    pub(crate) fn freed(&self, sale: &SaleId) {
        if self.lock().remove(sale).is_some() {
            tracing::info!(%sale, "the sale's row is free again");
        }
    }
}

/// Whether no other session holds the sale's row at this moment. Waits for no lock and keeps none; a sale without a row counts as
/// free, because only a try says what that means.
async fn is_free(db: &Db, sale: &SaleId) -> Result<bool, DbError> {
    let row = || sales::table.find(sale.as_str().as_bytes()).select(sales::epoch);
    db.run("sale_is_free", async |conn| {
        let free: Option<u32> = row().for_update().skip_locked().first(conn).await.optional()?;
        if free.is_some() {
            return Ok(true);
        }
        let there: Option<u32> = row().first(conn).await.optional()?;
        Ok(there.is_none())
    })
    .await
}

impl PersistCall<'_> {
    /// If another session still holds the row of the sale that is tried apart, it is left alone, too: without a wait for its lock, unless
    /// it was found locked too often.
    pub(crate) async fn ask_for_the_one_apart(&mut self) {
        let Some(sale) = self.apart.clone() else { return };
        if !self.persister.locked.is_to_be_asked(&sale) {
            return;
        }
        match is_free(&self.persister.db, &sale).await {
            Ok(true) => {}
            Ok(false) => {
                self.persister.locked.found_locked(&sale, Instant::now());
                self.locked.insert(sale);
            }
            Err(error) => self.note(&error),
        }
    }

    /// Remembers a lock that was waited for in vain.
    pub(crate) fn meets_lock(&mut self, sale: &SaleId) {
        self.locked.insert(sale.clone());
        match self.apart.as_ref() == Some(sale) {
            true => self.persister.locked.met_after_asking(sale, Instant::now()),
            false => self.persister.locked.met(sale, Instant::now()),
        }
    }

    /// Answers the requests of locked sales and returns the others.
    pub(crate) fn without_locked(&mut self, group: Vec<usize>) -> Vec<usize> {
        if self.locked.is_empty() {
            return group;
        }
        let items = self.items;
        let sale_of = |index: &usize| items.get(*index).map(|accepted| &accepted.purchase.sale_id);
        let (locked, free): (Vec<usize>, Vec<usize>) =
            group.into_iter().partition(|index| sale_of(index).is_some_and(|sale| self.locked.contains(sale)));
        for index in locked {
            if let Some(sale) = sale_of(&index) {
                self.set(index, Err(DbError::SaleLocked(sale.clone())));
            }
        }
        free
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
        let later = start + ASKED_EVERY;
        assert_eq!(among(later), LockedNow { tried_apart: Some(sale("s")), ..LockedNow::default() });
        assert_eq!(among(later), alone(), "one call tries it");
        sales.freed(&s);
        assert_eq!(among(later), LockedNow::default());
        sales.met(&s, later);
        sales.forget();
        assert_eq!(among(later), LockedNow::default());
    }

    #[test]
    fn however_many_writers_met_the_lock_it_is_asked_for_as_soon() {
        let (sales, now, s) = (LockedSales::default(), Instant::now(), sale("s"));
        (0..3).for_each(|_| sales.met(&s, now));
        assert_eq!(sales.among([&s].into_iter(), now + ASKED_EVERY).tried_apart, Some(sale("s")));
        // As often as it is found locked.
        for round in 1..100 {
            let now = now + LEFT_ALONE * round;
            sales.met(&s, now);
            assert_eq!(sales.among([&s].into_iter(), now + ASKED_EVERY).tried_apart, Some(sale("s")));
        }
    }

    #[test]
    fn a_call_tries_one_of_many_locked_sales_and_a_wait_after_asking_is_not_repeated_at_once() {
        let (sales, mut now) = (LockedSales::default(), Instant::now());
        let three = ["a", "b", "c"].map(sale);
        three.iter().for_each(|s| sales.met(s, now));
        now += ASKED_EVERY;
        let among = |now: Instant| sales.among(three.iter(), now);
        assert_eq!(
            among(now),
            LockedNow { left_alone: three[1..].iter().cloned().collect(), tried_apart: Some(sale("a")) }
        );
        assert_eq!(among(now).tried_apart, Some(sale("b")), "the next call tries the next one");
        sales.met_after_asking(&three[2], now);
        let of_c = |now: Instant| sales.among([&three[2]].into_iter(), now).tried_apart;
        assert_eq!((of_c(now + ASKED_EVERY), of_c(now + LEFT_ALONE)), (None, Some(sale("c"))));
    }

    #[test]
    fn a_row_that_is_found_locked_too_often_is_waited_for_and_seldom_if_that_is_in_vain() {
        let (sales, now, s) = (LockedSales::default(), Instant::now(), sale("s"));
        sales.met(&s, now);
        let asked = || (1..1_000).take_while(|_| sales.is_to_be_asked(&s)).map(|_| sales.found_locked(&s, now)).count();
        for expected in [8, 16, 32, 64, 64] {
            assert_eq!(asked(), expected);
            // Another call that did not ask.
            sales.met(&s, now);
            assert!(!sales.is_to_be_asked(&s));
            sales.met_after_asking(&s, now);
        }
        sales.freed(&s);
        assert!(sales.is_to_be_asked(&s));
        sales.met(&s, now);
        assert_eq!(asked(), 8);
    }
}
