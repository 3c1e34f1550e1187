//! Questions answered in groups: while calls are under way the next group gathers, so a crowd of questions costs one call
//! for hundreds of them, and a single one waits for nobody.
//!
//! For reads and for checks that may be repeated. (P2's admission groups by sale and must know what was sent: it has lanes
//! of its own.) A crash here leaves nothing: whoever asked hears nothing, and asks again.

use crate::runtime::Stopper;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use std::future::Future;
use tokio::sync::{mpsc, oneshot};

/// Bounds of one kind of question.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Questions in one group.
    pub group_max: usize,
    /// Questions waiting for their group; further ones are refused instead of piling up.
    pub waiting_max: usize,
    /// Groups under way at once.
    pub flights_max: usize,
}

/// Too many questions are waiting, or the process is stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many questions are waiting; ask again in a moment")]
pub struct Busy;

struct Asked<Q, A> {
    question: Q,
    reply: oneshot::Sender<A>,
}

/// Entrance to the groups. Clones share them.
pub struct Groups<Q, A>(mpsc::Sender<Asked<Q, A>>);

impl<Q, A> Clone for Groups<Q, A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<Q: Send + 'static, A: Send + 'static> Groups<Q, A> {
    /// Answers with `call`, one answer for each question in its order, until the stopper is pulled; runs on the runtime this
    /// is called in.
    pub fn start<F, Fut>(bounds: Bounds, stopper: Stopper, call: F) -> Self
    where
        F: Fn(Vec<Q>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<A>> + Send,
    {
        let (sender, receiver) = mpsc::channel(bounds.waiting_max);
        tokio::spawn(async move {
            tokio::select! {
                () = run(bounds, receiver, call) => {}
                () = stopper.stopped() => {}
            }
        });
        Self(sender)
    }

    /// Asks one question.
    ///
    /// # Errors
    /// [`Busy`]; nothing is known then.
    pub async fn ask(&self, question: Q) -> Result<A, Busy> {
        let (reply, answer) = oneshot::channel();
        self.0.try_send(Asked { question, reply }).map_err(|_| Busy)?;
        answer.await.map_err(|_| Busy)
    }
}

async fn run<Q, A, F, Fut>(bounds: Bounds, mut receiver: mpsc::Receiver<Asked<Q, A>>, call: F)
where
    F: Fn(Vec<Q>) -> Fut,
    Fut: Future<Output = Vec<A>>,
{
    let mut flights = FuturesUnordered::new();
    let mut group = Vec::with_capacity(bounds.group_max);
    loop {
        tokio::select! {
            biased;
            Some(()) = flights.next() => {}
            count = receiver.recv_many(&mut group, bounds.group_max), if flights.len() < bounds.flights_max => {
                if count == 0 {
                    break;
                }
                flights.push(answer(std::mem::take(&mut group), &call));
            }
        }
    }
    while flights.next().await.is_some() {}
}

async fn answer<Q, A, F, Fut>(group: Vec<Asked<Q, A>>, call: &F)
where
    F: Fn(Vec<Q>) -> Fut,
    Fut: Future<Output = Vec<A>>,
{
    let (questions, replies): (Vec<Q>, Vec<_>) = group.into_iter().map(|asked| (asked.question, asked.reply)).unzip();
    for (reply, answer) in replies.into_iter().zip(call(questions).await) {
        // Whoever stopped waiting asks again.
        drop(reply.send(answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    fn bounds() -> Bounds {
        Bounds { group_max: 100, waiting_max: 150, flights_max: 1 }
    }

    #[tokio::test]
    async fn what_arrives_during_a_call_is_one_group_and_everyone_hears_the_own_answer() {
        let (calls, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (counted, opened) = (calls.clone(), gate.clone());
        let groups = Groups::start(bounds(), Stopper::new(), move |questions: Vec<usize>| {
            let (calls, gate) = (counted.clone(), opened.clone());
            async move {
                calls.fetch_add(1, Ordering::SeqCst);
                drop(gate.acquire().await);
                questions.into_iter().map(|question| question * 2).collect()
            }
        });
        let asking: Vec<_> = (0..101)
            .map(|question| {
                let groups = groups.clone();
                tokio::spawn(async move { groups.ask(question).await })
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
    async fn too_many_are_refused_and_a_stop_leaves_nobody_waiting() {
        let stopper = Stopper::new();
        let groups = Groups::start(bounds(), stopper.clone(), |questions: Vec<u8>| async move {
            std::future::pending::<()>().await;
            questions
        });
        let asking: Vec<_> = (0..400)
            .map(|_| {
                let groups = groups.clone();
                tokio::spawn(async move { groups.ask(1).await })
            })
            .collect();
        tokio::task::yield_now().await;
        stopper.stop();
        for answer in asking {
            assert_eq!(answer.await.unwrap(), Err(Busy));
        }
    }
}
