//! Buyers' requests whose orders are not written yet. "There is no such order" would read as if the purchase was lost.
//!
//! Input: a buyer, and a request id without an order. Output: the sale that accepted it from this buyer. Only young ids are searched, in
//! the ledgers of a bounded number of sales that sell (each shard's where the sale limits by person), in groups with all other questions. Reads only, a crash leaves nothing.

use super::status::LedgerReads;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::ledger::{LedgerRecord, LedgerState};
use crate::domain::policy::LimitBy;
use crate::domain::sale::SaleStatus;
use crate::domain::shard::home_shard;
use crate::domain::snowflake::made_at_ms;
use crate::runtime::now_ms;
use crate::sales::rows::SaleRows;
use futures::StreamExt;
use moka::future::Cache;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// An order is written within this time of its request id: a purchase token's time, and a long backlog.
const YOUNG_MAX_MS: i64 = 3_600_000;
/// Sales searched for one question. Of more, a request in the others is not found: its status is to be asked.
const SALES_MAX: usize = 64;
/// Ledgers asked at once for one question.
const AT_ONCE: usize = 16;
/// Longest search.
const DEADLINE: Duration = Duration::from_secs(2);
/// Which sales sell is read this often.
const SALES_TTL: Duration = Duration::from_secs(1);

/// Whether the order is this buyer's, and will be there. One that was written meanwhile is found by the next question.
fn is_to_come(record: &LedgerRecord, user: &UserId) -> bool {
    let will_be = match record.state {
        LedgerState::Queued | LedgerState::Confirmed => true,
        LedgerState::Failed(_) => false,
    };
    will_be && record.user_id == *user
}

/// The ledgers or the database did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotSaid;

/// Finds requests. One a process.
pub(super) struct QueuedOrders {
    ledger_reads: LedgerReads,
    sales: SaleRows,
    shards: u16,
    selling: Cache<(), Arc<Vec<(SaleId, LimitBy)>>>,
}

impl QueuedOrders {
    pub(super) fn new(ledger_reads: LedgerReads, sales: SaleRows, shards: u16) -> Self {
        let selling = Cache::builder().max_capacity(1).time_to_live(SALES_TTL).build();
        Self { ledger_reads, sales, shards, selling }
    }

    /// The sale that accepted this request from this buyer, if one did lately.
    pub(super) async fn sale_of(&self, user: &UserId, request_id: RequestId) -> Result<Option<SaleId>, NotSaid> {
        if (now_ms() - made_at_ms(request_id)).abs() > YOUNG_MAX_MS {
            return Ok(None);
        }
        timeout(DEADLINE, self.search(user, request_id)).await.unwrap_or(Err(NotSaid))
    }

    async fn search(&self, user: &UserId, request_id: RequestId) -> Result<Option<SaleId>, NotSaid> {
        let selling = self.selling.try_get_with((), self.sales()).await.map_err(|_logged| NotSaid)?;
        let home = home_shard(user, self.shards);
        let ledgers = selling.iter().flat_map(|(sale, limit_by)| {
            let shards = match limit_by {
                LimitBy::Account => home..home + 1,
                // The person's shard, and who the person is this call may not show.
                LimitBy::Person => 0..self.shards,
            };
            shards.map(move |shard| (sale, shard))
        });
        let questions = ledgers.map(|(sale, shard)| async move {
            let found = self.ledger_reads.find((sale.clone(), shard, request_id)).await;
            match found {
                Ok(Ok(record)) => Ok(record.filter(|record| is_to_come(record, user)).map(|_record| sale.clone())),
                Ok(Err(_)) | Err(_) => Err(NotSaid),
            }
        });
        let mut answers = futures::stream::iter(questions).buffer_unordered(AT_ONCE);
        let mut not_said = false;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(Some(sale)) => return Ok(Some(sale)),
                Ok(None) => {}
                Err(NotSaid) => not_said = true,
            }
        }
        if not_said { Err(NotSaid) } else { Ok(None) }
    }

    /// The sales that sell, or did until lately.
    async fn sales(&self) -> Result<Arc<Vec<(SaleId, LimitBy)>>, NotSaid> {
        let released = self.sales.released().await.map_err(|error| {
            tracing::warn!(phase = "p1_entry", %error, "sales of queued orders");
            NotSaid
        })?;
        let now = now_ms();
        let sells = released.into_iter().filter(|sale| match sale.status {
            SaleStatus::Warmed | SaleStatus::Paused | SaleStatus::Closed => {
                sale.starts_at_ms <= now && now < sale.ends_at_ms + YOUNG_MAX_MS
            }
            SaleStatus::Draft => false,
        });
        Ok(Arc::new(sells.map(|sale| (sale.sale_id, sale.limit_by)).take(SALES_MAX).collect()))
    }
}
