//! The ledgers of live sales as one process reads them, for everyone who asks what became of a request: status questions, and
//! repeats of purchases. In groups: a crowd costs Redis one command for hundreds of questions.
//!
//! Input: a sale, a shard and a request id. Output: the record, whether it may be promised, and whether a missing one says that
//! the request was never accepted. Keeps nothing but caches. A crash leaves nothing.

use super::CLOCK_SKEW_MS;
use super::ledger_questions::{LedgerAnswer, LedgerQuestion, read};
use super::replication::Replication;
use crate::config;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::sale::MetaState;
use crate::domain::snowflake::made_at_ms;
use crate::p2_reserve::Fence;
use crate::runtime::batcher::{Bounds, Busy, QuestionBatcher};
use crate::runtime::now_ms;
use crate::store::redis::{RequestLedger, SaleKeys};
use moka::future::Cache;
use std::sync::Arc;
use std::time::Duration;
use thread_local::ThreadLocal;

/// Of each thread's groups, and of those for threads without.
const BOUNDS: Bounds = Bounds { group_max: 512, waiting_max: 16_384, in_flight_max: 1, idle_end: None };
/// Of the groups that gather for [`GATHER`]: 100,000 answers a second, of more waiting ones than a process may have.
const GATHERED_BOUNDS: Bounds = Bounds { group_max: 1_000, waiting_max: 65_536, in_flight_max: 2, idle_end: None };
/// Shortest time of a group of questions that are asked again.
const GATHER: Duration = Duration::from_millis(20);
/// A complete ledger counts as complete for this time, which is shorter than a restart of a server.
const WHOLE_TTL: Duration = Duration::from_millis(500);
/// Ledgers remembered as whole or not.
const WHOLE_MAX: u64 = 10_000;

type LedgerQuestions = QuestionBatcher<LedgerQuestion, LedgerAnswer>;

/// What is read in Redis.
#[derive(Clone)]
pub(crate) struct LedgerHandles {
    /// The records of accepted requests.
    pub(crate) ledger: RequestLedger,
    /// Whether a sale's keys are there.
    pub(crate) sale_keys: SaleKeys,
    /// Whether a server went back in time.
    pub(crate) fence: Fence,
}

/// Reads of one process. Clones share the groups and the caches.
#[derive(Clone)]
pub(crate) struct LedgerReads {
    redis: LedgerHandles,
    /// Of each thread that asks: a question and its answer then cross to no other thread one by one.
    near: Arc<ThreadLocal<LedgerQuestions>>,
    /// For a thread whose runtime has ended and that was given another.
    far: LedgerQuestions,
    /// Of all threads: questions of those that have waited and can wait a little longer.
    gathered: LedgerQuestions,
    /// `None` when no replica is waited for.
    replication: Option<Arc<Replication>>,
    retention_ms: i64,
    /// What is known of each whole ledger, as of at most [`WHOLE_TTL`] ago; `None`: it is not whole.
    whole: Cache<(SaleId, u16), Option<WholeLedger>>,
}

/// A ledger that lost nothing.
#[derive(Debug, Clone, Copy)]
struct WholeLedger {
    /// Unix milliseconds; 0 where no rebuild made it.
    since_ms: i64,
    /// Whether the sale limits by person.
    of_persons: bool,
}

/// What it means that a request is not in the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LedgerAbsence {
    /// Its id is younger than the oldest record that may have been trimmed, and the ledger is whole since before it was made.
    NeverAccepted,
    /// The ledger may have had it, or was lost and is rebuilt since, without what was decided later: only the database knows.
    DatabaseKnows,
    /// Redis lost the ledger, went back in time, or does not sell the sale. What it had accepted may be on its way.
    Unknown,
}

