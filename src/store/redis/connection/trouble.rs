//! Errors of the connections to a Redis server, as people get them: the log on change and then every few seconds with a count, and
//! the last error for as long as nothing was answered since.
//!
//! Input: errors, answers. Output: when a line is due, and the text of the last error. A crash loses nothing that matters.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A connection that changes its error is logged again after this time at the earliest.
const CHANGED_AFTER: Duration = Duration::from_secs(1);
/// The same error is logged again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why the last attempt to connect to a server failed, for people. Shared by the connections to it.
#[derive(Clone, Default)]
pub(super) struct LastError(Arc<KnownError>);

#[derive(Default)]
struct KnownError {
    /// Read with each answer, so without a lock.
    is_known: AtomicBool,
    text: Mutex<Option<String>>,
}

impl LastError {
    pub(super) fn set(&self, text: String) {
        *lock(&self.0.text) = Some(text);
        self.0.is_known.store(true, Ordering::Release);
    }

    /// The server has answered: the error is over.
    pub(super) fn answered(&self) {
        if self.0.is_known.load(Ordering::Acquire) {
            self.0.is_known.store(false, Ordering::Release);
            *lock(&self.0.text) = None;
        }
    }

    pub(super) fn text(&self) -> Option<String> {
        lock(&self.0.text).clone()
    }
}

/// The errors of one connection since it answered last.
#[derive(Default)]
pub(super) struct LinkTrouble {
    /// Read with each answer, so without a lock.
    has_begun: AtomicBool,
    lines: Mutex<TroubleLines>,
}

#[derive(Default)]
struct TroubleLines {
    last: Option<(String, Instant)>,
    unlogged: u64,
}

impl LinkTrouble {
    /// Notes an error. When a line is due: the number of errors since the last one, this one included.
    pub(super) fn note(&self, text: &str, now: Instant) -> Option<u64> {
        self.has_begun.store(true, Ordering::Release);
        let mut lines = lock(&self.lines);
        lines.unlogged += 1;
        let is_due = lines.last.as_ref().is_none_or(|(logged, at)| {
            let pause = if logged == text { AGAIN_AFTER } else { CHANGED_AFTER };
            now.saturating_duration_since(*at) >= pause
        });
        is_due.then(|| {
            lines.last = Some((text.to_owned(), now));
            std::mem::take(&mut lines.unlogged)
        })
    }

    /// Notes an answer. Whether it is the first one after errors.
    pub(super) fn ends(&self) -> bool {
        if !self.has_begun.load(Ordering::Acquire) || !self.has_begun.swap(false, Ordering::AcqRel) {
            return false;
        }
        // The time stays: a connection that breaks again and again has no line for each time.
        if let Some((text, _)) = &mut lock(&self.lines).last {
            text.clear();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is logged of errors at these milliseconds.
    fn logged(trouble: &LinkTrouble, start: Instant, errors: &[(u64, &str)]) -> Vec<(u64, u64)> {
        let note =
            |(ms, text): &(u64, &str)| trouble.note(text, start + Duration::from_millis(*ms)).map(|count| (*ms, count));
        errors.iter().filter_map(note).collect()
    }

    #[test]
    fn an_outage_is_logged_at_once_and_then_every_five_seconds_with_a_count() {
        let (trouble, start) = (LinkTrouble::default(), Instant::now());
        // Ten errors a second, as the client has them.
        let errors: Vec<_> = (0..=160).map(|n| (n * 100, "refused")).collect();
        assert_eq!(logged(&trouble, start, &errors), [(0, 1), (5_000, 50), (10_000, 50), (15_000, 50)]);
    }

    #[test]
    fn another_reason_is_logged_soon_and_two_that_take_turns_are_no_flood() {
        let (trouble, start) = (LinkTrouble::default(), Instant::now());
        assert_eq!(
            logged(&trouble, start, &[(0, "refused"), (100, "timeout"), (1_000, "timeout")]),
            [(0, 1), (1_000, 2)]
        );
        let turns: Vec<_> = (11..100).map(|n| (n * 100, if n % 2 == 0 { "refused" } else { "timeout" })).collect();
        let lines = logged(&trouble, start, &turns);
        assert!((2..=9).contains(&lines.len()), "{lines:?}");
    }

    #[test]
    fn an_answer_ends_the_trouble_once_and_the_next_trouble_is_no_flood() {
        let (trouble, start) = (LinkTrouble::default(), Instant::now());
        assert!(!trouble.ends(), "there was none");
        let mut lines = Vec::new();
        for n in 0..100 {
            lines.extend(logged(&trouble, start, &[(n * 100, "refused")]));
            assert!(trouble.ends() && !trouble.ends());
        }
        assert_eq!(lines.len(), 10, "one a second: {lines:?}");
    }

    #[test]
    fn the_last_error_is_gone_once_something_was_answered() {
        let error = LastError::default();
        error.set("READONLY".to_owned());
        assert_eq!(error.text().as_deref(), Some("READONLY"));
        error.answered();
        assert_eq!(error.text(), None);
    }
}
