//! Whether a queue that gives nothing still knows its consumer.
//!
//! A broker tells a consumer when its queue is deleted, but not always: RabbitMQ 3.10 takes a quorum queue that is declared
//! again under the same name within the same moments for the old one with a new leader. The consumer then waits for ever
//! beside a queue that fills (seen with 3.10.8 as soon as the machine is busy). So a consumer looks at a silent queue now
//! and then: one that holds messages gives some to every consumer that has room. What was given to a consumer that cannot
//! see it shows only when the prefetch is full, or by the silence.
//!
//! "No message and no consumer" is no news: RabbitMQ 3.10 says it too for a queue that does not answer within 250 ms
//! (`rabbit_quorum_queue:stat`), as on a busy machine. A queue that has forgotten its consumer shows it with its first message.

use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// How long a queue gives nothing before it is looked at, and between two looks. Well below the time for which nobody
/// declares a queue again that was deleted, so that all its consumers find it missing.
const SILENT: Duration = Duration::from_secs(1);

/// How long a queue gives nothing, and nothing is in hand, before it is consumed anew.
const RENEWED: Duration = Duration::from_secs(300);

/// How long one queue has been silent.
struct Silence {
    /// The last delivery or look.
    since: Instant,
    /// The last delivery, or the begin.
    fed_at: Instant,
    /// It held messages at the last look. Once is nothing yet: they may have been on their way, or meant for another consumer.
    held_messages: bool,
}

/// The silences of a consumer's queues, by name.
pub(super) struct Silences(HashMap<String, Silence>);

impl Silences {
    pub(super) fn new(queues: Vec<String>) -> Self {
        let now = Instant::now();
        let begins = |queue| (queue, Silence { since: now, fed_at: now, held_messages: false });
        Self(queues.into_iter().map(begins).collect())
    }

    /// The queue delivered something at this time.
    pub(super) fn end(&mut self, queue: &str, now: Instant) {
        if let Some(silence) = self.0.get_mut(queue) {
            *silence = Silence { since: now, fed_at: now, held_messages: false };
        }
    }

    /// The queues to look at.
    pub(super) fn long(&self, now: Instant) -> Vec<String> {
        let long = |(_, silence): &(&String, &Silence)| now.duration_since(silence.since) >= SILENT;
        self.0.iter().filter(long).map(|(queue, _)| queue.clone()).collect()
    }

    /// A queue that has given nothing for so long that a new connection is worth its price: the broker may count what it
    /// gave as given although it never came.
    pub(super) fn too_long(&self, now: Instant) -> Option<&str> {
        let too_long = |(_, silence): &(&String, &Silence)| now.duration_since(silence.fed_at) >= RENEWED;
        self.0.iter().find(too_long).map(|(queue, _)| queue.as_str())
    }

    /// Takes in what a queue was found to hold and how many consumers it knows; the reason if ours is not among them any more.
    pub(super) fn looked(&mut self, queue: &str, (ready, consumers): (u64, u32), now: Instant) -> Option<&'static str> {
        let silence = self.0.get_mut(queue)?;
        let held_messages = std::mem::replace(&mut silence.held_messages, ready > 0);
        silence.since = now;
        if consumers == 0 && ready > 0 {
            Some("holds messages and has no consumer, so not this one either")
        } else if held_messages && ready > 0 {
            Some("holds messages and gives this consumer none")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_holds_messages_at_two_looks_and_gave_none_has_forgotten_its_consumer() {
        let now = Instant::now();
        let mut silences = Silences::new(vec!["a".to_owned(), "b".to_owned()]);
        assert!(silences.looked("a", (0, 3), now).is_none() && silences.looked("a", (5, 3), now).is_none());
        assert!(silences.looked("b", (5, 3), now).is_none(), "each for itself");
        assert!(silences.looked("a", (1, 3), now).is_some());
        silences.end("a", now);
        assert!(silences.looked("a", (5, 3), now).is_none(), "it gave something meanwhile");
        assert!(silences.looked("b", (0, 0), now).is_none(), "what a queue that is busy is said to have");
        assert!(silences.looked("b", (1, 0), now).is_some(), "nobody consumes it");
    }

    #[test]
    fn a_queue_is_looked_at_after_a_while_without_deliveries() {
        let begin = Instant::now();
        let mut silences = Silences::new(vec!["a".to_owned(), "b".to_owned()]);
        assert!(silences.long(Instant::now()).is_empty());
        let later = begin + SILENT * 2;
        silences.end("b", later);
        assert_eq!(silences.long(later), ["a"]);
        silences.looked("a", (0, 1), later);
        assert!(silences.long(later).is_empty() && silences.long(later + SILENT).len() == 2);
        assert_eq!(silences.too_long(begin + RENEWED / 2), None);
        silences.end("b", begin + RENEWED);
        assert_eq!(silences.too_long(later + RENEWED), Some("a"), "a look is no delivery");
    }
}
