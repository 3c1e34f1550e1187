//! Batches of overdue orders that did not expire because of something in them: halved until the order that it is about is alone. That
//! one is set aside and tried alone from time to time; its neighbours expire.
//!
//! Input: a batch that failed. Output: the batches to try next. In memory only: a new leader meets the same orders again, and so does this
//! one when there is no room for more.

use crate::domain::ids::{RequestId, SaleId};
use crate::orders::rows::OverdueOrder;
use crate::store::mysql::DbError;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Most orders that are set aside at a time.
const ASIDE_MAX: usize = 1_000;
/// Most orders of one sale that are set aside within [`FIRST_PAUSE`]: then the trouble is the sale's, and each order of it would be
/// tried alone.
const OF_SALE_MAX: usize = 20;
/// An order that was set aside is tried again after this time, then after twice the time before.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
/// Longest time until it is tried again.
const PAUSE_MAX: Duration = Duration::from_secs(600);
/// Tries of a sale that may wait for a row in vain one after the other: enough to find a locked row in the largest batch. Of a sale
/// with more of them each order would be waited for alone.
const LOCK_WAITS_MAX: u32 = 12;

/// Overdue orders of one sale that expire together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OverdueBatch {
    pub(super) sale_id: SaleId,
    pub(super) orders: Vec<OverdueOrder>,
}

/// An order that does not expire for a reason of its own.
struct AsideOrder {
    sale_id: SaleId,
    order: OverdueOrder,
    pause: Duration,
    try_at: Instant,
    since: Instant,
}

/// What a batch that failed became.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parted {
    /// Two halves wait.
    Halved,
    /// Its only order is set aside.
    SetAside,
    /// Too many are set aside: the sale is to be left out.
    NoRoom,
}

/// Batches that wait, and orders that are set aside.
#[derive(Default)]
pub(super) struct Halves {
    waiting: VecDeque<OverdueBatch>,
    aside: BTreeMap<RequestId, AsideOrder>,
    /// Tries of a sale that waited for a row in vain since one did not.
    lock_waits: BTreeMap<SaleId, u32>,
}

impl Halves {
    /// The next batch to try: a half, or an order that was set aside long enough ago; none of a sale that is left out.
    pub(super) fn next(&mut self, now: Instant, is_left_out: impl Fn(&SaleId) -> bool) -> Option<OverdueBatch> {
        if let Some(at) = self.waiting.iter().position(|half| !is_left_out(&half.sale_id)) {
            return self.waiting.remove(at);
        }
        let due = self.aside.values_mut().find(|aside| aside.try_at <= now && !is_left_out(&aside.sale_id))?;
        // Before it is tried: an error of the database as a whole must not make it the next one again.
        due.try_at = now + due.pause;
        Some(OverdueBatch { sale_id: due.sale_id.clone(), orders: vec![due.order.clone()] })
    }

    /// The batch was not tried: it is the next one of its sale.
    pub(super) fn put_back(&mut self, batch: OverdueBatch, now: Instant) {
        match batch.orders.as_slice() {
            [order] if self.aside.contains_key(&order.request_id) => {
                if let Some(aside) = self.aside.get_mut(&order.request_id) {
                    aside.try_at = now;
                }
            }
            _ => self.waiting.push_front(batch),
        }
    }

    /// Whether a half waits to be tried.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a half of this sale waits to be tried.
    pub(super) fn has_waiting_of(&self, sale_id: &SaleId) -> bool {
        self.waiting.iter().any(|half| half.sale_id == *sale_id)
    }

    /// The orders that are not set aside.
    pub(super) fn without_aside(&self, mut orders: Vec<OverdueOrder>) -> Vec<OverdueOrder> {
        orders.retain(|order| !self.aside.contains_key(&order.request_id));
        orders
    }

    /// The batch expired, or nothing of it is to be done any more.
    pub(super) fn done(&mut self, batch: &OverdueBatch) {
        self.lock_waits.remove(&batch.sale_id);
        for order in &batch.orders {
            self.aside.remove(&order.request_id);
        }
    }

