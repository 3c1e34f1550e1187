//! Acceptance numbers: gaps, numbers that are ahead, closed or void, and series that have ended.

use super::Finds::{Moved, Nothing, These};
use super::JudgeCase;
use super::scene::{AuditScene, WINDOW_MS};
use super::servers::SceneOutcome;
use crate::domain::ids::RequestId;
use crate::domain::outcome::{FailReason, Outcome};
use crate::p5_reconcile::audit::redis_side::{KnownGaps, LedgerScan, OpenRecord};
use crate::p5_reconcile::audit::window::Window;
use crate::p5_reconcile::rows::books::Series;
use crate::store::redis::{Meta, ShardCount};

const FIRST: Series = Series { epoch: 1, shard: 0 };

/// Number 1 is lost with its record, number 2 is an order.
fn with_gap(s: &mut AuditScene) {
    let lost = s.accept(1);
    s.buy(1);
    s.redis_forgets(lost);
}

/// Number 1 of the first epoch is lost, 2 is an order of some age; the second epoch sells what the database can give.
fn gap_of_an_ended_epoch(s: &mut AuditScene, age_ms: i64) {
    s.accept(1);
    let order = s.buy(1);
    s.database.request(order).age_ms = age_ms;
    s.database.ended.push((FIRST, 2, Some(2)));
    s.rebuild();
    // The unit behind the gap is kept back.
    s.shards[0].stock -= 1;
    s.shards[0].given.insert("rebuild-2".into(), 8);
    s.database.grants[0].quantity = 8;
}

/// Redis forgot request x, gave its number to y and took x again; x is decided under its first number.
fn accepted_twice(s: &mut AuditScene) -> RequestId {
    let (y, x) = (s.accept(2), RequestId::new(77).unwrap());
    s.accept_again(x, 0, 2);
    let record = s.record(x).clone();
    let mut first = record.order_message(x, &s.sale_id(), 0);
    first.number = 1;
    s.database.decide(SceneOutcome::of(&first, Outcome::Ordered, 2));
    s.fail(y, FailReason::NumberReused);
    x
}

/// An earlier audit has scanned the ledger as it is now, and found these gaps.
fn scanned_before(s: &mut AuditScene, gaps: KnownGaps) {
    let shard = &s.shards[0];
    let counts = ShardCount {
        meta: Meta { state: shard.state, epoch: shard.epoch, number: shard.number },
        stock: shard.stock,
        granted: 10,
        in_transit: 0,
        grants: 1,
        trimmed: shard.trimmed,
        accepted: shard.accepted,
    };
    let mut scan = LedgerScan::begun(&counts, gaps);
    for (id, record) in &shard.ledger {
        scan.visit(*id, record.clone(), None, 0);
    }
    s.shards[0].remembered = Some(scan);
}

