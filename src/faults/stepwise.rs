//! A task that goes on one step at a time: a test in the same process plays the steps of the protocol's model against it.
//!
//! A phase marks the places between two steps by `between_steps("…")`. Outside of [`Stepwise`] such a place does nothing. A
//! `Stepwise` that is dropped is a process that died there: what it has sent is done, the rest is not.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

tokio::task_local! {
    /// Where the task that is played step by step has come to.
    static REACHED: Reached;
}

/// The place that was reached last, until it is read.
#[derive(Debug, Clone, Default)]
struct Reached(Arc<Mutex<Option<&'static str>>>);

impl Reached {
    fn set(&self, place: Option<&'static str>) -> Option<&'static str> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), place)
    }
}

/// Waits for the next step, where a test plays this task step by step.
pub(crate) async fn between_steps(place: &'static str) {
    if let Ok(reached) = REACHED.try_with(Clone::clone) {
        reached.set(Some(place));
        NextStep { is_asked: false }.await;
    }
}

/// Ready at its second poll: the test polls again when the next step is to be made.
struct NextStep {
    is_asked: bool,
}

impl Future for NextStep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.is_asked, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// What a step came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Stepped<T> {
    /// The task waits at this place.
    At(&'static str),
    /// The task has ended.
    Ended(T),
}

/// A task that is played step by step.
pub struct Stepwise<T> {
    task: Pin<Box<dyn Future<Output = T> + Send>>,
    reached: Reached,
}

impl<T> Stepwise<T> {
    /// A task that has done nothing yet.
    pub fn new(task: impl Future<Output = T> + Send + 'static) -> Self {
        let reached = Reached::default();
        Self { task: Box::pin(REACHED.scope(reached.clone(), task)), reached }
    }

    /// Lets it go on to the next place, or to its end.
    pub async fn step(&mut self) -> Stepped<T> {
        std::future::poll_fn(|context| match self.task.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(Stepped::Ended(ended)),
            Poll::Pending => match self.reached.set(None) {
                Some(place) => Poll::Ready(Stepped::At(place)),
                None => Poll::Pending,
            },
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_waits_at_each_place_and_does_nothing_after_it_was_dropped() {
        let done = Arc::new(Mutex::new(0));
        let count = done.clone();
        let add = move || *count.lock().unwrap() += 1;
        let mut task = Stepwise::new(async move {
            add();
            between_steps("one").await;
            tokio::task::yield_now().await;
            add();
            between_steps("two").await;
            add();
            7
        });
        assert_eq!(task.step().await, Stepped::At("one"));
        assert_eq!(*done.lock().unwrap(), 1);
        assert_eq!(task.step().await, Stepped::At("two"));
        assert_eq!(task.step().await, Stepped::Ended(7));
        let mut died = Stepwise::new(async {
            between_steps("here").await;
            panic!("it died before");
        });
        assert_eq!(died.step().await, Stepped::At("here"));
    }

    #[tokio::test]
    async fn elsewhere_a_place_does_nothing() {
        between_steps("anywhere").await;
    }
}
