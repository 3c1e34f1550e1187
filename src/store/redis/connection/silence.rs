//! For how long commands of one connection have waited without any answer, and what that says about others to the same server.
//!
//! Input: when a command was sent, and when it was answered or given up. Output: the time in which commands waited and
//! nothing came at all. Time without a command under way does not count, and two that wait at once count once. Nothing is
//! stored; a crash loses nothing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The silence of one connection.
#[derive(Debug, Default)]
pub(super) struct Silence {
    waited: Duration,
    /// Time up to here is counted, or was before the last answer.
    counted_until: Option<Instant>,
    /// Of the last answer; before the first one, of the beginning.
    answered_at: Option<Instant>,
}

/// When a connection to a server was found silent. Shared by all connections to it.
#[derive(Debug, Clone, Default)]
pub(super) struct Doubt(Arc<Mutex<Option<Instant>>>);

impl Doubt {
    /// A connection was silent, which is known at `now`.
    pub(super) fn begins(&self, now: Instant) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Whether the connection with this silence has answered nothing since.
    pub(super) fn is_about(&self, silence: &Silence) -> bool {
        let since = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        since.is_some_and(|since| silence.answered_at.is_some_and(|answered| answered < since))
    }
}

impl Silence {
    /// Of a connection that begins at `now`.
    pub(super) fn begun(now: Instant) -> Self {
        Self { answered_at: Some(now), ..Self::default() }
    }

    /// Something came at `now`: the server is there.
    pub(super) fn ends(&mut self, now: Instant) {
        *self = Self { waited: Duration::ZERO, counted_until: Some(now), answered_at: Some(now) };
    }

    /// A command that was sent at `sent` has no answer at `now` and is not waited for any longer. Returns the silence.
    pub(super) fn goes_on(&mut self, sent: Instant, now: Instant) -> Duration {
        let from = self.counted_until.map_or(sent, |until| until.max(sent));
        self.waited += now.saturating_duration_since(from);
        self.counted_until = Some(self.counted_until.map_or(now, |until| until.max(now)));
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn commands_in_a_row_and_side_by_side_wait_for_as_long_as_nothing_comes() {
        let (start, mut silence) = (Instant::now(), Silence::default());
        assert_eq!(silence.goes_on(start, start + s(2)), s(2));
        // Another one of the same time, one that overlaps, and one that was sent after a pause of three seconds.
        assert_eq!(silence.goes_on(start, start + s(2)), s(2));
        assert_eq!(silence.goes_on(start + s(1), start + s(3)), s(3));
        assert_eq!(silence.goes_on(start + s(6), start + s(7)), s(4), "no caller waited in the pause");
    }

    #[test]
    fn a_silent_connection_casts_doubt_on_those_that_have_answered_nothing_since() {
        let (start, doubt) = (Instant::now(), Doubt::default());
        let (mut other, mut busy) = (Silence::begun(start), Silence::begun(start));
        assert!(!doubt.is_about(&other), "none was silent");
        doubt.begins(start + s(4));
        assert!(doubt.is_about(&other) && doubt.is_about(&busy));
        busy.ends(start + s(5));
        assert!(!doubt.is_about(&busy), "it answers");
        other.goes_on(start + s(4), start + s(6));
        assert!(doubt.is_about(&other), "a time-out is no answer");
        assert!(!doubt.is_about(&Silence::begun(start + s(7))), "it is new");
    }

    #[test]
    fn an_answer_ends_it_and_what_was_sent_before_does_not_count_twice() {
        let (start, mut silence) = (Instant::now(), Silence::default());
        silence.goes_on(start, start + s(3));
        silence.ends(start + s(4));
        assert_eq!(silence.goes_on(start, start + s(5)), s(1));
    }
}
