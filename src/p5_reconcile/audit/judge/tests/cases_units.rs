//! Units: sold, oversold, edited by hand, given back, paid for.

use super::Finds::{Nothing, These};
use super::JudgeCase;
use crate::domain::ids::DropId;
use crate::domain::outcome::FailReason;
use crate::domain::policy::PurchasePolicy;
use crate::orders::rows::purchases::{Differing, OwnedUnits};
use crate::p5_reconcile::audit::database_side::{OrdersBesideOutcomes, OwnedUnitsDiffer};
use std::num::NonZeroU32;

const BRIDGE: (&str, &str) = ("UNBALANCED", "database stock + landed since = redis remaining");

fn owned(of_drop: Option<&str>, noted: i64, ordered: i64) -> Vec<OwnedUnitsDiffer> {
    let buyers = vec![Differing { user_id: b"ann".to_vec(), noted, ordered }];
    let of_drop = of_drop.map(|id| DropId::parse(id).unwrap());
    vec![OwnedUnitsDiffer { of_drop, units: OwnedUnits { noted, ordered }, buyers }]
}

fn cumulative() -> PurchasePolicy {
    PurchasePolicy::Cumulative(NonZeroU32::new(5).unwrap())
}

pub(super) const CASES: &[JudgeCase] = &[
    JudgeCase { name: "nothing happened", shards: 1, happens: |_| {}, finds: Nothing },
    JudgeCase {
        name: "orders, failures and trimmed records",
        shards: 1,
        happens: |s| {
            let (first, second) = (s.buy(2), s.accept(1));
            s.fail(second, FailReason::GivenUp);
            s.trim(first);
            s.trim(second);
            s.buy(3);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "all is sold",
        shards: 1,
        happens: |s| {
            for _ in 0..5 {
                s.buy(2);
            }
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "an order that lands after Redis was counted",
        shards: 1,
        happens: |s| {
            s.buy(1);
            s.read_redis();
            s.buy(2);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a failure that lands after Redis was counted",
        shards: 1,
        happens: |s| {
            s.read_redis();
            let late = s.accept(2);
            s.fail(late, FailReason::DuplicateBuyer);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "an order that lands and is cancelled after Redis was counted",
        shards: 1,
        happens: |s| {
            s.read_redis();
            let late = s.buy(2);
            s.cancel(late);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a cancelled order whose units Redis does not have yet",
        shards: 1,
        happens: |s| {
            let id = s.buy(2);
            s.cancel(id);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a failure whose unit is offered again",
        shards: 1,
        happens: |s| {
            let id = s.accept(1);
            s.fail(id, FailReason::GivenUp);
            s.database.request(id).is_reclaimed = true;
            s.database.grants.push(crate::sales::rows::grants::GrantMark {
                grant_id: "reclaim-1".into(),
                quantity: 1,
                applied_at_ms: None,
            });
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "more orders than granted units",
        shards: 1,
        happens: |s| {
            s.buy(2);
            s.database.orders = OrdersBesideOutcomes { unnumbered: 9, without_outcome: 9 };
        },
        finds: These(&[
            ("P5-RC2", "11 units ordered, 10 granted, stock 8"),
            ("UNBALANCED", "granted = database stock + orders: 10 against 19"),
            ("UNBALANCED", "orders without an outcome = none: 9 against 0"),
        ]),
    },
    JudgeCase {
        name: "a stock below zero",
        shards: 1,
        happens: |s| (s.database.granted, s.database.stock, s.database.flow) = (-1, -1, -1),
        finds: These(&[("P5-RC2", "0 units ordered, -1 granted, stock -1"), BRIDGE]),
    },
    JudgeCase {
        name: "an order without an outcome",
        shards: 1,
        happens: |s| s.database.orders = OrdersBesideOutcomes { unnumbered: 0, without_outcome: 1 },
        finds: These(&[("UNBALANCED", "orders without an outcome = none: 1 against 0")]),
    },
    JudgeCase {
        name: "an outcome without its order",
        shards: 1,
        happens: |s| {
            let id = s.buy(2);
            s.database.request(id).units = 0;
        },
        finds: These(&[
            ("UNBALANCED", "granted = database stock + orders: 10 against 8"),
            ("UNBALANCED", "accepted = orders + failed + in flight + parked + lost + gaps: 2 against 0"),
        ]),
    },
    JudgeCase {
        name: "a stock edited by hand",
        shards: 1,
        happens: |s| s.database.stock += 1,
        finds: These(&[
            ("UNBALANCED", "granted = database stock + orders: 10 against 11"),
            ("UNBALANCED", "database stock = sum of stock_flow: 11 against 10"),
            BRIDGE,
        ]),
    },
    JudgeCase {
        name: "a journal with a row too many",
        shards: 1,
        happens: |s| s.database.flow += 1,
        finds: These(&[("UNBALANCED", "database stock = sum of stock_flow: 10 against 11")]),
    },
    JudgeCase {
        name: "units of no grant: only the bridge sees them",
        shards: 1,
        happens: |s| (s.database.granted, s.database.stock, s.database.flow) = (12, 12, 12),
        finds: These(&[("UNBALANCED", "12 against 10")]),
    },
    JudgeCase {
        name: "a bucket with a unit too many",
        shards: 1,
        happens: |s| s.shards[0].stock += 1,
        finds: These(&[
            ("UNBALANCED", "granted to redis = redis remaining + in transit + accepted: 10 against 11"),
            BRIDGE,
        ]),
    },
    JudgeCase {
        name: "a bucket that lost a unit",
        shards: 1,
        happens: |s| s.shards[0].stock -= 1,
        finds: These(&[
            ("UNBALANCED", "granted to redis = redis remaining + in transit + accepted: 10 against 9"),
            BRIDGE,
        ]),
    },
    JudgeCase {
        name: "Redis gave away more than the database had",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.fail(id, FailReason::SoldOut);
        },
        finds: These(&[("REFUSED", "2 accepted units ended SOLD_OUT"), BRIDGE]),
    },
    JudgeCase {
        name: "the same, closed by a person with its difference",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.fail(id, FailReason::SoldOut);
            s.database.close("REFUSED", 2);
            s.database.close("UNBALANCED", 2);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a correction of an epoch that is over",
        shards: 1,
        happens: |s| {
            s.database.close("UNBALANCED", 2);
            s.database.closed[0].epoch = Some(0);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a correction of a difference that is not there",
        shards: 1,
        happens: |s| s.database.close("UNBALANCED", 2),
        finds: These(&[("UNBALANCED", "10 against 12")]),
    },
    JudgeCase {
        name: "an order that ended and gave nothing back",
        shards: 1,
        happens: |s| s.database.life.expired += 1,
        finds: These(&[("UNBALANCED", "units given back = expired + cancelled orders: 0 against 1")]),
    },
    JudgeCase {
        name: "an order that ended unpaid and whose units Redis does not have yet",
        shards: 1,
        happens: |s| {
            let id = s.buy(2);
            s.cancel(id);
            // By the deadline, not by a person.
            (s.database.cancelled, s.database.expired) = (0, 2);
            (s.database.life.cancelled, s.database.life.expired) = (0, 2);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "units that came back twice",
        shards: 1,
        happens: |s| {
            let id = s.buy(2);
            s.cancel(id);
            s.database.cancelled += 2;
        },
        finds: These(&[
            ("UNBALANCED", "granted = database stock + orders: 10 against 8"),
            ("UNBALANCED", "units given back = expired + cancelled orders: 4 against 2"),
        ]),
    },
    JudgeCase {
        name: "an order that is paid without a payment",
        shards: 1,
        happens: |s| s.database.life.paid_orders = 1,
        finds: These(&[("UNBALANCED", "paid orders = payments applied: 1 against 0")]),
    },
    JudgeCase {
        name: "money that came early and whose order is not paid",
        shards: 1,
        happens: |s| (s.database.life.payments_applied, s.database.life.payments_unmatched) = (1, 1),
        finds: These(&[
            ("UNBALANCED", "paid orders = payments applied: 0 against 1"),
            ("UNBALANCED", "payments of orders that are not paid = none: 1 against 0"),
        ]),
    },
    JudgeCase {
        name: "a paid order and its payment",
        shards: 1,
        happens: |s| (s.database.life.paid_orders, s.database.life.payments_applied) = (1, 1),
        finds: Nothing,
    },
    JudgeCase {
        name: "a buyer owns other units than the orders say",
        shards: 1,
        happens: |s| (s.sale.policy, s.database.owned) = (cumulative(), owned(None, 1, 3)),
        finds: These(&[(
            "UNBALANCED",
            "purchases of buyers = orders that count against their limits: 1 against 3 in sale s: buyer ann 1 against 3",
        )]),
    },
    JudgeCase {
        name: "the same as an earlier audit found it",
        shards: 1,
        happens: |s| {
            (s.sale.policy, s.database.owned) = (cumulative(), owned(None, 1, 3));
            s.database.counts_orders = false;
        },
        finds: These(&[("UNBALANCED", "buyer ann 1 against 3")]),
    },
    JudgeCase {
        name: "a buyer owns other units of a drop than the orders say",
        shards: 1,
        happens: |s| s.database.owned = owned(Some("d"), 1, 3),
        finds: These(&[("UNBALANCED", "1 against 3 in drop d: buyer ann 1 against 3")]),
    },
    JudgeCase {
        name: "what buyers own means nothing without a cumulative limit",
        shards: 1,
        happens: |s| s.database.owned = owned(None, 1, 3),
        finds: Nothing,
    },
];
