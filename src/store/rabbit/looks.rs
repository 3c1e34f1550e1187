//! A consumer's looks at queues that have been silent, beside its work: no look holds up a delivery.
//!
//! An answer that is late is no news and is taken in when it is there; that the broker itself is gone the heartbeat tells. A
//! crash leaves nothing behind.

use super::admin::{QueueDepth, depth_on};
use super::error::RabbitError;
use super::link::Link;
use super::starved::Silences;
use amqprs::channel::Channel;
use amqprs::error::Error;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

/// How long a channel may leave a look unanswered while its connection is alive.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The depths of queues, or the library's word about a channel that is gone.
type Looking = JoinHandle<Result<Result<Vec<QueueDepth>, Error>, Elapsed>>;

/// The looks of one consumer.
pub(super) struct Looks {
    silences: Silences,
    /// One that is under way; never two, because the library keeps one answer of a kind for each channel.
    looking: Option<Looking>,
}

impl Looks {
    /// For a consumer of these queues.
    pub(super) fn new(queues: Vec<String>) -> Self {
        Self { silences: Silences::new(queues), looking: None }
    }

    /// The queue delivered something.
    pub(super) fn fed(&mut self, queue: &str, now: Instant) {
        self.silences.end(queue, now);
    }

    /// Begins a look when one is due, and takes in the one that was answered. `in_hand`: messages of this consumer that are not
    /// settled.
    pub(super) async fn take_turn(&mut self, link: &mut Link, in_hand: usize) -> Result<(), RabbitError> {
        if in_hand == 0
            && let Some(queue) = self.silences.too_long(Instant::now())
        {
            let reason = "has given nothing for minutes";
            return Err(RabbitError::Starved { queue: queue.to_owned(), reason });
        }
        let Some(answered) = self.looking.take_if(|looking| looking.is_finished()) else {
            let queues = self.silences.long(Instant::now());
            if self.looking.is_none() && !queues.is_empty() {
                self.looking = Some(tokio::spawn(timeout(ANSWER_MAX, look_at(link.channel.clone(), queues))));
            }
            return Ok(());
        };
        let found = match answered.await {
            Ok(Ok(Ok(found))) => found,
            Ok(Ok(Err(error))) => return Err(RabbitError::Closed(link.why(&error).await.to_string())),
            Ok(Err(_)) => {
                let limit_ms = u64::try_from(ANSWER_MAX.as_millis()).unwrap_or(u64::MAX);
                return Err(RabbitError::Timeout { what: "look at the queues it consumes", limit_ms });
            }
            Err(join) => return Err(RabbitError::Closed(format!("the client library failed: {join}"))),
        };
        for QueueDepth { queue, ready, consumers } in found {
            if let Some(reason) = self.silences.looked(&queue, (ready, consumers), Instant::now()) {
                return Err(RabbitError::Starved { queue, reason });
            }
        }
        Ok(())
    }
}

async fn look_at(channel: Channel, queues: Vec<String>) -> Result<Vec<QueueDepth>, Error> {
    let mut found = Vec::with_capacity(queues.len());
    for queue in queues {
        found.extend(depth_on(&channel, queue).await?);
    }
    Ok(found)
}
