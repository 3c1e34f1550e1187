//! What the database knows of requests that the ledger does not know: requests older than its records, and all of them
//! while Redis is away. One read for hundreds of questions, so a flood of invented ids is a trickle of reads (A13).
//!
//! Input: a sale and a request id. Output: who made the request, and its outcome. Keeps what it read: an outcome, which is
//! final, for minutes, and that there is none for two seconds. A crash leaves nothing.

use super::super::kept_for::KeptFor;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::sale::SaleStatus;
use crate::domain::snowflake::made_at_ms;
use crate::orders::rows::RequestRows;
use crate::orders::rows::request_records::FinalRequest;
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::runtime::now_ms;
use crate::sales::rows::SaleRows;
use moka::future::Cache;
use std::time::Duration;

const BOUNDS: Bounds = Bounds { group_max: 512, waiting_max: 4_096, in_flight_max: 1, idle_end: None };
/// Shortest time from one read to the next: while a read takes less, the next group gathers.
const GATHER: Duration = Duration::from_millis(10);
/// That a request is not there is remembered for this time: it may be in the next moment.
const ABSENT_TTL: Duration = Duration::from_secs(2);
/// What became of one is remembered for this time: no outcome changes.
const FINAL_TTL: Duration = Duration::from_secs(300);
const ANSWERS_MAX: u64 = 10_000;
/// When a sale was created never changes; a sale that is not there may be created, or archived.
const CREATED_TTL: Duration = Duration::from_secs(60);
const CREATED_MAX: u64 = 10_000;
/// The clocks of the database and of all makers of ids agree within this time.
const CLOCKS_APART_MS: i64 = 3_600_000;

/// The database cannot be asked now, or too many questions wait for it.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the database does not answer right now")]
pub(super) struct NotRead;

/// How long an answer is given without another read.
fn kept_for(found: &Option<FinalRequest>) -> Duration {
    if found.is_some() { FINAL_TTL } else { ABSENT_TTL }
}

/// Reads of one process. Each question is asked once at a time.
pub(super) struct DatabaseReads {
    sales: SaleRows,
    batcher: QuestionBatcher<RequestId, Result<Option<FinalRequest>, NotRead>>,
    answers: Cache<RequestId, Option<FinalRequest>>,
    created_at_ms: Cache<SaleId, Option<i64>>,
    live: Cache<SaleId, bool>,
}

impl DatabaseReads {
    /// Starts the grouped reads, on the runtime this is called in.
    pub(super) fn start((sales, requests): (SaleRows, RequestRows)) -> Self {
        let asked = requests;
        let batcher = QuestionBatcher::start(BOUNDS, move |request_ids: Vec<RequestId>| {
            let requests = asked.clone();
            async move { tokio::join!(read(&requests, request_ids), tokio::time::sleep(GATHER)).0 }
        });
        let answers = Cache::builder().max_capacity(ANSWERS_MAX).expire_after(KeptFor(kept_for)).build();
        let created_at_ms = Cache::builder().max_capacity(CREATED_MAX).time_to_live(CREATED_TTL).build();
        let live = Cache::builder().max_capacity(CREATED_MAX).time_to_live(ABSENT_TTL).build();
        Self { sales, batcher, answers, created_at_ms, live }
    }

    /// The request, if it has its outcome. A request that cannot be one of this sale is not looked up.
    pub(super) async fn find(&self, sale: &SaleId, request_id: RequestId) -> Result<Option<FinalRequest>, NotRead> {
        if let Some(answer) = self.answers.get(&request_id).await {
            return Ok(answer);
        }
        if made_at_ms(request_id) > now_ms() + CLOCKS_APART_MS || self.is_older_than(sale, request_id).await? {
            return Ok(None);
        }
        let ask = async { self.batcher.ask(request_id).await.unwrap_or(Err(NotRead)) };
        self.answers.try_get_with(request_id, ask).await.map_err(|fault| *fault)
    }

    /// Whether Redis has or had this sale's stock, and the sale is not over: its requests may be on their way.
    pub(super) async fn is_live(&self, sale: &SaleId) -> Result<bool, NotRead> {
        let read = async {
            let found = self.sales.get(sale).await.map_err(|error| {
                tracing::warn!(phase = "p1_entry", %sale, %error, "status: whether the sale is live");
                NotRead
            })?;
            Ok(found.is_some_and(|sale| matches!(sale.status, SaleStatus::Warmed | SaleStatus::Paused)))
        };
        self.live.try_get_with(sale.clone(), read).await.map_err(|fault: std::sync::Arc<NotRead>| *fault)
    }

    /// Whether the request was made before the sale was created.
    async fn is_older_than(&self, sale: &SaleId, request_id: RequestId) -> Result<bool, NotRead> {
        let read = async {
            self.sales.created_at_ms(sale).await.map_err(|error| {
                tracing::warn!(phase = "p1_entry", %sale, %error, "status: when the sale was created");
                NotRead
            })
        };
        let created_at_ms = self.created_at_ms.try_get_with(sale.clone(), read).await.map_err(|fault| *fault)?;
        Ok(created_at_ms.is_some_and(|created_at_ms| made_at_ms(request_id) < created_at_ms - CLOCKS_APART_MS))
    }
}

/// The answers in the order of the questions.
async fn read(requests: &RequestRows, request_ids: Vec<RequestId>) -> Vec<Result<Option<FinalRequest>, NotRead>> {
    match requests.final_requests(&request_ids).await {
        Ok(found) => request_ids.iter().map(|request_id| Ok(found.get(request_id).cloned())).collect(),
        Err(error) => {
            tracing::warn!(phase = "p1_entry", count = request_ids.len(), %error, "status");
            vec![Err(NotRead); request_ids.len()]
        }
    }
}
