//! How far landing is behind, measured by this process' own purchases. Pure: the caller brings time and answers.
//!
//! Some of the accepted purchases are remembered as probes until the ledger says they landed. What landed last shows how far
//! landing has come: whatever was accepted before it is not waited for, because single requests may be parked for minutes
//! while all others land. Ages are of this process' own clock (window 95).

use crate::domain::ids::{RequestId, SaleId};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// LandingProbes are at least this far apart.
const SAMPLE_EVERY: Duration = Duration::from_millis(10);
/// LandingProbes kept. When there are more, every second one goes, so that they reach back as far as the queue is long.
const PROBES_MAX: usize = 256;
/// Fewer probes that do not land than this are trouble of those requests, not of landing.
const PROBES_MIN: usize = 5;

/// A request of one ledger.
pub(super) type ProbedRequest = (SaleId, u16, RequestId);

struct LandingProbe {
    place: ProbedRequest,
    accepted_at: Instant,
    /// How many this process had accepted with it.
    number: u64,
}

/// The probes of one process.
#[derive(Default)]
pub(super) struct LandingProbes {
    accepted: u64,
    landed: u64,
    sampled_at: Option<Instant>,
    waiting: VecDeque<LandingProbe>,
}

impl LandingProbes {
    /// Counts an accepted purchase, and remembers it if it is time for a probe.
    pub(super) fn accepted(&mut self, place: impl FnOnce() -> ProbedRequest, now: Instant) {
        self.accepted += 1;
        if self.sampled_at.is_some_and(|at| now.saturating_duration_since(at) < SAMPLE_EVERY) {
            return;
        }
        if self.waiting.len() >= PROBES_MAX {
            let mut at = 0;
            self.waiting.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        self.sampled_at = Some(now);
        self.waiting.push_back(LandingProbe { place: place(), accepted_at: now, number: self.accepted });
    }

    /// What has not landed yet as far as is known, by ledger.
    pub(super) fn waiting(&self) -> HashMap<(SaleId, u16), Vec<RequestId>> {
        let mut ledgers: HashMap<_, Vec<RequestId>> = HashMap::new();
        for LandingProbe { place: (sale, shard, request_id), .. } in &self.waiting {
            ledgers.entry((sale.clone(), *shard)).or_default().push(*request_id);
        }
        ledgers
    }

    /// Forgets what has landed and everything accepted before it.
    pub(super) fn landed(&mut self, has_landed: impl Fn(RequestId) -> bool) {
        if let Some(at) = self.waiting.iter().rposition(|probe| has_landed(probe.place.2)) {
            self.landed = self.waiting[at].number;
            self.waiting.drain(..=at);
        }
    }

    /// Forgets what can show nothing any more.
    pub(super) fn forget(&mut self, is_gone: impl Fn(RequestId) -> bool) {
        self.waiting.retain(|probe| !is_gone(probe.place.2));
    }

    /// Age of the oldest purchase that landing has not come to.
    pub(super) fn lag(&self, now: Instant) -> Duration {
        match self.waiting.front() {
            Some(oldest) if self.waiting.len() >= PROBES_MIN => now.saturating_duration_since(oldest.accepted_at),
            Some(_) | None => Duration::ZERO,
        }
    }

    /// Purchases accepted so far, and how many of them landing has come to.
    pub(super) const fn counts(&self) -> (u64, u64) {
        (self.accepted, self.landed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> RequestId {
        RequestId::parse(&number.to_string()).unwrap()
    }

    fn probes(now: Instant, count: u64, every_ms: u64) -> LandingProbes {
        let mut probes = LandingProbes::default();
        for number in 1..=count {
            let at = now + Duration::from_millis(number * every_ms);
            probes.accepted(|| (SaleId::parse("s").unwrap(), 0, id(number)), at);
        }
        probes
    }

    #[test]
    fn the_lag_is_the_age_of_what_landing_has_not_come_to() {
        let begun = Instant::now();
        let mut probes = probes(begun, 100, 20);
        let at = |ms| begun + Duration::from_millis(ms);
        assert_eq!(probes.lag(at(2_020)), Duration::from_millis(2_000));
        // 50 landed; 20 and 30 are parked somewhere, and are not waited for.
        probes.landed(|landed| landed == id(50) || landed == id(40));
        assert_eq!((probes.lag(at(2_020)), probes.counts()), (Duration::from_millis(1_000), (100, 50)));
        probes.landed(|_| false);
        assert_eq!(probes.counts(), (100, 50));
        probes.landed(|landed| landed == id(96));
        assert_eq!(probes.lag(at(99_999)), Duration::ZERO, "four that do not land are their own trouble");
        probes.forget(|_| true);
        assert!(probes.waiting().is_empty());
    }

    #[test]
    fn probes_are_few_however_many_are_accepted_and_reach_back_to_the_oldest() {
        let begun = Instant::now();
        let mut probes = probes(begun, 100_000, 1);
        assert!(probes.waiting.len() <= PROBES_MAX && probes.waiting.len() >= PROBES_MAX / 2);
        let newest = probes.waiting.back().unwrap().number;
        assert_eq!((probes.waiting[0].number, newest > 99_980), (1, true));
        assert_eq!(probes.lag(begun + Duration::from_millis(100_001)), Duration::from_secs(100));
        probes.landed(|landed| landed == id(newest));
        assert_eq!(probes.counts(), (100_000, newest));
    }
}
