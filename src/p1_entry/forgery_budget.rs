//! How much of a thread's time forged tokens may take.
//!
//! A buyer's first token seems a forgery until its signature was checked, so no number of checks a second is right: it would
//! turn away the crowd at the start of a sale. What a flood shows is time spent on signatures that were *wrong*. Each thread that
//! serves requests may spend half of its time on those, and a short burst. Above that, tokens that are new to the process are
//! answered without a check until the time is made up; which ones is drawn by lot, so that no rhythm of a flood keeps a buyer out:
//! each has the same chance, and a buyer gets in after a try or two. Tokens that were verified before are never affected,
//! and good signatures cost nothing of it.
//!
//! Input: the time of checks that failed. Output: whether another check may be made. Per thread, in memory; a crash leaves
//! nothing.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Parts of the time that are for serving; one part in as many is for forgeries.
const SHARE: u32 = 2;
/// Time that a quiet thread may spend on forgeries at once.
const BURST: Duration = Duration::from_millis(20);
/// What one check counts at most: above the dearest one, a long RSA key. What took longer did not run meanwhile, and one forgery on
/// a busy machine would keep buyers out.
const CHECK_MAX: Duration = Duration::from_millis(2);

thread_local! {
    static SPENT: Cell<ForgeryBudget> = Cell::new(ForgeryBudget::new(Instant::now()));
}

/// Time that forgeries took and that is not made up yet.
#[derive(Debug, Clone, Copy)]
struct ForgeryBudget {
    spent: Duration,
    at: Instant,
}

impl ForgeryBudget {
    const fn new(now: Instant) -> Self {
        Self { spent: Duration::ZERO, at: now }
    }

    /// With the time that passed made up.
    fn at(self, now: Instant) -> Self {
        let made_up = now.saturating_duration_since(self.at) / SHARE;
        Self { spent: self.spent.saturating_sub(made_up), at: now }
    }

    /// Always below the burst, never at twice of it; between them by a lot of 0 to 1.
    fn may_check(self, lot: impl FnOnce() -> f64) -> bool {
        self.spent < BURST || self.spent < BURST + BURST.mul_f64(lot().clamp(0.0, 1.0))
    }

    fn failed(self, took: Duration) -> Self {
        let counted = took.min(CHECK_MAX);
        // Nor is anything made up in the time in which it did not run.
        Self { spent: self.spent + counted, at: self.at + (took - counted) }
    }
}

/// Makes a check unless forgeries had their share of this thread; `forged` says whether the outcome shows one.
pub(super) fn within_budget<T>(check: impl FnOnce() -> T, forged: impl FnOnce(&T) -> bool) -> Option<T> {
    let begun = Instant::now();
    let budget = SPENT.get().at(begun);
    if !budget.may_check(rand::random) {
        SPENT.set(budget);
        return None;
    }
    let outcome = check();
    SPENT.set(if forged(&outcome) { budget.failed(begun.elapsed()) } else { budget });
    Some(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Tokens that arrive one behind the other and take `check` when they are checked and `rest` anyway; every tenth is good.
    /// How many of the good and of the forged were checked, and how long it took.
    fn flood(check: Duration, rest: Duration) -> ([u32; 2], Duration) {
        let begun = Instant::now();
        let (mut now, mut budget) = (begun, ForgeryBudget::new(begun));
        let (mut checked, mut lots) = ([0, 0], StdRng::seed_from_u64(7));
        for number in 0..100_000 {
            let is_forged = number % 10 != 0;
            budget = budget.at(now);
            now += rest;
            if budget.may_check(|| lots.random()) {
                checked[usize::from(is_forged)] += 1;
                now += check;
                budget = if is_forged { budget.failed(check) } else { budget };
            }
        }
        (checked, now - begun)
    }

    #[test]
    fn a_flood_takes_half_of_the_time_and_each_new_token_keeps_its_chance() {
        let micros = Duration::from_micros;
        for (check, rest) in [(micros(30), micros(10)), (micros(60), micros(15)), (micros(100), micros(5))] {
            let ([good, forged], took) = flood(check, rest);
            let (spent, most) = (check * forged, took / SHARE + 2 * BURST + check);
            assert!(spent <= most && spent > most / 2, "{check:?}: {spent:?} of {took:?}");
            let (good, forged) = (f64::from(good) / 10_000.0, f64::from(forged) / 90_000.0);
            assert!(
                good > 0.03 && (good - forged).abs() < 0.02,
                "{check:?}: {good} of the good, {forged} of the forged"
            );
        }
        let (checked, _) = flood(micros(30), micros(60));
        assert_eq!(checked, [10_000, 90_000], "below its share nothing is left out");
    }

    #[test]
    fn good_signatures_cost_nothing_of_it() {
        let work = || std::hint::black_box((0..20_000_u64).fold(0, |sum, number| sum ^ (number * number)));
        for _ in 0..200 {
            assert!(within_budget(work, |_| false).is_some());
        }
        assert!((0..1_000_000).any(|_| within_budget(work, |_| true).is_none()), "forgeries have their share");
    }

    #[test]
    fn one_check_that_was_kept_waiting_keeps_no_other_out() {
        let now = Instant::now();
        let mut budget = ForgeryBudget::new(now);
        for _ in 0..9 {
            assert!(budget.may_check(|| 0.0));
            budget = budget.failed(Duration::from_secs(1));
        }
        assert!(budget.failed(Duration::from_secs(1)).spent >= BURST, "many of them do count");
    }
}
