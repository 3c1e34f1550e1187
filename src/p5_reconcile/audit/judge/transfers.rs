//! The units between two buckets: transfer records hold them. Units that left a bucket and are in no record are lost,
//! units that reached a bucket and never left one are there twice, and units of a record that its target refuses stay
//! between the buckets.
//!
//! That happens when Redis promotes a server that lacks a gift, after the source has forgotten its record, or a take,
//! after the target was given its units. Each pair of buckets is compared by itself, because two such losses can add up
//! to nothing. A record is also refused when what the target remembers of its source is damaged (window 111): the sums
//! of the books hold then, and the units are never sold. For the sums the buckets are read twice: when both reads are
//! equal, nothing happened between them.

use crate::domain::sale::MetaState;
use crate::domain::transfer_marks::{NumberedUnits, Rewound, units_missing};
use crate::faults::left_out;
use crate::p5_reconcile::audit::finding::{FindingKind, FoundSoFar};
use crate::p5_reconcile::audit::redis_side::{BucketsTwice, PendingTransfer, TransfersSide};
use crate::store::redis::{Bucket, Transfer};

/// Reports pairs of which one side went back in time, units that are in no bucket or in two, and records that their
/// target refuses. Returns whether units can be sold twice.
pub(super) fn report(transfers: &TransfersSide, epoch: u32, found: &mut FoundSoFar) -> bool {
    let mut sells_twice = report_pairs(&transfers.rewound, found);
    if let Some(BucketsTwice { before, pending, after }) = &transfers.twice
        && before == after
    {
        sells_twice |= !left_out!(TransferSums) && report_sums(after, pending, found);
        report_refused(after, pending, epoch, found);
    }
    sells_twice
}

fn report_pairs(rewound: &[Rewound], found: &mut FoundSoFar) -> bool {
    for pair in rewound {
        let detail = match pair {
            Rewound::Source { source, target } => format!(
                "shard {source} forgot that it gave units to shard {target}, and has them again: its server was replaced by one that had not sent them; `seckill sale rebuild` counts them once"
            ),
            Rewound::Target { source, target } => format!(
                "shard {target} forgot that it was given units by shard {source}: its server was replaced by one that lacked them; `seckill sale rebuild` brings them back"
            ),
        };
        found.add_part(FindingKind::Unbalanced, format!("{pair:?}"), detail);
    }
    rewound.iter().any(|pair| pair.sells_twice())
}

fn report_sums(buckets: &[Bucket], pending: &[PendingTransfer], found: &mut FoundSoFar) -> bool {
    let between = buckets.iter().map(|bucket| bucket.sent - bucket.received).sum();
    let record = |PendingTransfer { transfer: Transfer { number, units, .. }, last_given }: &PendingTransfer| {
        // `None` counts it as waiting.
        let last_given = if left_out!(GivenRecords) { None } else { *last_given };
        (NumberedUnits { number: *number, units: *units }, last_given)
    };
    let lost = units_missing(between, pending.iter().map(record));
    let lost = if left_out!(EachPair) { lost.max(0) } else { lost };
    if lost > 0 {
        let detail = format!(
            "{lost} units left a bucket and reached no other: a server was replaced by one that lacked them; `seckill sale rebuild` brings them back"
        );
        found.add_part(FindingKind::Unbalanced, "units in no bucket", detail);
    }
    if lost < 0 {
        let detail = format!(
            "{} units reached a bucket and left no other: they are in two, because a server was replaced by one that had not sent them; `seckill sale rebuild` counts them once",
            -lost
        );
        found.add_part(FindingKind::Unbalanced, "units in two buckets", detail);
    }
    lost < 0
}

fn report_refused(buckets: &[Bucket], pending: &[PendingTransfer], epoch: u32, found: &mut FoundSoFar) {
    for PendingTransfer { transfer, .. } in pending.iter().filter(|pending| is_refused(pending, buckets, epoch)) {
        let Transfer { source, target, number, units, .. } = transfer;
        let detail = format!(
            "{units} units stay between shards {source} and {target}: shard {target} refuses transfer {number}, because it cannot read what it was given before; `seckill sale rebuild` brings them back"
        );
        found.add_part(FindingKind::Unbalanced, format!("refused, {source} to {target}"), detail);
    }
}

/// A sale that is frozen, or of which one shard is in another epoch, is rebuilt, and its units are counted again.
fn is_refused(pending: &PendingTransfer, buckets: &[Bucket], epoch: u32) -> bool {
    let in_step = buckets.iter().all(|bucket| bucket.state != MetaState::Frozen && bucket.epoch == epoch);
    in_step && (pending.last_given.is_none() || pending.transfer.epoch != epoch)
}
