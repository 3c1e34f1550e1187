//! Whether a request of a sale is still on its way, and where. Of queues that it shares with other sales only its own messages
//! count: what others wait for must not keep it frozen (S8).
//!
//! Input: the outboxes, the depths of the queues, the messages in the retry queues, which are held while they are read and go back.
//! Output: what the rebuild waits for. Changes nothing; after a crash the broker puts back what was held.
//!
//! A retry queue is searched before and after the order queue is counted, because a message moves from one to the other.
//! What a consumer has in hand is in no queue: that is what the quiet time is for, and all of this is asked again after it.

use crate::domain::ids::SaleId;
use crate::domain::message;
use crate::domain::shard::order_queue_index;
use crate::faults::left_out;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::pages::OutboxPages;
use crate::store::rabbit::{DlqReader, RabbitConfig, RabbitError, Topology, queue_depths};
use std::time::{Duration, Instant};

/// Messages of the retry queues that are read to find those of one sale; they are held in memory meanwhile.
const READ_MAX: usize = 10_000;
/// Time for that. Their return is late by as much.
const READ_TIME: Duration = Duration::from_secs(5);

/// What the rebuild of a sale waits for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WaitsFor {
    /// Requests of the ledger without an outcome: they are persisted.
    #[error("{0} requests of its ledger without an outcome")]
    Undecided(usize),
    /// An entry of the sale that no relay has sent.
    #[error("an entry of it in the outbox of shard {0}")]
    Outbox(u16),
    /// Messages in the order queue that the sale shares with others; whose they are is not known.
    #[error("order queue {queue} ({ready} ready): it must be empty for a moment")]
    OrderQueue {
        /// Its name.
        queue: String,
        /// Messages in it.
        ready: u64,
    },
    /// A message of the sale that was sent back.
    #[error("a message of it in retry queue {0}")]
    Retry(String),
    /// Messages that were sent back and may be of this sale.
    #[error("retry queue {queue}: whose messages these are is not known ({why})")]
    UnknownRetry {
        /// Its name.
        queue: String,
        /// Why not.
        why: &'static str,
    },
    /// The broker does not say what is in its queues.
    #[error("the broker: {0}")]
    Broker(String),
    /// Nothing may be decided for a while.
    #[error("quiet: nothing of it may be decided for p5_reconcile.quiet_ms")]
    Quiet,
    /// A request that only the MQ DLQ knows needs its unit, so all of it has to be read.
    #[error("the MQ DLQ cannot be read as a whole; replay or give up its messages")]
    DeadLetters,
}

impl WaitsFor {
    /// Every code, for a gauge.
    pub(super) const CODES: [&'static str; 7] =
        ["undecided", "outbox", "order_queue", "retry_queue", "broker", "quiet", "dead_letters"];

    /// A stable code.
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Undecided(_) => "undecided",
            Self::Outbox(_) => "outbox",
            Self::OrderQueue { .. } => "order_queue",
            Self::Retry(_) | Self::UnknownRetry { .. } => "retry_queue",
            Self::Broker(_) => "broker",
            Self::Quiet => "quiet",
            Self::DeadLetters => "dead_letters",
        }
    }
}

/// Where a request of the sale may still be on its way to the database; `None` when nowhere.
pub(super) async fn in_flight(context: &ReconcileContext, sale: &SaleId) -> Result<Option<WaitsFor>, ReconcileError> {
    if left_out!(NothingOnItsWay) {
        return Ok(None);
    }
    for shard in 0..context.shards {
        let mut pages = OutboxPages::from(&context.redis.outbox, shard, "-");
        while let Some(page) = pages.next().await? {
            if page.iter().any(|located| located.entry.field("s") == Some(sale.as_str().as_bytes())) {
                return Ok(Some(WaitsFor::Outbox(shard)));
            }
        }
    }
    // Requests in the MQ DLQ are decided by now, because they are in the ledger, or are nowhere else either.
    let found = in_queues(&context.rabbit, sale).await;
    Ok(found.unwrap_or_else(|error| Some(WaitsFor::Broker(error.to_string()))))
}

async fn in_queues(rabbit: &RabbitConfig, sale: &SaleId) -> Result<Option<WaitsFor>, RabbitError> {
    let mine = Topology::new(rabbit).orders_queue(order_queue_index(sale.as_str(), rabbit.queues));
    for _ in 0..2 {
        let depths = queue_depths(rabbit).await?;
        if let Some(depth) = depths.iter().find(|depth| depth.queue == mine && depth.ready > 0) {
            return Ok(Some(WaitsFor::OrderQueue { queue: depth.queue.clone(), ready: depth.ready }));
        }
        for depth in depths.into_iter().filter(|depth| depth.ready > 0 && depth.queue.contains(".retry.")) {
            if let Some(found) = in_retry_queue(rabbit, depth.queue, sale).await? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// Reads a retry queue up to the first message of the sale, and puts all back.
async fn in_retry_queue(rabbit: &RabbitConfig, queue: String, sale: &SaleId) -> Result<Option<WaitsFor>, RabbitError> {
    let until = Instant::now() + READ_TIME;
    let mut reader = DlqReader::connect_to(rabbit, queue.clone()).await?;
    let (mut read, mut found) = (0, None);
    while let Some(parked) = reader.next_there().await? {
        read += 1;
        match message::decode(&parked.body) {
            Ok(order) if order.purchase.sale_id == *sale => {
                found = Some(WaitsFor::Retry(queue));
                break;
            }
            Ok(_) => {}
            Err(_) => {
                found = Some(WaitsFor::UnknownRetry { queue, why: "one cannot be read by this version" });
                break;
            }
        }
        if read >= READ_MAX || Instant::now() > until {
            found = Some(WaitsFor::UnknownRetry { queue, why: "there are too many to read them all" });
            break;
        }
    }
    reader.close().await?;
    Ok(found)
}
