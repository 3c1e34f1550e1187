//! All outcomes of a sale, in pages, for the rebuild of Redis (E7), and the transaction that fixes the units that Redis gets.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::outcome::Outcome;
use crate::domain::policy::Quantity;
use crate::faults::left_out;
use crate::p5_reconcile::rows::DecidedRows;
use crate::p5_reconcile::rows::books::{Series, of_series};
use crate::sales::rows::grants;
use crate::store::mysql::codes::{
    GrantKind, datetime, read_outcome, read_request_id, read_user_id, reasons_with_unit, unix_ms, unreadable,
};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{sales, stock_grants};
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Integer, Nullable, Text, Unsigned};
use diesel_async::{AsyncConnection, RunQueryDsl};

/// Most rows of a page.
pub const PAGE_MAX: usize = 1000;

/// One decided request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedRequest {
    /// The request that was decided.
    pub request_id: RequestId,
    /// An order or a failure.
    pub outcome: Outcome,
    /// The buyer who made it.
    pub user_id: UserId,
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

const COLUMNS: &str = "SELECT r.request_id, r.kind, r.reason, COALESCE(o.user_id, f.user_id) AS user_id, \
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

/// What a rebuild is about to give to the keys of its epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    pub epoch: u32,
    /// `sales.stock` that `units` was worked out from.
    pub stock: i64,
    /// Units of failures held that `units` was worked out from.
    pub held: i64,
    /// Units for Redis.
    pub units: i64,
    /// Before the epoch was begun, Unix milliseconds by the database's clock.
    pub(crate) began_at_ms: i64,
}

#[derive(QueryableByName)]
struct HeldRow {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

const HELD: &str = "/* decided::open */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units FROM failed_request \
    WHERE sale_id = ? AND status = 'failed_final' AND reclaimed_by IS NULL AND reason IN";

impl DecidedRows {
    /// Fixes what Redis gets: every grant of the past is marked as given and belongs to a former epoch, and the units are the grant
    /// `rebuild-<epoch>`. One transaction, which holds the sale's row: a grant is part of this or belongs to the epoch that opens.
    /// Returns the ids of the grants that another process may still be about to give; `None` when the sale moved on
    /// meanwhile, and nothing was written. After an unknown outcome, begin again under the next epoch.
    pub(crate) async fn open(&self, sale_id: &SaleId, opening: &Opening) -> Result<Option<Vec<String>>, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let began_at = datetime(opening.began_at_ms)?;
        let of_sale = || stock_grants::table.filter(stock_grants::sale_id.eq(sale));
        let ids: Option<Vec<Vec<u8>>> = self
            .db
            .patient()
            .run("decided_open", async |conn| {
                conn.transaction(async |conn| {
                    let row = sales::table.find(sale).select((sales::stock, sales::epoch)).for_update();
                    let row: Option<(i64, u32)> = row.first(conn).await.optional()?;
                    let held: HeldRow = diesel::sql_query(format!("{HELD} ({})", reasons_with_unit()))
                        .bind::<Binary, _>(sale)
                        .get_result(conn)
                        .await?;
                    let Some((stock, epoch)) = row else { return Ok(None) };
                    let is_ours = epoch == opening.epoch || left_out!(SnapshotEpoch);
                    let is_as_counted = (stock, held.units) == (opening.stock, opening.held) || left_out!(OneSnapshot);
                    if !is_ours || !is_as_counted {
                        return Ok(None);
                    }
                    // Units offered again meanwhile have left what `units` keeps back, and would be marked as given.
                    let offered = of_sale()
                        .filter(stock_grants::kind.eq(GrantKind::Reclaim.code()))
                        .filter(stock_grants::created_at.ge(began_at));
                    if offered.count().get_result::<i64>(conn).await? > 0 {
                        return Ok(None);
                    }
                    let late = stock_grants::applied_at.is_null().or(stock_grants::applied_at.ge(began_at));
                    let ids = of_sale().filter(late).select(stock_grants::grant_id).load(conn).await?;
                    if !left_out!(RebuildMarks) {
                        let open = of_sale().filter(stock_grants::applied_at.is_null());
                        let given = stock_grants::applied_at.eq(diesel::dsl::sql("NOW(3)"));
                        diesel::update(open).set(given).execute(conn).await?;
                        let early = of_sale().filter(stock_grants::epoch.ge(opening.epoch));
                        diesel::update(early).set(stock_grants::epoch.eq(opening.epoch - 1)).execute(conn).await?;
                    }
                    let name = format!("rebuild-{}", opening.epoch);
                    if left_out!(OwnEpoch) {
                        diesel::delete(of_sale().filter(stock_grants::grant_id.eq(name.as_bytes())))
                            .execute(conn)
                            .await?;
                    }
                    grants::write(conn, sale_id, &name, (GrantKind::Rebuild, opening.units, opening.epoch)).await?;
                    grants::mark(conn, sale, &name).await?;
                    Ok(Some(ids))
                })
                .await
            })
            .await?;
        Ok(ids.map(|ids| ids.into_iter().map(|id| String::from_utf8_lossy(&id).into_owned()).collect()))
    }
}
