//! Requests of a sale that limits by person: their records are on the person's shard, and a call may show the account only.
//!
//! Input: a question that the account's shard has no record for. Output: the record and its shard, or what it means that no shard has
//! one. Each shard is asked once, all at the same time and in groups with all other questions. Keeps nothing.

use super::ledger_questions::LedgerQuestion;
use super::ledger_reads::{LedgerAbsence, LedgerReads};
use crate::domain::ledger::LedgerRecord;
use crate::runtime::batcher::Busy;
use crate::store::redis::RedisFault;
use futures::future::join_all;

/// What the other shards have.
pub(super) type FoundElsewhere = Result<Option<(u16, LedgerRecord)>, RedisFault>;

impl LedgerReads {
    /// The record that the asked shard does not have, and where it is. `Ok(None)`: no other shard of `0..shards` has it, or the sale
    /// limits by account.
    pub(super) async fn elsewhere(
        &self,
        (sale, asked, request_id): &LedgerQuestion,
        shards: u16,
    ) -> Result<FoundElsewhere, Busy> {
        if shards == 1 || !self.are_of_persons(sale, *asked).await {
            return Ok(Ok(None));
        }
        let others = (0..shards).filter(|shard| shard != asked);
        let found = others.map(|shard| async move { (shard, self.find((sale.clone(), shard, *request_id)).await) });
        let mut not_read = None;
        for (shard, found) in join_all(found).await {
            match found? {
                Ok(Some(record)) => return Ok(Ok(Some((shard, record)))),
                Ok(None) => {}
                Err(fault) => not_read = Some(fault),
            }
        }
        Ok(not_read.map_or(Ok(None), Err))
    }

    /// What it means that a request is in no ledger: of all shards where the sale limits by person.
    pub(super) async fn absence_of_all(&self, question: LedgerQuestion, shards: u16) -> LedgerAbsence {
        let (sale, asked, request_id) = &question;
        if shards == 1 || !self.are_of_persons(sale, *asked).await {
            return self.absence(question).await;
        }
        let of_each = (0..shards).map(|shard| self.absence((sale.clone(), shard, *request_id)));
        let worst = |absence: &LedgerAbsence| match absence {
            LedgerAbsence::NeverAccepted => 0,
            LedgerAbsence::DatabaseKnows => 1,
            LedgerAbsence::Unknown => 2,
        };
        join_all(of_each).await.into_iter().max_by_key(worst).unwrap_or(LedgerAbsence::Unknown)
    }
}
