//! The parked requests, as an audit counts them: those in a DLQ or among the open failed requests are pending, not
//! lost.

use crate::domain::ids::{RequestId, SaleId};
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::dlq::{MqDlqContents, MqDlqScan};
use crate::p5_reconcile::pages::{OpenFailurePages, RelayDlqPages};
use crate::store::rabbit::RabbitError;
use crate::store::redis::RedisFault;
use std::collections::HashSet;

/// Pages of the relay DLQ of a shard, and of the open failed requests, read in one audit.
const PAGES_MAX: usize = 100;

/// The parked requests of a sale, and perhaps of others.
#[derive(Debug, Clone)]
pub(crate) struct ParkedRequests {
    pub ids: HashSet<RequestId>,
    /// Messages of the MQ DLQ that were not read; `None` when the queue could not be read.
    pub unseen_count: Option<u64>,
}

impl Default for ParkedRequests {
    /// None are, and nothing was left unread.
    fn default() -> Self {
        Self { ids: HashSet::new(), unseen_count: Some(0) }
    }
}

/// Reads the relay DLQ, the MQ DLQ and the open failed requests of the sale. `mq_dlq` is what the round has read of the
/// MQ DLQ; without it the queue is read now.
pub(crate) async fn parked_requests(
    context: &ReconcileContext,
    sale: &SaleId,
    mq_dlq: Option<&MqDlqContents>,
) -> Result<ParkedRequests, ReconcileError> {
    let mut parked = ParkedRequests::default();
    for shard in 0..context.shards {
        match in_relay_dlq(context, shard, &mut parked.ids).await {
            // The key is of another kind: its requests are reported as leaks, and persisted from the ledger all the
            // same.
            Err(RedisFault::Refused(error)) => {
                tracing::error!(phase = "p5_reconcile", shard, error, "the relay DLQ cannot be read");
            }
            done => done?,
        }
    }
    let mut own = MqDlqContents::default();
    let mq_dlq = match mq_dlq {
        Some(contents) => contents,
        None => {
            // Without the broker its requests are reported as leaks, and persisted from the ledger all the same.
            if let Err(error) = read_mq_dlq(context, &mut own).await {
                tracing::warn!(phase = "p5_reconcile", %error, "the MQ DLQ cannot be read");
            }
            &own
        }
    };
    parked.ids.extend(&mq_dlq.ids);
    parked.unseen_count = mq_dlq.unseen_count;
    let mut pages = OpenFailurePages::new(&context.rows.register, Some(sale.clone()));
    for _ in 0..PAGES_MAX {
        let Some(page) = pages.next().await? else { break };
        parked.ids.extend(page.iter().map(|row| row.request_id));
    }
    Ok(parked)
}

async fn in_relay_dlq(context: &ReconcileContext, shard: u16, ids: &mut HashSet<RequestId>) -> Result<(), RedisFault> {
    let mut pages = RelayDlqPages::new(&context.redis.relay_dlq, shard);
    for _ in 0..PAGES_MAX {
        let Some(page) = pages.next().await? else { break };
        ids.extend(page.iter().filter_map(|entry| entry.request_id));
    }
    Ok(())
}

async fn read_mq_dlq(context: &ReconcileContext, contents: &mut MqDlqContents) -> Result<(), RabbitError> {
    let mut scan = MqDlqScan::begin(&context.rabbit, context.mq_dlq_max, contents).await?;
    while scan.next().await?.is_some() {}
    scan.close().await
}
