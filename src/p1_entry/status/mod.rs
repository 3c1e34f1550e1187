//! The status of a request (A11): from the ledger for a live sale, from the database for requests that the ledger has forgotten.
//!
//! Input: a buyer, a sale, a request id. Output: QUEUED, CONFIRMED or FAILED. Only the buyer may ask; anyone else gets 404.
//! Requests in either DLQ are still QUEUED: they are being worked on. The database is read only for requests older than a
//! ledger record is kept or than a rebuild of the ledger, or when Redis does not answer or lost the ledger: no accepted buyer gets
//! 404 then. Keeps nothing but caches: who asks again for a status that is final costs no server anything.

mod database_reads;
mod document;
mod elsewhere;
mod landings;
mod ledger_questions;
mod ledger_reads;
mod replication;

pub(crate) use document::{OrderStatus, StatusOrder, status_url};
pub(crate) use ledger_questions::LedgerQuestion;
pub(crate) use ledger_reads::{LedgerAbsence, LedgerHandles, LedgerReads};

use super::sale_id_filter::{FilterVerdict, SaleIdFilter};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::ledger::{LedgerState, SettledUpTo};
use crate::domain::outcome::Outcome;
use crate::domain::shard::home_shard;
use crate::domain::snowflake::made_at_ms;
use crate::http::problem::{Kind, Problem};
use crate::orders::rows::RequestRows;
use crate::orders::rows::request_records::FinalRequest;
use crate::runtime::Stopper;
use crate::runtime::batcher::Busy;
use crate::sales::rows::SaleRows;
use database_reads::DatabaseReads;
use landings::{Landings, Waited, WaitingRequest};
use ledger_questions::LedgerAnswer;
use moka::future::Cache;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// First pause between two reads of a long poll; grows by half up to the next.
const POLL: Duration = Duration::from_millis(50);
const POLL_MAX: Duration = Duration::from_millis(500);
/// The same where it is known that orders before this one have not landed yet.
const POLL_AHEAD: Duration = Duration::from_secs(10);

/// A final status is answered again for this time without asking a server: no outcome changes.
const FINAL_TTL: Duration = Duration::from_secs(300);
/// Final statuses remembered; about 300 bytes each.
const FINALS_MAX: u64 = 20_000;

/// Clocks of two processes may differ by this much.
const CLOCK_SKEW_MS: i64 = 5_000;

/// Whether a question was asked before by the same wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    /// On the shard that has the record.
    Again(u16),
}

/// A status, and where a queued request waits. Boxed: each question would carry it.
type Found = (OrderStatus, Option<Box<WaitingRequest>>);

/// A final status, and whose it is.
struct FinalStatus {
    user: UserId,
    sale: SaleId,
    status: OrderStatus,
}

/// Answers status questions.
pub struct Statuses {
    ledger_reads: LedgerReads,
    database_reads: DatabaseReads,
    finals: Cache<RequestId, Arc<FinalStatus>>,
    landings: Landings,
    shards: u16,
    known: SaleIdFilter,
    stopper: Stopper,
}

impl Statuses {
    /// Over the ledgers and one database. Its reads run on the runtime this is called in; waiting ends with the stopper.
    #[must_use]
    pub(crate) fn start(
        ledger_reads: LedgerReads,
        rows: (SaleRows, RequestRows),
        known: SaleIdFilter,
        shards: u16,
        stopper: &Stopper,
    ) -> Self {
        let finals = Cache::builder().max_capacity(FINALS_MAX).time_to_live(FINAL_TTL).build();
        let database_reads = DatabaseReads::start(rows);
        let landings = Landings::start(ledger_reads.ledger(), stopper);
        Self { ledger_reads, database_reads, finals, landings, shards, known, stopper: stopper.clone() }
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
        let mut turn = Turn::First;
        loop {
            let (status, waiting) = self.status(user, sale, request_id, turn).await?;
            let left = deadline.saturating_duration_since(Instant::now());
            if status.is_final() || left < pause {
                return Ok(status);
            }
            // Boxed: each question would carry it, and few wait.
            let next = Box::pin(async {
                match &waiting {
                    Some(waiting) => self.landings.reached(waiting, pause, POLL_AHEAD.min(left)).await,
                    None => {
                        tokio::time::sleep(pause).await;
                        Waited::ByTheClock
                    }
                }
            });
            pause = tokio::select! {
                () = self.stopper.stopped() => return Ok(status),
                waited = next => match waited {
                    Waited::Ahead => POLL,
                    Waited::ByTheClock => (pause * 3 / 2).min(POLL_MAX),
                },
            };
            turn = waiting.map_or(Turn::First, |waiting| Turn::Again(waiting.ledger.1));
        }
    }

    /// The status now, and where it waits. A final one is remembered for its buyer; anyone else's question takes the whole way.
    async fn status(&self, user: &UserId, sale: &SaleId, request_id: RequestId, turn: Turn) -> Result<Found, Problem> {
        if let Some(before) = self.finals.get(&request_id).await
            && before.user == *user
            && before.sale == *sale
        {
            return Ok((before.status.clone(), None));
        }
        let found = self.read_now(user, sale, request_id, turn).await?;
        if found.0.is_final() {
            let known = FinalStatus { user: user.clone(), sale: sale.clone(), status: found.0.clone() };
            self.finals.insert(request_id, Arc::new(known)).await;
        }
        Ok(found)
    }

