//! Replies in bundles: a group's decisions for buyers of one HTTP worker cross over to its thread together.
//!
//! A reply sent on its own from the batcher's thread would wake the worker's runtime: a system call for each purchase, and a
//! worker that wakes for one reply at a time. On the worker's own thread a reply costs neither.
//!
//! Input: decisions and their receivers. Output: the same, sent on the receiver's thread. A crash here loses replies, as a
//! crash anywhere before the response is written does: the buyers ask by request id.

use super::Decision;
use std::cell::RefCell;
use tokio::sync::{mpsc, oneshot};

/// Replies on their way to one thread.
type Bundle = Vec<(oneshot::Sender<Decision>, Decision)>;

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<ReplyDispatcher>> = const { RefCell::new(None) };
}

/// Sends the replies of one thread, on that thread.
#[derive(Clone)]
pub(super) struct ReplyDispatcher(mpsc::UnboundedSender<Bundle>);

impl ReplyDispatcher {
    /// The dispatcher of this thread, if [`install_on_this_thread`] made one.
    pub(super) fn of_this_thread() -> Option<Self> {
        OF_THIS_THREAD.with_borrow(Clone::clone)
    }
}

/// Gives this thread a dispatcher, for as long as its runtime lives. To be called on a thread that runs tasks of its own (a
/// `LocalSet`, as each HTTP worker has one); buyers of other threads get their replies one by one.
pub(crate) fn install_on_this_thread() {
    // Never more bundles than groups under way, and those are bounded.
    let (sender, mut bundles) = mpsc::unbounded_channel::<Bundle>();
    tokio::task::spawn_local(async move {
        while let Some(bundle) = bundles.recv().await {
            bundle.into_iter().for_each(send);
        }
    });
    OF_THIS_THREAD.set(Some(ReplyDispatcher(sender)));
}

fn send((reply, decision): (oneshot::Sender<Decision>, Decision)) {
    // A caller that stopped waiting learns the outcome by its request id.
    drop(reply.send(decision));
}

/// The replies of one group, by dispatcher.
#[derive(Default)]
pub(super) struct ReplyBundles(Vec<(ReplyDispatcher, Bundle)>);

impl ReplyBundles {
    /// Puts a reply with the others of its dispatcher; without a dispatcher it is sent at once.
    pub(super) fn add(
        &mut self,
        dispatcher: Option<ReplyDispatcher>,
        reply: oneshot::Sender<Decision>,
        decision: Decision,
    ) {
        let Some(dispatcher) = dispatcher else { return send((reply, decision)) };
        match self.0.iter_mut().find(|(other, _)| other.0.same_channel(&dispatcher.0)) {
            Some((_, bundle)) => bundle.push((reply, decision)),
            None => self.0.push((dispatcher, vec![(reply, decision)])),
        }
    }

    /// Sends every bundle to its thread.
    pub(super) fn send(self) {
        for (dispatcher, bundle) in self.0 {
            // The thread has ended: then no buyer waits there, or one finds the channel closed, which says no more than this.
            if let Err(mpsc::error::SendError(bundle)) = dispatcher.0.send(bundle) {
                bundle.into_iter().for_each(send);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::task::LocalSet;

    #[tokio::test]
    async fn replies_arrive_with_a_dispatcher_and_without() {
        let (with, without) = (oneshot::channel(), oneshot::channel());
        let replies = LocalSet::new()
            .run_until(async {
                install_on_this_thread();
                let mut bundles = ReplyBundles::default();
                bundles.add(ReplyDispatcher::of_this_thread(), with.0, Decision::AllEmpty);
                bundles.add(None, without.0, Decision::Unknown);
                bundles.send();
                (with.1.await, without.1.await)
            })
            .await;
        assert_eq!(replies, (Ok(Decision::AllEmpty), Ok(Decision::Unknown)));
    }

    #[tokio::test]
    async fn a_dispatcher_whose_thread_has_ended_holds_nothing_back() {
        let local = LocalSet::new();
        let dispatcher = local
            .run_until(async {
                install_on_this_thread();
                ReplyDispatcher::of_this_thread()
            })
            .await;
        drop(local);
        let (reply, decision) = oneshot::channel();
        let mut bundles = ReplyBundles::default();
        bundles.add(dispatcher, reply, Decision::Overloaded);
        bundles.send();
        assert_eq!(decision.await, Ok(Decision::Overloaded));
    }
}