    /// The batch failed for something in it.
    pub(super) fn failed(&mut self, batch: OverdueBatch, error: &DbError, now: Instant) -> Parted {
        if error.is_lock_wait() && self.waited_too_often(&batch.sale_id) {
            return Parted::NoRoom;
        }
        let OverdueBatch { sale_id, mut orders } = batch;
        if orders.len() > 1 {
            let second = orders.split_off(orders.len() / 2);
            for orders in [second, orders] {
                self.waiting.push_front(OverdueBatch { sale_id: sale_id.clone(), orders });
            }
            return Parted::Halved;
        }
        let Some(order) = orders.pop() else { return Parted::Halved };
        let request_id = order.request_id;
        if let Some(before) = self.aside.get_mut(&request_id) {
            before.pause = (before.pause * 2).min(PAUSE_MAX);
            before.try_at = now + before.pause;
            tracing::warn!(phase = "p6_fulfil", sale = %sale_id, %request_id, %error, "an order still cannot expire");
            return Parted::SetAside;
        }
        let lately = |aside: &&AsideOrder| aside.sale_id == sale_id && now.duration_since(aside.since) < FIRST_PAUSE;
        if self.aside.len() >= ASIDE_MAX || self.aside.values().filter(lately).count() >= OF_SALE_MAX {
            return Parted::NoRoom;
        }
        tracing::error!(
            phase = "p6_fulfil", sale = %sale_id, %request_id, %error,
            "an order cannot expire, its units stay away: it is set aside, the others of its sale go on; seckill order show says \
             what is known of it"
        );
        let aside = AsideOrder { sale_id, order, pause: FIRST_PAUSE, try_at: now + FIRST_PAUSE, since: now };
        self.aside.insert(request_id, aside);
        Parted::SetAside
    }

    /// Counts a wait for a row of the sale; at [`LOCK_WAITS_MAX`] it begins anew.
    fn waited_too_often(&mut self, sale_id: &SaleId) -> bool {
        let waits = self.lock_waits.entry(sale_id.clone()).or_default();
        *waits += 1;
        let is_too_often = *waits > LOCK_WAITS_MAX;
        if is_too_often {
            self.lock_waits.remove(sale_id);
        }
        is_too_often
    }

    /// The sale is left out: what waits of it is found again later.
    pub(super) fn forget_waiting(&mut self, sale_id: &SaleId) {
        self.waiting.retain(|batch| batch.sale_id != *sale_id);
    }

