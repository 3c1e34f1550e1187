//! Groups of work: while calls are under way the next group gathers. So a crowd of items costs one call for hundreds of them,
//! and a single item waits for nothing. Written by hand for that: batches that close by size or by a timer make it wait.
//!
//! [`Batcher`] gathers items whose answers the caller arranges (P2's purchases). [`QuestionBatcher`] adds the answers, for
//! reads and for checks that may be repeated. A crash leaves nothing: a caller without an answer repeats its question.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::future::Future;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// Bounds of one batcher.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Items in one group.
    pub group_max: usize,
    /// Items that wait for their group; more are refused instead of piling up.
    pub(crate) waiting_max: usize,
    /// Calls under way at once.
    pub in_flight_max: usize,
    /// A batcher without work for this long ends.
    pub(crate) idle_end: Option<Duration>,
}

/// An item that was not taken.
#[derive(Debug)]
pub(crate) enum NotTaken<T> {
    /// Too many items are waiting.
    Full,
    /// The batcher has ended; a new one may take this item.
    Ended(T),
}

/// Items that were not taken.
#[derive(Debug)]
pub(crate) enum NotAllTaken<T> {
    /// Too many items are waiting; these found no room.
    Full(Vec<T>),
    /// The batcher has ended; a new one may take these items.
    Ended(Vec<T>),
}

/// Entrance to one queue of items and the task that calls for groups of them. Clones share both.
pub(crate) struct Batcher<T>(mpsc::Sender<T>);

impl<T> Clone for Batcher<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + 'static> Batcher<T> {
    /// Calls `call` with groups of items, on `runtime`, until the last clone is dropped or the idle time is over. A stop of the
    /// process does not end it: who asked before the stop gets an answer.
    pub(crate) fn start<F, Fut>(bounds: Bounds, runtime: &Handle, call: F) -> Self
    where
        F: Fn(Vec<T>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let (sender, receiver) = mpsc::channel(bounds.waiting_max);
        runtime.spawn(run(bounds, receiver, call));
        Self(sender)
    }

    /// Puts an item in the queue.
    pub(crate) fn submit(&self, item: T) -> Result<(), NotTaken<T>> {
        self.0.try_send(item).map_err(|refused| match refused {
            TrySendError::Full(_) => NotTaken::Full,
            TrySendError::Closed(item) => NotTaken::Ended(item),
        })
    }

    /// Puts items in the queue in one go, the first ones if there is no room for all.
    pub(crate) fn submit_all(&self, mut items: Vec<T>) -> Result<(), NotAllTaken<T>> {
        loop {
            let room = self.0.capacity().min(items.len());
            match self.0.try_reserve_many(room) {
                Ok(places) => {
                    let rest = items.split_off(room);
                    places.zip(items).for_each(|(place, item)| place.send(item));
                    return if rest.is_empty() { Ok(()) } else { Err(NotAllTaken::Full(rest)) };
                }
                // Others took the room in between; there is less of it now.
                Err(TrySendError::Full(())) => {}
                Err(TrySendError::Closed(())) => {
                    return Err(NotAllTaken::Ended(items));
                }
            }
        }
    }

    /// Whether it has ended.
    #[must_use]
    pub(crate) fn has_ended(&self) -> bool {
        self.0.is_closed()
    }
}

async fn run<T, F, Fut>(bounds: Bounds, mut receiver: mpsc::Receiver<T>, call: F)
where
    F: Fn(Vec<T>) -> Fut,
    Fut: Future<Output = ()>,
{
    let mut calls = FuturesUnordered::new();
    let mut group = Vec::new();
    let (idle_ends, idle_end) = (bounds.idle_end.is_some(), bounds.idle_end.unwrap_or_default());
    loop {
        tokio::select! {
            biased;
            Some(()) = calls.next() => {}
            count = receiver.recv_many(&mut group, bounds.group_max), if calls.len() < bounds.in_flight_max => {
                if count == 0 {
                    break;
                }
                calls.push(call(std::mem::take(&mut group)));
            }
            // No new items from here on; those that slipped in are still received above, then the queue is empty and ends.
            () = tokio::time::sleep(idle_end), if idle_ends && calls.is_empty() => receiver.close(),
        }
    }
    while calls.next().await.is_some() {}
}

/// Too many questions are waiting, or the runtime of the process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many questions are waiting; try again in a moment")]
pub(crate) struct Busy;

type Question<Q, A> = (Q, oneshot::Sender<A>);

/// A batcher whose items are questions. Clones share it.
pub(crate) struct QuestionBatcher<Q, A>(Batcher<Question<Q, A>>);

