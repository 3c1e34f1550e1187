//! What happens too often to be written down each time: the first of a minute is, of the rest the number at the minute's end.
//!
//! Input: keys, an address or a token's name. Output: which one is to be written. So a caller that is refused a thousand times leaves
//! two rows or lines a minute. Keys are bounded; beyond them all share one. A crash loses the numbers of the minute.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Keys at a time.
const KEYS_MAX: usize = 256;
/// The key of all that have none of their own.
const OTHERS: &str = "others";
/// How long the rest is counted.
const MINUTE: Duration = Duration::from_secs(60);

/// The minutes that are counted, by key.
#[derive(Default)]
pub(super) struct Minutes {
    counts: Mutex<HashMap<String, MinuteCount>>,
}

/// How many there were after the first.
struct MinuteCount {
    begun: Instant,
    more: u64,
}

/// Which one of its minute it was.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// To be written now.
    First,
    /// To be written when the minute is over: [`Minutes::after`].
    Second(Minute),
    /// Counted.
    Later,
}

/// A minute that is counted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Minute(String);

impl Minutes {
    fn counts(&self) -> MutexGuard<'_, HashMap<String, MinuteCount>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more.
    pub(super) fn noted(&self, key: &str) -> Noted {
        self.noted_at(Instant::now(), key)
    }

    fn noted_at(&self, now: Instant, key: &str) -> Noted {
        let mut counts = self.counts();
        let is_over = |minute: &MinuteCount| minute.more == 0 && now.saturating_duration_since(minute.begun) >= MINUTE;
        if counts.len() >= KEYS_MAX {
            counts.retain(|_, minute| !is_over(minute));
        }
        let key = if counts.len() < KEYS_MAX || counts.contains_key(key) { key } else { OTHERS };
        match counts.get_mut(key).filter(|minute| !is_over(minute)) {
            None => {
                counts.insert(key.to_owned(), MinuteCount { begun: now, more: 0 });
                Noted::First
            }
            Some(minute) => {
                minute.more += 1;
                if minute.more == 1 { Noted::Second(Minute(key.to_owned())) } else { Noted::Later }
            }
        }
    }

    /// Waits for the end of the minute; how many there were after the first.
    pub(super) async fn after(&self, minute: Minute) -> u64 {
        let begun = self.counts().get(&minute.0).map(|count| count.begun);
        tokio::time::sleep(MINUTE.saturating_sub(begun.map_or(MINUTE, |begun| begun.elapsed()))).await;
        self.ended(&minute)
    }

    fn ended(&self, minute: &Minute) -> u64 {
        self.counts().remove(&minute.0).map_or(0, |count| count.more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_refusals_are_the_first_and_a_number() {
        let (minutes, now) = (Minutes::default(), Instant::now());
        assert_eq!(minutes.noted_at(now, "a"), Noted::First);
        let Noted::Second(minute) = minutes.noted_at(now, "a") else { panic!("the second one is counted") };
        assert!((0..998).all(|_| minutes.noted_at(now, "a") == Noted::Later));
        assert_eq!(minutes.noted_at(now, "b"), Noted::First, "each key by itself");
        assert_eq!(minutes.ended(&minute), 999);
        assert_eq!(minutes.noted_at(now, "a"), Noted::First, "a new minute");
        assert_eq!(minutes.noted_at(now + MINUTE, "a"), Noted::First, "nothing was counted in the one before");
    }

    #[test]
    fn keys_are_bounded() {
        let (minutes, now) = (Minutes::default(), Instant::now());
        for n in 0..KEYS_MAX {
            assert_eq!(minutes.noted_at(now, &n.to_string()), Noted::First);
        }
        assert_eq!(minutes.noted_at(now, "more"), Noted::First);
        assert!(matches!(minutes.noted_at(now, "still more"), Noted::Second(_)), "with all others");
        assert_eq!(minutes.counts().len(), KEYS_MAX + 1);
        assert_eq!(minutes.noted_at(now + MINUTE, "more"), Noted::First);
        assert_eq!(minutes.counts().len(), 2, "minutes that are over make room; the others are still counted");
    }
}
