//! Whether a request of a sale is still on its way, and where. Of queues that it shares with other sales only its own messages
//! count: what others wait for must not keep it frozen (S8).
//!
//! Input: the outboxes, the depths of the queues, what the watch over the retry queues has in hand. Output: what the rebuild waits
//! for. Changes nothing.
//!
//! What a consumer has in hand is in no queue, and only its consumer knows of it. So all of this is asked twice, and between is the
//! quiet time, in which what was in a hand has left it: it is decided (the count of outcomes shows it), parked (the MQ DLQ is read
//! after that time), or sent back. The last one is what the watch is for: a message that is sent back may be in a hand again when the
//! queues are searched, and so each time, but none goes through a retry queue unseen ([`RetryWatch`]). One that came through ends the
//! quiet time, which begins again.

use crate::domain::ids::SaleId;
use crate::domain::shard::order_queue_index;
use crate::faults::left_out;
use crate::p5_reconcile::context::{ReconcileContext, ReconcileError};
use crate::p5_reconcile::pages::OutboxPages;
use crate::store::rabbit::{InRetry, QueueDepth, RabbitConfig, RabbitError, RetryWatch, Topology, queue_depths};
use std::time::Duration;
use tokio::time::sleep;

/// How often the queues are searched while a message is in a retry queue that the watch has not got yet.
const SEARCHES_MAX: u32 = 20;
const SEARCH_PAUSE: Duration = Duration::from_millis(50);

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
pub(super) async fn in_flight(
    context: &ReconcileContext,
    sale: &SaleId,
    watch: &RetryWatch,
) -> Result<Option<WaitsFor>, ReconcileError> {
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
    let found = in_queues(&context.rabbit, sale, watch).await;
    Ok(found.unwrap_or_else(|error| Some(WaitsFor::Broker(error.to_string()))))
}

async fn in_queues(rabbit: &RabbitConfig, sale: &SaleId, watch: &RetryWatch) -> Result<Option<WaitsFor>, RabbitError> {
    let mine = Topology::new(rabbit).orders_queue(order_queue_index(sale.as_str(), rabbit.queues));
    let mut unseen = None;
    for _ in 0..SEARCHES_MAX {
        // In this order, because what leaves a retry queue is in the order queue next.
        if let Some(found) = watch.in_hand(sale) {
            return Ok(Some(found.into()));
        }
        let depths = queue_depths(rabbit).await?;
        if let Some(depth) = depths.iter().find(|depth| depth.queue == mine && depth.ready > 0) {
            return Ok(Some(WaitsFor::OrderQueue { queue: depth.queue.clone(), ready: depth.ready }));
        }
        unseen = depths.into_iter().filter(|depth| depth.queue.contains(".retry.")).find_map(unseen_in);
        if unseen.is_none() {
            break;
        }
        // A message that has just come is on its way to the watch.
        sleep(SEARCH_PAUSE).await;
    }
    Ok(unseen)
}

/// Why the watch does not see everything that is in this retry queue.
fn unseen_in(depth: QueueDepth) -> Option<WaitsFor> {
    let why = match (depth.consumers, depth.ready) {
        (1, 0) => return None,
        (1, _) => "there are too many to read them all",
        (0, _) => "it is not watched any more",
        (_, _) => "another process reads it, too",
    };
    Some(WaitsFor::UnknownRetry { queue: depth.queue, why })
}

impl From<InRetry> for WaitsFor {
    fn from(found: InRetry) -> Self {
        match found {
            InRetry::OfSale(queue) => Self::Retry(queue),
            InRetry::Unread(queue) => Self::UnknownRetry { queue, why: "one cannot be read by this version" },
        }
    }
}
