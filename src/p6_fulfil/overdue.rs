//! The walk along overdue orders, sale by sale in turns. A sale whose orders cannot change now (its row is locked, it is being removed
//! or rebuilt) is left out for a while, and holds up no other.
//!
//! Input: the index of a sale's unpaid orders by deadline. Output: what may expire next. However many orders of a sale are overdue,
//! a turn reads one page of them, and its next one goes on behind that. So it is with entries of expired orders, which the server
//! still has in the index and reads over until they are purged: after a long transaction of somebody else, a backup, that is all of
//! them. Finding the sales reads these, too: it is done seldom where it takes long, and without it the known sales go on. In memory
//! only: a new leader begins at the front.

use crate::domain::ids::SaleId;
use crate::orders::rows::{OrderRows, OverdueOrder, OverdueSale};
use crate::store::mysql::DbError;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Most sales left out at a time; then a fault of the database is everybody's.
const LEFT_OUT_MAX: usize = 100;
/// Finding the sales reads an entry of each. It rests this number of times as long as it took, and no longer than [`REST_MAX`].
const REST: u32 = 20;
/// Longest time in which no sale is searched.
const REST_MAX: Duration = Duration::from_secs(10);
/// A sale that has not come to its end begins again after this time.
const LONGEST: Duration = Duration::from_secs(60);

/// A sale that has overdue orders.
pub(super) struct SaleTurn {
    pub(super) sale_id: SaleId,
    /// Everything up to here was tried. What becomes overdue later lies behind it, but for an order whose transaction took longer
    /// than its buyer had: it is found when the sale begins again.
    after: Option<OverdueOrder>,
    begun_at: Instant,
}

/// Where the walk is.
pub(super) struct OverdueWalk {
    left_out: BTreeMap<SaleId, Instant>,
    turns: VecDeque<SaleTurn>,
    listed_at: Option<Instant>,
    listing_took: Duration,
    /// How long the oldest overdue order had been so when sales were last searched; 0 when there was none.
    pub(super) overdue_ms: i64,
}

impl OverdueWalk {
    pub(super) fn new() -> Self {
        let (left_out, turns) = (BTreeMap::new(), VecDeque::new());
        Self { left_out, turns, listed_at: None, listing_took: Duration::ZERO, overdue_ms: 0 }
    }

    /// Finds sales with overdue orders, when it is time: every `interval`, and when no turn is left.
    pub(super) async fn find_sales(&mut self, orders: &OrderRows, interval: Duration) -> Result<(), DbError> {
        let now = Instant::now();
        self.left_out.retain(|_, until| *until > now);
        if !self.should_list(now, interval) {
            return Ok(());
        }
        let listed = orders.patient().overdue_sales().await;
        (self.listed_at, self.listing_took) = (Some(now), now.elapsed());
        let sales = match listed {
            Ok(sales) => sales,
            Err(error) if !error.is_outage() && self.has_turns() => {
                tracing::warn!(phase = "p6_fulfil", %error, "sales with overdue orders could not be found, those that are known go on");
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.overdue_ms = sales.first().map_or(0, |oldest| oldest.overdue_ms);
        for OverdueSale { sale_id, .. } in sales {
            let has_turn = self.turns.iter().any(|turn| turn.sale_id == sale_id);
            if !has_turn && !self.left_out.contains_key(&sale_id) {
                self.turns.push_back(SaleTurn { sale_id, after: None, begun_at: now });
            }
        }
        Ok(())
    }

    fn should_list(&self, now: Instant, interval: Duration) -> bool {
        let rest = (self.listing_took * REST).min(REST_MAX);
        let pause = if self.turns.is_empty() { rest } else { rest.max(interval) };
        self.listed_at.is_none_or(|at| now.duration_since(at) >= pause)
    }

    /// The sale whose turn it is.
    pub(super) fn next_turn(&mut self) -> Option<SaleTurn> {
        self.turns.pop_front()
    }

    /// Its next overdue orders, at most `limit`. Where there may be more, it has another turn behind the other sales.
    pub(super) async fn page(
        &mut self,
        orders: &OrderRows,
        turn: SaleTurn,
        limit: u16,
    ) -> Result<Vec<OverdueOrder>, DbError> {
        let SaleTurn { sale_id, after, begun_at } = turn;
        let found = orders.overdue(&sale_id, after.as_ref(), limit).await?;
        if found.len() >= usize::from(limit) {
            let now = Instant::now();
            let next = match now.duration_since(begun_at) < LONGEST {
                true => SaleTurn { sale_id, after: found.last().cloned(), begun_at },
                false => SaleTurn { sale_id, after: None, begun_at: now },
            };
            self.turns.push_back(next);
        }
        Ok(found)
    }

    /// Whether there is more behind what was found.
    pub(super) fn has_turns(&self) -> bool {
        !self.turns.is_empty()
    }

    /// What was read was not tried: its sale begins again.
    pub(super) fn begin_again(&mut self, sale_id: &SaleId) {
        self.turns.retain(|turn| turn.sale_id != *sale_id);
    }

    /// Whether nothing of the sale is to be tried now.
    pub(super) fn is_left_out(&self, sale_id: &SaleId, now: Instant) -> bool {
        self.left_out.get(sale_id).is_some_and(|until| *until > now)
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

    fn turn(number: usize) -> SaleTurn {
        SaleTurn { sale_id: sale(number), after: None, begun_at: Instant::now() }
    }

    #[test]
    fn a_sale_that_is_left_out_has_no_turn() {
        let mut walk = OverdueWalk::new();
        walk.turns.extend([1, 2].map(turn));
        assert!(walk.leave_out(sale(1), Duration::from_secs(9)));
        let left: Vec<_> = walk.turns.iter().map(|turn| turn.sale_id.clone()).collect();
        assert_eq!(left, [sale(2)]);
        let now = Instant::now();
        assert!(walk.is_left_out(&sale(1), now) && !walk.is_left_out(&sale(2), now));
        assert!(!walk.is_left_out(&sale(1), now + Duration::from_secs(9)));
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
        walk.turns.push_back(turn(1));
        assert!(!walk.should_list(now, second) && walk.should_list(now + second, second), "beside other work");
        walk.listing_took = second / 4;
        assert!(!walk.should_list(now + second * 4, second) && walk.should_list(now + second * 5, second));
        walk.listing_took = second * 9;
        assert!(
            !walk.should_list(now + second * 9, second) && walk.should_list(now + second * 10, second),
            "no longer"
        );
    }
}
