//! Group admission: one lane for each sale and shard. While a script call is under way the next group gathers; a group is
//! whatever has arrived — one request when idle, so an idle system waits for nothing.
//!
//! One call at a time: a call costs Redis and this process the same whatever its group, so a second one beside it only made
//! both groups smaller (measured: the same rate at full load, a tenth more processor time for each purchase at half load).

use super::homes::{Bundles, Home};
use super::{Decision, Inner};
use crate::domain::ids::SaleId;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::faults::{crash_point, left_out};
use crate::store::redis::{RedisFault, ReservedGroup};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

/// A lane without work for this long ends; the next request opens a new one.
const IDLE_END: Duration = Duration::from_secs(60);
/// Times the boot fence is passed for one group. Only a server that restarts again and again takes more than one.
const FENCE_TRIES: u32 = 3;

/// One purchase waiting for its group.
pub(super) struct Job {
    pub purchase: Purchase,
    pub epoch: u32,
    pub deadline: Instant,
    pub reply: oneshot::Sender<Decision>,
    pub home: Option<Home>,
}

/// The task behind one (sale, shard).
pub(super) struct Lane {
    inner: Arc<Inner>,
    sale: SaleId,
    shard: u16,
    receiver: mpsc::Receiver<Job>,
    size: metrics::Histogram,
    seconds: metrics::Histogram,
}

impl Lane {
    pub(super) fn new(inner: Arc<Inner>, sale: SaleId, shard: u16, receiver: mpsc::Receiver<Job>) -> Self {
        let size = metrics::histogram!("seckill_p2_reserve_group_count");
        let seconds = metrics::histogram!("seckill_p2_reserve_seconds");
        Self { inner, sale, shard, receiver, size, seconds }
    }

    pub(super) async fn run(mut self) {
        let group_max = self.inner.group_max;
        loop {
            let mut group = Vec::new();
            tokio::select! {
                biased;
                count = self.receiver.recv_many(&mut group, group_max) => {
                    if count == 0 {
                        break;
                    }
                    self.call(group).await;
                }
                // Idle: no new jobs; those that slipped in are still received above, then the channel is empty and ends.
                () = tokio::time::sleep(IDLE_END) => self.receiver.close(),
            }
        }
    }

    async fn call(&self, group: Vec<Job>) {
        self.size.record(group.len() as f64);
        let begun = Instant::now();
        self.decide(group).await;
        self.seconds.record(begun.elapsed());
    }

    /// Decides one group: those too late are refused unsent, the rest go out by epoch (nearly always one).
    async fn decide(&self, group: Vec<Job>) {
        let now = Instant::now();
        let (mut waiting, late): (Vec<Job>, Vec<Job>) = group.into_iter().partition(|job| job.deadline > now);
        let too_late = vec![Decision::Unavailable; late.len()];
        answer(late, too_late);
        while let Some(epoch) = waiting.first().map(|job| job.epoch) {
            let (jobs, others) = waiting.into_iter().partition(|job| job.epoch == epoch);
            waiting = others;
            self.decide_epoch(epoch, jobs).await;
        }
    }

    async fn decide_epoch(&self, epoch: u32, jobs: Vec<Job>) {
        let purchases: Vec<&Purchase> = jobs.iter().map(|job| &job.purchase).collect();
        let decisions = match self.reserve(epoch, &purchases).await {
            Ok(group) => self.told(group),
            Err(fault @ (RedisFault::Unknown(_) | RedisFault::Contract(_))) => {
                tracing::warn!(phase = "p2_reserve", sale = %self.sale, error = %fault, count = jobs.len(), "no answer, looking up");
                self.look(&purchases, &Decision::Unknown).await
            }
            // Nothing ran: no memory, too few replicas, a file that cannot be written. Who was accepted before is told so.
            Err(fault @ RedisFault::Refused(_)) => {
                tracing::warn!(phase = "p2_reserve", sale = %self.sale, error = %fault, count = jobs.len(), "redis refuses");
                self.look(&purchases, &Decision::Unavailable).await
            }
            Err(fault @ (RedisFault::NotSent(_) | RedisFault::NoScript)) => {
                tracing::warn!(phase = "p2_reserve", sale = %self.sale, error = %fault, count = jobs.len(), "not reserved");
                vec![Decision::Unavailable; jobs.len()]
            }
        };
        answer(jobs, decisions);
    }

