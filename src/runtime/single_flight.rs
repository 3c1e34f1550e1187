//! Work that many callers need at once and one task does: they wait for the same result, each as long as it likes.
//!
//! Input: work. Output: its result, to everyone who joined. The task goes on when no caller waits for it any more. A crash leaves
//! nothing.

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Work under way; `None` from a task that was stopped or panicked.
pub(crate) type Flight<T> = Shared<BoxFuture<'static, Option<T>>>;

/// The work that is under way, and when it began.
type UnderWayWork<T> = Arc<Mutex<Option<(Flight<T>, Instant)>>>;

/// At most one task at a time.
pub(crate) struct SingleFlight<T: Clone> {
    under_way: UnderWayWork<T>,
}

impl<T: Clone> Default for SingleFlight<T> {
    fn default() -> Self {
        Self { under_way: Arc::default() }
    }
}

impl<T: Clone + Send + Sync + 'static> SingleFlight<T> {
    /// The work that is under way, or `work` as a new task; and when it began.
    pub(crate) fn join<F>(&self, work: impl FnOnce() -> F) -> (Flight<T>, Instant)
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = &*under_way {
            return flight.clone();
        }
        let (ending, work) = (Ending(self.under_way.clone()), work());
        let task = tokio::spawn(async move {
            let done = work.await;
            // Before the result is out: who comes after it begins anew.
            drop(ending);
            done
        });
        let begun = (async move { task.await.ok() }.boxed().shared(), Instant::now());
        *under_way = Some(begun.clone());
        begun
    }
}

/// The next task may begin, however this one ends.
struct Ending<T: Clone>(UnderWayWork<T>);

impl<T: Clone> Drop for Ending<T> {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::Notify;

    #[tokio::test]
    async fn all_who_come_meanwhile_share_one_task_and_the_next_begins_anew() {
        let (flights, go, begun) = (SingleFlight::default(), Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
        let work = || {
            let (go, number) = (go.clone(), begun.fetch_add(1, Ordering::SeqCst));
            async move {
                go.notified().await;
                number
            }
        };
        let (first, _) = flights.join(work);
        let (second, _) = flights.join(work);
        // A caller that goes away stops nothing.
        drop(flights.join(work));
        go.notify_one();
        assert_eq!((first.await, second.await), (Some(0), Some(0)));
        let (third, _) = flights.join(work);
        go.notify_one();
        assert_eq!((third.await, begun.load(Ordering::SeqCst)), (Some(1), 2));
    }

    #[tokio::test]
    async fn a_task_that_panics_holds_the_next_one_up_for_nothing() {
        let flights = SingleFlight::<u32>::default();
        let (broken, _) = flights.join(|| async { panic!("on purpose") });
        assert_eq!(broken.await, None);
        assert_eq!(flights.join(|| async { 7 }).0.await, Some(7));
    }
}
