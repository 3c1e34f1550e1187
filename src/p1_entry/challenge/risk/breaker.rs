//! The circuit breaker around the risk service: closed, open, half-open. It decides whether the service is asked, never what a buyer
//! gets: that is `risk.on_failure`. Pure but for a lock; the caller passes the clock in.
//!
//! It opens when half of the calls of some seconds failed, and a few at least. While it is open no call is made, so that a service that
//! stands still holds no buyer. Then a single call tries; its answer closes the breaker.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Calls are counted over this time.
const WINDOW: Duration = Duration::from_secs(10);
/// Fewer failures in a window open nothing.
const FAILURES_MIN: u32 = 5;
/// No call is made for this time.
pub(super) const PAUSE: Duration = Duration::from_secs(5);

/// What follows from a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BreakerNews {
    None,
    /// The first failure of its window.
    FirstFailure,
    Opens,
    Closes,
}

#[derive(Debug)]
struct BreakerState {
    window_began: Instant,
    calls: u32,
    failures: u32,
    open_until: Option<Instant>,
}

/// What this process believes of the service.
#[derive(Debug)]
pub(super) struct RiskBreaker(Mutex<BreakerState>);

impl RiskBreaker {
    pub(super) const fn new(now: Instant) -> Self {
        Self(Mutex::new(BreakerState { window_began: now, calls: 0, failures: 0, open_until: None }))
    }

    /// Whether no call may be made now.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.locked(|state| state.open_until.is_some_and(|until| now < until))
    }

    /// Whether a call may be made now. After the pause one may; the next only after another pause, or once it was answered.
    pub(super) fn admits(&self, now: Instant) -> bool {
        self.locked(|state| match state.open_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                state.open_until = Some(now + PAUSE);
                true
            }
        })
    }

    /// Counts a call by whether it was answered.
    pub(super) fn observe(&self, now: Instant, answered: bool) -> BreakerNews {
        self.locked(|state| {
            if now.saturating_duration_since(state.window_began) >= WINDOW {
                (state.window_began, state.calls, state.failures) = (now, 0, 0);
            }
            state.calls = state.calls.saturating_add(1);
            if answered {
                // Whatever failed before it: the service answers.
                return match state.open_until.take() {
                    Some(_) => {
                        (state.window_began, state.calls, state.failures) = (now, 0, 0);
                        BreakerNews::Closes
                    }
                    None => BreakerNews::None,
                };
            }
            state.failures = state.failures.saturating_add(1);
            let was_open = state.open_until.is_some();
            if was_open || (state.failures >= FAILURES_MIN && state.failures.saturating_mul(2) >= state.calls) {
                state.open_until = Some(now + PAUSE);
            }
            match (was_open, state.open_until, state.failures) {
                (false, Some(_), _) => BreakerNews::Opens,
                (false, None, 1) => BreakerNews::FirstFailure,
                _ => BreakerNews::None,
            }
        })
    }

    fn locked<T>(&self, work: impl FnOnce(&mut BreakerState) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_when_half_of_the_calls_fail_tries_one_and_closes_with_an_answer() {
        let start = Instant::now();
        let breaker = RiskBreaker::new(start);
        assert_eq!(breaker.observe(start, false), BreakerNews::FirstFailure);
        for _ in 2..FAILURES_MIN {
            assert_eq!(breaker.observe(start, false), BreakerNews::None);
        }
        assert!(breaker.admits(start) && !breaker.is_open(start));
        assert_eq!(breaker.observe(start, false), BreakerNews::Opens);
        assert!(!breaker.admits(start) && breaker.is_open(start));
        let tried_at = start + PAUSE;
        assert!(!breaker.is_open(tried_at) && breaker.admits(tried_at), "one tries");
        assert!(!breaker.admits(tried_at), "one only");
        assert_eq!(breaker.observe(tried_at, false), BreakerNews::None);
        assert!(!breaker.admits(tried_at + PAUSE / 2) && breaker.admits(tried_at + PAUSE));
        assert_eq!(breaker.observe(tried_at + PAUSE, true), BreakerNews::Closes);
        assert!(breaker.admits(tried_at + PAUSE));
        assert_eq!(breaker.observe(tried_at + PAUSE, false), BreakerNews::FirstFailure, "it counts anew");
    }

    #[test]
    fn a_try_that_is_lost_holds_nothing_up_for_longer_than_a_pause() {
        let start = Instant::now();
        let breaker = RiskBreaker::new(start);
        for _ in 0..FAILURES_MIN {
            breaker.observe(start, false);
        }
        assert!(breaker.admits(start + PAUSE));
        assert!(breaker.admits(start + 2 * PAUSE));
    }

    #[test]
    fn few_failures_among_many_answers_and_old_ones_open_nothing() {
        let start = Instant::now();
        let breaker = RiskBreaker::new(start);
        for _ in 0..100 {
            breaker.observe(start, true);
            breaker.observe(start, true);
            assert_ne!(breaker.observe(start, false), BreakerNews::Opens);
        }
        let breaker = RiskBreaker::new(start);
        for n in 0..20 {
            assert_ne!(breaker.observe(start + n * WINDOW / 4, false), BreakerNews::Opens, "{n}");
        }
    }
}