    /// How many orders are set aside.
    pub(super) fn aside_count(&self) -> usize {
        self.aside.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(ids: std::ops::Range<u64>) -> OverdueBatch {
        let order = |id| OverdueOrder::of(RequestId::new(id).unwrap());
        OverdueBatch { sale_id: SaleId::parse("s").unwrap(), orders: ids.map(order).collect() }
    }

    /// Tries everything that waits; orders of these ids fail. Returns the ids that expired.
    fn try_all(halves: &mut Halves, bad: &[u64], now: Instant) -> Vec<u64> {
        let mut expired = Vec::new();
        while let Some(next) = halves.next(now, |_| false) {
            let ids: Vec<u64> = next.orders.iter().map(|order| order.request_id.get()).collect();
            if ids.iter().any(|id| bad.contains(id)) {
                halves.failed(next, &DbError::Other("out of range".to_owned()), now);
            } else {
                halves.done(&next);
                expired.extend(ids);
            }
        }
        expired.sort_unstable();
        expired
    }

    #[test]
    fn the_neighbours_of_bad_orders_expire_and_the_bad_ones_are_set_aside_until_they_are_right() {
        let (mut halves, now) = (Halves::default(), Instant::now());
        let why = DbError::Other("out of range".to_owned());
        assert_eq!(halves.failed(batch(1..1001), &why, now), Parted::Halved);
        let expired = try_all(&mut halves, &[7, 600], now);
        assert_eq!((expired.len(), halves.aside_count()), (998, 2));
        let left: Vec<u64> =
            halves.without_aside(batch(5..9).orders).iter().map(|order| order.request_id.get()).collect();
        assert_eq!(left, [5, 6, 8]);
        assert_eq!(try_all(&mut halves, &[], now + FIRST_PAUSE / 2), Vec::<u64>::new(), "not yet");
        assert_eq!(try_all(&mut halves, &[600], now + FIRST_PAUSE), [7], "alone, one after the other");
        assert_eq!(try_all(&mut halves, &[], now + FIRST_PAUSE * 2), Vec::<u64>::new(), "twice the pause");
        assert_eq!(try_all(&mut halves, &[], now + FIRST_PAUSE * 3), [600]);
        assert_eq!(halves.aside_count(), 0);
    }

    #[test]
    fn a_sale_whose_every_order_fails_is_left_out_instead() {
        let (mut halves, now) = (Halves::default(), Instant::now());
        let why = DbError::Other("removed".to_owned());
        let mut tried = 0;
        let mut next = Some(batch(1..1001));
        while let Some(failing) = next {
            tried += 1;
            if halves.failed(failing, &why, now) == Parted::NoRoom {
                break;
            }
            next = halves.next(now, |_| false);
        }
        assert!(tried < 100, "{tried} transactions");
        halves.forget_waiting(&SaleId::parse("s").unwrap());
        assert_eq!((halves.has_waiting(), halves.aside_count()), (false, OF_SALE_MAX));
    }

    #[test]
    fn a_sale_whose_every_row_is_locked_is_left_out_and_one_locked_row_is_found() {
        let (mut halves, mut now) = (Halves::default(), Instant::now());
        let mut tried = 0;
        let mut next = Some(batch(1..1001));
        while let Some(failing) = next {
            tried += 1;
            // So long is a lock waited for.
            now += Duration::from_secs(3);
            if halves.failed(failing, &DbError::LockWait, now) == Parted::NoRoom {
                break;
            }
            next = halves.next(now, |_| false);
        }
        assert_eq!(tried, LOCK_WAITS_MAX + 1, "each costs the others a wait");
        for locked in [1, 500, 1000] {
            let mut halves = Halves::default();
            let mut next = Some(batch(1..1001));
            let mut expired = 0;
            while let Some(tried) = next {
                let is_locked = tried.orders.iter().any(|order| order.request_id.get() == locked);
                if is_locked {
                    assert_ne!(halves.failed(tried, &DbError::LockWait, now), Parted::NoRoom, "{locked}");
                } else {
                    halves.done(&tried);
                    expired += tried.orders.len();
                }
                next = halves.next(now, |_| false);
            }
            assert_eq!((expired, halves.aside_count()), (999, 1), "{locked}");
        }
    }

    #[test]
    fn nothing_of_a_sale_that_is_left_out_is_tried_and_what_was_put_back_comes_first() {
        let (mut halves, now) = (Halves::default(), Instant::now());
        let why = DbError::Other("out of range".to_owned());
        assert_eq!(halves.failed(batch(1..2), &why, now), Parted::SetAside);
        assert_eq!(halves.failed(batch(2..4), &why, now), Parted::Halved);
        let sale = |id: &str| SaleId::parse(id).unwrap();
        assert!(halves.has_waiting_of(&sale("s")) && !halves.has_waiting_of(&sale("t")));
        let later = now + FIRST_PAUSE;
        assert_eq!(halves.next(later, |_| true), None);
        let first = halves.next(later, |_| false).unwrap();
        halves.put_back(first.clone(), later);
        assert_eq!(halves.next(later, |_| false), Some(first));
        assert!(halves.next(later, |_| false).is_some());
        let aside = halves.next(later, |_| false).unwrap();
        assert_eq!(aside, batch(1..2));
        assert_eq!(halves.next(later, |_| false), None, "it was tried");
        halves.put_back(aside.clone(), later);
        assert_eq!((halves.next(later, |_| false), halves.aside_count()), (Some(aside), 1));
    }
}
