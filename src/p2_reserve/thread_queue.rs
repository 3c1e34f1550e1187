//! The purchases of one HTTP worker's thread: those on their way to their batchers, and those that wait for a decision.
//!
//! A purchase that crossed to its batcher alone would cost a lock, a wake-up and a timer, and its decision the same again. Here
//! all that a thread takes in during one turn of its runtime cross together, the decisions of a group come back together
//! (`replies`), and one timer serves all deadlines (`places`). A single purchase waits for nothing: the turn that took it in
//! sends it.
//!
//! Input: purchases, and decisions from the batchers' threads. Output: a [`PendingDecision`] for each purchase. A crash here
//! loses decisions, as a crash anywhere before the response is written does: the buyers ask by request id.

use super::group::{WaitingPurchase, refuse, start_batcher};
use super::places::{Place, Places};
use super::replies::{Decisions, Reply, ThreadNumber};
use super::{Decision, ReserveContext};
use crate::domain::request::Purchase;
use crate::domain::sale_door::SaleDoor;
use crate::runtime::batcher::NotAllTaken;
use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, timeout_at};

thread_local! {
    static QUEUE: RefCell<Option<ThreadQueue>> = const { RefCell::new(None) };
}

/// The queue of one thread.
struct ThreadQueue {
    thread: ThreadNumber,
    outgoing: Vec<PurchasesOfBatcher>,
    waiting: Places,
    /// Of the task that sends what is outgoing, when it has nothing to do.
    sender: Option<Waker>,
    /// Of the task that watches the deadlines.
    watch: Option<Waker>,
}

/// What a purchase needs besides itself to be decided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Terms {
    pub shard: u16,
    pub epoch: u32,
    pub deadline: Instant,
    /// Whether it came with a purchase token that was verified.
    pub by: SaleDoor,
}

/// Purchases for one batcher.
pub(super) struct PurchasesOfBatcher {
    pub context: Arc<ReserveContext>,
    pub shard: u16,
    /// All of one sale.
    pub group: Vec<WaitingPurchase>,
}

/// Gives this thread a queue, for as long as its runtime lives. To be called on a thread that runs tasks of its own (a
/// `LocalSet`, as each HTTP worker has one).
pub(crate) fn install_on_this_thread() {
    let (thread, decisions) = ThreadNumber::next();
    let waiting = Places::default();
    QUEUE.set(Some(ThreadQueue { thread, outgoing: Vec::new(), waiting, sender: None, watch: None }));
    tokio::task::spawn_local(send_outgoing());
    tokio::task::spawn_local(take_decisions(decisions));
    tokio::task::spawn_local(watch_deadlines());
}

/// What `work` comes to on this thread's queue; `None` without one. Wakers are woken and dropped outside of it: they lead back
/// here.
fn with_queue<T>(work: impl FnOnce(&mut ThreadQueue) -> T) -> Option<T> {
    QUEUE.try_with(|queue| queue.try_borrow_mut().ok().and_then(|mut queue| queue.as_mut().map(work))).ok().flatten()
}

/// Whether this thread has a queue.
pub(super) fn is_here() -> bool {
    with_queue(|_queue| ()).is_some()
}

/// Takes a purchase in. It is on its way from here on, whether or not anybody waits for its decision. `None` on a thread
/// without a queue; the purchase is not on its way then.
pub(super) fn submit(context: &Arc<ReserveContext>, purchase: Purchase, terms: Terms) -> Option<PendingDecision> {
    let (pending, sender, watch) = with_queue(|queue| {
        let first = queue.waiting.next_deadline();
        let (thread, place) = (queue.thread, queue.waiting.enter(terms.deadline));
        let Terms { shard, epoch, deadline, by } = terms;
        let reply = Reply::ToThread(thread, place);
        queue.put(context, shard, WaitingPurchase { purchase, epoch, by, deadline, reply });
        let is_first = first.is_none_or(|first| deadline < first);
        let watch = if is_first { queue.watch.take() } else { None };
        (PendingDecision { thread, place }, queue.sender.take(), watch)
    })?;
    sender.into_iter().chain(watch).for_each(Waker::wake);
    Some(pending)
}

impl ThreadQueue {
    fn put(&mut self, context: &Arc<ReserveContext>, shard: u16, waiting: WaitingPurchase) {
        let sale = &waiting.purchase.sale_id;
        let same = |outgoing: &&mut PurchasesOfBatcher| {
            let of_sale = outgoing.group.first().is_some_and(|first| first.purchase.sale_id == *sale);
            of_sale && outgoing.shard == shard && Arc::ptr_eq(&outgoing.context, context)
        };
        match self.outgoing.iter_mut().find(same) {
            Some(outgoing) => outgoing.group.push(waiting),
            None => self.outgoing.push(PurchasesOfBatcher { context: context.clone(), shard, group: vec![waiting] }),
        }
    }
}

impl PurchasesOfBatcher {
    /// Gives the purchases to their batcher; those that it has no room for are refused.
    pub(super) fn send(self) {
        let Self { context, shard, mut group } = self;
        // A batcher that just ended for lack of work gives the purchases back once; the second batcher is fresh.
        for _ in 0..2 {
            let Some(sale) = group.first().map(|first| first.purchase.sale_id.clone()) else { return };
            let batcher = context.batchers.get(&sale, shard, || start_batcher(&context, sale.clone(), shard));
            match batcher.submit_all(group) {
                Ok(()) => return,
                Err(NotAllTaken::Full(rest)) => return refuse(rest, &Decision::Overloaded),
                Err(NotAllTaken::Ended(returned)) => group = returned,
            }
        }
        refuse(group, &Decision::Unavailable);
    }
}

