//! Group admission: one lane for each sale and shard. While one script call is under way the next group gathers; a group
//! is whatever has arrived — one request when idle, so an idle system waits for nothing.

use super::{Decision, Inner};
use crate::domain::ids::SaleId;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::store::redis::RedisFault;
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
}

impl Job {
    fn answer(self, decision: Decision) {
        // A caller that stopped waiting learns the outcome by its request id.
        drop(self.reply.send(decision));
    }
}

/// The task behind one (sale, shard).
pub(super) struct Lane {
    inner: Arc<Inner>,
    sale: SaleId,
    shard: u16,
    receiver: mpsc::Receiver<Job>,
}

impl Lane {
    pub(super) const fn new(inner: Arc<Inner>, sale: SaleId, shard: u16, receiver: mpsc::Receiver<Job>) -> Self {
        Self { inner, sale, shard, receiver }
    }

    pub(super) async fn run(mut self) {
        let size = metrics::histogram!("seckill_p2_reserve_group_count");
        let seconds = metrics::histogram!("seckill_p2_reserve_seconds");
        let mut group = Vec::with_capacity(self.inner.group_max);
        loop {
            let arrived = self.receiver.recv_many(&mut group, self.inner.group_max);
            if !matches!(tokio::time::timeout(IDLE_END, arrived).await, Ok(1..)) {
                // Idle: refuse new jobs first, then decide those that slipped in, so that none is dropped.
                self.receiver.close();
                if self.receiver.recv_many(&mut group, self.inner.group_max).await == 0 {
                    return;
                }
            }
            size.record(group.len() as f64);
            let begun = Instant::now();
            self.decide(std::mem::take(&mut group)).await;
            seconds.record(begun.elapsed());
        }
    }

    /// Decides one group: those too late are refused unsent, the rest go out by epoch (nearly always one).
    async fn decide(&self, group: Vec<Job>) {
        let now = Instant::now();
        let (mut waiting, late): (Vec<Job>, Vec<Job>) = group.into_iter().partition(|job| job.deadline > now);
        late.into_iter().for_each(|job| job.answer(Decision::Unavailable));
        while let Some(epoch) = waiting.first().map(|job| job.epoch) {
            let (jobs, others) = waiting.into_iter().partition(|job| job.epoch == epoch);
            waiting = others;
            self.decide_epoch(epoch, jobs).await;
        }
    }

    async fn decide_epoch(&self, epoch: u32, jobs: Vec<Job>) {
        let purchases: Vec<&Purchase> = jobs.iter().map(|job| &job.purchase).collect();
        let decisions = match self.reserve(epoch, &purchases).await {
            Ok(reserved) => reserved.into_iter().map(Decision::Decided).collect(),
            Err(fault @ (RedisFault::Unknown(_) | RedisFault::Contract(_))) => {
                tracing::warn!(phase = "p2_reserve", sale = %self.sale, error = %fault, count = jobs.len(), "no answer, looking up");
                self.look(&purchases).await
            }
            Err(fault @ (RedisFault::NotSent(_) | RedisFault::NoScript | RedisFault::Refused(_))) => {
                tracing::warn!(phase = "p2_reserve", sale = %self.sale, error = %fault, count = jobs.len(), "not reserved");
                vec![Decision::Unavailable; jobs.len()]
            }
        };
        for (job, decision) in jobs.into_iter().zip(decisions) {
            job.answer(decision);
        }
    }

    async fn reserve(&self, epoch: u32, purchases: &[&Purchase]) -> Result<Vec<Reserved>, RedisFault> {
        let inner = &self.inner;
        for _ in 0..FENCE_TRIES {
            match inner.redis.reserve(&self.sale, self.shard, epoch, purchases).await {
                // Nothing ran. The server restarted or failed over: compare before selling on (the boot fence).
                Err(RedisFault::NoScript) => {
                    inner.fence.pass().await.map_err(|fault| RedisFault::NotSent(fault.to_string()))?;
                }
                done => return done,
            }
        }
        inner.redis.reserve(&self.sale, self.shard, epoch, purchases).await
    }

    /// After a lost answer: whoever is in the ledger was accepted; about the others nothing is known, because the command
    /// may still be on its way. It is not sent again: that is for the buyer, with the same token (window 9).
    async fn look(&self, purchases: &[&Purchase]) -> Vec<Decision> {
        let ids: Vec<_> = purchases.iter().map(|purchase| purchase.request_id).collect();
        match self.inner.redis.ledger_lookup(&self.sale, self.shard, &ids).await {
            Ok(records) => records
                .into_iter()
                .zip(purchases)
                .map(|(record, purchase)| match record {
                    Some(record) if record.user_id == purchase.user_id => Decision::Decided(Reserved::Replayed),
                    Some(_) => Decision::Decided(Reserved::Conflict),
                    None => Decision::Unknown,
                })
                .collect(),
            Err(_) => vec![Decision::Unknown; purchases.len()],
        }
    }
}
