//! In which order a round works on its sales: what sells before what is over.
//!
//! Input: the released sales. Output: live ones, open before paused ones; then the closed ones, from where the last round ended.
//! Closed ones get at least one audit a round, and more while the round is young, so that neither kind waits for the other for long:
//! a new leader has to count each closed sale once more, and thousands of them must not stand before a sale that is frozen. A crash
//! forgets the place: the closed ones begin again.

use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The sales of one round that are still to be done.
pub(super) struct Turns {
    live: VecDeque<Sale>,
    closed: VecDeque<Sale>,
    /// No further closed sale after this.
    closed_until: Instant,
    closed_done: usize,
}

impl Turns {
    /// The turns of a round that begins now. `after`: the closed sale that the last round did last.
    pub(super) fn new(released: Vec<Sale>, after: Option<&SaleId>, round: Duration) -> Self {
        let (mut closed, mut live): (Vec<_>, Vec<_>) =
            released.into_iter().partition(|sale| sale.status == SaleStatus::Closed);
        // Stable: within each kind by id.
        live.sort_by_key(|sale| sale.status == SaleStatus::Paused);
        let first = closed.iter().position(|sale| after.is_some_and(|after| sale.sale_id > *after)).unwrap_or(0);
        closed.rotate_left(first);
        Self { live: live.into(), closed: closed.into(), closed_until: Instant::now() + round, closed_done: 0 }
    }

    /// The sales that are not closed, taken out: those that this round works on come back by [`Turns::set_live`].
    pub(super) fn take_live(&mut self) -> VecDeque<Sale> {
        std::mem::take(&mut self.live)
    }

    pub(super) fn set_live(&mut self, live: VecDeque<Sale>) {
        self.live = live;
    }

    /// The next sale; `None` when the round is over.
    pub(super) fn next(&mut self) -> Option<Sale> {
        if let Some(live) = self.live.pop_front() {
            return Some(live);
        }
        if self.closed_done > 0 && Instant::now() >= self.closed_until {
            return None;
        }
        self.closed_done += 1;
        self.closed.pop_front()
    }

    /// The closed sales that this round leaves to the next.
    pub(super) fn left(self) -> impl Iterator<Item = Sale> {
        self.closed.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::sale::tests;

    fn sale(id: &str, status: SaleStatus) -> Sale {
        Sale { sale_id: SaleId::parse(id).unwrap(), ..tests::sale(status) }
    }

    fn all(mut turns: Turns) -> Vec<String> {
        std::iter::from_fn(|| turns.next()).map(|sale| sale.sale_id.to_string()).collect()
    }

    #[test]
    fn what_sells_comes_first_and_closed_ones_take_turns() {
        use SaleStatus::{Closed, Paused, Warmed};
        let released = || {
            let all = [("a", Closed), ("b", Paused), ("c", Closed), ("d", Closed), ("z", Warmed)];
            all.map(|(id, status)| sale(id, status))
        };
        let after = |id: &str| SaleId::parse(id).ok();
        let turns = |after: Option<SaleId>, round| Turns::new(released().into(), after.as_ref(), round);
        let long = Duration::from_secs(3600);
        assert_eq!(all(turns(None, long)), ["z", "b", "a", "c", "d"]);
        assert_eq!(all(turns(after("c"), long)), ["z", "b", "d", "a", "c"]);
        assert_eq!(all(turns(after("d"), long)), ["z", "b", "a", "c", "d"], "from the beginning again");
        // A round that takes longer than its interval does one of them.
        assert_eq!(all(turns(None, Duration::ZERO)), ["z", "b", "a"]);
        assert_eq!(all(turns(after("a"), Duration::ZERO)), ["z", "b", "c"]);
        assert_eq!(turns(None, Duration::ZERO).left().count(), 3);
    }
}
