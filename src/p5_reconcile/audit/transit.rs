//! The units between two buckets: transfer records hold them. Units that left a bucket and are in no record are lost, units that
//! reached a bucket and never left one are there twice, and units of a record that its target refuses stay between the buckets.
//!
//! That happens when Redis promotes a server that lacks a gift, after the source has forgotten its record, or a take, after the
//! target was given its units. Each pair of buckets is compared by itself, because two such losses can add up to nothing. A record
//! is also refused when what the target remembers of its source is damaged (window 111): the sums of the books hold then, and the
//! units are never sold. For the sums the buckets are read twice: when both reads are equal, nothing happened between them.

use super::finding::FindingKind;
use super::run::AuditRun;
use crate::domain::sale::MetaState;
use crate::domain::transfer_marks::Rewound;
use crate::p5_reconcile::context::ReconcileError;
use crate::store::redis::{Between, Bucket, Transfer};

/// A transfer that was begun and not forgotten.
struct PendingTransfer {
    transfer: Transfer,
    /// What the target was given last from its source; `None` when that cannot be read.
    last_given: Option<u64>,
}

/// Reports pairs of which one side went back in time, units that are in no bucket or in two, and records that their target refuses.
pub(super) async fn compare(run: &mut AuditRun<'_>) -> Result<(), ReconcileError> {
    if run.context.shards == 1 {
        return Ok(());
    }
    compare_pairs(run).await;
    if run.audit.counted.in_transit == 0 {
        return Ok(());
    }
    let before = buckets(run).await?;
    let pending = pending(run).await?;
    let after = buckets(run).await?;
    let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
    if before != after {
        return Ok(());
    }
    let recorded: i64 = pending.iter().map(|pending| pending.transfer.units).sum();
    let lost = after.iter().map(|bucket| bucket.sent - bucket.received).sum::<i64>() - recorded;
    if lost > 0 {
        let detail = format!(
            "{lost} units left a bucket and reached no other: a server was replaced by one that lacked them; `seckill sale rebuild` brings them back"
        );
        run.find_part(FindingKind::Unbalanced, "units in no bucket", detail);
    }
    if lost < 0 {
        run.audit.sells_twice = true;
        let detail = format!(
            "{} units reached a bucket and left no other: they are in two, because a server was replaced by one that had not sent them; `seckill sale rebuild` counts them once",
            -lost
        );
        run.find_part(FindingKind::Unbalanced, "units in two buckets", detail);
    }
    for PendingTransfer { transfer, .. } in pending.iter().filter(|pending| is_refused(pending, &after, run.sale.epoch))
    {
        let Transfer { source, target, number, units, .. } = transfer;
        let detail = format!(
            "{units} units stay between shards {source} and {target}: shard {target} refuses transfer {number}, because it cannot read what it was given before; `seckill sale rebuild` brings them back"
        );
        run.find_part(FindingKind::Unbalanced, format!("refused, {source} to {target}"), detail);
    }
    Ok(())
}

/// Both sides of each pair.
async fn compare_pairs(run: &mut AuditRun<'_>) {
    let (rewound, _unread) = run.context.redis.transfers.rewound(&run.sale.sale_id, run.sale.epoch).await;
    for pair in rewound {
        run.audit.sells_twice |= pair.sells_twice();
        let detail = match pair {
            Rewound::Source { source, target } => format!(
                "shard {source} forgot that it gave units to shard {target}, and has them again: its server was replaced by one that had not sent them; `seckill sale rebuild` counts them once"
            ),
            Rewound::Target { source, target } => format!(
                "shard {target} forgot that it was given units by shard {source}: its server was replaced by one that lacked them; `seckill sale rebuild` brings them back"
            ),
        };
        run.find_part(FindingKind::Unbalanced, format!("{pair:?}"), detail);
    }
}

/// A sale that is frozen, or of which one shard is in another epoch, is rebuilt, and its units are counted again.
fn is_refused(pending: &PendingTransfer, buckets: &[Bucket], epoch: u32) -> bool {
    let in_step = buckets.iter().all(|bucket| bucket.state != MetaState::Frozen && bucket.epoch == epoch);
    in_step && (pending.last_given.is_none() || pending.transfer.epoch != epoch)
}

async fn pending(run: &AuditRun<'_>) -> Result<Vec<PendingTransfer>, ReconcileError> {
    let (transfers, sale, mut found) = (&run.context.redis.transfers, &run.sale.sale_id, Vec::new());
    for source in 0..run.context.shards {
        for transfer in transfers.pending(sale, source).await? {
            let last_given = transfers.last_given(sale, Between { source, target: transfer.target }).await?;
            found.push(PendingTransfer { transfer, last_given });
        }
    }
    Ok(found)
}

async fn buckets(run: &AuditRun<'_>) -> Result<Option<Vec<Bucket>>, ReconcileError> {
    let mut buckets = Vec::with_capacity(run.context.shards.into());
    for shard in 0..run.context.shards {
        let Some(bucket) = run.context.redis.transfers.bucket(&run.sale.sale_id, shard).await? else { return Ok(None) };
        buckets.push(bucket);
    }
    Ok(Some(buckets))
}