    /// What each buyer may be told. An accept that too few replicas have is real on this server and lost with it: nobody
    /// may hear of it as accepted, not as a replay either (window 15).
    fn told(&self, group: ReservedGroup) -> Vec<Decision> {
        let ReservedGroup { reserved, replicated } = group;
        let told = |decided: Reserved| {
            let promises = matches!(decided, Reserved::Accepted | Reserved::Replayed);
            if promises && !replicated { Decision::Unknown } else { Decision::Decided(decided) }
        };
        let told: Vec<Decision> = reserved.into_iter().map(told).collect();
        self.count_unreplicated(&told);
        told
    }

    fn count_unreplicated(&self, told: &[Decision]) {
        let count = told.iter().filter(|decision| **decision == Decision::Unknown).count();
        if count > 0 {
            metrics::counter!("seckill_p2_reserve_unreplicated_total").increment(count as u64);
            tracing::warn!(phase = "p2_reserve", sale = %self.sale, count, "accepted, but on too few replicas to be told");
        }
    }

    async fn reserve(&self, epoch: u32, purchases: &[&Purchase]) -> Result<ReservedGroup, RedisFault> {
        crash_point!(BeforeScript);
        let answer = self.reserve_past_fence(epoch, purchases).await;
        crash_point!(AfterScript);
        match answer {
            Err(RedisFault::Unknown(_)) if left_out!(ReplayCheck) => {
                self.inner.redis.stock.reserve(&self.sale, self.shard, epoch, purchases).await
            }
            answer => answer,
        }
    }

    async fn reserve_past_fence(&self, epoch: u32, purchases: &[&Purchase]) -> Result<ReservedGroup, RedisFault> {
        let inner = &self.inner;
        for _ in 0..FENCE_TRIES {
            match inner.redis.stock.reserve(&self.sale, self.shard, epoch, purchases).await {
                // Nothing ran. The server restarted or failed over: compare before selling on (the boot fence).
                Err(RedisFault::NoScript) => {
                    inner.fence.pass(self.shard).await.map_err(|fault| RedisFault::NotSent(fault.to_string()))?;
                }
                done => return done,
            }
        }
        inner.redis.stock.reserve(&self.sale, self.shard, epoch, purchases).await
    }

    /// Without a decision of the script: whoever is in the ledger was accepted; the others are `otherwise`. After a lost
    /// answer that is unknown, because the command may still be on its way. It is not sent again: that is for the buyer,
    /// with the same token (window 9).
    async fn look(&self, purchases: &[&Purchase], otherwise: &Decision) -> Vec<Decision> {
        let ids: Vec<_> = purchases.iter().map(|purchase| purchase.request_id).collect();
        match self.inner.redis.ledger.lookup_replicated(&self.sale, self.shard, &ids).await {
            Ok((records, replicated)) => records
                .into_iter()
                .zip(purchases)
                .map(|(record, purchase)| match record {
                    Some(record) if record.user_id == purchase.user_id && replicated => {
                        Decision::Decided(Reserved::Replayed)
                    }
                    Some(record) if record.user_id == purchase.user_id => Decision::Unknown,
                    Some(_) => Decision::Decided(Reserved::Conflict),
                    None => otherwise.clone(),
                })
                .collect(),
            Err(_) => vec![otherwise.clone(); purchases.len()],
        }
    }
}

/// Tells each job its decision.
fn answer(jobs: Vec<Job>, decisions: Vec<Decision>) {
    let mut bundles = Bundles::default();
    for (job, decision) in jobs.into_iter().zip(decisions) {
        bundles.add(job.home, job.reply, decision);
    }
    bundles.send();
}
