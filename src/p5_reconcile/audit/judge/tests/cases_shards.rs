//! What a shard says by itself: lost keys, damaged records, another epoch, a sale that is no more.

use super::Finds::{Moved, Nothing, These};
use super::JudgeCase;
use crate::domain::sale::SaleStatus;

pub(super) const CASES: &[JudgeCase] = &[
    JudgeCase {
        name: "the counters are gone",
        shards: 1,
        happens: |s| {
            s.buy(1);
            s.shards[0].is_gone = true;
        },
        finds: These(&[("KEYS_LOST", "shard 0: the sale was warmed but redis has no keys of it")]),
    },
    JudgeCase {
        name: "the counters of a paused sale are gone",
        shards: 1,
        happens: |s| {
            s.sale.status = SaleStatus::Paused;
            s.shards[0].is_gone = true;
        },
        finds: These(&[("KEYS_LOST", "shard 0")]),
    },
    JudgeCase {
        name: "the counters are gone, and the ledger has an undecided request",
        shards: 1,
        happens: |s| {
            let id = s.accept(1);
            s.is_old(id);
            s.buy(1);
            s.shards[0].is_gone = true;
        },
        finds: These(&[("KEYS_LOST", ""), ("P5-RC1", "as number 1")]),
    },
    JudgeCase {
        name: "the counters are gone, and the ledger has an order that the database has forgotten",
        shards: 1,
        happens: |s| {
            let id = s.buy(1);
            s.is_old(id);
            s.buy(1);
            s.database_forgets(id);
            s.shards[0].is_gone = true;
        },
        finds: These(&[("KEYS_LOST", ""), ("P5-RC1", "settled once")]),
    },
    JudgeCase {
        name: "one of two shards has lost its counters",
        shards: 2,
        happens: |s| s.shards[1].is_gone = true,
        finds: These(&[("KEYS_LOST", "shard 1")]),
    },
    JudgeCase {
        name: "one key is missing",
        shards: 1,
        happens: |s| s.shards[0].is_complete = false,
        finds: These(&[("KEYS_LOST", "shard 0: one of the sale's keys is missing or of another kind")]),
    },
    JudgeCase {
        name: "a draft need not have all keys",
        shards: 1,
        happens: |s| {
            s.sale.status = SaleStatus::Draft;
            s.shards[0].is_complete = false;
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a draft that was never warmed",
        shards: 1,
        happens: |s| {
            s.sale.status = SaleStatus::Draft;
            s.shards[0].is_gone = true;
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a closed sale that left Redis",
        shards: 1,
        happens: |s| {
            s.buy(2);
            s.close_and_leave();
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a record that cannot be read",
        shards: 1,
        happens: |s| {
            let id = s.buy(1);
            s.redis_forgets(id);
            s.shards[0].unreadable.push((id.to_string(), "Q x".into()));
        },
        finds: These(&[
            ("LEDGER_DAMAGED", "record \"Q x\" of \"1\" is unreadable"),
            ("LEDGER_DAMAGED", "1 requests were accepted, the ledger has 0"),
            ("P5-RC3", "the database decided 1 requests"),
        ]),
    },
    JudgeCase {
        name: "a record of no request",
        shards: 1,
        happens: |s| s.shards[0].unreadable.push(("what".into(), "x".into())),
        finds: These(&[("LEDGER_DAMAGED", "record \"x\" of \"what\" is unreadable")]),
    },
    JudgeCase {
        name: "units that the ledger does not have",
        shards: 1,
        happens: |s| {
            s.buy(1);
            s.shards[0].accepted = Some(2);
        },
        finds: These(&[
            ("LEDGER_DAMAGED", "shard 0: 2 units were accepted, the ledger has 1"),
            ("UNBALANCED", "granted to redis = redis remaining + in transit + accepted: 10 against 11"),
            ("UNBALANCED", "accepted = orders + failed"),
        ]),
    },
    JudgeCase {
        name: "keys of a build that did not count units",
        shards: 1,
        happens: |s| {
            s.buy(2);
            s.shards[0].accepted = None;
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a request more than the ledger has, and no outcome of it",
        shards: 1,
        happens: |s| s.shards[0].number += 1,
        finds: These(&[
            ("LEDGER_DAMAGED", "1 requests were accepted, the ledger has 0"),
            ("P5-RC4", "number 1 has no outcome"),
            ("UNBALANCED", "accepted = orders + failed + in flight + parked + lost + gaps: 0 against 1"),
            ("UNBALANCED", "10 against 11"),
        ]),
    },
    JudgeCase {
        name: "the database is in an older epoch than Redis",
        shards: 1,
        happens: |s| s.shards[0].epoch = 2,
        finds: These(&[(
            "UNBALANCED",
            "shard 0: redis is in epoch 2, the database in epoch 1: the database went back",
        )]),
    },
    JudgeCase {
        name: "Redis is in an older epoch: a rebuild has begun",
        shards: 1,
        happens: |s| (s.sale.epoch, s.database.epoch) = (2, 2),
        finds: Nothing,
    },
    JudgeCase {
        name: "frozen keys are not compared with the database",
        shards: 1,
        happens: |s| {
            s.freeze();
            s.database.grants[0].quantity += 5;
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "the sale was rebuilt while the audit read",
        shards: 1,
        happens: |s| s.database.epoch = 2,
        finds: Moved,
    },
    JudgeCase {
        name: "a sale that the database does not have",
        shards: 1,
        happens: |s| {
            s.accept(1);
            s.database.exists = false;
            s.shards[0].unreadable.push(("what".into(), "x".into()));
        },
        finds: These(&[("LEDGER_DAMAGED", "is unreadable")]),
    },
    JudgeCase {
        name: "a sale that was archived, and has nothing anywhere",
        shards: 1,
        happens: |s| {
            s.sale.status = SaleStatus::Closed;
            s.shards[0].is_gone = true;
            s.database = super::servers::SceneDatabase::default();
        },
        finds: Nothing,
    },
];
