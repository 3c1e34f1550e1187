//! Whether a queue without deliveries still knows its consumer.
//!
//! A broker notifies a consumer when its queue is deleted, but not always: RabbitMQ 3.10 takes a quorum queue that is declared
//! again under the same name within the same moments for the old one with a new leader. The consumer then waits for ever
//! beside a queue that fills (seen with 3.10.8 as soon as the machine is busy). So a consumer inspects a silent queue from
//! time to time: a queue that holds messages delivers some to every consumer that has room. Messages that were delivered to a
//! consumer that cannot see them show only when the prefetch is full, or by the silence.
//!
//! "No message and no consumer" says nothing: RabbitMQ 3.10 says it too for a queue that does not answer within 250 ms
//! (`rabbit_quorum_queue:stat`), as on a busy machine. A queue that has forgotten its consumer shows it with its first message.

use super::admin::QueueDepth;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a queue delivers nothing before it is inspected, and between two inspections. Well below the time after which a
/// deleted queue is declared again, so that all its consumers find it missing.
const SILENT: Duration = Duration::from_secs(1);

/// How long a queue delivers nothing, while nothing is unacknowledged, before it is consumed over a new connection.
const RENEWED: Duration = Duration::from_secs(300);

/// How long one queue has been silent.
struct QueueSilence {
    /// The last delivery or inspection.
    since: Instant,
    /// The last delivery, or the begin.
    fed_at: Instant,
    /// It held messages at the last inspection. Once proves nothing: they may have been on their way, or meant for another
    /// consumer.
    held_messages: bool,
}

/// How long each queue of a consumer has been silent, by name.
pub(super) struct StaleConsumerDetector(HashMap<String, QueueSilence>);

impl StaleConsumerDetector {
    pub(super) fn new(queues: Vec<String>) -> Self {
        let now = Instant::now();
        let begins = |queue| (queue, QueueSilence { since: now, fed_at: now, held_messages: false });
        Self(queues.into_iter().map(begins).collect())
    }

    /// The queue delivered something at this time.
    pub(super) fn delivered(&mut self, queue: &str, now: Instant) {
        if let Some(silence) = self.0.get_mut(queue) {
            *silence = QueueSilence { since: now, fed_at: now, held_messages: false };
        }
    }

    /// The queues to inspect now.
    pub(super) fn due(&self, now: Instant) -> Vec<String> {
        let long = |(_, silence): &(&String, &QueueSilence)| now.duration_since(silence.since) >= SILENT;
        self.0.iter().filter(long).map(|(queue, _)| queue.clone()).collect()
    }

    /// A queue that has given nothing for so long that a new connection is worth its price: the broker may count what it
    /// gave as given although it never came.
    pub(super) fn too_long(&self, now: Instant) -> Option<&str> {
        let too_long = |(_, silence): &(&String, &QueueSilence)| now.duration_since(silence.fed_at) >= RENEWED;
        self.0.iter().find(too_long).map(|(queue, _)| queue.as_str())
    }

    /// Notes the depth of a queue and the number of its consumers. Returns the reason if our consumer is not among them any more.
    pub(super) fn inspected(&mut self, depth: &QueueDepth, now: Instant) -> Option<&'static str> {
        let QueueDepth { queue, ready, consumers } = depth;
        let silence = self.0.get_mut(queue)?;
        let held_messages = std::mem::replace(&mut silence.held_messages, *ready > 0);
        silence.since = now;
        if *consumers == 0 && *ready > 0 {
            Some("holds messages and has no consumer, so not this one either")
        } else if held_messages && *ready > 0 {
            Some("holds messages and gives this consumer none")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(queue: &str, ready: u64, consumers: u32) -> QueueDepth {
        QueueDepth { queue: queue.to_owned(), ready, consumers }
    }

    #[test]
    fn a_queue_that_holds_messages_at_two_checks_and_gave_none_has_forgotten_its_consumer() {
        let now = Instant::now();
        let mut detector = StaleConsumerDetector::new(vec!["a".to_owned(), "b".to_owned()]);
        assert!(
            detector.inspected(&depth("a", 0, 3), now).is_none()
                && detector.inspected(&depth("a", 5, 3), now).is_none()
        );
        assert!(detector.inspected(&depth("b", 5, 3), now).is_none(), "each for itself");
        assert!(detector.inspected(&depth("a", 1, 3), now).is_some());
        detector.delivered("a", now);
        assert!(detector.inspected(&depth("a", 5, 3), now).is_none(), "it gave something meanwhile");
        assert!(detector.inspected(&depth("b", 0, 0), now).is_none(), "what a queue that is busy is said to have");
        assert!(detector.inspected(&depth("b", 1, 0), now).is_some(), "it has no consumer");
    }

    #[test]
    fn a_queue_is_checked_after_a_while_without_deliveries() {
        let begin = Instant::now();
        let mut detector = StaleConsumerDetector::new(vec!["a".to_owned(), "b".to_owned()]);
        assert!(detector.due(Instant::now()).is_empty());
        let later = begin + SILENT * 2;
        detector.delivered("b", later);
        assert_eq!(detector.due(later), ["a"]);
        detector.inspected(&depth("a", 0, 1), later);
        assert!(detector.due(later).is_empty() && detector.due(later + SILENT).len() == 2);
        assert_eq!(detector.too_long(begin + RENEWED / 2), None);
        detector.delivered("b", begin + RENEWED);
        assert_eq!(detector.too_long(later + RENEWED), Some("a"), "a check is no delivery");
    }
}
