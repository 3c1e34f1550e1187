//! Questions about requests on their ledgers, read with one command for each ledger.
//!
//! Input: questions, and a lookup over one of the connections. Output: the answers in the order of the questions. Keeps nothing.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerRecord;
use crate::store::redis::RedisFault;

/// A request on its ledger.
pub(crate) type LedgerQuestion = (SaleId, u16, RequestId);
pub(super) type LedgerAnswer = Result<Option<LedgerRecord>, RedisFault>;

/// One command for each ledger that is asked about; the answers in the order of the questions.
pub(super) async fn read<'a, F>(
    questions: &'a [LedgerQuestion],
    lookup: impl Fn(&'a SaleId, u16, Vec<RequestId>) -> F,
) -> Vec<LedgerAnswer>
where
    F: Future<Output = Result<Vec<Option<LedgerRecord>>, RedisFault>>,
{
    let reads = by_ledger(questions).into_iter().map(|((sale, shard), places)| {
        let found = lookup(sale, shard, places.iter().map(|at| questions[*at].2).collect());
        async move { (places, found.await) }
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

/// The places of the questions about each ledger. There are few ledgers, and nearly always one.
fn by_ledger(questions: &[LedgerQuestion]) -> Vec<((&SaleId, u16), Vec<usize>)> {
    let mut ledgers: Vec<((&SaleId, u16), Vec<usize>)> = Vec::new();
    for (at, (sale, shard, _)) in questions.iter().enumerate() {
        match ledgers.iter_mut().find(|(ledger, _)| *ledger == (sale, *shard)) {
            Some((_, places)) => places.push(at),
            None => ledgers.push(((sale, *shard), vec![at])),
        }
    }
    ledgers
}