pub(super) const CASES: &[JudgeCase] = &[
    JudgeCase {
        name: "a number without record and outcome",
        shards: 1,
        happens: with_gap,
        finds: These(&[
            ("LEDGER_DAMAGED", "shard 0: 2 requests were accepted, the ledger has 1"),
            ("P5-RC4", "shard 0, epoch 1: number 1 has no outcome, and no ledger knows the request"),
        ]),
    },
    JudgeCase {
        name: "a run of numbers",
        shards: 1,
        happens: |s| {
            for _ in 0..3 {
                let lost = s.accept(1);
                s.redis_forgets(lost);
            }
            s.buy(1);
        },
        finds: These(&[("LEDGER_DAMAGED", "4 requests"), ("P5-RC4", "numbers 1 to 3 have no outcome")]),
    },
    JudgeCase {
        name: "a gap that a person closed",
        shards: 1,
        happens: |s| {
            with_gap(s);
            s.database.close_numbers(FIRST, 1..=1, 1, false);
        },
        finds: These(&[("LEDGER_DAMAGED", "2 requests were accepted")]),
    },
    JudgeCase {
        name: "a gap of which a part is closed",
        shards: 1,
        happens: |s| {
            for _ in 0..3 {
                let lost = s.accept(1);
                s.redis_forgets(lost);
            }
            s.buy(1);
            s.database.close_numbers(FIRST, 2..=2, 1, false);
        },
        finds: These(&[("LEDGER_DAMAGED", ""), ("P5-RC4", "number 1 has"), ("P5-RC4", "number 3 has")]),
    },
    JudgeCase {
        name: "a closed gap whose unit is offered again",
        shards: 1,
        happens: |s| {
            with_gap(s);
            s.database.close_numbers(FIRST, 1..=1, 1, false);
            s.database.closed[0].reclaimed_by = Some(b"reclaim-1".to_vec());
            s.database.grants.push(crate::sales::rows::grants::GrantMark {
                grant_id: "reclaim-1".into(),
                quantity: 1,
                applied_at_ms: None,
            });
        },
        finds: These(&[("LEDGER_DAMAGED", "2 requests were accepted")]),
    },
    JudgeCase {
        name: "a gap whose record was trimmed although nothing was decided",
        shards: 1,
        happens: |s| {
            let lost = s.accept(1);
            s.buy(1);
            s.trim(lost);
        },
        finds: These(&[("P5-RC4", "number 1 has no outcome")]),
    },
    JudgeCase {
        name: "an old gap of an epoch that is over",
        shards: 1,
        happens: |s| gap_of_an_ended_epoch(s, 10 * i64::try_from(WINDOW_MS).unwrap()),
        finds: These(&[("P5-RC4", "shard 0, epoch 1: number 1 has no outcome")]),
    },
    JudgeCase {
        name: "the same gap, and the number above it was decided just now",
        shards: 1,
        happens: |s| {
            gap_of_an_ended_epoch(s, 100);
            // Not a gap yet: its unit is not held, and the sums show it.
            s.database.close("UNBALANCED", 1);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "the same gap where nothing may be undecided",
        shards: 1,
        happens: |s| {
            gap_of_an_ended_epoch(s, 100);
            s.window = Window::Now;
        },
        finds: These(&[("P5-RC4", "epoch 1: number 1 has no outcome")]),
    },
    JudgeCase {
        name: "a last number that was written down and has nothing above it",
        shards: 1,
        happens: |s| {
            s.buy(1);
            s.accept(1);
            s.database.ended.push((FIRST, 2, Some(2)));
            s.rebuild();
            s.shards[0].stock -= 1;
            s.shards[0].given.insert("rebuild-2".into(), 8);
            s.database.grants[0].quantity = 8;
        },
        finds: These(&[("P5-RC4", "epoch 1: number 2 has no outcome")]),
    },
    JudgeCase {
        name: "a closed sale that left, and whose database went back",
        shards: 1,
        happens: |s| {
            s.buy(1);
            let lost = s.buy(1);
            s.close_and_leave();
            s.database_forgets(lost);
        },
        finds: These(&[("P5-RC4", "epoch 1: number 2 has no outcome")]),
    },
    JudgeCase {
        name: "Redis went back below what the database decided",
        shards: 1,
        happens: |s| {
            s.buy(1);
            let forgotten = s.buy(1);
            s.redis_forgets(forgotten);
            let shard = &mut s.shards[0];
            (shard.number, shard.stock, shard.accepted) = (1, 9, Some(1));
        },
        finds: These(&[("P5-RC3", "shard 0: redis accepted 1 requests, the database decided number 2")]),
    },
    JudgeCase {
        name: "a decided request that the ledger does not have",
        shards: 1,
        happens: |s| {
            let id = s.buy(1);
            s.redis_forgets(id);
        },
        finds: These(&[
            ("LEDGER_DAMAGED", "shard 0: 1 requests were accepted, the ledger has 0"),
            ("P5-RC3", "shard 0: the database decided 1 requests the ledger does not have"),
        ]),
    },
    JudgeCase {
        name: "an accepted number that was given twice, on its way to be closed",
        shards: 1,
        happens: |s| {
            accepted_twice(s);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "the same, and it is late",
        shards: 1,
        happens: |s| {
            let x = accepted_twice(s);
            s.is_old(x);
        },
        finds: These(&[(
            "LEDGER_DAMAGED",
            "redis accepted the request again as number 2, and it is decided under another",
        )]),
    },
    JudgeCase {
        name: "the same, closed as void",
        shards: 1,
        happens: |s| {
            let x = accepted_twice(s);
            s.is_old(x);
            s.database.close_numbers(FIRST, 2..=2, 2, true);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a request that is decided as something else",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.order(id);
            s.record(id).state = crate::domain::ledger::LedgerState::Queued;
            s.database.request(id).payload_hash = [7; 16];
        },
        finds: These(&[(
            "LEDGER_DAMAGED",
            "the ledger accepted 2 units as number 1, the database decided something else",
        )]),
    },
    JudgeCase {
        name: "a remembered scan, and requests that came after it",
        shards: 1,
        happens: |s| {
            s.buy(1);
            scanned_before(s, KnownGaps::default());
            s.accept(2);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a remembered scan, and the gap that it had",
        shards: 1,
        happens: |s| {
            with_gap(s);
            scanned_before(s, KnownGaps { runs: vec![(1, 1)], units: 1 });
        },
        finds: These(&[("P5-RC4", "number 1 has no outcome")]),
    },
    JudgeCase {
        name: "a remembered scan, and a gap that it did not have",
        shards: 1,
        happens: |s| {
            with_gap(s);
            scanned_before(s, KnownGaps::default());
        },
        finds: Moved,
    },
    JudgeCase {
        name: "a remembered scan, and a request of it that was decided since",
        shards: 1,
        happens: |s| {
            let id = s.accept(1);
            scanned_before(s, KnownGaps::default());
            assert!(s.shards[0].remembered.as_ref().is_some_and(|scan| matches!(&scan.open[..], [OpenRecord { .. }])));
            s.order(id);
        },
        finds: Nothing,
    },
];
