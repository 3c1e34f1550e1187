//! Ledger reads of everyone who asks for a status, in groups: a crowd that polls costs Redis one command for hundreds of
//! questions.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::runtime::Stopper;
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::store::redis::{RedisFault, RequestLedger};
use std::collections::HashMap;

const BOUNDS: Bounds = Bounds { group_max: 512, waiting_max: 16_384, in_flight_max: 2, idle_end: None };

/// A request on its ledger.
pub(super) type LedgerQuestion = (SaleId, u16, RequestId);
pub(super) type LedgerAnswer = Result<Option<LedgerRecord>, RedisFault>;

/// Starts the grouped reads over one Redis.
pub(super) fn start(ledger: RequestLedger, stopper: &Stopper) -> QuestionBatcher<LedgerQuestion, LedgerAnswer> {
    QuestionBatcher::start(BOUNDS, stopper.clone(), move |questions| {
        let ledger = ledger.clone();
        async move { answer(&ledger, questions).await }
    })
}

/// One command for each ledger that is asked about; the answers in the order of the questions.
async fn answer(ledger: &RequestLedger, questions: Vec<LedgerQuestion>) -> Vec<LedgerAnswer> {
    metrics::histogram!("seckill_p1_entry_status_group_count").record(questions.len() as f64);
    let reads = by_ledger(&questions).into_iter().map(|((sale, shard), places)| {
        let request_ids: Vec<RequestId> = places.iter().map(|at| questions[*at].2).collect();
        async move { (places, ledger.lookup(sale, shard, &request_ids).await) }
    });
    let mut answers: Vec<LedgerAnswer> = Vec::new();
    answers.resize_with(questions.len(), || Ok(None));
    for (places, found) in futures::future::join_all(reads).await {
        match found {
            Ok(records) => places.into_iter().zip(records).for_each(|(at, record)| answers[at] = Ok(record)),
            Err(fault) => places.into_iter().for_each(|at| answers[at] = Err(fault.clone())),
        }
    }
    answers
}

/// The places of the questions about each ledger.
pub(super) fn by_ledger(questions: &[LedgerQuestion]) -> HashMap<(&SaleId, u16), Vec<usize>> {
    let mut ledgers: HashMap<(&SaleId, u16), Vec<usize>> = HashMap::new();
    for (at, (sale, shard, _)) in questions.iter().enumerate() {
        ledgers.entry((sale, *shard)).or_default().push(at);
    }
    ledgers
}
