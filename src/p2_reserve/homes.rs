//! Decisions go home in bundles: a group's decisions for buyers of one HTTP worker cross over to its thread together.
//!
//! Each answer sent on its own from the lane's thread would wake the worker's runtime by itself — a system call for each
//! purchase, and a worker that wakes for one answer at a time. On the worker's own thread an answer costs neither.
//!
//! Input: decisions with whom they are for. Output: the same, sent on that thread. A crash here loses answers, as a crash
//! anywhere before the answer is written does: the buyers ask by request id.

use super::Decision;
use std::cell::RefCell;
use tokio::sync::{mpsc, oneshot};

/// Decisions on their way to one thread.
type Bundle = Vec<(oneshot::Sender<Decision>, Decision)>;

thread_local! {
    static HOME: RefCell<Option<Home>> = const { RefCell::new(None) };
}

/// Where a buyer waits.
#[derive(Clone)]
pub(super) struct Home(mpsc::UnboundedSender<Bundle>);

impl Home {
    /// The home of this thread, if [`open`] made one.
    pub(super) fn here() -> Option<Self> {
        HOME.with_borrow(Clone::clone)
    }
}

/// Makes this thread a home, for as long as its runtime lives. To be called on a thread that runs tasks of its own (a
/// `LocalSet`, as each HTTP worker has one); buyers of other threads are answered one by one.
pub fn open() {
    // Never more bundles than groups under way, and those are bounded.
    let (sender, mut bundles) = mpsc::unbounded_channel::<Bundle>();
    tokio::task::spawn_local(async move {
        while let Some(bundle) = bundles.recv().await {
            bundle.into_iter().for_each(answer);
        }
    });
    HOME.set(Some(Home(sender)));
}

fn answer((reply, decision): (oneshot::Sender<Decision>, Decision)) {
    // A caller that stopped waiting learns the outcome by its request id.
    drop(reply.send(decision));
}

/// The decisions of one group, by home.
#[derive(Default)]
pub(super) struct Bundles(Vec<(Home, Bundle)>);

impl Bundles {
    /// Puts a decision with the others of its home; without a home it is sent at once.
    pub(super) fn add(&mut self, home: Option<Home>, reply: oneshot::Sender<Decision>, decision: Decision) {
        let Some(home) = home else { return answer((reply, decision)) };
        match self.0.iter_mut().find(|(other, _)| other.0.same_channel(&home.0)) {
            Some((_, bundle)) => bundle.push((reply, decision)),
            None => self.0.push((home, vec![(reply, decision)])),
        }
    }

    /// Sends every bundle home.
    pub(super) fn send(self) {
        for (home, bundle) in self.0 {
            // Its thread has ended: then nobody waits there, or will find the channel closed and know as little as that.
            if let Err(mpsc::error::SendError(bundle)) = home.0.send(bundle) {
                bundle.into_iter().for_each(answer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::LocalSet;

    #[tokio::test]
    async fn decisions_reach_who_waits_with_a_home_and_without() {
        let (at_home, away) = (oneshot::channel(), oneshot::channel());
        let heard = LocalSet::new()
            .run_until(async {
                open();
                let mut bundles = Bundles::default();
                bundles.add(Home::here(), at_home.0, Decision::AllEmpty);
                bundles.add(None, away.0, Decision::Unknown);
                bundles.send();
                (at_home.1.await, away.1.await)
            })
            .await;
        assert_eq!(heard, (Ok(Decision::AllEmpty), Ok(Decision::Unknown)));
    }

    #[tokio::test]
    async fn a_home_whose_thread_has_ended_holds_nothing_back() {
        let local = LocalSet::new();
        let home = local
            .run_until(async {
                open();
                Home::here()
            })
            .await;
        drop(local);
        let (reply, decision) = oneshot::channel();
        let mut bundles = Bundles::default();
        bundles.add(home, reply, Decision::Overloaded);
        bundles.send();
        assert_eq!(decision.await, Ok(Decision::Overloaded));
    }
}
