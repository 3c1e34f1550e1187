//! A request that was accepted before gets its first answer again, whatever has happened to the sale since.
//!
//! Input: a purchase with its token's request id. Output: the first answer, as the ledger has it. Reads only.

use crate::domain::ids::RequestId;
use crate::domain::request::Purchase;
use crate::domain::shard::home_shard;
use crate::domain::states::{P2Reserve, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::status::status_url;
use crate::store::redis::RequestLedger;
use crate::telemetry::count;

/// Looks up what was answered before.
pub struct Replays {
    ledger: RequestLedger,
    shards: u16,
}

impl Replays {
    /// Over the ledger of a Redis with `shards` shards a sale.
    #[must_use]
    pub(crate) const fn new(ledger: RequestLedger, shards: u16) -> Self {
        Self { ledger, shards }
    }

    /// Shards of every sale.
    pub(super) const fn shards(&self) -> u16 {
        self.shards
    }

    /// The request id, if exactly this purchase was accepted before; else `problem`.
    pub(super) async fn first_answer_or(&self, problem: Problem, purchase: &Purchase) -> Result<RequestId, Problem> {
        let Purchase { request_id, sale_id: sale, user_id: user, quantity } = purchase;
        let request_id = *request_id;
        let unknown = |detail: &str| Err(Kind::Unknown.because(detail).about(request_id, status_url(sale, request_id)));
        match Box::pin(self.ledger.lookup_replicated(sale, home_shard(user, self.shards), &[request_id])).await {
            Ok((records, replicated)) => match records.into_iter().next().flatten() {
                Some(record) if record.user_id == *user && record.quantity == *quantity => {
                    if !replicated {
                        return unknown("it was accepted, but too few replicas have it yet");
                    }
                    count(State::P2(P2Reserve::Replayed), 1);
                    Ok(request_id)
                }
                Some(_) => Err(Kind::TokenReused.into()),
                None => Err(problem),
            },
            Err(error) => {
                tracing::debug!(phase = "p1_entry", %request_id, %error, "replay lookup");
                unknown("whether it was accepted before cannot be told right now")
            }
        }
    }
}
