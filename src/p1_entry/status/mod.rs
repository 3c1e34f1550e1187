//! The status of a request (A11): from the ledger for a live sale, from the database for requests that the ledger has forgotten.
//!
//! Input: a buyer, a sale, a request id. Output: QUEUED, CONFIRMED or FAILED. Only the buyer may ask; anyone else gets 404.
//! Requests in either DLQ are still QUEUED: they are being worked on. The database is read only for requests older than a
//! ledger record is kept, or when Redis does not answer. Keeps nothing but a cache.

mod database_reads;
mod ledger_reads;
mod replication;

use super::sale_id_filter::{FilterVerdict, SaleIdFilter};
use crate::config;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::ledger::LedgerState;
use crate::domain::outcome::Outcome;
use crate::domain::sale::MetaState;
use crate::domain::shard::home_shard;
use crate::domain::snowflake::made_at_ms;
use crate::domain::states::{P2Reserve, P4Persist};
use crate::http::problem::{Kind, Problem};
use crate::runtime::batcher::QuestionBatcher;
use crate::runtime::{Stopper, now_ms};
use crate::store::mysql::Db;
use crate::store::redis::{BootFence, RequestLedger, SaleKeys};
use database_reads::DatabaseReads;
use moka::future::Cache;
use replication::Replication;
use serde::Serialize;
use std::time::Duration;
use tokio::time::Instant;

/// First pause between two reads of a long poll; grows by half up to the next.
const POLL: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_millis(500);

/// Clocks of two processes may differ by this much.
const CLOCK_SKEW_MS: i64 = 5_000;
/// A complete ledger counts as complete for this time, which is shorter than a restart of a server.
const WHOLE_TTL: Duration = Duration::from_millis(500);
/// Ledgers remembered as whole or not.
const WHOLE_MAX: u64 = 10_000;

/// The answer to a status question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct OrderStatus {
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
    /// Units of the purchase.
    pub quantity: u32,
}

impl OrderStatus {
    fn new(request_id: RequestId, quantity: u32, state: LedgerState) -> Self {
        let (status, code, reason) = match state {
            LedgerState::Queued => ("QUEUED", P2Reserve::Reserved.code(), None),
            LedgerState::Confirmed => ("CONFIRMED", P4Persist::DbOk.code(), None),
            LedgerState::Failed(reason) => ("FAILED", P4Persist::BizErrorAck.code(), Some(reason.code())),
        };
        Self { request_id, status, code, reason, quantity }
    }

    /// Whether it is CONFIRMED or FAILED.
    #[must_use]
    pub(crate) fn is_final(&self) -> bool {
        self.status != "QUEUED"
    }
}

/// Where the status of a request can be read.
#[must_use]
pub(crate) fn status_url(sale: &SaleId, request_id: RequestId) -> String {
    format!("/v1/sales/{sale}/orders/{request_id}")
}

/// What status questions read in Redis.
pub(crate) struct StatusHandles {
    /// The records of accepted requests.
    pub(crate) ledger: RequestLedger,
    /// Whether a sale's keys are there.
    pub(crate) sale_keys: SaleKeys,
    /// Whether a server went back in time.
    pub(crate) boot_fence: BootFence,
}

/// Answers status questions.
pub struct Statuses {
    redis: StatusHandles,
    ledger_reads: QuestionBatcher<ledger_reads::LedgerQuestion, ledger_reads::LedgerAnswer>,
    replication: Replication,
    database_reads: DatabaseReads,
    shards: u16,
    retention_ms: i64,
    known: SaleIdFilter,
    /// Which ledgers are whole, as of at most [`WHOLE_TTL`] ago.
    whole: Cache<(SaleId, u16), bool>,
    stopper: Stopper,
}

impl Statuses {
    /// Over one Redis and one database; ledger records are kept as configured. Its reads run on the runtime
    /// this is called in, until the stopper is pulled.
    #[must_use]
    pub(crate) fn start(
        redis: StatusHandles,
        db: Db,
        known: SaleIdFilter,
        settings: &config::Settings,
        stopper: &Stopper,
    ) -> Self {
        let (shards, retention_s) = (settings.redis.shards, settings.p5_reconcile.ledger_retention_s);
        let ledger_reads = ledger_reads::start(redis.ledger.clone(), stopper);
        let replication = Replication::start(redis.ledger.clone(), stopper);
        let database_reads = DatabaseReads::start(db, stopper);
        let retention_ms = i64::try_from(retention_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let whole = Cache::builder().max_capacity(WHOLE_MAX).time_to_live(WHOLE_TTL).build();
        let stopper = stopper.clone();
        Self { redis, ledger_reads, replication, database_reads, shards, retention_ms, known, whole, stopper }
    }

    /// Whether this process is about to end: a client that follows a request then connects to another one.
    #[must_use]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopper.is_stopped()
    }

