//! Where the requests of a LEAK are, for the person who reads the finding: in the outbox (whose hand?), in the broker as far
//! as that can be said, or nowhere.
//!
//! Words only: nothing is decided by them. The broker cannot be asked for one request (window 88), only for its depths; and
//! whatever is found, landing it from the ledger is right.

use super::audit::Auditor;
use crate::domain::ids::RequestId;
use crate::store::rabbit::queue_depths;
use crate::store::redis::{Lying, RedisFault};
use std::collections::HashMap;

/// Entries read at once.
const PAGE: usize = 1_000;
/// Entries looked at in one shard's outbox.
const OUTBOX_MAX: usize = 100_000;

/// Where undecided requests were seen.
#[derive(Debug, Default)]
pub(super) struct Whereabouts {
    in_outbox: HashMap<RequestId, String>,
    elsewhere: String,
}

impl Whereabouts {
    /// In words, after "accepted … ago, ".
    pub fn of(&self, id: RequestId) -> &str {
        self.in_outbox.get(&id).map_or(&self.elsewhere, |place| place)
    }
}

impl Auditor {
    /// Looks for requests that were accepted at `since_ms` (Redis' clock) or later; `dlq_read` tells whether all of the MQ DLQ was
    /// looked at.
    pub(super) async fn whereabouts(&self, since_ms: i64, dlq_read: bool) -> Whereabouts {
        let mut found = Whereabouts::default();
        let (mut whole, mut trouble) = (true, None);
        for shard in 0..self.shards {
            match self.outbox_of(shard, since_ms, &mut found).await {
                Ok(to_the_end) => whole &= to_the_end,
                Err(fault) => trouble = Some(fault),
            }
        }
        let outbox = match trouble {
            Some(fault) => format!("the outbox cannot be read ({fault})"),
            None if whole => "not in the outbox".to_owned(),
            None => format!("not among the first {OUTBOX_MAX} entries of the outbox"),
        };
        found.elsewhere = format!("{outbox}, {}", self.broker_says(dlq_read).await);
        found
    }

    /// Takes in one shard's outbox; whether it was read to its end.
    async fn outbox_of(&self, shard: u16, since_ms: i64, found: &mut Whereabouts) -> Result<bool, RedisFault> {
        let mut start = since_ms.to_string();
        for _ in 0..OUTBOX_MAX / PAGE {
            let page = self.redis.outbox.scan(shard, &start, PAGE).await?;
            for Lying { entry, relay } in &page.lying {
                let named = entry.field("r").and_then(|id| RequestId::parse(&String::from_utf8_lossy(id)).ok());
                let place = match relay {
                    Some(relay) => format!("in the outbox as {}, read by relay {relay} and not confirmed", entry.id),
                    None => format!("in the outbox as {}, in no relay's hand", entry.id),
                };
                found.in_outbox.extend(named.map(|id| (id, place)));
            }
            let Some(next) = page.next else { return Ok(true) };
            start = next;
        }
        Ok(false)
    }

    async fn broker_says(&self, dlq_read: bool) -> String {
        let depths = match queue_depths(&self.rabbit).await {
            Ok(depths) => depths,
            Err(error) => return format!("the broker cannot be asked ({error})"),
        };
        let retry = format!("{}.retry", self.rabbit.prefix);
        let (mut orders, mut retries) = (0, 0);
        for depth in depths.iter().filter(|depth| !depth.queue.ends_with(".dlq")) {
            let sum = if depth.queue.starts_with(&retry) { &mut retries } else { &mut orders };
            *sum += depth.ready;
        }
        match (orders, retries) {
            (0, 0) if dlq_read => "nothing waits in the broker: nowhere but in the ledger".to_owned(),
            (0, 0) => "nothing waits in the broker's order and retry queues".to_owned(),
            (orders, retries) => format!("perhaps among {orders} waiting and {retries} retried messages of the broker"),
        }
    }
}
