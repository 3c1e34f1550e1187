//! The waiting room's arithmetic: whose turn it is, and when to poll again.
//!
//! A poll costs an api process little and Redis nothing, but a crowd that polls each second is a load of its own. A buyer far
//! behind polls so rarely that the whole crowd stays below a rate; a buyer near the front polls when it is his turn.

use std::collections::VecDeque;

/// Buyers who came before the start get their drawn places at this rate, a millisecond, all processes together.
pub(crate) const SPREAD_PER_MS: u64 = 10;
/// Giving them out takes at most this long, milliseconds, for any number of them; no place is released before. Else the stock of a
/// small sale would go to the early buyers who came back first, whatever their places.
pub(crate) const SPREAD_MAX_MS: u64 = 30_000;
/// The far part of a waiting crowd polls at most this often, times a second, over all processes.
pub(crate) const POLLS_PER_S: u64 = 5_000;
/// Longest time between two polls of a waiting buyer, seconds, however large the crowd: the rate may grow meanwhile.
pub(crate) const POLL_MAX_S: u64 = 120;
/// How far back releases are counted for an estimate, milliseconds.
const PACE_WINDOW_MS: u64 = 30_000;
/// Less than this is not enough for one, milliseconds.
const PACE_SEEN_MIN_MS: u64 = 3_000;
/// Two notes of how far a room is have this time between them, milliseconds: 31 notes at most.
const PACE_NOTE_MS: u64 = 1_000;
/// A longer wait is not estimated, seconds: a day.
const ESTIMATE_MAX_S: u64 = 86_400;
/// Any waiting buyer may be given this time between two polls, seconds.
const POLL_FAR_S: u64 = 10;

/// How far the places of a room are released, as one process knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReleaseProgress {
    /// Places that may buy: 1 to this one.
    pub released: u64,
    pub arrivals: u64,
    /// Time until the first place is released, milliseconds.
    pub(crate) opens_in_ms: u64,
    /// At what pace it went lately.
    pub(crate) lately: ReleasedLately,
}

/// Places that were released within a time, as one process saw it; none: it has not seen enough, or none was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ReleasedLately {
    /// How many.
    places: u64,
    /// Within this time, milliseconds.
    within_ms: u64,
}

/// The notes of how far a room was released: when, in milliseconds, and to which place.
#[derive(Debug, Default)]
pub(crate) struct ReleasePace(VecDeque<(u64, u64)>);

impl ReleasePace {
    /// Notes that the room is released up to `released` at `at_ms` (any clock that only goes on); the pace of the last
    /// [`PACE_WINDOW_MS`]. Time before the first release does not count.
    pub(crate) fn note(&mut self, at_ms: u64, released: u64) -> ReleasedLately {
        if released == 0 {
            self.0.clear();
            return ReleasedLately::default();
        }
        self.0.retain(|(then, _)| then + PACE_WINDOW_MS >= at_ms);
        if self.0.back().is_none_or(|(last, _)| last + PACE_NOTE_MS <= at_ms) {
            self.0.push_back((at_ms, released));
        }
        let (since, first) = self.0.front().copied().unwrap_or((at_ms, released));
        let within_ms = at_ms.saturating_sub(since);
        if within_ms < PACE_SEEN_MIN_MS {
            return ReleasedLately::default();
        }
        ReleasedLately { places: released.saturating_sub(first), within_ms }
    }
}

impl ReleaseProgress {
    /// Whether this place may buy.
    #[must_use]
    pub(crate) const fn has_released(self, place: u64) -> bool {
        place <= self.released
    }

    /// Places before this one that are not released.
    #[must_use]
    pub(crate) const fn ahead_of(self, place: u64) -> u64 {
        place.saturating_sub(self.released).saturating_sub(1)
    }

    /// Seconds until this place is released at the pace of the last half minute, 0 once it is; `None`: nothing was released lately, or it
    /// would be more than a day.
    #[must_use]
    pub(crate) fn estimated_wait_s(self, place: u64) -> Option<u64> {
        if self.has_released(place) {
            return Some(0);
        }
        let ReleasedLately { places, within_ms } = self.lately;
        let turns_ms = u128::from(self.ahead_of(place) + 1) * u128::from(within_ms);
        let wait_ms = turns_ms.checked_div(u128::from(places))? + u128::from(self.opens_in_ms);
        let wait_s = u64::try_from(wait_ms.div_ceil(1000)).ok()?.max(1);
        (wait_s <= ESTIMATE_MAX_S).then_some(wait_s)
    }

    /// Seconds after which the buyer with this place polls again, 1 to [`POLL_MAX_S`] and a quarter: at `rate_per_s` never
    /// much after the turn. `dice` in `[0, 1)` spreads those who are far.
    #[must_use]
    pub(crate) fn ask_again_s(self, place: u64, rate_per_s: u32, dice: f64) -> u64 {
        let wait_s = self.opens_in_ms / 1000 + self.ahead_of(place) / u64::from(rate_per_s.max(1));
        let far_s = (self.arrivals.saturating_sub(self.released) / POLLS_PER_S).clamp(POLL_FAR_S, POLL_MAX_S);
        if wait_s <= far_s { wait_s.max(1) } else { (far_s + part(far_s / 4, dice)).min(wait_s) }
    }
}

