//! The walk along overdue orders. A sale whose orders cannot change now (its row is locked, it is being removed or rebuilt) must
//! not hold up the others: it is left out for a while, and its orders are read over.
//!
//! Input: the index of unpaid orders by deadline. Output: what may expire next, by sale. However many orders of sales that are
//! left out lie in front, a look reads a bounded number of them and the next one goes on behind. So it is with entries of expired
//! orders, which the server still has in the index and reads over until they are purged: after a long transaction of somebody else,
//! a backup, that is all of them. In memory only: a new leader begins at the front.

use crate::domain::ids::SaleId;
use crate::store::mysql::order_life::{self, OverdueOrder};
use crate::store::mysql::{Db, DbError};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Pages that one look reads at most.
const PAGES_MAX: usize = 20;
/// A walk that has not come to its end begins again after this time, and tries those again that were left out.
const LONGEST: Duration = Duration::from_secs(60);
/// Most sales left out at a time; then a fault of the database is everybody's.
const LEFT_OUT_MAX: usize = 100;

/// What a look found.
pub(super) struct Overdue {
    /// Orders that may expire now.
    pub(super) by_sale: BTreeMap<SaleId, Vec<OverdueOrder>>,
    /// Whether there is more behind them.
    pub(super) more: bool,
}

/// Where the walk is.
pub(super) struct OverdueWalk {
    left_out: BTreeMap<SaleId, Instant>,
    /// Everything up to here was tried, or is of a sale that is left out. What becomes overdue later lies behind it, but for an order
    /// whose transaction took longer than its buyer had: at the end of a walk, and after [`LONGEST`], the next one begins.
    after: Option<OverdueOrder>,
    at_end: bool,
    begun_at: Instant,
}

impl OverdueWalk {
    pub(super) fn new() -> Self {
        Self { left_out: BTreeMap::new(), after: None, at_end: true, begun_at: Instant::now() }
    }

    /// The next overdue orders of sales that are not left out, at most `limit`.
    pub(super) async fn look(&mut self, db: &Db, limit: u16) -> Result<Overdue, DbError> {
        self.try_again();
        let mut by_sale: BTreeMap<SaleId, Vec<OverdueOrder>> = BTreeMap::new();
        let mut more = true;
        for _ in 0..PAGES_MAX {
            let page = order_life::overdue(db, self.after.as_ref(), limit).await?;
            more = page.len() >= usize::from(limit);
            self.after = page.last().cloned().or(self.after.take());
            for order in page {
                if !self.left_out.contains_key(&order.sale_id) {
                    by_sale.entry(order.sale_id.clone()).or_default().push(order);
                }
            }
            if !more || !by_sale.is_empty() {
                break;
            }
        }
        self.at_end = !more;
        Ok(Overdue { by_sale, more })
    }

    /// At the end of a walk those whose time is up are tried again, from the front. Not before: orders behind the ones that are
    /// left out would wait as long as they are.
    fn try_again(&mut self) {
        let now = Instant::now();
        let is_full = self.left_out.len() >= LEFT_OUT_MAX;
        if !is_full && !self.at_end && now.duration_since(self.begun_at) < LONGEST {
            return;
        }
        let before = self.left_out.len();
        self.left_out.retain(|_, until| *until > now);
        if self.left_out.is_empty() || self.left_out.len() < before {
            self.begin_again();
        }
    }

    /// From the front: what was read was not tried.
    pub(super) fn begin_again(&mut self) {
        (self.after, self.begun_at) = (None, Instant::now());
    }

    /// Leaves a sale out for `time`. `false`: too many are left out already.
    pub(super) fn leave_out(&mut self, sale_id: SaleId, time: Duration) -> bool {
        let has_room = self.left_out.len() < LEFT_OUT_MAX;
        if has_room {
            self.left_out.insert(sale_id, Instant::now() + time);
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sale whose time is up as soon as it is left out.
    fn leave_out(walk: &mut OverdueWalk, number: usize) -> bool {
        walk.leave_out(SaleId::parse(&format!("s{number}")).unwrap(), Duration::ZERO)
    }

    #[test]
    fn a_full_list_is_tried_again_before_the_walk_is_at_its_end() {
        let mut walk = OverdueWalk::new();
        walk.at_end = false;
        for number in 1..LEFT_OUT_MAX {
            assert!(leave_out(&mut walk, number));
        }
        walk.try_again();
        assert_eq!(walk.left_out.len(), LEFT_OUT_MAX - 1, "there is room: those behind them come first");
        assert!(leave_out(&mut walk, LEFT_OUT_MAX));
        assert!(!leave_out(&mut walk, 0), "no room");
        walk.try_again();
        assert!(walk.left_out.is_empty());
        assert!(leave_out(&mut walk, 0), "the next one does not stop the walk");
    }
}
