//! Closed sales that need no audit in each round: they were consistent, with nothing left in Redis.
//!
//! Input: the newest that the database has of each closed sale. Output: whether it can be left out this time. It is audited again
//! when anything was written for it since, by a late message, an operator or by hand, and in any case after some rounds. A crash
//! forgets all of it, and the next leader audits each sale once.

use crate::domain::ids::SaleId;
use crate::p5_reconcile::rows::books::Movement;
use std::collections::HashMap;

/// Rounds after which such a sale is audited in any case.
const ROUNDS: u32 = 100;

/// The closed sales that are settled.
#[derive(Debug, Default)]
pub(super) struct SettledSales {
    of: HashMap<SaleId, SettledSale>,
    /// What the database had of each closed sale when this round began.
    now: HashMap<SaleId, Movement>,
}

#[derive(Debug, Clone, Copy)]
struct SettledSale {
    /// The newest that the database had of it before it was audited.
    movement: Movement,
    /// Rounds since then.
    rounds: u32,
}

impl SettledSales {
    /// A round begins; `now` has all closed sales, read before any of them is audited. Others are forgotten.
    pub(crate) fn begin_round(&mut self, now: HashMap<SaleId, Movement>) {
        self.of.retain(|sale, _| now.contains_key(sale));
        self.now = now;
    }

    /// Whether the sale can be left out of this round.
    pub(crate) fn leave_out(&mut self, sale: &SaleId) -> bool {
        let Some(settled) = self.of.get_mut(sale) else { return false };
        settled.rounds += 1;
        if self.now.get(sale) == Some(&settled.movement) && settled.rounds < ROUNDS {
            return true;
        }
        self.of.remove(sale);
        false
    }

    /// Remembers a sale that this round found settled.
    pub(crate) fn remember(&mut self, sale: &SaleId) {
        if let Some(movement) = self.now.get(sale).copied() {
            self.of.insert(sale.clone(), SettledSale { movement, rounds: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_sale_is_audited_again_when_it_moved_and_after_some_rounds() {
        let sale = SaleId::parse("s").unwrap();
        let (at, later) = (Movement { flow_id: 7, numbers: 3 }, Movement { flow_id: 8, numbers: 3 });
        let mut settled = SettledSales::default();
        let mut left_out = |movement, remember| {
            settled.begin_round(HashMap::from([(sale.clone(), movement)]));
            let left_out = settled.leave_out(&sale);
            if remember && !left_out {
                settled.remember(&sale);
            }
            left_out
        };
        assert!(!left_out(at, true), "not audited yet");
        assert!(left_out(at, true));
        assert!(!left_out(later, true), "the journal grew");
        assert!(!left_out(Movement { numbers: 4, ..later }, false), "a number got its outcome");
        assert!(!left_out(later, true), "the audit found something");
        assert_eq!((0..1_000).take_while(|_| left_out(later, true)).count(), 99, "not for ever");
        settled.begin_round(HashMap::new());
        settled.begin_round(HashMap::from([(sale.clone(), later)]));
        assert!(!settled.leave_out(&sale), "removed and made again");
    }
}
