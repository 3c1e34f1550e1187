//! Which sales there are: for operators, buyers, warm-up, the boot fence and P5. Reads only.

use super::{SaleRow, SaleRows};
use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::store::mysql::codes::{datetime, read_sale_id};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{archived_sales, sales};
use diesel::dsl::sql;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::Datetime;
use diesel_async::RunQueryDsl;

/// Most sales a listing returns, newest first.
pub(crate) const SALES_MAX: i64 = 1000;
/// Most new sales that are read at once, by their ids.
const NEW_MAX: i64 = 10_000;

/// Whether a query returned as many rows as it may.
fn is_full(rows: usize, rows_max: i64) -> bool {
    i64::try_from(rows).is_ok_and(|rows| rows >= rows_max)
}

impl SaleRows {
    /// The newest [`SALES_MAX`] sales, newest first.
    pub async fn list(&self) -> Result<Vec<Sale>, DbError> {
        self.db
            .run("sale_list", async |conn| {
                let newest = sales::table.order((sales::created_at.desc(), sales::sale_id)).limit(SALES_MAX);
                let rows = newest.select(SaleRow::as_select()).load(conn).await?;
                SaleRow::read_all(conn, rows).await
            })
            .await
    }

    /// The newest [`SALES_MAX`] sales that buyers see, are not closed and end after `ended_after_ms` (Unix milliseconds), newest first.
    pub(crate) async fn not_over(&self, ended_after_ms: i64) -> Result<Vec<Sale>, DbError> {
        let horizon = datetime(ended_after_ms)?;
        self.db
            .run("sale_not_over", async |conn| {
                let open = sales::table.filter(sales::status.ne(SaleStatus::Closed.code()));
                let listed = open.filter(sales::ends_at.gt(horizon)).filter(sales::hidden.eq(false));
                let newest = listed.order((sales::created_at.desc(), sales::sale_id)).limit(SALES_MAX);
                let rows = newest.select(SaleRow::as_select()).load(conn).await?;
                SaleRow::read_all(conn, rows).await
            })
            .await
    }

    /// All sales of a query in the order of their ids, read page by page.
    async fn all(
        &self,
        name: &'static str,
        wanted: impl Fn() -> sales::BoxedQuery<'static, Mysql>,
    ) -> Result<Vec<Sale>, DbError> {
        let mut all: Vec<Sale> = Vec::new();
        loop {
            let after = all.last().map_or(Vec::new(), |sale| sale.sale_id.as_str().as_bytes().to_vec());
            let page = wanted().filter(sales::sale_id.gt(after)).order(sales::sale_id).limit(SALES_MAX);
            let page = page.select(SaleRow::as_select());
            let read = async |conn: &mut Conn| {
                let rows = page.load(conn).await?;
                SaleRow::read_all(conn, rows).await
            };
            let sales = self.db.run(name, read).await?;
            let is_last = !is_full(sales.len(), SALES_MAX);
            all.extend(sales);
            if is_last {
                return Ok(all);
            }
        }
    }

    /// Every sale that has left the draft state and is not being removed, in the order of their ids.
    pub async fn released(&self) -> Result<Vec<Sale>, DbError> {
        let released = || {
            let archived = archived_sales::table.filter(archived_sales::sale_id.eq(sales::sale_id));
            let there = sales::table.filter(sales::status.ne(SaleStatus::Draft.code()));
            there.filter(diesel::dsl::not(diesel::dsl::exists(archived))).into_boxed()
        };
        self.all("sale_released", released).await
    }

    /// Ids of sales that were created within these seconds before now, by the database's clock. A sale whose creation is being
    /// committed is not among them yet. `None`: there are too many to be read at once.
    pub async fn created_within(&self, seconds: u32) -> Result<Option<Vec<SaleId>>, DbError> {
        let since = format!("NOW(3) - INTERVAL {seconds} SECOND");
        let rows: Vec<Vec<u8>> = self
            .db
            .run("sale_created", async |conn| {
                let created = sales::table.filter(sales::created_at.ge(sql::<Datetime>(&since)));
                Ok(created.select(sales::sale_id).limit(NEW_MAX).load(conn).await?)
            })
            .await?;
        if is_full(rows.len(), NEW_MAX) {
            return Ok(None);
        }
        rows.iter().map(|id| read_sale_id(id)).collect::<Result<_, _>>().map(Some)
    }

    /// One page of sale ids in their byte order, behind `after`; at most [`SALES_MAX`].
    pub(crate) async fn ids_after(&self, after: Option<&SaleId>) -> Result<Vec<SaleId>, DbError> {
        let after = after.map_or(&[][..], |id| id.as_str().as_bytes());
        let rows: Vec<Vec<u8>> = self
            .db
            .run("sale_ids", async |conn| {
                let page = sales::table.filter(sales::sale_id.gt(after)).order(sales::sale_id).limit(SALES_MAX);
                Ok(page.select(sales::sale_id).load(conn).await?)
            })
            .await?;
        rows.iter().map(|id| read_sale_id(id)).collect()
    }

    /// Drafts that start within `ahead_ms` from now or started already, and did not end, by the database's clock: the process
    /// that asks may have another one. All of them, however many.
    pub async fn drafts_due(&self, ahead_ms: u64) -> Result<Vec<Sale>, DbError> {
        let starts_by = format!("NOW(3) + INTERVAL {} MICROSECOND", ahead_ms.saturating_mul(1_000));
        let due = || {
            let drafts = sales::table.filter(sales::status.eq(SaleStatus::Draft.code()));
            let waiting = drafts.filter(sales::ends_at.gt(sql::<Datetime>("NOW(3)")));
            waiting.filter(sales::starts_at.le(sql::<Datetime>(&starts_by))).into_boxed()
        };
        self.all("sale_drafts_due", due).await
    }

    /// Sales that Redis may be selling: warmed or paused, and not ended before `ended_before_ms` (Unix milliseconds); those of drops,
    /// whenever they ended: what buyers have in them counts for the other sales until the drop is closed. All of them: the boot fence
    /// must not miss one.
    pub async fn live_sales(&self, ended_before_ms: i64) -> Result<Vec<Sale>, DbError> {
        let horizon = datetime(ended_before_ms)?;
        let live = || {
            let selling = sales::status.eq_any([SaleStatus::Warmed.code(), SaleStatus::Paused.code()]);
            let counts = sales::ends_at.ge(horizon).or(sales::drop_id.is_not_null());
            sales::table.filter(selling).filter(counts).into_boxed()
        };
        self.all("sale_live", live).await
    }
}
