//! What a client has to do next, and until when.
//!
//! Input: what it has to do, for how long; that it has done it. Output: the connection is woken when the time is over. A crash loses it with
//! the connection.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// What the client has to do before its time ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Awaited {
    /// Take something of the answers.
    Taken,
    /// Finish the head that it has begun.
    Head,
    /// Begin another request.
    Next,
    /// Read that it was refused, and go.
    Gone,
}

/// The time of a client. The timer may be set to an earlier moment than the deadline, and is set again only when it wakes the connection:
/// a request that comes in time costs no change of a timer.
#[derive(Default)]
pub(super) struct ClientDeadline {
    awaited: Option<(Awaited, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl ClientDeadline {
    /// The time for `awaited` begins, if it does not run yet.
    pub(super) fn begin(&mut self, awaited: Awaited, time: Duration) {
        if self.awaits(awaited) {
            return;
        }
        let until = Instant::now() + time;
        self.awaited = Some((awaited, until));
        match &mut self.timer {
            Some(timer) if timer.deadline() <= until => {}
            Some(timer) => timer.as_mut().reset(until),
            None => self.timer = Some(Box::pin(sleep_until(until))),
        }
    }

    /// Whether the time for this runs.
    pub(super) fn awaits(&self, awaited: Awaited) -> bool {
        self.awaited.is_some_and(|(of, _)| of == awaited)
    }

    /// Whether any time runs.
    pub(super) const fn runs(&self) -> bool {
        self.awaited.is_some()
    }

    /// The client has done it, if it was that.
    pub(super) fn done(&mut self, awaited: Awaited) {
        if self.awaits(awaited) {
            self.end();
        }
    }

    /// Nothing is awaited.
    pub(super) const fn end(&mut self) {
        self.awaited = None;
    }

    /// Ready with what the client did not do in its time; then nothing is awaited any more. Else the connection is woken by then.
    pub(super) fn poll_missed(&mut self, context: &mut Context<'_>) -> Poll<Awaited> {
        while let Some(timer) = &mut self.timer {
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            match self.awaited {
                Some((_, until)) if until > timer.deadline() => timer.as_mut().reset(until),
                Some((missed, _)) => {
                    (self.awaited, self.timer) = (None, None);
                    return Poll::Ready(missed);
                }
                None => self.timer = None,
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::timeout;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(600);

    async fn missed(deadline: &mut ClientDeadline) -> Awaited {
        timeout(LONG, poll_fn(|context| deadline.poll_missed(context))).await.expect("it is woken")
    }

    #[tokio::test]
    async fn a_later_deadline_is_kept_by_a_timer_that_was_set_for_an_earlier_one() {
        let mut deadline = ClientDeadline::default();
        deadline.begin(Awaited::Next, SHORT);
        deadline.done(Awaited::Next);
        let begun = Instant::now();
        deadline.begin(Awaited::Head, 5 * SHORT);
        assert_eq!(missed(&mut deadline).await, Awaited::Head);
        assert!(begun.elapsed() >= 5 * SHORT, "the first time is not the second one's");
        assert!(!deadline.runs());
    }

    #[tokio::test]
    async fn an_earlier_deadline_sets_the_timer_and_what_was_done_is_not_missed() {
        let mut deadline = ClientDeadline::default();
        deadline.begin(Awaited::Next, LONG);
        deadline.begin(Awaited::Taken, SHORT);
        assert_eq!(missed(&mut deadline).await, Awaited::Taken);
        deadline.begin(Awaited::Next, SHORT);
        deadline.done(Awaited::Head);
        assert!(deadline.awaits(Awaited::Next), "another thing was done");
        deadline.done(Awaited::Next);
        let ends = timeout(3 * SHORT, poll_fn(|context| deadline.poll_missed(context))).await;
        assert!(ends.is_err(), "nothing is awaited: {ends:?}");
    }
}