impl LedgerReads {
    /// Over one Redis; ledger records are kept as configured. Its reads run on the runtime this is called in.
    #[must_use]
    pub(crate) fn start(redis: LedgerHandles, settings: &config::P5Reconcile) -> Self {
        let far = questions_to(&redis.ledger, None);
        let gathered = questions_to(&redis.ledger, Some(GATHER));
        let replication = Replication::start(&redis.ledger).map(Arc::new);
        let retention_ms = i64::try_from(settings.ledger_retention_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let whole = Cache::builder().max_capacity(WHOLE_MAX).time_to_live(WHOLE_TTL).build();
        Self { redis, near: Arc::default(), far, gathered, replication, retention_ms, whole }
    }

    /// The record of a request. That there is none is said only by a server that replicas follow (`redis.wait_replicas`).
    pub(crate) async fn find(&self, question: LedgerQuestion) -> Result<LedgerAnswer, Busy> {
        let near = self.near.get_or(|| questions_to(&self.redis.ledger, None));
        self.ask(if near.has_ended() { &self.far } else { near }, question).await
    }

    /// The same for a question that is asked again and again: in larger groups, a moment later.
    pub(crate) async fn find_again(&self, question: LedgerQuestion) -> Result<LedgerAnswer, Busy> {
        self.ask(&self.gathered, question).await
    }

    /// The ledgers themselves.
    pub(super) fn ledger(&self) -> RequestLedger {
        self.redis.ledger.clone()
    }

    async fn ask(&self, questions: &LedgerQuestions, question: LedgerQuestion) -> Result<LedgerAnswer, Busy> {
        let again = self.replication.as_ref().map(|replication| (replication, question.clone()));
        match (questions.ask(question).await?, again) {
            (Ok(None), Some((replication, question))) => Box::pin(replication.record(question)).await,
            (found, _) => Ok(found),
        }
    }

    /// Whether enough replicas have a record that was found (`redis.wait_replicas`).
    pub(crate) async fn is_replicated(&self, question: LedgerQuestion) -> bool {
        match &self.replication {
            Some(replication) => Box::pin(replication.has(question)).await,
            None => true,
        }
    }

    /// What it means that a request is not in the ledger.
    pub(crate) async fn absence(&self, (sale, shard, request_id): LedgerQuestion) -> LedgerAbsence {
        if now_ms() - made_at_ms(request_id) >= self.retention_ms {
            return LedgerAbsence::DatabaseKnows;
        }
        match self.whole(&sale, shard).await {
            Some(whole) if made_at_ms(request_id) - CLOCK_SKEW_MS < whole.since_ms => LedgerAbsence::DatabaseKnows,
            Some(_) => LedgerAbsence::NeverAccepted,
            None => LedgerAbsence::Unknown,
        }
    }

    /// Whether the records of a buyer of this sale are where the person's are, and not where the account's would be.
    pub(super) async fn are_of_persons(&self, sale: &SaleId, shard: u16) -> bool {
        self.whole(sale, shard).await.is_some_and(|whole| whole.of_persons)
    }

    async fn whole(&self, sale: &SaleId, shard: u16) -> Option<WholeLedger> {
        Box::pin(self.whole.get_with((sale.clone(), shard), self.read_whole(sale, shard))).await
    }

    /// Redis did not go back in time, and the sale's keys are all there and not frozen. The first read after a restart compares the server with the database, as the first purchase does: of a sale that no
    /// buyer buys from, no other call would.
    async fn read_whole(&self, sale: &SaleId, shard: u16) -> Option<WholeLedger> {
        if let Err(fault) = self.redis.fence.pass(shard).await {
            tracing::debug!(phase = "p1_entry", %sale, shard, error = %fault, "whether a ledger is whole");
            return None;
        }
        let keys = &self.redis.sale_keys;
        let meta = keys.meta(sale, shard).await.ok()??;
        let is_whole = meta.state != MetaState::Frozen && keys.are_complete(sale, shard).await.unwrap_or(false);
        if !is_whole {
            return None;
        }
        let (rebuilt_at_ms, of_persons) = keys.ledger_terms(sale, shard).await.ok()?;
        Some(WholeLedger { since_ms: rebuilt_at_ms.unwrap_or(0), of_persons })
    }
}

/// Questions in groups, on the runtime this is called in. With `gather` a group takes at least that long, so that the next one gathers.
fn questions_to(ledger: &RequestLedger, gather: Option<Duration>) -> LedgerQuestions {
    let ledger = ledger.clone();
    let bounds = if gather.is_some() { GATHERED_BOUNDS } else { BOUNDS };
    QuestionBatcher::start(bounds, move |questions| {
        let ledger = ledger.clone();
        async move {
            // Without a pause there is no timer either: one of no length takes up to a millisecond.
            match gather {
                Some(pause) => tokio::join!(answer(&ledger, questions), tokio::time::sleep(pause)).0,
                None => answer(&ledger, questions).await,
            }
        }
    })
}

/// The answers in the order of the questions. That there is no record is said by the purchases' connection only: that of the polls
/// may still lead to a server that was demoted, because reads never meet its READONLY. Where replicas are waited for
/// [`LedgerReads::find`] sees to that.
async fn answer(ledger: &RequestLedger, questions: Vec<LedgerQuestion>) -> Vec<LedgerAnswer> {
    metrics::histogram!("seckill_p1_entry_status_group_count").record(questions.len() as f64);
    let polled = |sale, shard, ids: Vec<RequestId>| async move { ledger.lookup_for_poll(sale, shard, &ids).await };
    let mut answers = read(&questions, polled).await;
    if ledger.waits_for_replicas() {
        return answers;
    }
    let absent: Vec<usize> = (0..answers.len()).filter(|at| matches!(answers[*at], Ok(None))).collect();
    let again: Vec<LedgerQuestion> = absent.iter().map(|at| questions[*at].clone()).collect();
    let reserving = |sale, shard, ids: Vec<RequestId>| async move { ledger.lookup(sale, shard, &ids).await };
    for (at, answer) in absent.into_iter().zip(read(&again, reserving).await) {
        answers[at] = answer;
    }
    answers
}
