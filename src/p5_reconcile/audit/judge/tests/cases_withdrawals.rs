//! Withdrawals: units that leave Redis before the database knows how many.

use super::Finds::{Nothing, These};
use super::JudgeCase;

pub(super) const CASES: &[JudgeCase] = &[
    JudgeCase {
        name: "a withdrawal of which Redis has given a part",
        shards: 1,
        happens: |s| {
            s.begin_withdrawal("withdraw-w", 4);
            s.withdraw(0, "withdraw-w", 3);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a withdrawal that has ended",
        shards: 1,
        happens: |s| {
            s.begin_withdrawal("withdraw-w", 4);
            s.withdraw(0, "withdraw-w", 3);
            s.end_withdrawal("withdraw-w", 3);
            s.buy(2);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a withdrawal that goes from shard to shard while the audit reads",
        shards: 2,
        happens: |s| {
            s.begin_withdrawal("withdraw-w", 5);
            s.withdraw(0, "withdraw-w", 3);
            s.read_redis();
            s.withdraw(1, "withdraw-w", 2);
            s.end_withdrawal("withdraw-w", 5);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "too many grants to be read, and a withdrawal that ends while the audit reads",
        shards: 1,
        happens: |s| {
            s.shards[0].has_many_grants = true;
            s.read_redis();
            s.withdraw(0, "withdraw-w", 3);
            s.end_withdrawal("withdraw-w", 3);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "too many grants to be read, and a withdrawal that Redis has lost",
        shards: 1,
        happens: |s| {
            s.shards[0].has_many_grants = true;
            s.end_withdrawal("withdraw-w", 3);
        },
        finds: These(&[("UNBALANCED", "redis was given 10 units of grants, the database knows of 7 in this epoch")]),
    },
    JudgeCase {
        name: "a withdrawal that Redis has lost",
        shards: 1,
        happens: |s| s.end_withdrawal("withdraw-w", 3),
        finds: These(&[(
            "UNBALANCED",
            "grant withdraw-w of -3 units: redis was given it by its mark, and does not know it",
        )]),
    },
    JudgeCase {
        name: "a withdrawal of more than was asked for",
        shards: 1,
        happens: |s| {
            s.begin_withdrawal("withdraw-w", 4);
            s.withdraw(0, "withdraw-w", 5);
        },
        finds: These(&[("UNBALANCED", "redis was given -5 units of grant withdraw-w, the database knows of -4")]),
    },
    JudgeCase {
        name: "units that left Redis for no withdrawal",
        shards: 1,
        happens: |s| s.withdraw(0, "withdraw-w", 2),
        finds: These(&[("UNBALANCED", "redis was given -2 units of grant withdraw-w, the database knows of 0")]),
    },
    JudgeCase {
        name: "a withdrawal on record that moved no unit",
        shards: 1,
        happens: |s| s.database.withdrawals += 3,
        finds: These(&[("UNBALANCED", "units withdrawn = withdrawals on record: 0 against 3")]),
    },
];
