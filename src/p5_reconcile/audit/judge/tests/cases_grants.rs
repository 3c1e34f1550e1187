//! Grants: each by its name, and what Redis may not have yet.

use super::Finds::{Moved, Nothing, These};
use super::JudgeCase;
use crate::domain::sale::SaleStatus;

pub(super) const CASES: &[JudgeCase] = &[
    JudgeCase { name: "a grant that is not given yet", shards: 1, happens: |s| s.grant("more", 3), finds: Nothing },
    JudgeCase {
        name: "a grant that is given and not marked yet",
        shards: 1,
        happens: |s| {
            s.grant("more", 3);
            s.give("more", false);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a grant that is given and marked",
        shards: 1,
        happens: |s| {
            s.grant("more", 3);
            s.give("more", true);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a grant that is made and given while the audit reads",
        shards: 1,
        happens: |s| {
            s.read_redis();
            s.grant("more", 3);
            s.give("more", true);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a grant that Redis has lost",
        shards: 1,
        happens: |s| {
            s.grant("more", 3);
            s.database.grants[1].applied_at_ms = Some(2);
        },
        finds: These(&[("UNBALANCED", "grant more of 3 units: redis was given it by its mark, and does not know it")]),
    },
    JudgeCase {
        name: "a grant of which Redis has a part",
        shards: 1,
        happens: |s| {
            s.grant("more", 3);
            s.give("more", true);
            s.shards[0].given.insert("more".into(), 1);
            s.shards[0].stock -= 2;
        },
        finds: These(&[("UNBALANCED", "grant more of 3 units: redis was given it by its mark, and has 1 of it")]),
    },
    JudgeCase {
        name: "a grant lost and another given: the sums agree",
        shards: 1,
        happens: |s| {
            s.grant("more", 3);
            s.give("more", true);
            s.shards[0].given.insert("more".into(), 1);
            s.shards[0].given.insert("unknown".into(), 2);
        },
        finds: These(&[
            ("UNBALANCED", "grant more of 3 units"),
            ("UNBALANCED", "redis was given 2 units of grant unknown, the database knows of 0 in this epoch"),
        ]),
    },
    JudgeCase {
        name: "a grant given twice",
        shards: 1,
        happens: |s| {
            s.grant("more", 3);
            s.give("more", false);
            s.shards[0].given.insert("more".into(), 6);
            s.shards[0].stock += 3;
        },
        finds: These(&[("UNBALANCED", "redis was given 6 units of grant more, the database knows of 3")]),
    },
    JudgeCase {
        name: "too many grants to be read, and one on its way",
        shards: 1,
        happens: |s| {
            s.shards[0].has_many_grants = true;
            s.grant("more", 3);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "too many grants to be read, and more in Redis than in the database",
        shards: 1,
        happens: |s| {
            s.shards[0].has_many_grants = true;
            s.shards[0].given.insert("unknown".into(), 2);
            s.shards[0].stock += 2;
        },
        finds: These(&[("UNBALANCED", "redis was given 12 units of grants, the database knows of 10 in this epoch")]),
    },
    JudgeCase {
        name: "an epoch whose first grant is not on record",
        shards: 1,
        happens: |s| {
            s.database.grants_known = false;
            s.database.grants.clear();
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a closed sale that leaves Redis before its grants are read",
        shards: 1,
        happens: |s| {
            s.sale.status = SaleStatus::Closed;
            s.read_books();
            s.shards[0].given.clear();
        },
        finds: Moved,
    },
    JudgeCase {
        name: "a live sale whose grants are gone is not compared by name",
        shards: 1,
        happens: |s| {
            s.read_books();
            s.shards[0].given.clear();
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a sale that was rebuilt",
        shards: 1,
        happens: |s| {
            s.buy(2);
            let failed = s.accept(1);
            s.fail(failed, crate::domain::outcome::FailReason::GivenUp);
            s.rebuild();
            s.buy(3);
        },
        finds: Nothing,
    },
];
