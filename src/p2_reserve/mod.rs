//! P2 reserve: decides purchases by `lua/reserve.lua`, in groups.
//!
//! A home bucket that is too short is not the end of it: units are brought from the others (`gather`), and the same purchase
//! is tried again.
//!
//! Input: a [`Purchase`] that P1 let through. Output: a [`Decision`]. An accepted purchase is an outbox entry for P3.
//!
//! A crash here: before the script ran, nothing happened; after it, the request is in ledger and outbox and goes its way,
//! and the buyer learns of it by its request id. Nothing is kept in memory that matters.

mod fence;
mod gather;
mod guard;
mod homes;
mod lane;

pub use fence::{Fence, FenceFault};
pub use guard::Guard;
pub use homes::open as answer_on_this_thread;

use crate::config;
use crate::domain::ids::SaleId;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::domain::shard::home_shard;
use crate::domain::states::{P2Reserve, State};
use crate::store::redis::RedisStore;
use crate::telemetry::count;
use gather::{Found, Gatherings, gather};
use homes::Home;
use lane::{Job, Lane};
use std::collections::HashMap;
use std::sync::{Arc, RwLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// Times a purchase is tried; each further one after units came into its bucket, or after a pause.
const TRIES_MAX: u32 = 16;
/// Pause before looking again while units lie between two buckets; doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(100);
/// Looks in vain before the buyer is told to come back: someone died between take and give, and P5 has to finish it.
const BUSY_MAX: u32 = 4;

/// What became of a purchase at the reserve step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The script decided. `Short`: so many units are left over all buckets.
    Decided(Reserved),
    /// Nothing is left in any of several buckets, and nothing lies between two (`P2-R4`).
    AllEmpty,
    /// The buyer's bucket is too short and units could not be brought in time, or lie between two buckets (`P2-R3`). It was
    /// not accepted; the sale is not sold out.
    BucketEmpty,
    /// It may or may not have been accepted, or was and is not on enough replicas yet; the ledger will tell by request id.
    Unknown,
    /// It did not run and will not run.
    Unavailable,
    /// Too many requests are waiting; it did not run and will not run.
    Overloaded,
}

/// Entrance to P2. Clones share the lanes.
#[derive(Clone)]
pub struct Reserve {
    inner: Arc<Inner>,
}

struct Inner {
    redis: RedisStore,
    fence: Fence,
    shards: u16,
    group_max: usize,
    queue_max: usize,
    deadline: Duration,
    lanes: RwLock<HashMap<(SaleId, u16), mpsc::Sender<Job>>>,
    /// Where lanes run: the process' own runtime, not the one of whichever HTTP worker happened to open the lane.
    runtime: tokio::runtime::Handle,
    gatherings: Gatherings,
}

impl Reserve {
    /// An entrance over one Redis; lanes run on the runtime this is called in.
    #[must_use]
    pub fn new(redis: RedisStore, fence: Fence, shards: u16, settings: &config::P2Reserve) -> Self {
        Self {
            inner: Arc::new(Inner {
                redis,
                fence,
                shards,
                group_max: settings.group_max,
                queue_max: settings.queue_max,
                deadline: Duration::from_millis(settings.deadline_ms),
                lanes: RwLock::default(),
                runtime: tokio::runtime::Handle::current(),
                gatherings: Gatherings::default(),
            }),
        }
    }

    /// Decides one purchase, together with whatever else has arrived for its sale and shard.
    ///
    /// `epoch` is the sale's epoch as the caller knows it; an old one is answered [`Reserved::StaleEpoch`].
    pub async fn decide(&self, purchase: Purchase, epoch: u32) -> Decision {
        let deadline = Instant::now() + self.inner.deadline;
        if self.inner.shards == 1 {
            return self.ask(purchase, epoch, deadline).await;
        }
        let shard = home_shard(&purchase.user_id, self.inner.shards);
        let (sale, wanted) = (purchase.sale_id.clone(), u64::from(purchase.quantity.get()));
        let (mut busy, mut pause) = (0, PAUSE);
        for _ in 0..TRIES_MAX {
            let decision = self.ask(purchase.clone(), epoch, deadline).await;
            if !matches!(decision, Decision::Decided(Reserved::Short(_))) {
                return decision;
            }
            count(State::P2(P2Reserve::BucketEmpty), 1);
            let gathered = gather(&self.inner, &sale, (shard, epoch), wanted);
            match tokio::time::timeout_at(deadline, gathered).await {
                Ok(Found::Brought) => {}
                Ok(Found::Left(0)) => return Decision::AllEmpty,
                Ok(Found::Left(left)) => return Decision::Decided(Reserved::Short(left)),
                Ok(Found::Busy) if busy < BUSY_MAX && Instant::now() + pause < deadline => {
                    busy += 1;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
                Ok(Found::Busy) | Err(_) => return Decision::BucketEmpty,
            }
        }
        Decision::BucketEmpty
    }

    /// Has the home bucket decide one purchase.
    async fn ask(&self, purchase: Purchase, epoch: u32, deadline: Instant) -> Decision {
        let shard = home_shard(&purchase.user_id, self.inner.shards);
        let (reply, decision) = oneshot::channel();
        let mut job = Job { purchase, epoch, deadline, reply, home: Home::here() };
        // A lane that just ended for lack of work gives the job back once; the second lane is fresh.
        for _ in 0..2 {
            match self.lane(&job.purchase.sale_id, shard).try_send(job) {
                Ok(()) => {
                    return match tokio::time::timeout_at(deadline, decision).await {
                        Ok(Ok(decision)) => decision,
                        // No answer in time, or the lane's task died with the job: it may have been sent.
                        Ok(Err(_)) | Err(_) => Decision::Unknown,
                    };
                }
                Err(mpsc::error::TrySendError::Full(_)) => return Decision::Overloaded,
                Err(mpsc::error::TrySendError::Closed(returned)) => {
                    self.forget(&returned.purchase.sale_id, shard);
                    job = returned;
                }
            }
        }
        Decision::Unavailable
    }

    fn lane(&self, sale: &SaleId, shard: u16) -> mpsc::Sender<Job> {
        let key = (sale.clone(), shard);
        if let Some(lane) = self.inner.lanes.read().ok().and_then(|lanes| lanes.get(&key).cloned()) {
            return lane;
        }
        let mut lanes = self.inner.lanes.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        lanes
            .entry(key)
            .or_insert_with(|| {
                let (sender, receiver) = mpsc::channel(self.inner.queue_max);
                self.inner.runtime.spawn(Lane::new(self.inner.clone(), sale.clone(), shard, receiver).run());
                sender
            })
            .clone()
    }

    fn forget(&self, sale: &SaleId, shard: u16) {
        let mut lanes = self.inner.lanes.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let key = (sale.clone(), shard);
        if lanes.get(&key).is_some_and(mpsc::Sender::is_closed) {
            lanes.remove(&key);
        }
    }
}