/// Seconds after which a buyer without a drawn place comes back: spread over the time after the start in which the places are
/// given out. `arrivals` are those who came so far.
#[must_use]
pub(crate) fn come_back_s(starts_in_ms: u64, arrivals: u64, dice: f64) -> u64 {
    let spread_ms = (arrivals / SPREAD_PER_MS).min(SPREAD_MAX_MS - 1000);
    (starts_in_ms + part(spread_ms, dice)).div_ceil(1000).max(1)
}

/// `dice` (0 to 1) of `whole`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "wholes are small, the dice is clamped"
)]
fn part(whole: u64, dice: f64) -> u64 {
    (whole as f64 * dice.clamp(0.0, 1.0)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn who_waits_comes_back_by_his_turn_and_the_crowd_below_its_rate(
            released in 0u64..2_000_000, waiting in 1u64..2_000_000, at in 0u64..2_000_000, rate in 1u32..1_000_000,
            dice in 0f64..1.0, opens_in_ms in 0u64..SPREAD_MAX_MS,
        ) {
            let progress = ReleaseProgress { released, arrivals: released + waiting, opens_in_ms, ..ReleaseProgress::default() };
            let place = released + 1 + at % waiting;
            prop_assert!(!progress.has_released(place) && progress.has_released(released));
            prop_assert_eq!(progress.ahead_of(place), at % waiting);
            let again_s = progress.ask_again_s(place, rate, dice);
            let turn_s = opens_in_ms / 1000 + progress.ahead_of(place) / u64::from(rate);
            prop_assert!((1..=POLL_MAX_S + POLL_MAX_S / 4).contains(&again_s));
            prop_assert!(again_s <= turn_s.max(1), "not after the turn: {} {}", again_s, turn_s);
            // A buyer who polls before his turn waits so long that the whole crowd stays below the rate.
            let kept_s = (waiting / POLLS_PER_S).min(POLL_MAX_S);
            prop_assert!(again_s == turn_s.max(1) || again_s >= kept_s);
        }

        #[test]
        fn drawn_places_are_answered_after_the_start_and_before_the_first_release(
            starts_in_ms in 0u64..86_400_000, arrivals in 0u64..100_000_000, dice in 0f64..1.0,
        ) {
            let back_ms = come_back_s(starts_in_ms, arrivals, dice) * 1000;
            // As lua/room_release.lua reckons it, with all arrivals of the end.
            let first_ms = starts_in_ms + SPREAD_MAX_MS.min(1000 + arrivals.div_ceil(SPREAD_PER_MS));
            prop_assert!(back_ms >= starts_in_ms && back_ms >= 1000);
            prop_assert!(back_ms <= first_ms.max(1000), "{} {}", back_ms, first_ms);
        }
    }

    #[test]
    fn places_and_turns() {
        let progress = ReleaseProgress { released: 10, arrivals: 50_010, ..ReleaseProgress::default() };
        assert!(progress.has_released(10) && !progress.has_released(11));
        assert_eq!((progress.ahead_of(11), progress.ahead_of(15), progress.ahead_of(3)), (0, 4, 0));
        let again = |place, rate| progress.ask_again_s(place, rate, 0.999);
        assert_eq!((again(11, 100), again(711, 100), again(50_010, 100)), (1, 7, 11));
    }

    /// The estimate of `place` after these notes.
    fn estimated(notes: &[(u64, u64)], place: u64) -> Option<u64> {
        let mut pace = ReleasePace::default();
        let mut progress = ReleaseProgress::default();
        for (at_ms, released) in notes {
            progress = ReleaseProgress { released: *released, lately: pace.note(*at_ms, *released), ..progress };
        }
        assert!(pace.0.len() <= 31, "{}", pace.0.len());
        progress.estimated_wait_s(place)
    }

    #[test]
    fn a_wait_is_estimated_by_what_was_released_lately_and_not_without_it() {
        let steady: Vec<(u64, u64)> = (0..600).map(|n| (n * 200, n * 20)).collect();
        // 100 a second, for two minutes: 11,980 are released.
        assert_eq!(estimated(&steady, 11_980), Some(0));
        assert_eq!(estimated(&steady, 11_981), Some(1));
        assert_eq!(estimated(&steady, 12_980), Some(10));
        assert_eq!(estimated(&steady, u64::MAX / 2), None, "more than a day");
        assert_eq!(estimated(&[], 1), None);
        assert_eq!(estimated(&steady[..15], 1_000), None, "not enough is known");
        // No place was released for a minute.
        let stalled: Vec<(u64, u64)> = (0..60).map(|n| (n * 1_000, 500)).collect();
        assert_eq!(estimated(&stalled, 600), None);
        assert_eq!(estimated(&stalled, 500), Some(0));
        // The time before the first release does not slow it down.
        let late: Vec<(u64, u64)> = (0..40u64).map(|n| (n * 1_000, n.saturating_sub(30) * 10)).collect();
        assert_eq!(estimated(&late, 190), Some(10));
    }
}
