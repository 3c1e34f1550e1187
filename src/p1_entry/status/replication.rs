//! Ledger records as enough replicas have them (`redis.wait_replicas`): asked for in groups, over a connection on which no
//! purchase waits. What was replicated once stays so, and is asked once.
//!
//! That there is no record counts only with the replicas' word, and each question has its own: a primary that was cut off takes
//! itself for the primary for some seconds when it comes back, and knows nothing of what its successor accepted meanwhile. So what
//! another connection or an earlier question got says nothing about the server that has just been read.
//!
//! Input: requests. Output: their records, and whether they may be reported as accepted. A crash leaves nothing.

use super::ledger_questions::{LedgerAnswer, LedgerQuestion, read};
use crate::domain::ids::RequestId;
use crate::runtime::batcher::{Bounds, Busy, QuestionBatcher};
use crate::store::redis::RequestLedger;
use moka::future::Cache;
use std::time::Duration;

/// One call at a time: WAIT blocks its connection.
const BOUNDS: Bounds = Bounds { group_max: 512, waiting_max: 16_384, in_flight_max: 1, idle_end: None };
/// Requests remembered as replicated, and for how long: longer than a long poll.
const REPLICATED_MAX: u64 = 100_000;
const REPLICATED_TTL: Duration = Duration::from_secs(60);

/// The records that replicas are asked for, and the replicated requests as far as a process knows.
pub(super) struct Replication {
    batcher: QuestionBatcher<LedgerQuestion, LedgerAnswer>,
    replicated: Cache<RequestId, ()>,
}

impl Replication {
    /// Starts the grouped questions, on the runtime this is called in; `None` when no replica is waited for.
    pub(super) fn start(ledger: &RequestLedger) -> Option<Self> {
        if !ledger.waits_for_replicas() {
            return None;
        }
        let ledger = ledger.clone();
        let batcher = QuestionBatcher::start(BOUNDS, move |questions: Vec<LedgerQuestion>| {
            let ledger = ledger.clone();
            async move {
                let ledger = &ledger;
                let polled =
                    |sale, shard, ids: Vec<RequestId>| async move { ledger.lookup_polled(sale, shard, &ids).await };
                read(&questions, polled).await
            }
        });
        let replicated = Cache::builder().max_capacity(REPLICATED_MAX).time_to_live(REPLICATED_TTL).build();
        Some(Self { batcher, replicated })
    }

    /// Whether enough replicas have this queued request.
    pub(super) async fn has(&self, question: LedgerQuestion) -> bool {
        if self.replicated.contains_key(&question.2) {
            return true;
        }
        match self.record(question).await {
            Ok(Ok(record)) => record.is_some(),
            Ok(Err(error)) => {
                tracing::debug!(phase = "p1_entry", %error, "status: the replicas cannot be asked");
                false
            }
            Err(Busy) => false,
        }
    }

    /// The record of a request, or that there is none, as enough replicas have it; a fault when too few follow the server.
    pub(super) async fn record(&self, question: LedgerQuestion) -> Result<LedgerAnswer, Busy> {
        let request_id = question.2;
        let record = self.batcher.ask(question).await?;
        if matches!(record, Ok(Some(_))) {
            self.replicated.insert(request_id, ()).await;
        }
        Ok(record)
    }
}
