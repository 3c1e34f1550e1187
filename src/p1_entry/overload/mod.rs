//! Overload (A10, C7): what one process takes in at once is bounded, and new purchases are refused with 503 while what was
//! accepted before does not reach the database.
//!
//! Input: the readings of [`OverloadMonitor`], and every purchase. Output: go on, or the problem to answer with. A crash loses
//! the probes and the limit: the next process measures its own first purchases.

mod control;
mod monitor;
mod probes;

pub(crate) use monitor::{OverloadHandles, OverloadMonitor};

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem, RETRY_LATER_S};
use crate::telemetry::count;
use control::EntryCommand;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use probes::LandingProbes;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Instant;

/// A closed entry lets this many new purchases a second through. Their landing is how it sees that landing is well, even
/// when the last ones before it closed were parked for good.
const TRICKLE_PER_S: NonZeroU32 = NonZeroU32::MIN;

/// The answer to a purchase that is one too many: 503 `P1-S8`.
pub(super) fn overloaded(detail: &str) -> Problem {
    count(State::P1(P1Entry::Overloaded), 1);
    Kind::Overloaded.because(detail)
}

/// The load of one process. Clones share it.
#[derive(Clone)]
pub struct Overload {
    inner: Arc<OverloadState>,
}

struct OverloadState {
    in_flight_max: usize,
    in_flight: AtomicUsize,
    closed: AtomicBool,
    trickle: DefaultDirectRateLimiter,
    limit: RwLock<Option<(u32, DefaultDirectRateLimiter)>>,
    probes: Mutex<LandingProbes>,
}

/// A purchase under way. Dropping it makes room, also when its connection was lost.
pub(crate) struct UnderWay<'a>(&'a OverloadState);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Overload {
    /// At most `in_flight_max` purchases at once; open, without a limit, until a [`OverloadMonitor`] says otherwise.
    #[must_use]
    pub(crate) fn new(in_flight_max: usize) -> Self {
        for why in ["in_flight", "slowed", "closed"] {
            metrics::counter!("seckill_p1_entry_refused_total", "why" => why).increment(0);
        }
        Self {
            inner: Arc::new(OverloadState {
                in_flight_max,
                in_flight: AtomicUsize::new(0),
                closed: AtomicBool::new(false),
                trickle: RateLimiter::direct(Quota::per_second(TRICKLE_PER_S)),
                limit: RwLock::default(),
                probes: Mutex::default(),
            }),
        }
    }

    /// Refuses early, before anything of a purchase is read. Takes no place: a body that never comes must not hold one.
    ///
    /// # Errors
    /// 503 when there is no room.
    pub(crate) fn check_room(&self) -> Result<(), Problem> {
        if self.inner.in_flight.load(Ordering::Acquire) < self.inner.in_flight_max { Ok(()) } else { Err(full()) }
    }

