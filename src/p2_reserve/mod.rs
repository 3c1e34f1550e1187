//! P2 reserve: decides purchases by `lua/reserve.lua`, in groups.
//!
//! A purchase crosses from its HTTP worker's thread with the others of the same turn (`thread_queue`), waits in the batcher of
//! its sale and shard (`group`), a group is one script call, and the reply goes back to the worker's thread (`replies`). When the
//! home bucket is too short, units are brought from the other buckets (`rebalance`) and the same purchase is tried again. A
//! restarted Redis has to pass the boot fence (`fence`); settings that break a promise close the shop (`guard`).
//!
//! Input: a [`Purchase`] that P1 let through. Output: a [`Decision`]. An accepted purchase is an outbox entry for P3.
//!
//! A crash here: before the script ran, nothing happened; after it, the request is in ledger and outbox and goes its way,
//! and the buyer learns of it by its request id. Nothing is kept in memory that matters.

mod batchers;
mod fence;
mod group;
mod guard;
mod places;
mod rebalance;
mod replies;
mod thread_queue;
mod traced;

pub use fence::{Fence, FenceFault, FenceHandles};
pub use guard::DurabilityGuard;
pub(crate) use thread_queue::install_on_this_thread as answer_on_this_thread;

use crate::config;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::domain::sale_door::SaleDoor;
use crate::domain::shard::home_shard;
use crate::domain::states::{P2Reserve, State};
use crate::store::redis::{RequestLedger, Stock, Transfers};
use crate::telemetry::count;
use batchers::Batchers;
use group::WaitingPurchase;
use rebalance::{HomeBucket, Rebalanced, Rebalances, rebalance};
use replies::Reply;
use std::sync::Arc;
use std::time::Duration;
use thread_queue::{PurchasesOfBatcher, Terms};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Times a purchase is tried; each further one after units came into its bucket, or after a pause.
const TRIES_MAX: u32 = 16;
/// Pause before the next try while units are between two buckets; doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// Tries without a result before the buyer gets `P2-R3`: a process died between take and give, and P5 has to finish it.
const BUSY_MAX: u32 = 4;

/// What became of a purchase at the reserve step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The script decided. `Short` has the units left over all buckets.
    Decided(Reserved),
    /// Nothing is left in any of several buckets, and nothing is between two (`P2-R4`).
    AllEmpty,
    /// The buyer's bucket is too short and units could not be brought in time, or are between two buckets (`P2-R3`). The
    /// purchase was not accepted; the sale is not sold out.
    BucketEmpty,
    /// It may or may not have been accepted, or was and is not on enough replicas yet; the ledger has it by request id.
    Unknown,
    /// It did not run and will not run.
    Unavailable,
    /// Too many requests are waiting; it did not run and will not run.
    Overloaded,
}

/// Entrance to P2. Clones share the batchers.
#[derive(Clone)]
pub struct Reserve {
    context: Arc<ReserveContext>,
}

/// What P2 may touch in Redis.
#[derive(Clone)]
pub struct ReserveHandles {
    /// To sell units.
    pub stock: Stock,
    /// To look up requests without an answer.
    pub ledger: RequestLedger,
    /// To bring units from other buckets.
    pub transfers: Transfers,
}

/// What P2 works with.
struct ReserveContext {
    redis: ReserveHandles,
    fence: Fence,
    shards: u16,
    group_max: usize,
    queue_max: usize,
    deadline: Duration,
    batchers: Batchers<WaitingPurchase>,
    /// Batchers run on the process' own runtime, not on the one of the HTTP worker that happened to start them.
    runtime: tokio::runtime::Handle,
    rebalances: Rebalances,
}

impl Reserve {
    /// An entrance over one Redis; batchers run on the runtime this is called in.
    #[must_use]
    pub fn new(redis: ReserveHandles, fence: Fence, shards: u16, settings: &config::P2Reserve) -> Self {
        Self {
            context: Arc::new(ReserveContext {
                redis,
                fence,
                shards,
                group_max: settings.group_max,
                queue_max: settings.queue_max,
                deadline: Duration::from_millis(settings.deadline_ms),
                batchers: Batchers::default(),
                runtime: tokio::runtime::Handle::current(),
                rebalances: Rebalances::default(),
            }),
        }
    }

    /// Decides one purchase, together with the others that have arrived for its sale and shard.
    ///
    /// `epoch` is the sale's epoch as the caller knows it; the answer to an old one is [`Reserved::StaleEpoch`]. `by`: the door
    /// that it came by; a sale with a later one answers [`Reserved::TokenMissing`] or [`Reserved::OnlyByLine`].
    pub async fn decide(&self, purchase: Purchase, epoch: u32, by: SaleDoor) -> Decision {
        let deadline = Instant::now() + self.context.deadline;
        if self.context.shards == 1 {
            return self.ask(purchase, Terms { shard: 0, epoch, deadline, by }).await;
        }
        let shard = home_shard(purchase.limit_key(), self.context.shards);
        // Boxed, as below: one bucket is usual, and what several need would be in each purchase's future.
        Box::pin(self.decide_in_buckets(purchase, Terms { shard, epoch, deadline, by })).await
    }

    /// The same with several buckets: units are brought to the home bucket when it is too short.
    async fn decide_in_buckets(&self, purchase: Purchase, terms: Terms) -> Decision {
        let Terms { shard, epoch, deadline, .. } = terms;
        let (sale, wanted) = (purchase.sale_id.clone(), u64::from(purchase.quantity.get()));
        let (mut busy, mut pause) = (0, PAUSE);
        for _ in 0..TRIES_MAX {
            let decision = self.ask(purchase.clone(), terms).await;
            if !matches!(decision, Decision::Decided(Reserved::Short(_))) {
                return decision;
            }
            count(State::P2(P2Reserve::BucketEmpty), 1);
            let bucket = HomeBucket { sale: &sale, shard, epoch };
            match tokio::time::timeout_at(deadline, rebalance(&self.context, bucket, wanted)).await {
                Ok(Rebalanced::Brought) => {}
                Ok(Rebalanced::Left(0)) => return Decision::AllEmpty,
                Ok(Rebalanced::Left(left)) => return Decision::Decided(Reserved::Short(left)),
                Ok(Rebalanced::Busy) if busy < BUSY_MAX && Instant::now() + pause < deadline => {
                    busy += 1;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Ok(Rebalanced::Busy) | Err(_) => return Decision::BucketEmpty,
            }
        }
        Decision::BucketEmpty
    }

    /// Lets the home bucket decide one purchase.
    async fn ask(&self, purchase: Purchase, terms: Terms) -> Decision {
        if thread_queue::is_here() {
            return match thread_queue::submit(&self.context, purchase, terms) {
                Some(decision) => decision.await,
                None => Decision::Unavailable,
            };
        }
        // Boxed: no HTTP worker comes here, and each purchase would carry it.
        Box::pin(self.ask_alone(purchase, terms)).await
    }

    /// The same from a thread without a queue.
    async fn ask_alone(&self, purchase: Purchase, terms: Terms) -> Decision {
        let ((reply, decision), Terms { shard, epoch, deadline, by }) = (oneshot::channel(), terms);
        let group = vec![WaitingPurchase { purchase, epoch, by, deadline, reply: Reply::ToCaller(reply) }];
        PurchasesOfBatcher { context: self.context.clone(), shard, group }.send();
        match tokio::time::timeout_at(deadline, decision).await {
            Ok(Ok(decision)) => decision,
            // No reply in time, or the batcher's task died with the purchase: it may have been sent.
            Ok(Err(_)) | Err(_) => Decision::Unknown,
        }
    }
}
