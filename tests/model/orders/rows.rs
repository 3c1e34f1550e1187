//! Which searches about orders are made, and what each is expected to find.

use super::setup::{Lacking, OrderFault, OrdersSetup};

/// A search in which every law has to hold.
pub struct OrdersRow {
    pub name: &'static str,
    pub setup: OrdersSetup,
    /// A search that visits fewer states has not searched.
    pub states_min: usize,
}

/// One mechanism left out.
pub struct OrdersWithout {
    pub name: &'static str,
    pub setup: OrdersSetup,
    /// The laws that break, the most significant one last.
    pub breaks: &'static [&'static str],
}

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
pub fn configurations() -> Vec<OrdersRow> {
    let row = |name, setup, states_min| OrdersRow { name, setup, states_min };
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
pub fn bigger() -> Vec<OrdersRow> {
    let row = |name, setup| OrdersRow { name, setup, states_min: 100_000 };
    vec![
        row("a unit is sold again", of(2, 1, (2, 2), 2, DEATHS)),
        row("batches of two", of(2, 2, (2, 1), 2, DEATHS)),
        row("Redis emptied, its rebuild dies", of(2, 2, (1, 1), 2, EMPTIED)),
        row("three buyers, one unit too few", of(3, 2, (1, 1), 1, DEATHS)),
    ]
}

pub fn without() -> Vec<OrdersWithout> {
    let row = |name, lacking, setup: OrdersSetup, breaks| {
        let setup = OrdersSetup { lacking: Some(lacking), ..setup };
        OrdersWithout { name, setup, breaks }
    };
    let small = of(1, 1, (2, 2), 2, DEATHS);
    let emptied = of(3, 1, (0, 0), 1, EMPTIED);
    vec![
        row(
            "the UPDATE that expires has no condition on the state",
            Lacking::StateCondition,
            small,
            &["O8", "O4", "O3"],
        ),
        row("it has no condition on the deadline", Lacking::DeadlineCondition, small, &["O7"]),
        row("units return in a later transaction", Lacking::ReturnInTransaction, small, &["O2", "O4"]),
        row("Redis does not keep the name of a grant", Lacking::GrantName, of(3, 1, (0, 0), 0, DEATHS), &["O5", "O1"]),
        row("nobody gives the grants of a sweep that died", Lacking::OthersGive, small, &["O5"]),
        row("a rebuild leaves the grants that it counted open", Lacking::RebuildMarks, emptied, &["O5", "O1"]),
        row("a payment makes an expired order PAID", Lacking::LateMoneyRefused, small, &["O8", "O2"]),
        row("money that no order can take gets no row", Lacking::RefundRecorded, small, &["O6"]),
        row("a payment that is told again is a new one", Lacking::PaymentId, small, &["O3", "O6"]),
        row(
            "the order is PAID before its payment has a row",
            Lacking::PaidWithItsRow,
            of(1, 1, (1, 0), 1, HALF),
            &["O3"],
        ),
        row("a cancelled order keeps its money", Lacking::CancelRefunds, small, &["O3"]),
        row("the amount is not compared", Lacking::AmountCompared, small, &["O3"]),
    ]
}