    /// Takes a place for a purchase that has been read.
    ///
    /// # Errors
    /// 503 when there is no room.
    pub(crate) fn enter(&self) -> Result<UnderWay<'_>, Problem> {
        let place = UnderWay(&self.inner);
        if self.inner.in_flight.fetch_add(1, Ordering::AcqRel) < self.inner.in_flight_max {
            Ok(place)
        } else {
            Err(full())
        }
    }

    /// Why a new purchase is not let in right now, if so.
    #[must_use]
    pub(crate) fn refusal(&self) -> Option<Problem> {
        if self.inner.closed.load(Ordering::Acquire) {
            if self.inner.trickle.check().is_ok() {
                return None;
            }
            refused("closed");
            // It opens at half the bound.
            return Some(
                overloaded("more orders are waiting than can be landed in time").retry_within_s(RETRY_LATER_S),
            );
        }
        let limit = self.inner.limit.read().unwrap_or_else(PoisonError::into_inner);
        if limit.as_ref().is_none_or(|(_, bucket)| bucket.check().is_ok()) {
            return None;
        }
        refused("slowed");
        Some(overloaded("orders land more slowly than they come in"))
    }

    /// New purchases a second that are let in right now; none: all of them. A closed entry lets its trickle in.
    #[must_use]
    pub(crate) fn lets_in_per_s(&self) -> Option<u32> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Some(TRICKLE_PER_S.get());
        }
        self.inner.limit.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(rate, _)| *rate)
    }

    /// Remembers a purchase that was accepted just now.
    pub(crate) fn accepted(&self, sale: &SaleId, shard: u16, request_id: RequestId) {
        let mut probes = self.inner.probes.lock().unwrap_or_else(PoisonError::into_inner);
        probes.accepted(|| (sale.clone(), shard, request_id), Instant::now());
    }

    fn probes<T>(&self, work: impl FnOnce(&mut LandingProbes) -> T) -> T {
        work(&mut self.inner.probes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts an order into effect; returns the one before.
    fn apply(&self, order: EntryCommand) -> EntryCommand {
        let closed = self.inner.closed.swap(order.closed, Ordering::AcqRel);
        let mut limit = self.inner.limit.write().unwrap_or_else(PoisonError::into_inner);
        let before = limit.as_ref().map(|(rate, _)| *rate);
        // A new bucket is a full one, so it is only made when it differs.
        if before != order.limit_per_s {
            *limit = order.limit_per_s.and_then(NonZeroU32::new).map(|rate| (rate.get(), bucket(rate)));
        }
        EntryCommand { closed, limit_per_s: before }
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight.load(Ordering::Acquire)
    }
}

/// A tenth of a second's worth at once, so that a limit that changes each second is kept all the same.
fn bucket(rate: NonZeroU32) -> DefaultDirectRateLimiter {
    let burst = NonZeroU32::MIN.saturating_add(rate.get() / 10);
    RateLimiter::direct(Quota::per_second(rate).allow_burst(burst))
}

fn full() -> Problem {
    refused("in_flight");
    overloaded("too many purchases are under way")
}

fn refused(why: &'static str) {
    metrics::counter!("seckill_p1_entry_refused_total", "why" => why).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_come_back() {
        let overload = Overload::new(2);
        let (one, two) = (overload.enter().ok(), overload.enter().ok());
        assert!(one.is_some() && two.is_some());
        assert!(overload.check_room().is_err() && overload.enter().is_err() && overload.enter().is_err());
        drop(one);
        assert!(overload.check_room().is_ok());
        assert!(overload.enter().is_ok() && overload.enter().is_ok(), "each is given back at once");
        assert_eq!(overload.in_flight(), 1, "refusals hold no place");
    }

    #[test]
    fn a_closed_entry_lets_a_trickle_through_and_a_slowed_one_its_limit() {
        let passed = |overload: &Overload, of: usize| (0..of).filter(|_| overload.refusal().is_none()).count();
        let overload = Overload::new(1);
        assert_eq!((passed(&overload, 1_000), overload.lets_in_per_s()), (1_000, None));
        overload.apply(EntryCommand { closed: true, limit_per_s: None });
        let trickle = passed(&overload, 1_000);
        assert!((1..=100).contains(&trickle), "{trickle}");
        assert_eq!(overload.lets_in_per_s(), Some(1));
        // Not the next one: on a machine that stood still for a second it may be the trickle's.
        let refusal = (0..100).find_map(|_| overload.refusal());
        assert_eq!(refusal.map(|problem| problem.kind()), Some(Kind::Overloaded));
        let before = overload.apply(EntryCommand { closed: false, limit_per_s: Some(100) });
        assert_eq!(before, EntryCommand { closed: true, limit_per_s: None });
        let slowed = passed(&overload, 1_000);
        assert!((11..=900).contains(&slowed), "{slowed}");
        assert_eq!(overload.lets_in_per_s(), Some(100));
        overload.apply(EntryCommand::default());
        assert_eq!(passed(&overload, 1_000), 1_000);
    }
}
