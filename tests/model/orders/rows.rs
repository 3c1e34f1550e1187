//! Which searches about orders are made, and what each is expected to find.

use super::setup::{OrderFault, OrdersSetup, Skipped};
use crate::search::{Complete, Lacking};

const DEATHS: &[OrderFault] = &[OrderFault::ProcessDies, OrderFault::AnswerLost, OrderFault::ClockGoesBack];
const EMPTIED: &[OrderFault] = &[OrderFault::RedisWiped, OrderFault::RebuildDies, OrderFault::ProcessDies];
const HALF: &[OrderFault] = &[OrderFault::PaymentHalf];

const fn of(
    buyers: usize,
    stock: i8,
    (money, acts): (u8, u8),
    faults: u8,
    kinds: &'static [OrderFault],
) -> OrdersSetup {
    OrdersSetup { buyers, stock, money, acts, faults, kinds, lacking: None }
}

/// What every test run searches.
pub fn configurations() -> Vec<Complete<OrdersSetup>> {
    let row = |name, setup, states_min| Complete { name, setup, states_min, breaks: &[] };
    vec![
        row("one order, everything about it", of(1, 1, (2, 2), 3, DEATHS), 20_000),
        row("a unit is sold again", of(2, 1, (2, 1), 1, DEATHS), 60_000),
        row("batches of two", of(2, 2, (1, 1), 1, DEATHS), 17_000),
        row("Redis emptied, its rebuild dies", of(2, 1, (1, 1), 2, EMPTIED), 20_000),
        row("Redis emptied, batches of two", of(2, 2, (0, 1), 2, EMPTIED), 10_000),
        row("three buyers, one unit", of(3, 1, (1, 1), 1, DEATHS), 3_000),
    ]
}

/// More of the same, for `make model`.
pub fn bigger() -> Vec<Complete<OrdersSetup>> {
    let row = |name, setup| Complete { name, setup, states_min: 100_000, breaks: &[] };
    vec![
        row("a unit is sold again", of(2, 1, (2, 2), 2, DEATHS)),
        row("batches of two", of(2, 2, (2, 1), 2, DEATHS)),
        row("Redis emptied, its rebuild dies", of(2, 2, (1, 1), 2, EMPTIED)),
        row("three buyers, one unit too few", of(3, 2, (1, 1), 1, DEATHS)),
    ]
}

pub fn without() -> Vec<Lacking<OrdersSetup>> {
    let row = |name, lacking, setup: OrdersSetup, breaks| {
        let setup = OrdersSetup { lacking: Some(lacking), ..setup };
        Lacking { name, setup, breaks }
    };
    let small = of(1, 1, (2, 2), 2, DEATHS);
    let emptied = of(3, 1, (0, 0), 1, EMPTIED);
    vec![
        row(
            "the UPDATE that expires has no condition on the state",
            Skipped::StateCondition,
            small,
            &["O8", "O4", "O3"],
        ),
        row("it has no condition on the deadline", Skipped::DeadlineCondition, small, &["O7"]),
        row("units return in a later transaction", Skipped::ReturnInTransaction, small, &["O2", "O4"]),
        row("Redis does not keep the name of a grant", Skipped::GrantName, of(3, 1, (0, 0), 0, DEATHS), &["O5", "O1"]),
        row("no other process gives the grants of a sweep that died", Skipped::OthersGive, small, &["O5"]),
        row("a rebuild leaves the grants that it counted open", Skipped::RebuildMarks, emptied, &["O5", "O1"]),
        row("a payment makes an expired order PAID", Skipped::LateMoneyRefused, small, &["O8", "O2"]),
        row("money that no order can take gets no row", Skipped::RefundRecorded, small, &["O6"]),
        row("a payment that is reported again is a new one", Skipped::PaymentId, small, &["O3", "O6"]),
        row(
            "the order is PAID before its payment has a row",
            Skipped::PaidWithItsRow,
            of(1, 1, (1, 0), 1, HALF),
            &["O3"],
        ),
        row("a cancelled order keeps its money", Skipped::CancelRefunds, small, &["O3"]),
        row("the amount is not compared", Skipped::AmountCompared, small, &["O3"]),
    ]
}
