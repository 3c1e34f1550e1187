//! Where the entries are that a lane set aside, and when they are read again. Pure: no clock, no I/O.
//!
//! Reading them again costs those that the queue refuses an attempt each, so the pauses between two readings grow as the pauses
//! of a single entry do. After silence there is no pause: who was set aside then has spent at most the attempt that was cut off.

use crate::config::P3Relay;
use crate::runtime::exponential_backoff;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Entries of an order queue that left the window and are still this relay's in the outbox.
#[derive(Debug)]
pub(super) struct SetAside {
    shards: BTreeSet<u16>,
    first_pause: Duration,
    longest_pause: Duration,
    back_at: Instant,
    /// Something was refused since they were read again.
    is_refused: bool,
    /// Readings in a row after which something was refused.
    refusals: u32,
}

impl SetAside {
    /// Nothing yet.
    pub(super) fn new(settings: &P3Relay, now: Instant) -> Self {
        Self {
            shards: BTreeSet::new(),
            first_pause: Duration::from_millis(settings.backoff_ms),
            longest_pause: Duration::from_millis(settings.backoff_max_ms),
            back_at: now,
            is_refused: false,
            refusals: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.shards.is_empty()
    }

    /// Notes shards that entries were set aside on.
    pub(super) fn extend(&mut self, shards: impl IntoIterator<Item = u16>) {
        self.shards.extend(shards);
    }

    fn pause(&self) -> Duration {
        exponential_backoff(self.first_pause, self.refusals, self.longest_pause)
    }

    /// Notes that something was refused: the first one since the last reading begins a pause, twice as long as the one before.
    /// After a pause's time without a refusal it begins with the shortest again.
    pub(super) fn refused(&mut self, now: Instant) {
        if self.is_refused {
            return;
        }
        if self.back_at + self.pause() < now {
            self.refusals = 0;
        }
        self.is_refused = true;
        self.back_at = now + self.pause();
        self.refusals = self.refusals.saturating_add(1);
    }

    /// The shards to read again, once the pause is over.
    pub(super) fn taken_back(&mut self, now: Instant) -> BTreeSet<u16> {
        if now < self.back_at {
            return BTreeSet::new();
        }
        self.is_refused = false;
        std::mem::take(&mut self.shards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_again_and_again_is_read_less_and_less_often() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut aside = SetAside {
            shards: BTreeSet::new(),
            first_pause: ms(100),
            longest_pause: ms(300),
            back_at: start,
            is_refused: false,
            refusals: 0,
        };
        let mut now = start;
        for pause in [100, 200, 300, 300] {
            aside.refused(now);
            aside.extend([3]);
            aside.refused(now + ms(1));
            assert!(aside.taken_back(now + ms(pause - 1)).is_empty(), "{pause}");
            now += ms(pause);
            assert_eq!(aside.taken_back(now), BTreeSet::from([3]), "{pause}");
            assert!(aside.is_empty());
        }
        now += ms(301);
        aside.refused(now);
        aside.extend([4, 5]);
        assert_eq!(aside.taken_back(now + ms(100)), BTreeSet::from([4, 5]), "it went well for a while");
    }

    #[test]
    fn without_a_refusal_there_is_no_pause() {
        let now = Instant::now();
        let mut aside = SetAside {
            shards: BTreeSet::from([1]),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(9),
            back_at: now,
            is_refused: false,
            refusals: 0,
        };
        assert_eq!(aside.taken_back(now), BTreeSet::from([1]));
    }
}
