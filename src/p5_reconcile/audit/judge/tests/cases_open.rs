//! Open requests: in flight, parked, overdue, decided meanwhile, forgotten by the database.

use super::Finds::{Nothing, These};
use super::JudgeCase;
use crate::domain::outcome::{FailReason, Outcome};
use crate::p5_reconcile::audit::window::Window;

pub(super) const CASES: &[JudgeCase] = &[
    JudgeCase {
        name: "a request on its way",
        shards: 1,
        happens: |s| {
            s.accept(2);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a request on its way where nothing may be",
        shards: 1,
        happens: |s| {
            s.accept(2);
            s.window = Window::Now;
        },
        finds: These(&[(
            "P5-RC1",
            "accepted 1 s ago as number 1 (shard 0), not in the outbox, nothing waits in the broker",
        )]),
    },
    JudgeCase {
        name: "a request that is too old",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
        },
        finds: These(&[("P5-RC1", "accepted 600 s ago as number 1 (shard 0), not in the outbox")]),
    },
    JudgeCase {
        name: "an old request that is parked",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.park(id);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "an old request that waits in the outbox",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.located.insert(id, "in the outbox as 5-1, in no relay's hand".into());
        },
        finds: These(&[("P5-RC1", "as number 1 (shard 0), in the outbox as 5-1, in no relay's hand")]),
    },
    JudgeCase {
        name: "one old request is parked, another is lost",
        shards: 1,
        happens: |s| {
            let (parked, lost) = (s.accept(1), s.accept(1));
            s.is_old(parked);
            s.is_old(lost);
            s.park(parked);
        },
        finds: These(&[("P5-RC1", "as number 2")]),
    },
    JudgeCase {
        name: "an old request, and the MQ DLQ could not be read",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.unseen_count = None;
        },
        finds: These(&[("P5-RC1", "; the MQ DLQ could not be read")]),
    },
    JudgeCase {
        name: "an old request, and a part of the MQ DLQ was not read",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.unseen_count = Some(5);
        },
        finds: These(&[("P5-RC1", "; 5 messages of the MQ DLQ were not read")]),
    },
    JudgeCase {
        name: "an old request that lands after the books were read",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.read_books();
            s.order(id);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "an old request that lands after Redis was read",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.read_redis();
            s.order(id);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a request that is parked after the dead-letter queues were read, and lands",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.read_parked();
            s.park(id);
            s.fail(id, FailReason::GivenUp);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a request that is accepted after Redis was read",
        shards: 1,
        happens: |s| {
            s.read_redis();
            let id = s.accept(2);
            s.is_old(id);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a decided request that is not marked",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.is_old(id);
            s.decide(id, Outcome::Ordered);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a refused request that is not marked",
        shards: 1,
        happens: |s| {
            let id = s.accept(2);
            s.decide(id, Outcome::Failed(FailReason::DuplicateBuyer));
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "an old order that the database has forgotten",
        shards: 1,
        happens: |s| {
            let id = s.buy(2);
            s.is_old(id);
            s.database_forgets(id);
        },
        finds: These(&[("P5-RC1", "settled once, accepted 600 s ago as number 1")]),
    },
    JudgeCase {
        name: "a young order that the database has forgotten",
        shards: 1,
        happens: |s| {
            let id = s.buy(2);
            s.database_forgets(id);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a forgotten order that was trimmed in Redis",
        shards: 1,
        happens: |s| {
            let id = s.buy(2);
            s.buy(1);
            s.trim(id);
            s.database_forgets(id);
        },
        finds: These(&[("P5-RC4", "number 1 has no outcome")]),
    },
    JudgeCase {
        name: "a forgotten failure",
        shards: 1,
        happens: |s| {
            let id = s.accept(1);
            s.fail(id, FailReason::GivenUp);
            s.is_old(id);
            s.database_forgets(id);
        },
        finds: These(&[("P5-RC1", "settled once")]),
    },
    JudgeCase {
        name: "two leaks are two findings",
        shards: 1,
        happens: |s| {
            s.accept(2);
            s.accept(1);
            s.window = Window::Now;
        },
        finds: These(&[("P5-RC1", "as number 1"), ("P5-RC1", "as number 2")]),
    },
];
