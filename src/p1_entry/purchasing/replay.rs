//! A request that was accepted before gets its first answer again, whatever has happened to the sale since.
//!
//! Input: a purchase with its token's request id. Output: the first answer, as the ledger has it. Reads only.

use super::admission::sold_out;
use crate::domain::ids::RequestId;
use crate::domain::ledger::LedgerRecord;
use crate::domain::request::Purchase;
use crate::domain::shard::home_shard;
use crate::domain::states::{P2Reserve, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::overload::overloaded;
use crate::p1_entry::status::{LedgerAbsence, LedgerQuestion, LedgerReads, status_url};
use crate::telemetry::count;

/// Looks up what was answered before.
pub struct Replays {
    ledger_reads: LedgerReads,
    shards: u16,
}

impl Replays {
    /// Over the ledgers of a Redis with `shards` shards a sale.
    #[must_use]
    pub(crate) const fn new(ledger_reads: LedgerReads, shards: u16) -> Self {
        Self { ledger_reads, shards }
    }

    /// Shards of every sale.
    pub(super) const fn shards(&self) -> u16 {
        self.shards
    }

    /// The request id, if exactly this purchase was accepted before; else `problem`.
    pub(super) async fn first_answer_or(&self, problem: Problem, purchase: &Purchase) -> Result<RequestId, Problem> {
        match self.record(purchase).await? {
            Some(record) => self.again(record, purchase).await,
            None => Err(problem),
        }
    }

    /// The same, for a sale that is sold out: nothing else can come of this purchase. `None` when only the reserve script can
    /// decide: the ledger is not whole, or too old for this request.
    pub(super) async fn first_answer_if_known(&self, purchase: &Purchase) -> Option<Result<RequestId, Problem>> {
        match self.record(purchase).await {
            Ok(Some(record)) => Some(self.again(record, purchase).await),
            Ok(None) => {
                let absence = self.ledger_reads.absence(self.question(purchase)).await;
                (absence == LedgerAbsence::NeverAccepted).then(|| Err(sold_out()))
            }
            Err(problem) => Some(Err(problem)),
        }
    }

    fn question(&self, purchase: &Purchase) -> LedgerQuestion {
        let shard = home_shard(purchase.limit_key(), self.shards);
        (purchase.sale_id.clone(), shard, purchase.request_id)
    }

    async fn record(&self, purchase: &Purchase) -> Result<Option<LedgerRecord>, Problem> {
        let found = Box::pin(self.ledger_reads.find(self.question(purchase))).await;
        found.map_err(|busy| overloaded(&busy.to_string()))?.map_err(|error| {
            tracing::debug!(phase = "p1_entry", request_id = %purchase.request_id, %error, "replay lookup");
            unknown(purchase, "whether it was accepted before is not known right now")
        })
    }

    /// The first answer to an accepted purchase, if this is that purchase.
    async fn again(&self, record: LedgerRecord, purchase: &Purchase) -> Result<RequestId, Problem> {
        if record.user_id != purchase.user_id || record.quantity != purchase.quantity {
            return Err(Kind::TokenReused.into());
        }
        // What has its outcome in the database needs no replica of Redis.
        if !record.state.is_final() && !self.ledger_reads.is_replicated(self.question(purchase)).await {
            return Err(unknown(purchase, "it was accepted, but too few replicas have it yet"));
        }
        count(State::P2(P2Reserve::Replayed), 1);
        Ok(purchase.request_id)
    }
}

fn unknown(purchase: &Purchase, detail: &str) -> Problem {
    let Purchase { request_id, sale_id, .. } = purchase;
    Kind::Unknown.because(detail).about(*request_id, status_url(sale_id, *request_id))
}
