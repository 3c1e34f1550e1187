//! What became of a request (A11): the ledger answers for a live sale, the database for what the ledger has forgotten.
//!
//! Only the buyer may ask; everyone else hears 404. Requests in either DLQ are still QUEUED: they are being worked on.

use super::orders::status_url;
use super::problem::{Kind, Problem};
use crate::domain::fate::Fate;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::ledger::LedgerState;
use crate::domain::shard::home_shard;
use crate::domain::states::{P2Reserve, P4Persist};
use crate::store::mysql::{Db, outcomes};
use crate::store::redis::RedisStore;
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// First pause between two looks of a long poll; grows by half up to the next.
const POLL: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_millis(500);

/// The answer to a status question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct OrderStatus {
    /// The request, a decimal string.
    #[schema(value_type = String, example = "254385310867492864")]
    pub request_id: RequestId,
    /// QUEUED, CONFIRMED or FAILED.
    #[schema(example = "CONFIRMED")]
    pub status: &'static str,
    /// The state code.
    #[schema(example = "P4-C0")]
    pub code: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Units.
    pub quantity: u32,
}

impl OrderStatus {
    fn new(request_id: RequestId, quantity: u32, state: LedgerState) -> Self {
        let (status, code, reason) = match state {
            LedgerState::Queued => ("QUEUED", P2Reserve::LuaOk.code(), None),
            LedgerState::Confirmed => ("CONFIRMED", P4Persist::DbOk.code(), None),
            LedgerState::Failed(reason) => ("FAILED", P4Persist::BizErrorAck.code(), Some(reason.code())),
        };
        Self { request_id, status, code, reason, quantity }
    }

    fn is_final(&self) -> bool {
        self.status != "QUEUED"
    }
}

/// Answers status questions.
pub struct Statuses {
    redis: RedisStore,
    db: Db,
    shards: u16,
}

impl Statuses {
    /// Over one Redis and one database.
    #[must_use]
    pub const fn new(redis: RedisStore, db: Db, shards: u16) -> Self {
        Self { redis, db, shards }
    }

    /// The status now, or as soon as it is final within `wait`.
    ///
    /// # Errors
    /// The problem to answer with.
    pub async fn ask(
        &self,
        user: &UserId,
        sale: &SaleId,
        id: RequestId,
        wait: Duration,
    ) -> Result<OrderStatus, Problem> {
        let deadline = Instant::now() + wait;
        let mut pause = POLL;
        loop {
            let status = self.look(user, sale, id).await?;
            if status.is_final() || Instant::now() + pause > deadline {
                return Ok(status);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 3 / 2).min(POLL_MAX);
        }
    }

    async fn look(&self, user: &UserId, sale: &SaleId, id: RequestId) -> Result<OrderStatus, Problem> {
        let shard = home_shard(user, self.shards);
        let record = match self.redis.ledger_lookup(sale, shard, &[id]).await {
            Ok(records) => records.into_iter().next().flatten(),
            Err(error) => {
                tracing::debug!(phase = "p1_entry", request_id = %id, %error, "status: asking the database instead");
                return self.in_database(user, sale, id).await?.ok_or_else(|| {
                    Kind::Unavailable.because("the status cannot be told right now").about(id, status_url(sale, id))
                });
            }
        };
        match record {
            Some(record) if record.user_id == *user && record.state == LedgerState::Queued => {
                self.queued(sale, shard, id).await?;
                Ok(OrderStatus::new(id, record.quantity.get(), record.state))
            }
            Some(record) if record.user_id == *user => Ok(OrderStatus::new(id, record.quantity.get(), record.state)),
            Some(_) => Err(not_yours()),
            None => self.in_database(user, sale, id).await?.ok_or_else(not_yours),
        }
    }

    /// QUEUED says "accepted" as 202 does, so it may be told only when the replicas have it (`redis.wait_replicas`).
    async fn queued(&self, sale: &SaleId, shard: u16, id: RequestId) -> Result<(), Problem> {
        if !self.redis.waits_for_replicas() {
            return Ok(());
        }
        match self.redis.ledger_promised(sale, shard, &[id]).await {
            Ok((records, true)) if records.iter().all(Option::is_some) => Ok(()),
            Ok((_, false | true)) | Err(_) => {
                Err(Kind::Unavailable.because("the status cannot be told right now").about(id, status_url(sale, id)))
            }
        }
    }

    async fn in_database(&self, user: &UserId, sale: &SaleId, id: RequestId) -> Result<Option<OrderStatus>, Problem> {
        let story = outcomes::story_of(&self.db, id).await.map_err(|error| {
            tracing::warn!(phase = "p1_entry", request_id = %id, %error, "status");
            Kind::Unavailable.because("the status cannot be told right now")
        })?;
        let mine = |of_sale: &SaleId, of_user: &UserId| of_sale == sale && of_user == user;
        Ok(match (story.decided.map(|decided| decided.fate), story.order, story.failure) {
            (Some(Fate::Ordered), Some(order), _) if mine(&order.sale_id, &order.user_id) => {
                Some(OrderStatus::new(id, order.quantity, LedgerState::Confirmed))
            }
            (Some(Fate::Failed(reason)), _, Some(failed)) if mine(&failed.sale_id, &failed.user_id) => {
                Some(OrderStatus::new(id, failed.quantity, LedgerState::Failed(reason)))
            }
            _ => None,
        })
    }
}

fn not_yours() -> Problem {
    Kind::OrderNotFound.into()
}
