//! Whether a request of a sale is still on its way, and since when nothing was decided.

use crate::domain::ids::SaleId;
use crate::domain::shard::order_queue_index;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::pages::OutboxPages;
use crate::store::rabbit::queue_depths;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Remembers since when each broken sale has been quiescent.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct QuiescenceTimer {
    since: HashMap<SaleId, (Instant, u64)>,
}

impl QuiescenceTimer {
    /// Whether the sale's decisions have been `decided_count` for `time`.
    pub(super) fn long_enough(&mut self, sale: &SaleId, decided_count: u64, time: Duration) -> bool {
        let entry = self.since.entry(sale.clone()).or_insert_with(|| (Instant::now(), decided_count));
        if entry.1 != decided_count {
            *entry = (Instant::now(), decided_count);
        }
        entry.0.elapsed() >= time
    }

    pub(super) fn reset(&mut self, sale: &SaleId) {
        self.since.remove(sale);
    }
}

/// Whether any request of the sale may still be on its way to the database.
pub(super) async fn in_flight(context: &ReconcileContext, sale: &SaleId) -> Result<bool, ReconcileError> {
    for shard in 0..context.shards {
        let mut pages = OutboxPages::from(&context.redis.outbox, shard, "-");
        while let Some(page) = pages.next().await? {
            if page.iter().any(|located| located.entry.field("s") == Some(sale.as_str().as_bytes())) {
                return Ok(true);
            }
        }
    }
    match queue_depths(&context.rabbit).await {
        // Requests in the MQ DLQ are decided by now, because they are in the ledger, or are nowhere else either.
        Ok(depths) => {
            let mine = format!(".orders.{}", order_queue_index(sale.as_str(), context.rabbit.queues));
            let waits = |queue: &str| queue.ends_with(&mine) || queue.contains(".retry.");
            Ok(depths.iter().any(|depth| depth.ready > 0 && waits(&depth.queue)))
        }
        Err(error) => {
            tracing::warn!(phase = "p5_reconcile", %sale, %error, "rebuild waits: the queues cannot be counted");
            Ok(true)
        }
    }
}
