//! How long a cache keeps an answer, by what it is: short while it can change, long once it is final.
//!
//! Input: an answer. Output: its time. Pure.

use moka::Expiry;
use std::time::{Duration, Instant};

/// The time of each answer, from when it was read.
pub(super) struct KeptFor<V>(pub(super) fn(&V) -> Duration);

impl<K, V> Expiry<K, V> for KeptFor<V> {
    fn expire_after_create(&self, _of: &K, answer: &V, _now: Instant) -> Option<Duration> {
        Some((self.0)(answer))
    }

    fn expire_after_update(&self, _of: &K, answer: &V, _now: Instant, _before: Option<Duration>) -> Option<Duration> {
        Some((self.0)(answer))
    }
}
