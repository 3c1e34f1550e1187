//! All outcomes of a sale, in pages, for the rebuild of Redis (E7), and the purchases that came back in an epoch. Reads only.

use crate::domain::buyer::limit_key;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::ReturnedPurchase;
use crate::domain::outcome::Outcome;
use crate::domain::policy::Quantity;
use crate::p5_reconcile::rows::DecidedRows;
use crate::p5_reconcile::rows::books::{Series, of_series};
use crate::sales::rows::grants::{IS_RETURN, returned_purchases};
use crate::store::mysql::codes::{read_outcome, read_request_id, read_user_id, unix_ms, unreadable};
use crate::store::mysql::fault::DbError;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Integer, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;
use std::collections::HashSet;

/// Most rows of a page.
pub const PAGE_MAX: usize = 1000;

/// One decided request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedRequest {
    /// The request that was decided.
    pub request_id: RequestId,
    /// An order or a failure.
    pub outcome: Outcome,
    /// The buyer who made it: the account.
    pub user_id: UserId,
    /// The person behind it, where the sale limits by person.
    pub person: Option<UserId>,
    /// Number of units, at least 1.
    pub quantity: Quantity,
    /// Epoch at acceptance.
    pub epoch: u32,
    /// Acceptance number; 0 when another request has it.
    pub number: u64,
    /// When it was accepted (an order) or recorded (a failure), Unix milliseconds.
    pub at_ms: i64,
    /// An order that ended unpaid and no longer counts against its buyer's limit.
    pub limit_returned: bool,
}

impl DecidedRequest {
    /// Under which id its units count for a limit.
    pub(crate) fn limit_key(&self) -> &UserId {
        limit_key(&self.user_id, self.person.as_ref())
    }
}

#[derive(QueryableByName)]
struct DecidedRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    request_id: u64,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Nullable<Text>)]
    reason: Option<String>,
    #[diesel(sql_type = Nullable<Binary>)]
    user_id: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Binary>)]
    person: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Unsigned<Integer>>)]
    quantity: Option<u32>,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    number: Option<u64>,
    #[diesel(sql_type = Datetime)]
    decided_at: NaiveDateTime,
    #[diesel(sql_type = BigInt)]
    limit_returned: i64,
}

impl DecidedRow {
    /// `None` for an outcome that lost its order or its register row: there is no buyer to load.
    fn read(self, epoch: u32) -> Result<Option<DecidedRequest>, DbError> {
        let (Some(user_id), Some(quantity)) = (self.user_id, self.quantity) else { return Ok(None) };
        Ok(Some(DecidedRequest {
            request_id: read_request_id(self.request_id)?,
            outcome: read_outcome(&self.kind, self.reason.as_deref())?,
            user_id: read_user_id(&user_id)?,
            person: self.person.as_deref().map(read_user_id).transpose()?,
            quantity: Quantity::new(quantity).ok_or_else(|| unreadable("quantity", "0"))?,
            epoch,
            number: self.number.unwrap_or(0),
            at_ms: unix_ms(self.decided_at),
            limit_returned: self.limit_returned != 0,
        }))
    }
}

/// One page of a series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecidedPage {
    /// What was decided.
    pub requests: Vec<DecidedRequest>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<u64>,
}

#[derive(QueryableByName)]
struct BuyersRow {
    #[diesel(sql_type = Text)]
    buyers: String,
}

const COLUMNS: &str = "SELECT r.request_id, r.kind, r.reason, COALESCE(o.user_id, f.user_id) AS user_id, \
    COALESCE(o.person, f.person) AS person, \
    COALESCE(o.quantity, f.quantity) AS quantity, r.number, COALESCE(o.accepted_at, r.created_at) AS decided_at, \
    CAST(COALESCE(o.limit_returned, 0) AS SIGNED) AS limit_returned \
    FROM request_outcome r FORCE INDEX (uk_acceptance) LEFT JOIN orders o ON o.request_id = r.request_id \
    LEFT JOIN failed_request f ON f.request_id = r.request_id \
    WHERE r.sale_id >= ? AND r.sale_id <= ? AND r.shard >= ? AND r.shard <= ? AND r.epoch >= ? AND r.epoch <= ?";