    /// The status now, or as soon as it is final within `wait`. A stop ends the waiting with what is known: an answer that came
    /// later would be cut off.
    pub(crate) async fn ask(
        &self,
        user: &UserId,
        sale: &SaleId,
        request_id: RequestId,
        wait: Duration,
    ) -> Result<OrderStatus, Problem> {
        let deadline = Instant::now() + wait;
        let mut pause = POLL;
        loop {
            let status = self.look(user, sale, request_id).await?;
            if status.is_final() || Instant::now() + pause > deadline {
                return Ok(status);
            }
            self.stopper.sleep(pause).await;
            if self.is_stopping() {
                return Ok(status);
            }
            pause = (pause * 3 / 2).min(POLL_MAX);
        }
    }

    async fn look(&self, user: &UserId, sale: &SaleId, request_id: RequestId) -> Result<OrderStatus, Problem> {
        match self.known.check(sale) {
            // Nothing is accepted of a sale before it exists.
            FilterVerdict::UnknownAt(at_ms) if made_at_ms(request_id) + CLOCK_SKEW_MS < at_ms => {
                return Err(not_yours());
            }
            FilterVerdict::UnknownAt(_) => {
                return Err(Kind::Unavailable.because("too many questions about sales unheard of"));
            }
            FilterVerdict::MayExist => {}
        }
        let shard = home_shard(user, self.shards);
        let found = self.ledger_reads.ask((sale.clone(), shard, request_id)).await.map_err(|busy| {
            Kind::Unavailable.because(busy.to_string()).about(request_id, status_url(sale, request_id))
        })?;
        match found {
            Ok(Some(record)) if record.user_id == *user => {
                if record.state == LedgerState::Queued {
                    self.queued(sale, shard, request_id).await?;
                }
                Ok(OrderStatus::new(request_id, record.quantity.get(), record.state))
            }
            Ok(Some(_)) => Err(not_yours()),
            Ok(None) if self.ledger_would_know(sale, shard, request_id).await => Err(not_yours()),
            Ok(None) => self.in_database(user, sale, request_id).await?.ok_or_else(not_yours),
            Err(error) => {
                tracing::debug!(phase = "p1_entry", %request_id, %error, "status: asking the database instead");
                self.in_database(user, sale, request_id).await?.ok_or_else(|| {
                    Kind::Unavailable
                        .because("the status cannot be told right now")
                        .about(request_id, status_url(sale, request_id))
                })
            }
        }
    }

    /// QUEUED says "accepted" as 202 does, so it may be told only when the replicas have it (`redis.wait_replicas`).
    async fn queued(&self, sale: &SaleId, shard: u16, request_id: RequestId) -> Result<(), Problem> {
        if Box::pin(self.replication.has((sale.clone(), shard, request_id))).await {
            return Ok(());
        }
        let problem = Kind::Unavailable.because("the status cannot be told right now");
        Err(problem.about(request_id, status_url(sale, request_id)))
    }

    /// Whether a request that is not in the ledger was never accepted: its id is younger than the oldest record that may
    /// have been trimmed, and the ledger is whole.
    async fn ledger_would_know(&self, sale: &SaleId, shard: u16, request_id: RequestId) -> bool {
        now_ms() - made_at_ms(request_id) < self.retention_ms
            && Box::pin(self.whole.get_with((sale.clone(), shard), self.is_whole(sale, shard))).await
    }

    /// Redis did not go back in time since the boot fence, and the sale's keys are there and not frozen.
    async fn is_whole(&self, sale: &SaleId, shard: u16) -> bool {
        let there = self.redis.sale_keys.meta(sale, shard).await;
        there.is_ok_and(|meta| meta.is_some_and(|meta| meta.state != MetaState::Frozen))
            && self.redis.boot_fence.was_passed(shard).await.unwrap_or(false)
    }

    async fn in_database(
        &self,
        user: &UserId,
        sale: &SaleId,
        request_id: RequestId,
    ) -> Result<Option<OrderStatus>, Problem> {
        let found = Box::pin(self.database_reads.find(sale, request_id)).await.map_err(|not_read| {
            Kind::Unavailable.because(not_read.to_string()).about(request_id, status_url(sale, request_id))
        })?;
        let mine = found.filter(|found| found.sale_id == *sale && found.user_id == *user);
        Ok(mine.map(|found| {
            let state = match found.outcome {
                Outcome::Ordered => LedgerState::Confirmed,
                Outcome::Failed(reason) => LedgerState::Failed(reason),
            };
            OrderStatus::new(request_id, found.quantity, state)
        }))
    }
}

fn not_yours() -> Problem {
    Kind::OrderNotFound.into()
}
