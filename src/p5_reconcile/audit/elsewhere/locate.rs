//! Where the requests of a LEAK are, in words for the operator who reads the finding: in the outbox (of which relay?),
//! perhaps in the broker, or nowhere.
//!
//! Nothing is decided by these words. The broker has no lookup by request (window 88), only the depths of its queues.
//! Wherever the request is, persisting it from the ledger is right.

use crate::domain::ids::RequestId;
use crate::p5_reconcile::context::ReconcileContext;
use crate::p5_reconcile::pages::OutboxPages;
use crate::store::rabbit::{RabbitConfig, queue_depths};
use crate::store::redis::{LocatedEntry, Outbox, RedisFault};
use std::collections::HashMap;

/// Pages of a shard's outbox that are read.
const OUTBOX_PAGES_MAX: usize = 100;

/// Where undecided requests were found.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLocations {
    /// By their place in the outbox, in words.
    pub in_outbox: HashMap<RequestId, String>,
    /// All others, in words.
    pub elsewhere: String,
}

impl RequestLocations {
    /// In words, after "accepted … ago, ".
    pub(crate) fn of(&self, id: RequestId) -> &str {
        self.in_outbox.get(&id).unwrap_or(&self.elsewhere)
    }
}

/// Locates the requests that were accepted at `since_ms` (Redis' clock) or later. `dlq_read`: all of the MQ DLQ was
/// read.
pub(crate) async fn locate(context: &ReconcileContext, since_ms: i64, dlq_read: bool) -> RequestLocations {
    let mut found = RequestLocations::default();
    let (mut whole, mut trouble) = (true, None);
    for shard in 0..context.shards {
        match read_outbox(&context.redis.outbox, shard, since_ms, &mut found).await {
            Ok(to_the_end) => whole &= to_the_end,
            Err(fault) => trouble = Some(fault),
        }
    }
    let outbox = match trouble {
        Some(fault) => format!("the outbox cannot be read ({fault})"),
        None if whole => "not in the outbox".to_owned(),
        None => format!("not in the first {OUTBOX_PAGES_MAX},000 entries of the outbox"),
    };
    found.elsewhere = format!("{outbox}, {}", in_broker(&context.rabbit, dlq_read).await);
    found
}

/// Adds the requests of one shard's outbox. Returns whether it was read to its end.
async fn read_outbox(
    outbox: &Outbox,
    shard: u16,
    since_ms: i64,
    found: &mut RequestLocations,
) -> Result<bool, RedisFault> {
    let mut pages = OutboxPages::from(outbox, shard, &since_ms.to_string());
    for _ in 0..OUTBOX_PAGES_MAX {
        let Some(page) = pages.next().await? else { break };
        for LocatedEntry { entry, relay } in &page {
            let place = match relay {
                Some(relay) => format!("in the outbox as {}, read by relay {relay} and not confirmed", entry.id),
                None => format!("in the outbox as {}, in no relay's hand", entry.id),
            };
            found.in_outbox.extend(entry.request_ids().into_iter().map(|id| (id, place.clone())));
        }
    }
    Ok(pages.ended())
}

async fn in_broker(rabbit: &RabbitConfig, dlq_read: bool) -> String {
    let depths = match queue_depths(rabbit).await {
        Ok(depths) => depths,
        Err(error) => return format!("the broker does not answer ({error})"),
    };
    let retry = format!("{}.retry", rabbit.prefix);
    let (mut orders, mut retries) = (0, 0);
    for depth in depths.iter().filter(|depth| !depth.queue.ends_with(".dlq")) {
        let sum = if depth.queue.starts_with(&retry) { &mut retries } else { &mut orders };
        *sum += depth.ready;
    }
    match (orders, retries) {
        (0, 0) if dlq_read => {
            "nothing waits in the broker: nowhere but in the ledger, or in a consumer's hand".to_owned()
        }
        (0, 0) => "nothing waits in the broker's order and retry queues".to_owned(),
        (orders, retries) => format!("perhaps among {orders} waiting and {retries} retried messages of the broker"),
    }
}
