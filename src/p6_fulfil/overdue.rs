//! The walk along overdue orders, sale by sale in turns. A sale whose orders cannot change now (its row is locked, it is being removed
//! or rebuilt) is left out for a while, and holds up no other.
//!
//! Input: the index of a sale's unpaid orders by deadline. Output: what may expire next. However many orders of a sale are overdue,
//! a look reads one page of them, and its next turn goes on behind that. So it is with entries of expired orders, which the server
//! still has in the index and reads over until they are purged: after a long transaction of somebody else, a backup, that is all of
//! them. In memory only: a new leader begins at the front.

use crate::domain::ids::SaleId;
use crate::store::mysql::order_life::{self, OverdueOrder};
use crate::store::mysql::{Db, DbError};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Turns that one look takes at most.
const TURNS_MAX: usize = 20;
/// Most sales left out at a time; then a fault of the database is everybody's.
const LEFT_OUT_MAX: usize = 100;
/// Finding the sales reads an entry of each. It rests so many times as long as it took.
const REST: u32 = 20;

/// Overdue orders of one sale that may expire now.
pub(super) struct Overdue {
    pub(super) sale_id: SaleId,
    pub(super) orders: Vec<OverdueOrder>,
}

/// A sale that has more overdue orders.
struct Turn {
    sale_id: SaleId,
    /// Everything up to here was tried. What becomes overdue later lies behind it, but for an order whose transaction took longer
    /// than its buyer had: it is found when the sale has come to its end and begins again.
    after: Option<OverdueOrder>,
}

/// Where the walk is.
pub(super) struct OverdueWalk {
    left_out: BTreeMap<SaleId, Instant>,
    turns: VecDeque<Turn>,
    listed_at: Option<Instant>,
    listing_took: Duration,
    /// How long the oldest overdue order has been so; 0 when there is none.
    pub(super) overdue_ms: i64,
}

impl OverdueWalk {
    pub(super) fn new() -> Self {
        let (left_out, turns) = (BTreeMap::new(), VecDeque::new());
        Self { left_out, turns, listed_at: None, listing_took: Duration::ZERO, overdue_ms: 0 }
    }

    /// The next overdue orders of a sale whose turn it is, at most `limit`. `None`: there are none now, or more turns are needed.
    /// Sales are found every `interval`, and when no turn is left.
    pub(super) async fn look(
        &mut self,
        db: &Db,
        limit: u16,
        interval: Duration,
    ) -> Result<Option<Overdue>, DbError> {
        let now = Instant::now();
        self.left_out.retain(|_, until| *until > now);
        if self.should_list(now, interval) {
            self.list(db, now).await?;
        }
        for _ in 0..TURNS_MAX {
            let Some(Turn { sale_id, after }) = self.turns.pop_front() else { break };
            let orders = order_life::overdue(db, &sale_id, after.as_ref(), limit).await?;
            if orders.len() >= usize::from(limit) {
                self.turns.push_back(Turn { sale_id: sale_id.clone(), after: orders.last().cloned() });
            }
            if !orders.is_empty() {
                return Ok(Some(Overdue { sale_id, orders }));
            }
        }
        Ok(None)
    }

    /// Whether there is more behind what was found.
    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    fn should_list(&self, now: Instant, interval: Duration) -> bool {
        let rest = self.listing_took * REST;
        let pause = if self.turns.is_empty() { rest } else { rest.max(interval) };
        self.listed_at.is_none_or(|at| now.duration_since(at) >= pause)
    }

    async fn list(&mut self, db: &Db, now: Instant) -> Result<(), DbError> {
        let sales = order_life::overdue_sales(db).await?;
        (self.listed_at, self.listing_took) = (Some(now), now.elapsed());
        self.overdue_ms = sales.first().map_or(0, |oldest| oldest.overdue_ms);
        for sale in sales {
            let has_turn = self.turns.iter().any(|turn| turn.sale_id == sale.sale_id);
            if !has_turn && !self.left_out.contains_key(&sale.sale_id) {
                self.turns.push_back(Turn { sale_id: sale.sale_id, after: None });
            }
        }
        Ok(())
    }

    /// What was read was not tried: its sale begins again.
    pub(super) fn begin_again(&mut self, sale_id: &SaleId) {
        self.turns.retain(|turn| turn.sale_id != *sale_id);
    }

    /// Leaves a sale out for `time`. `false`: too many are left out already.
    pub(super) fn leave_out(&mut self, sale_id: SaleId, time: Duration) -> bool {
        self.begin_again(&sale_id);
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

    fn sale(number: usize) -> SaleId {
        SaleId::parse(&format!("s{number}")).unwrap()
    }

    #[test]
    fn a_sale_that_is_left_out_has_no_turn() {
        let mut walk = OverdueWalk::new();
        walk.turns.extend([1, 2].map(|number| Turn { sale_id: sale(number), after: None }));
        assert!(walk.leave_out(sale(1), Duration::from_secs(9)));
        let left: Vec<_> = walk.turns.iter().map(|turn| turn.sale_id.clone()).collect();
        assert_eq!(left, [sale(2)]);
    }

    #[test]
    fn a_fault_of_more_sales_than_are_left_out_is_everybodys() {
        let mut walk = OverdueWalk::new();
        for number in 0..LEFT_OUT_MAX {
            assert!(walk.leave_out(sale(number), Duration::from_secs(9)));
        }
        assert!(!walk.leave_out(sale(LEFT_OUT_MAX), Duration::from_secs(9)));
    }

    #[test]
    fn sales_are_found_at_once_when_no_turn_is_left_and_seldom_where_that_takes_long() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let mut walk = OverdueWalk::new();
        assert!(walk.should_list(now, second), "a new leader");
        walk.listed_at = Some(now);
        assert!(walk.should_list(now, second), "it took no time");
        walk.turns.push_back(Turn { sale_id: sale(1), after: None });
        assert!(!walk.should_list(now, second) && walk.should_list(now + second, second), "beside other work");
        walk.listing_took = second;
        assert!(!walk.should_list(now + second * 19, second) && walk.should_list(now + second * 20, second));
    }
}
