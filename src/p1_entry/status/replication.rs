//! Whether enough replicas have the records of queued requests (`redis.wait_replicas`): asked in groups, over a connection on
//! which no purchase waits, and once for each request. What was replicated once stays so.
//!
//! Input: queued requests. Output: whether they may be reported as accepted. A crash leaves nothing.

use super::ledger_reads::{LedgerQuestion, by_ledger};
use crate::domain::ids::RequestId;
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::store::redis::RequestLedger;
use moka::future::Cache;
use std::time::Duration;

/// One call at a time: WAIT blocks its connection.
const BOUNDS: Bounds = Bounds { group_max: 512, waiting_max: 16_384, in_flight_max: 1, idle_end: None };
/// Requests remembered as replicated, and for how long: longer than a long poll.
const REPLICATED_MAX: u64 = 100_000;
const REPLICATED_TTL: Duration = Duration::from_secs(60);

/// The replicated requests, as far as a process knows.
pub(super) struct Replication {
    /// `None` when no replica is waited for.
    batcher: Option<QuestionBatcher<LedgerQuestion, bool>>,
    replicated: Cache<RequestId, ()>,
}

impl Replication {
    /// Starts the grouped questions, on the runtime this is called in.
    pub(super) fn start(ledger: RequestLedger) -> Self {
        let batcher = ledger.waits_for_replicas().then(|| {
            QuestionBatcher::start(BOUNDS, move |questions: Vec<LedgerQuestion>| {
                let ledger = ledger.clone();
                async move { answer(&ledger, &questions).await }
            })
        });
        Self { batcher, replicated: Cache::builder().max_capacity(REPLICATED_MAX).time_to_live(REPLICATED_TTL).build() }
    }

    /// Whether replicas are waited for.
    pub(super) const fn is_asked(&self) -> bool {
        self.batcher.is_some()
    }

    /// Whether enough replicas have this queued request.
    pub(super) async fn has(&self, question: LedgerQuestion) -> bool {
        let Some(batcher) = &self.batcher else { return true };
        let request_id = question.2;
        if self.replicated.contains_key(&request_id) {
            return true;
        }
        let replicated = batcher.ask(question).await.unwrap_or(false);
        if replicated {
            self.replicated.insert(request_id, ()).await;
        }
        replicated
    }
}

/// One command for each ledger that is asked about; the answers in the order of the questions.
async fn answer(ledger: &RequestLedger, questions: &[LedgerQuestion]) -> Vec<bool> {
    let reads = by_ledger(questions).into_iter().map(|((sale, shard), places)| {
        let request_ids: Vec<RequestId> = places.iter().map(|at| questions[*at].2).collect();
        async move { (places, ledger.lookup_polled(sale, shard, &request_ids).await) }
    });
    let mut answers = vec![false; questions.len()];
    for (places, found) in futures::future::join_all(reads).await {
        match found {
            Ok((records, true)) => {
                places.into_iter().zip(records).for_each(|(at, record)| answers[at] = record.is_some());
            }
            Ok((_, false)) => {}
            Err(error) => tracing::debug!(phase = "p1_entry", %error, "status: the replicas cannot be asked"),
        }
    }
    answers
}
