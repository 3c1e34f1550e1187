//! Inspects the silent queues of a consumer while the consumer works: no inspection delays a delivery.
//!
//! A late answer means nothing and is used when it arrives; the heartbeat shows that the broker itself is gone. A crash leaves
//! nothing behind.

use super::admin::{QueueDepth, depth_on};
use super::error::RabbitError;
use super::link::Link;
use super::stale_consumer::StaleConsumerDetector;
use amqprs::channel::Channel;
use amqprs::error::Error;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

/// How long a channel may leave an inspection unanswered while its connection is alive.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// The depths of queues, or the library's word about a channel that is gone.
type Inspection = JoinHandle<Result<Result<Vec<QueueDepth>, Error>, Elapsed>>;

/// The inspections of one consumer.
pub(super) struct QueueInspector {
    detector: StaleConsumerDetector,
    /// The inspection that is under way; never two, because the library keeps one answer of a kind for each channel.
    inspection: Option<Inspection>,
}

impl QueueInspector {
    /// For a consumer of these queues.
    pub(super) fn new(queues: Vec<String>) -> Self {
        Self { detector: StaleConsumerDetector::new(queues), inspection: None }
    }

    /// The queue delivered something.
    pub(super) fn delivered(&mut self, queue: &str, now: Instant) {
        self.detector.delivered(queue, now);
    }

    /// Begins an inspection when one is due, and uses the answer of the previous one. `unacked`: messages that this consumer has
    /// not acknowledged.
    pub(super) async fn take_turn(&mut self, link: &mut Link, unacked: usize) -> Result<(), RabbitError> {
        if unacked == 0
            && let Some(queue) = self.detector.too_long(Instant::now())
        {
            let reason = "has given nothing for minutes";
            return Err(RabbitError::Starved { queue: queue.to_owned(), reason });
        }
        let Some(answered) = self.inspection.take_if(|inspection| inspection.is_finished()) else {
            let queues = self.detector.due(Instant::now());
            if self.inspection.is_none() && !queues.is_empty() {
                self.inspection = Some(tokio::spawn(timeout(ANSWER_MAX, inspect(link.channel.clone(), queues))));
            }
            return Ok(());
        };
        let found = match answered.await {
            Ok(Ok(Ok(found))) => found,
            Ok(Ok(Err(error))) => return Err(RabbitError::Closed(link.why(&error).await.to_string())),
            Ok(Err(_)) => {
                let limit_ms = u64::try_from(ANSWER_MAX.as_millis()).unwrap_or(u64::MAX);
                return Err(RabbitError::Timeout { what: "inspect the queues of the consumer", limit_ms });
            }
            Err(join) => return Err(RabbitError::library_failed(&join)),
        };
        for depth in found {
            if let Some(reason) = self.detector.inspected(&depth, Instant::now()) {
                return Err(RabbitError::Starved { queue: depth.queue, reason });
            }
        }
        Ok(())
    }
}

async fn inspect(channel: Channel, queues: Vec<String>) -> Result<Vec<QueueDepth>, Error> {
    let mut found = Vec::with_capacity(queues.len());
    for queue in queues {
        found.extend(depth_on(&channel, queue).await?);
    }
    Ok(found)
}
