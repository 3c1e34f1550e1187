//! The balance sheet of a sale (E6, E11): equations over counted units, and what is wrong when one does not hold.
//!
//! Pure arithmetic over numbers that P5 read in a safe order (ledger, stream, DLQs, database last). All figures are
//! units, not requests. Where a unit can be and which step moves it: docs/architecture.md, "The books".

use serde::Serialize;

/// The terms of the sheet, counted by one audit. Redis' side is summed over shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, utoipa::ToSchema)]
pub struct BalanceSheet {
    /// Units ever released and not withdrawn, by `sales.granted`.
    pub granted: i64,
    /// Units that were taken off sale, by the journal; a move has them in its other sale.
    pub withdrawn: i64,
    /// The same by the withdrawals on record.
    pub(crate) withdrawals: i64,
    /// Units of grants that Redis has been given in this epoch.
    pub granted_in_redis: i64,
    /// Units of grants that Redis has not been given yet.
    pub(crate) grants_open: i64,
    /// Units of all grants that were made in this epoch, for the rebuild that opens it.
    #[serde(skip)]
    pub(crate) granted_in_epoch: i64,
    /// Unsold units in the buckets.
    pub redis_stock: i64,
    /// Units between two buckets.
    pub in_transit: i64,
    /// Units accepted in this epoch, as Redis counted them.
    pub accepted: i64,
    /// Accepted units that have an order, cancelled or not: Redis does not get them back.
    pub(crate) accepted_ordered: i64,
    /// Accepted units that have a recorded final failure.
    pub accepted_failed: i64,
    /// Accepted units on their way: outbox, pending, broker, DLQs, younger than the window.
    pub in_flight: i64,
    /// Accepted units parked in a DLQ; recorded, waiting for P5 or a person.
    pub parked: i64,
    /// Accepted units older than the window that are nowhere (`P5-RC1`).
    pub leaked: i64,
    /// Units of acceptance numbers of this epoch without an outcome (`P5-RC4`): Redis accepted them, their requests are unknown.
    pub gaps: i64,
    /// Units of such numbers of all epochs that are kept back: a rebuild does not sell them, only `sale reclaim` does, after a person
    /// wrote them off.
    pub gaps_held: i64,
    /// Of those, what a person wrote off.
    pub written_off: i64,
    /// Units of final failures that Redis had taken and that were not offered again.
    pub failed_held: i64,
    /// Units that Redis accepted and the database did not have (SOLD_OUT), less what a person closed.
    pub refused: i64,
    /// Units by which a person said that the two sides differ, and why; in the present epoch.
    pub correction: i64,
    /// Units of orders that were persisted after their shard was counted.
    pub(crate) landed_since: i64,
    /// Unsold units by `sales.stock`.
    pub database_stock: i64,
    /// Units of all orders in the database that stand; a cancelled order's units are in `database_stock` again.
    pub ordered: i64,
    /// Units of orders, cancelled or not, that have no outcome: a part of the database went back.
    pub(crate) without_outcome: i64,
    /// Sum of `stock_flow.delta`.
    pub flow: i64,
    /// Units that ended orders brought back, by the journal.
    pub returned: i64,
    /// Orders by what became of them, and payments.
    #[serde(flatten)]
    pub life: LifeCounts,
    /// Whether Redis holds this sale; a draft that was never warmed has no Redis side.
    pub in_redis: bool,
    /// Whether every shard of it could be counted in the epoch of the database, so that both sides can be compared.
    pub(crate) bridged: bool,
}

/// Orders by what became of them after CONFIRMED, in units, and payments. Orders of sales without a payment step are in none of
/// them, unless they were cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, utoipa::ToSchema)]
pub struct LifeCounts {
    /// Units that wait for their payment.
    pub unpaid: i64,
    /// Units that are paid.
    pub paid: i64,
    /// Units of orders that expired unpaid.
    pub expired: i64,
    /// Units of orders that were cancelled.
    pub cancelled: i64,
    /// Number of paid orders.
    pub paid_orders: i64,
    /// Number of payments that are applied to an order.
    pub payments_applied: i64,
    /// Of those, payments whose order is not paid.
    pub payments_unmatched: i64,
}

/// One equation of the sheet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Equation {
    /// What should be equal, in words.
    pub name: &'static str,
    /// Left side, units.
    pub left: i64,
    /// Right side, units.
    pub right: i64,
}

impl Equation {
    /// Whether both sides agree.
    #[must_use]
    pub const fn holds(&self) -> bool {
        self.left == self.right
    }
}

