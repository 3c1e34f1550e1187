//! Units between two buckets.

use super::Finds::{Nothing, These};
use super::JudgeCase;
use super::scene::AuditScene;
use crate::domain::sale::MetaState;
use crate::domain::transfer_marks::Rewound;
use crate::p5_reconcile::audit::redis_side::{BucketsTwice, PendingTransfer};
use crate::store::redis::{Bucket, Transfer};

/// Shard 0 has sent `sent` units to shard 1, which has got `received` of them; the buckets say so twice.
fn moved(s: &mut AuditScene, sent: i64, received: i64) {
    let bucket = |stock, sent, received| Bucket { state: MetaState::Open, epoch: 1, number: 0, stock, sent, received };
    let (source, target) = (bucket(5 - sent, sent, 0), bucket(5 + received, 0, received));
    (s.shards[0].stock, s.shards[0].in_transit) = (5 - sent, sent);
    (s.shards[1].stock, s.shards[1].in_transit) = (5 + received, -received);
    let both = vec![source, target];
    s.transfers.twice = Some(BucketsTwice { before: both.clone(), pending: Vec::new(), after: both });
}

/// A record of units between the buckets.
fn recorded(s: &mut AuditScene, units: i64, last_given: Option<u64>) {
    let transfer = Transfer { source: 0, target: 1, number: 1, units, epoch: 1 };
    twice(s).pending.push(PendingTransfer { transfer, last_given });
}

fn twice(s: &mut AuditScene) -> &mut BucketsTwice {
    s.transfers.twice.as_mut().expect("buckets")
}

const LOST: (&str, &str) = ("UNBALANCED", "3 units left a bucket and reached no other");

pub(super) const CASES: &[JudgeCase] = &[
    JudgeCase {
        name: "two shards sell",
        shards: 2,
        happens: |s| {
            let (one, other) = (s.accept_on(0, 2), s.accept_on(1, 1));
            s.order(one);
            s.order(other);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "units went from one bucket to the other",
        shards: 2,
        happens: |s| moved(s, 3, 3),
        finds: Nothing,
    },
    JudgeCase {
        name: "units are between two buckets, in a record",
        shards: 2,
        happens: |s| {
            moved(s, 3, 0);
            recorded(s, 3, Some(0));
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a record is given and not forgotten, and other units are on their way back",
        shards: 2,
        happens: |s| {
            moved(s, 3, 3);
            (s.shards[1].stock, s.shards[1].in_transit) = (6, -1);
            let buckets = twice(s);
            (buckets.after[1].stock, buckets.after[1].sent) = (6, 2);
            buckets.before = buckets.after.clone();
            recorded(s, 3, Some(1));
            let back = Transfer { source: 1, target: 0, number: 1, units: 2, epoch: 1 };
            twice(s).pending.push(PendingTransfer { transfer: back, last_given: Some(0) });
        },
        finds: Nothing,
    },
    JudgeCase { name: "units are in no bucket", shards: 2, happens: |s| moved(s, 3, 0), finds: These(&[LOST]) },
    JudgeCase {
        name: "units move while the buckets are read",
        shards: 2,
        happens: |s| {
            moved(s, 3, 0);
            // Taken after the records were read: the second reading alone would seem a loss.
            (twice(s).before[0].sent, twice(s).before[0].stock) = (0, 5);
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "a bucket is missing when they are read",
        shards: 2,
        happens: |s| {
            moved(s, 3, 0);
            s.transfers.twice = None;
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "units are in two buckets",
        shards: 2,
        happens: |s| moved(s, 0, 3),
        finds: These(&[("UNBALANCED", "3 units reached a bucket and left no other: they are in two")]),
    },
    JudgeCase {
        name: "a source forgot what it gave",
        shards: 2,
        happens: |s| s.transfers.rewound = vec![Rewound::Source { source: 0, target: 1 }],
        finds: These(&[("UNBALANCED", "shard 0 forgot that it gave units to shard 1, and has them again")]),
    },
    JudgeCase {
        name: "a target forgot what it was given",
        shards: 2,
        happens: |s| s.transfers.rewound = vec![Rewound::Target { source: 0, target: 1 }],
        finds: These(&[("UNBALANCED", "shard 1 forgot that it was given units by shard 0")]),
    },
    JudgeCase {
        name: "two losses that add up to nothing",
        shards: 3,
        happens: |s| {
            s.transfers.rewound =
                vec![Rewound::Source { source: 0, target: 1 }, Rewound::Target { source: 2, target: 1 }];
        },
        finds: These(&[("UNBALANCED", "shard 0 forgot"), ("UNBALANCED", "shard 1 forgot")]),
    },
    JudgeCase {
        name: "a record that its target refuses",
        shards: 2,
        happens: |s| {
            moved(s, 3, 0);
            recorded(s, 3, None);
        },
        finds: These(&[("UNBALANCED", "3 units stay between shards 0 and 1: shard 1 refuses transfer 1")]),
    },
    JudgeCase {
        name: "a record of another epoch",
        shards: 2,
        happens: |s| {
            moved(s, 3, 0);
            recorded(s, 3, Some(0));
            twice(s).pending[0].transfer.epoch = 9;
        },
        finds: These(&[("UNBALANCED", "3 units stay between shards 0 and 1")]),
    },
    JudgeCase {
        name: "a refused record in frozen buckets: a rebuild counts its units",
        shards: 2,
        happens: |s| {
            moved(s, 3, 0);
            recorded(s, 3, None);
            let both = twice(s);
            both.before.iter_mut().chain(&mut both.after).for_each(|bucket| bucket.state = MetaState::Frozen);
            s.freeze();
        },
        finds: Nothing,
    },
    JudgeCase {
        name: "lost units, and others in a record",
        shards: 2,
        happens: |s| {
            moved(s, 5, 0);
            recorded(s, 2, Some(0));
        },
        finds: These(&[LOST]),
    },
    JudgeCase {
        name: "two shards, and one undecided request on each",
        shards: 2,
        happens: |s| {
            let (one, other) = (s.accept_on(0, 1), s.accept_on(1, 1));
            s.is_old(one);
            s.is_old(other);
        },
        finds: These(&[("P5-RC1", "(shard 0)"), ("P5-RC1", "(shard 1)")]),
    },
];