impl<Q, A> Clone for QuestionBatcher<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Q: Send + 'static, A: Send + 'static> QuestionBatcher<Q, A> {
    /// Answers with `call`, one answer for each question in its order, until the last clone is dropped; runs on the runtime this
    /// is called in.
    pub(crate) fn start<F, Fut>(bounds: Bounds, call: F) -> Self
    where
        F: Fn(Vec<Q>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<A>> + Send + 'static,
    {
        Self(Batcher::start(bounds, &Handle::current(), move |group: Vec<Question<Q, A>>| {
            let (questions, replies): (Vec<Q>, Vec<_>) = group.into_iter().unzip();
            let answers = call(questions);
            async move {
                for (reply, answer) in replies.into_iter().zip(answers.await) {
                    // A caller that stopped waiting repeats its question.
                    drop(reply.send(answer));
                }
            }
        }))
    }

    /// Whether it has ended, with the runtime it was started in.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Asks one question.
    pub(crate) async fn ask(&self, question: Q) -> Result<A, Busy> {
        let (reply, answer) = oneshot::channel();
        self.0.submit((question, reply)).map_err(|_not_taken| Busy)?;
        answer.await.map_err(|_| Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    fn bounds() -> Bounds {
        Bounds { group_max: 100, waiting_max: 150, in_flight_max: 1, idle_end: None }
    }

    #[tokio::test]
    async fn what_arrives_during_a_call_is_one_group_and_each_caller_gets_its_own_answer() {
        let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (counted, opened) = (calls.clone(), gate.clone());
        let batcher = QuestionBatcher::start(bounds(), move |questions: Vec<usize>| {
            let (calls, gate) = (counted.clone(), opened.clone());
            async move {
                calls.fetch_add(1, Ordering::SeqCst);
                drop(gate.acquire().await);
                questions.into_iter().map(|question| question * 2).collect()
            }
        });
        let asking: Vec<_> = (0..101)
            .map(|question| {
                let batcher = batcher.clone();
                tokio::spawn(async move { batcher.ask(question).await })
            })
            .collect();
        while calls.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        gate.add_permits(1_000);
        for (question, answer) in asking.into_iter().enumerate() {
            assert_eq!(answer.await.unwrap(), Ok(question * 2));
        }
        assert!(calls.load(Ordering::SeqCst) <= 3, "{calls:?} calls for 101 questions");
    }

    #[tokio::test]
    async fn too_many_are_refused_and_the_others_are_answered_also_when_the_last_entrance_is_gone() {
        let gate = Arc::new(Semaphore::new(0));
        let opened = gate.clone();
        let batcher = QuestionBatcher::start(bounds(), move |questions: Vec<u8>| {
            let gate = opened.clone();
            async move {
                drop(gate.acquire().await);
                questions
            }
        });
        let asking: Vec<_> = (0..400)
            .map(|_| {
                let batcher = batcher.clone();
                tokio::spawn(async move { batcher.ask(1).await })
            })
            .collect();
        drop(batcher);
        tokio::task::yield_now().await;
        gate.add_permits(1_000);
        let mut answered = 0;
        for answer in asking {
            // The others found no place.
            answered += usize::from(answer.await.unwrap() == Ok(1));
        }
        assert!((150..400).contains(&answered), "{answered} of 400");
    }

    #[tokio::test]
    async fn of_many_items_at_once_as_many_as_there_is_room_for_are_taken() {
        let bounds = Bounds { group_max: 2, waiting_max: 5, ..bounds() };
        let batcher = Batcher::start(bounds, &Handle::current(), |_group: Vec<u8>| std::future::pending());
        let left = |submitted| match submitted {
            Ok(()) => vec![],
            Err(NotAllTaken::Full(rest) | NotAllTaken::Ended(rest)) => rest,
        };
        assert_eq!(left(batcher.submit_all(vec![1, 2, 3])), [0; 0]);
        assert_eq!(left(batcher.submit_all(vec![4, 5, 6, 7])), [6, 7], "the first ones have the room");
        assert_eq!(left(batcher.submit_all(vec![8])), [8]);
        assert!(matches!(batcher.submit(9), Err(NotTaken::Full)), "the bound is the same one by one");
        // The call takes a group, and never ends.
        while batcher.0.capacity() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(left(batcher.submit_all(vec![10, 11, 12])), [12]);
    }

    #[tokio::test]
    async fn an_idle_batcher_ends_and_gives_back_what_comes_too_late() {
        let bounds = Bounds { idle_end: Some(Duration::from_millis(5)), ..bounds() };
        let seen = Arc::new(AtomicUsize::new(0));
        let counted = seen.clone();
        let batcher = Batcher::start(bounds, &Handle::current(), move |group: Vec<u8>| {
            counted.fetch_add(group.len(), Ordering::SeqCst);
            async {}
        });
        assert!(batcher.submit(1).is_ok());
        while !batcher.has_ended() {
            tokio::task::yield_now().await;
        }
        assert_eq!(seen.load(Ordering::SeqCst), 1, "what came in time is done");
        assert!(matches!(batcher.submit(2), Err(NotTaken::Ended(2))));
        assert!(matches!(batcher.submit_all(vec![3, 4]), Err(NotAllTaken::Ended(rest)) if rest == [3, 4]));
    }
}
