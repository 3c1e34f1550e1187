//! Replies in bundles: a group's decisions for buyers of one HTTP worker cross over to its thread together.
//!
//! A reply sent on its own from the batcher's thread would wake the worker's runtime: a system call for each purchase, and a
//! worker that wakes for one reply at a time. On the worker's own thread a reply costs neither (`thread_queue`).
//!
//! Input: decisions and where they go. Output: the same, on the threads that wait for them. A crash here loses replies, as a
//! crash anywhere before the response is written does: the buyers ask by request id.

use super::Decision;
use super::places::Place;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};
use tokio::sync::{mpsc, oneshot};

/// Decisions on their way to one thread.
pub(super) type Decisions = Vec<(Place, Decision)>;

/// Threads with a queue so far.
static THREADS: AtomicU64 = AtomicU64::new(0);
/// Where the decisions for each thread go.
static WAYS: RwLock<Vec<(ThreadNumber, mpsc::UnboundedSender<Decisions>)>> = RwLock::new(Vec::new());

/// The thread that a purchase came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadNumber(u64);

impl ThreadNumber {
    /// The number of one more thread, and what is decided for it.
    pub(super) fn next() -> (Self, mpsc::UnboundedReceiver<Decisions>) {
        let thread = Self(THREADS.fetch_add(1, Ordering::Relaxed));
        // Never more bundles than groups under way, and those are bounded.
        let (sender, decisions) = mpsc::unbounded_channel();
        let mut ways = WAYS.write().unwrap_or_else(PoisonError::into_inner);
        ways.retain(|(_, way)| !way.is_closed());
        ways.push((thread, sender));
        (thread, decisions)
    }
}

/// Where a decision goes.
pub(super) enum Reply {
    /// To a place on the thread of an HTTP worker.
    ToThread(ThreadNumber, Place),
    /// To one caller, wherever it is.
    ToCaller(oneshot::Sender<Decision>),
}

/// The decisions of one group, by thread.
#[derive(Default)]
pub(super) struct ReplyBundles(Vec<(ThreadNumber, Decisions)>);

impl ReplyBundles {
    /// Puts a decision with the others of its thread; one for a caller is sent at once.
    pub(super) fn add(&mut self, reply: Reply, decision: Decision) {
        match reply {
            // A caller that stopped waiting learns the outcome by its request id.
            Reply::ToCaller(caller) => drop(caller.send(decision)),
            Reply::ToThread(thread, place) => match self.0.iter_mut().find(|(other, _)| *other == thread) {
                Some((_, decisions)) => decisions.push((place, decision)),
                None => self.0.push((thread, vec![(place, decision)])),
            },
        }
    }

    /// Sends every bundle to its thread.
    pub(super) fn send(self) {
        if self.0.is_empty() {
            return;
        }
        let ways = WAYS.read().unwrap_or_else(PoisonError::into_inner);
        for (thread, decisions) in self.0 {
            if let Some((_, way)) = ways.iter().find(|(other, _)| *other == thread) {
                // The thread has ended: then no buyer waits there.
                drop(way.send(decisions));
            }
        }
    }
}