impl BalanceSheet {
    /// The equations, in the order a person reads them.
    #[must_use]
    pub fn equations(&self) -> Vec<Equation> {
        let mut equations = vec![
            Equation {
                name: "granted = database stock + orders",
                left: self.granted,
                right: self.database_stock + self.ordered,
            },
            Equation { name: "database stock = sum of stock_flow", left: self.database_stock, right: self.flow },
            Equation { name: "units withdrawn = withdrawals on record", left: self.withdrawn, right: self.withdrawals },
            Equation { name: "orders without an outcome = none", left: self.without_outcome, right: 0 },
            Equation {
                name: "units given back = expired + cancelled orders",
                left: self.returned,
                right: self.life.expired + self.life.cancelled,
            },
            Equation {
                name: "paid orders = payments applied",
                left: self.life.paid_orders,
                right: self.life.payments_applied,
            },
            Equation {
                name: "payments of orders that are not paid = none",
                left: self.life.payments_unmatched,
                right: 0,
            },
        ];
        if self.in_redis {
            equations.push(Equation {
                name: "granted to redis = redis remaining + in transit + accepted",
                left: self.granted_in_redis,
                right: self.redis_stock + self.in_transit + self.accepted,
            });
            equations.push(Equation {
                name: "accepted = orders + failed + in flight + parked + lost + gaps",
                left: self.accepted,
                right: self.accepted_ordered
                    + self.accepted_failed
                    + self.in_flight
                    + self.parked
                    + self.leaked
                    + self.gaps,
            });
        }
        if self.bridged {
            equations.push(self.bridge());
        }
        equations
    }

    /// The equation between the two servers (E11): where the units are that the database calls unsold.
    const fn bridge(&self) -> Equation {
        Equation {
            name: "database stock + landed since = redis remaining + in transit + in flight + parked + lost \
                   + grants not given + failures held + gaps + correction",
            left: self.database_stock + self.landed_since,
            right: self.redis_stock
                + self.in_transit
                + self.in_flight
                + self.parked
                + self.leaked
                + self.grants_open
                + self.failed_held
                + self.gaps_held
                + self.correction,
        }
    }

    /// Whether the database sold more than was granted (`P5-RC2`).
    #[must_use]
    pub const fn oversold(&self) -> bool {
        self.ordered > self.granted || self.database_stock < 0
    }

    /// Whether everything adds up and nothing leaked. Gaps and refusals are findings of their own: a person can close them.
    #[must_use]
    pub(crate) fn consistent(&self) -> bool {
        !self.oversold() && self.leaked == 0 && self.equations().iter().all(Equation::holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sheet(granted: i64, accepted: i64, ordered: i64, failed: i64) -> BalanceSheet {
        BalanceSheet {
            granted,
            granted_in_redis: granted,
            redis_stock: granted - accepted,
            accepted,
            accepted_ordered: ordered,
            accepted_failed: failed,
            in_flight: accepted - ordered - failed,
            database_stock: granted - ordered,
            ordered,
            flow: granted - ordered,
            failed_held: failed,
            in_redis: true,
            bridged: true,
            ..BalanceSheet::default()
        }
    }

    proptest! {
        #[test]
        fn an_honest_run_balances_and_any_single_lost_or_doubled_unit_shows(
            granted in 0i64..1_000, accepted in 0i64..1_000, ordered in 0i64..1_000, failed in 0i64..1_000,
            field in 0usize..18, off in prop_oneof![Just(-1i64), Just(1)],
        ) {
            let accepted = accepted.min(granted);
            let ordered = ordered.min(accepted);
            let failed = failed.min(accepted - ordered);
            let life = LifeCounts { expired: 5, cancelled: 2, paid_orders: 3, payments_applied: 3, ..LifeCounts::default() };
            let honest = BalanceSheet { returned: 7, life, withdrawn: 4, withdrawals: 4, ..sheet(granted, accepted, ordered, failed) };
            prop_assert!(honest.consistent());
            let mut wrong = honest;
            match field {
                0 => wrong.redis_stock += off,
                1 => wrong.accepted += off,
                2 => wrong.database_stock += off,
                3 => wrong.ordered += off,
                4 => wrong.accepted_failed += off,
                5 => wrong.flow += off,
                6 => wrong.grants_open += off,
                7 => wrong.failed_held += off,
                8 => wrong.landed_since += off,
                9 => wrong.in_transit += off,
                10 => wrong.gaps_held += off,
                11 => wrong.without_outcome += off,
                12 => wrong.returned += off,
                13 => wrong.life.expired += off,
                14 => wrong.life.payments_applied += off,
                15 => wrong.life.payments_unmatched += off,
                16 => wrong.withdrawn += off,
                _ => wrong.granted_in_redis += off,
            }
            prop_assert!(!wrong.consistent());
        }
    }

    /// What no equation inside one server sees: both are right by themselves, and they disagree.
    #[test]
    fn units_that_only_one_side_has_show_in_the_bridge() {
        let restored = BalanceSheet { database_stock: 900, ordered: 100, flow: 900, ..sheet(1_000, 200, 200, 0) };
        let broken: Vec<_> = restored.equations().into_iter().filter(|equation| !equation.holds()).collect();
        assert_eq!(broken, [restored.bridge()]);
        let given_twice = BalanceSheet { granted_in_redis: 1_100, redis_stock: 900, ..sheet(1_000, 200, 200, 0) };
        assert!(!given_twice.consistent());
        let known = BalanceSheet { gaps: 100, gaps_held: 100, accepted_ordered: 100, ..restored };
        assert!(known.consistent(), "as gaps they add up, and are a finding of their own");
    }

    #[test]
    fn a_leak_is_inconsistent_and_overselling_is_named() {
        let mut leak = sheet(10, 5, 4, 0);
        leak.in_flight = 0;
        leak.leaked = 1;
        assert!(!leak.consistent());
        let mut over = sheet(10, 10, 10, 0);
        over.ordered = 11;
        assert!(over.oversold());
    }
}