async fn send_outgoing() {
    let next = |context: &mut Context<'_>| {
        let polled = with_queue(|queue| match queue.outgoing.is_empty() {
            true => {
                queue.sender = Some(context.waker().clone());
                Poll::Pending
            }
            false => Poll::Ready(Some(std::mem::take(&mut queue.outgoing))),
        });
        polled.unwrap_or(Poll::Ready(None))
    };
    while let Some(outgoing) = poll_fn(next).await {
        outgoing.into_iter().for_each(PurchasesOfBatcher::send);
    }
}

async fn take_decisions(mut bundles: UnboundedReceiver<Decisions>) {
    while let Some(decisions) = bundles.recv().await {
        for (place, decision) in decisions {
            let waker = with_queue(|queue| queue.waiting.decide(place, decision)).flatten();
            waker.into_iter().for_each(Waker::wake);
        }
        // The deadlines of what is decided go.
        with_queue(|queue| queue.waiting.next_deadline());
    }
}

async fn watch_deadlines() {
    // The first deadline, when it is another one than `known`.
    let first_but = |known: Option<Instant>| {
        poll_fn(move |context| {
            let polled = with_queue(|queue| {
                let first = queue.waiting.next_deadline().filter(|first| known.is_none_or(|known| *first < known));
                queue.watch = first.is_none().then(|| context.waker().clone());
                first.map_or(Poll::Pending, |first| Poll::Ready(Some(first)))
            });
            polled.unwrap_or(Poll::Ready(None))
        })
    };
    while let Some(first) = first_but(None).await {
        if timeout_at(first, first_but(Some(first))).await.is_err() {
            while let Some(waker) = with_queue(|queue| queue.waiting.expire_one(Instant::now())).flatten() {
                waker.into_iter().for_each(Waker::wake);
            }
        }
    }
}

/// The decision about a purchase that was taken in; [`Decision::Unknown`] when none came by its deadline.
pub(super) struct PendingDecision {
    thread: ThreadNumber,
    place: Place,
}

impl PendingDecision {
    fn with_places<T>(&self, work: impl FnOnce(&mut Places) -> T) -> Option<T> {
        with_queue(|queue| (queue.thread == self.thread).then(|| work(&mut queue.waiting))).flatten()
    }
}

impl Future for PendingDecision {
    type Output = Decision;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Decision> {
        let polled = self.with_places(|places| places.poll(self.place, context.waker()));
        // Without its queue nothing will ever wake it. A task does not leave the thread of its HTTP worker.
        polled.map_or(Poll::Ready(Decision::Unknown), |(polled, _waker_before)| polled)
    }
}

impl Drop for PendingDecision {
    fn drop(&mut self) {
        let _waker = self.with_places(|places| places.forget(self.place));
    }
}

#[cfg(test)]
mod tests {
    use super::super::replies::ReplyBundles;
    use super::*;
    use std::time::Duration;
    use tokio::task::LocalSet;

    /// A purchase that waits until then, without one that is on its way.
    fn waiting(deadline: Instant) -> PendingDecision {
        with_queue(|queue| {
            let place = queue.waiting.enter(deadline);
            queue.watch.take().into_iter().for_each(Waker::wake);
            PendingDecision { thread: queue.thread, place }
        })
        .unwrap()
    }

    fn decided(decisions: Vec<(&PendingDecision, Decision)>) {
        let mut bundles = ReplyBundles::default();
        for (pending, decision) in decisions {
            bundles.add(Reply::ToThread(pending.thread, pending.place), decision);
        }
        bundles.send();
    }

    #[tokio::test]
    async fn decisions_of_another_thread_reach_those_who_wait_and_no_others() {
        let soon = Instant::now() + Duration::from_secs(60);
        let local = LocalSet::new();
        let got = local.run_until(async {
            install_on_this_thread();
            let (one, gone, two) = (waiting(soon), waiting(soon), waiting(soon));
            let ways = [(&one, Decision::AllEmpty), (&gone, Decision::Unknown), (&two, Decision::Overloaded)];
            let ways = ways.map(|(pending, decision)| (pending.thread, pending.place, decision));
            drop(gone);
            let sent = std::thread::spawn(move || {
                let mut bundles = ReplyBundles::default();
                for (thread, place, decision) in ways {
                    bundles.add(Reply::ToThread(thread, place), decision);
                }
                bundles.send();
            });
            let got = (one.await, two.await);
            sent.join().unwrap();
            got
        });
        assert_eq!(got.await, (Decision::AllEmpty, Decision::Overloaded));
    }

    #[tokio::test]
    async fn without_a_decision_by_its_deadline_it_is_unknown_whichever_entered_first() {
        let at = |ms| Instant::now() + Duration::from_millis(ms);
        let local = LocalSet::new();
        let got = local.run_until(async move {
            install_on_this_thread();
            tokio::task::yield_now().await;
            let (long, short) = (waiting(at(60_000)), waiting(at(1)));
            let short = short.await;
            decided(vec![(&long, Decision::AllEmpty)]);
            (short, long.await, waiting(at(0)).await)
        });
        assert_eq!(got.await, (Decision::Unknown, Decision::AllEmpty, Decision::Unknown));
    }

    #[tokio::test]
    async fn decisions_for_a_thread_that_has_ended_hold_nothing_back() {
        let local = LocalSet::new();
        let pending = local.run_until(async {
            install_on_this_thread();
            Some(waiting(Instant::now()))
        });
        let pending = pending.await;
        drop(local);
        decided(pending.iter().map(|pending| (pending, Decision::AllEmpty)).collect());
        assert!(submit_is_elsewhere().await);
    }

    /// A thread without a queue says so, and its purchases go one by one.
    async fn submit_is_elsewhere() -> bool {
        tokio::task::spawn_blocking(|| !is_here()).await.unwrap()
    }
}
