//! Finishes transfers between buckets (B4): units were taken from one bucket, and the process died before it gave them to
//! the target.
//!
//! Input: the transfer records of every shard. Output: the units in their bucket, the records removed. A process that moves units
//! does the same at the same time; each transfer is given once, by its number. A crash here leaves a record that is given or not
//! given, and the next round goes on.

use crate::domain::sale::{Sale, SaleStatus};
use crate::faults::left_out;
use crate::p5_reconcile::audit::SaleAudit;
use crate::p5_reconcile::context::ReconcileContext;
use crate::store::redis::{Given, RedisFault, Transfers};

/// Gives the units that are between two of the sale's `shards` buckets. Returns how many transfers it finished.
/// Repeating is safe.
pub async fn finish_transfers(transfers: &Transfers, shards: u16, sale: &Sale) -> Result<usize, RedisFault> {
    let (id, mut finished) = (&sale.sale_id, 0);
    if shards == 1 || sale.status == SaleStatus::Draft || left_out!(RecordsFinished) {
        return Ok(0);
    }
    for source in 0..shards {
        for transfer in transfers.pending(id, source).await? {
            match transfers.give(id, &transfer).await? {
                Given::Now => {
                    finished += 1;
                    metrics::counter!("seckill_p5_reconcile_transfers_finished_total").increment(1);
                    tracing::warn!(phase = "p5_reconcile", sale = %id, ?transfer, "units were between two buckets, they are in their bucket now");
                }
                Given::Before => {}
                // The keys of a closed sale are removed already: its units are not for sale any more.
                Given::KeysMissing if sale.status == SaleStatus::Closed => {}
                // Frozen or lost: the rebuild comes first, and counts these units again. What is refused without that is a finding
                // of the audit (`audit/judge/transfers.rs`), and so is a source that went back, whose record has to stay.
                Given::KeysMissing | Given::Refused | Given::Behind => {
                    tracing::info!(phase = "p5_reconcile", sale = %id, ?transfer, "units stay between two buckets: the target takes none");
                    continue;
                }
            }
            transfers.forget(id, &transfer).await?;
        }
    }
    Ok(finished)
}

/// Freezes a sale that has units in two buckets, so that none of them is sold twice: the next round rebuilds it. Only in the epoch that
/// was audited: another leader may have rebuilt the sale since. Repeating is safe.
pub(in crate::p5_reconcile) async fn freeze_when_sold_twice(
    context: &ReconcileContext,
    sale: &Sale,
    audit: &SaleAudit,
) -> Result<(), RedisFault> {
    if !audit.sells_twice {
        return Ok(());
    }
    for shard in 0..context.shards {
        context.redis.sale_keys.freeze(&sale.sale_id, shard, sale.epoch).await?;
    }
    tracing::error!(
        phase = "p5_reconcile", sale = %sale.sale_id,
        "units are in two buckets, the sale is frozen until it is rebuilt"
    );
    Ok(())
}