    async fn read_now(
        &self,
        user: &UserId,
        sale: &SaleId,
        request_id: RequestId,
        turn: Turn,
    ) -> Result<Found, Problem> {
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
        let (shard, found) = self.on_its_shard(user, sale, request_id, turn).await.map_err(|busy| {
            Kind::Unavailable.because(busy.to_string()).about(request_id, status_url(sale, request_id))
        })?;
        let status = match found {
            Ok(Some(record)) if record.user_id == *user => {
                let status = OrderStatus::new(request_id, record.quantity.get(), record.state);
                if record.state != LedgerState::Queued {
                    return Ok((status, None));
                }
                self.queued(sale, shard, request_id).await?;
                let at = SettledUpTo { epoch: record.epoch, number: record.number };
                return Ok((status, Some(Box::new(WaitingRequest { ledger: (sale.clone(), shard), at }))));
            }
            Ok(Some(_)) => Err(not_yours()),
            Ok(None) => match self.ledger_reads.absence_of_all((sale.clone(), shard, request_id), self.shards).await {
                LedgerAbsence::NeverAccepted => Err(not_yours()),
                LedgerAbsence::DatabaseKnows => self.in_database(user, sale, request_id).await?.ok_or_else(not_yours),
                LedgerAbsence::Unknown => Box::pin(self.without_ledger(user, sale, request_id)).await,
            },
            Err(error) => {
                tracing::debug!(phase = "p1_entry", %request_id, %error, "status: asking the database instead");
                self.in_database(user, sale, request_id).await?.ok_or_else(|| not_now(sale, request_id))
            }
        };
        status.map(|status| (status, None))
    }

    /// The record, and the shard that has it or would have it: nearly always the account's, else the person's.
    async fn on_its_shard(
        &self,
        user: &UserId,
        sale: &SaleId,
        request_id: RequestId,
        turn: Turn,
    ) -> Result<(u16, LedgerAnswer), Busy> {
        let shard = match turn {
            Turn::First => home_shard(user, self.shards),
            Turn::Again(shard) => shard,
        };
        let question = (sale.clone(), shard, request_id);
        let found = match turn {
            Turn::First => self.ledger_reads.find(question.clone()).await?,
            Turn::Again(_) => self.ledger_reads.find_again(question.clone()).await?,
        };
        if !matches!(found, Ok(None)) {
            return Ok((shard, found));
        }
        match Box::pin(self.ledger_reads.elsewhere(&question, self.shards)).await? {
            Ok(Some((shard, record))) => Ok((shard, Ok(Some(record)))),
            Ok(None) => Ok((shard, Ok(None))),
            Err(fault) => Ok((shard, Err(fault))),
        }
    }

    /// Redis has no whole ledger of the sale. While its orders may be on their way, that the database has none says nothing.
    async fn without_ledger(
        &self,
        user: &UserId,
        sale: &SaleId,
        request_id: RequestId,
    ) -> Result<OrderStatus, Problem> {
        match self.decided(sale, request_id).await? {
            Some(found) => mine(&found, user, sale, request_id).ok_or_else(not_yours),
            None if self.database_reads.is_live(sale).await.unwrap_or(true) => Err(not_now(sale, request_id)),
            None => Err(not_yours()),
        }
    }

    /// QUEUED says "accepted" as 202 does, so it may be answered only when the replicas have it (`redis.wait_replicas`).
    async fn queued(&self, sale: &SaleId, shard: u16, request_id: RequestId) -> Result<(), Problem> {
        if self.ledger_reads.is_replicated((sale.clone(), shard, request_id)).await {
            return Ok(());
        }
        Err(not_now(sale, request_id))
    }

    async fn in_database(
        &self,
        user: &UserId,
        sale: &SaleId,
        request_id: RequestId,
    ) -> Result<Option<OrderStatus>, Problem> {
        let found = self.decided(sale, request_id).await?;
        Ok(found.and_then(|found| mine(&found, user, sale, request_id)))
    }

    /// What the database has of the request, whosever it is.
    async fn decided(&self, sale: &SaleId, request_id: RequestId) -> Result<Option<FinalRequest>, Problem> {
        Box::pin(self.database_reads.find(sale, request_id)).await.map_err(|not_read| {
            Kind::Unavailable.because(not_read.to_string()).about(request_id, status_url(sale, request_id))
        })
    }
}

fn mine(found: &FinalRequest, user: &UserId, sale: &SaleId, request_id: RequestId) -> Option<OrderStatus> {
    let is_mine = found.sale_id == *sale && found.user_id == *user;
    is_mine.then(|| {
        let state = match found.outcome {
            Outcome::Ordered => LedgerState::Confirmed,
            Outcome::Failed(reason) => LedgerState::Failed(reason),
        };
        OrderStatus::new(request_id, found.quantity, state)
    })
}

fn not_now(sale: &SaleId, request_id: RequestId) -> Problem {
    let problem = Kind::Unavailable.because_both("the status is not known right now", "状态暂时无法查询");
    problem.about(request_id, status_url(sale, request_id))
}

fn not_yours() -> Problem {
    Kind::OrderNotFound.into()
}
