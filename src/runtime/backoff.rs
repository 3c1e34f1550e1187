//! Pauses after failures: they double up to a bound, and peers do not pause in step.

use rand::Rng;
use std::time::Duration;

/// `base` doubled `times` times, at most `max`.
#[must_use]
pub(crate) fn exponential_backoff(base: Duration, times: u32, max: Duration) -> Duration {
    base.saturating_mul(1u32.checked_shl(times.min(20)).unwrap_or(u32::MAX)).min(max)
}

/// Between half and the whole of the pause, so that peers do not act at the same moment.
pub(crate) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(0.5..=1.0))
}

/// The pause and up to a fifth more, so that what failed together does not come again together, and never early.
pub(crate) fn lengthened(pause: Duration) -> Duration {
    pause.mul_f64(rand::rng().random_range(1.0..=1.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_their_bound() {
        let pause = |times| exponential_backoff(Duration::from_millis(50), times, Duration::from_secs(1)).as_millis();
        assert_eq!([pause(0), pause(1), pause(2), pause(10), pause(u32::MAX)], [50, 100, 200, 1000, 1000]);
    }
}