impl DecidedRows {
    /// One page of what was decided in a series, by acceptance number, above `after`. On the way along `uk_acceptance` each page
    /// costs the same, however many other sales there are and however far the walk has come (why `>=` and `<=`: `books::series`).
    pub async fn page(&self, sale_id: &SaleId, series: Series, after: u64) -> Result<DecidedPage, DbError> {
        let query = format!(
            "/* decided::page */ {COLUMNS} AND r.number > ? ORDER BY r.sale_id, r.shard, r.epoch, r.number LIMIT {PAGE_MAX}"
        );
        let rows = self.rows(sale_id, series, (query, after)).await?;
        let next = if rows.len() < PAGE_MAX { None } else { rows.last().and_then(|row| row.number) };
        decided_page(rows, series, next)
    }

    /// One page of what was decided in a series without a number of its own, by request id, above `after`: the losers of numbers given
    /// twice. Each page reads all of the series that have none and keeps the first ones: they are few, and the index has no order among
    /// them that a server trusts.
    pub async fn unnumbered(&self, sale_id: &SaleId, series: Series, after: u64) -> Result<DecidedPage, DbError> {
        let query = format!(
            "/* decided::unnumbered */ {COLUMNS} AND r.number IS NULL AND r.request_id > ? \
         ORDER BY r.request_id LIMIT {PAGE_MAX}"
        );
        let rows = self.rows(sale_id, series, (query, after)).await?;
        let next = if rows.len() < PAGE_MAX { None } else { rows.last().map(|row| row.request_id) };
        decided_page(rows, series, next)
    }
}

fn decided_page(rows: Vec<DecidedRow>, series: Series, next: Option<u64>) -> Result<DecidedPage, DbError> {
    let requests = rows.into_iter().filter_map(|row| row.read(series.epoch).transpose()).collect::<Result<_, _>>()?;
    Ok(DecidedPage { requests, next })
}

impl DecidedRows {
    async fn rows(
        &self,
        sale_id: &SaleId,
        series: Series,
        (query, after): (String, u64),
    ) -> Result<Vec<DecidedRow>, DbError> {
        let sale = sale_id.as_str().as_bytes();
        self.db
            .patient()
            .run("decided_page", async |conn| {
                Ok(of_series(query, sale, series).bind::<Unsigned<BigInt>, _>(after).load(conn).await?)
            })
            .await
    }

    /// The requests whose limits came back by grants of `epoch`.
    pub(crate) async fn returned_in(&self, sale_id: &SaleId, epoch: u32) -> Result<HashSet<RequestId>, DbError> {
        let query = format!(
            "/* decided::returned */ SELECT buyers FROM stock_grants FORCE INDEX (ix_grants_epoch) \
             WHERE sale_id = ? AND epoch = ? AND buyers IS NOT NULL AND {IS_RETURN}"
        );
        let rows: Vec<BuyersRow> = self
            .db
            .patient()
            .run("decided_returned", async |conn| {
                let of_sale = diesel::sql_query(query).bind::<Binary, _>(sale_id.as_str().as_bytes());
                Ok(of_sale.bind::<Unsigned<Integer>, _>(epoch).load(conn).await?)
            })
            .await?;
        let mut returned = HashSet::new();
        for BuyersRow { buyers } in rows {
            returned
                .extend(returned_purchases(&buyers)?.into_iter().map(|ReturnedPurchase(_, request_id, _)| request_id));
        }
        Ok(returned)
    }

    /// The moment of the database by its own clock, Unix milliseconds.
    pub(crate) async fn now_ms(&self) -> Result<i64, DbError> {
        let now = diesel::dsl::sql::<Datetime>("NOW(3)");
        self.db
            .run("decided_now", async |conn| {
                let now: NaiveDateTime = diesel::select(now).get_result(conn).await?;
                Ok(unix_ms(now))
            })
            .await
    }
}
