//! Which sales there are: for operators, buyers, warm-up, the boot fence and P5. Reads only.

use super::{SaleRow, SaleRows};
use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::store::mysql::codes::{datetime, read_sale_id};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{archived_sales, sales};
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// Most sales a listing returns, newest first.
pub(crate) const SALES_MAX: i64 = 1000;

impl SaleRows {
    /// The newest [`SALES_MAX`] sales, newest first.
    pub async fn list(&self) -> Result<Vec<Sale>, DbError> {
        let rows: Vec<SaleRow> = self
            .db
            .run("sale_list", async |conn| {
                let newest = sales::table.order((sales::created_at.desc(), sales::sale_id)).limit(SALES_MAX);
                Ok(newest.select(SaleRow::as_select()).load(conn).await?)
            })
            .await?;
        rows.into_iter().map(SaleRow::read).collect()
    }

    /// The newest [`SALES_MAX`] sales that buyers see, are not closed and end after `ended_after_ms` (Unix milliseconds), newest first.
    pub(crate) async fn not_over(&self, ended_after_ms: i64) -> Result<Vec<Sale>, DbError> {
        let horizon = datetime(ended_after_ms)?;
        let rows: Vec<SaleRow> = self
            .db
            .run("sale_not_over", async |conn| {
                let open = sales::table.filter(sales::status.ne(SaleStatus::Closed.code()));
                let listed = open.filter(sales::ends_at.gt(horizon)).filter(sales::hidden.eq(false));
                let newest = listed.order((sales::created_at.desc(), sales::sale_id)).limit(SALES_MAX);
                Ok(newest.select(SaleRow::as_select()).load(conn).await?)
            })
            .await?;
        rows.into_iter().map(SaleRow::read).collect()
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
            let rows: Vec<SaleRow> = self.db.run(name, async |conn| Ok(page.load(conn).await?)).await?;
            if rows.is_empty() {
                return Ok(all);
            }
            for row in rows {
                all.push(row.read()?);
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

    /// How many sales there are, and how many were removed. A removal moves a sale from the first count to the second. So if
    /// both are unchanged, there is no new sale.
    pub(crate) async fn count(&self) -> Result<(i64, i64), DbError> {
        let there = sales::table.filter(sales::sale_id.eq(archived_sales::sale_id));
        let gone = archived_sales::table.filter(diesel::dsl::not(diesel::dsl::exists(there)));
        self.db
            .run("sale_count", async |conn| {
                let there: i64 = sales::table.count().get_result(conn).await?;
                let gone: i64 = gone.count().get_result(conn).await?;
                Ok((there, gone))
            })
            .await
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

    /// Sales that are not closed and end after `now_ms` (Unix milliseconds): drafts that wait for their start among them. All of
    /// them, however many.
    pub async fn unfinished(&self, now_ms: i64) -> Result<Vec<Sale>, DbError> {
        let now = datetime(now_ms)?;
        let unfinished = || {
            sales::table.filter(sales::status.ne(SaleStatus::Closed.code())).filter(sales::ends_at.gt(now)).into_boxed()
        };
        self.all("sale_unfinished", unfinished).await
    }

    /// Sales that Redis may be selling: warmed or paused, and not ended before `ended_before_ms` (Unix milliseconds). All of
    /// them: the boot fence must not miss one.
    pub async fn live_sales(&self, ended_before_ms: i64) -> Result<Vec<Sale>, DbError> {
        let horizon = datetime(ended_before_ms)?;
        let live = || {
            let selling = sales::status.eq_any([SaleStatus::Warmed.code(), SaleStatus::Paused.code()]);
            sales::table.filter(selling).filter(sales::ends_at.ge(horizon)).into_boxed()
        };
        self.all("sale_live", live).await
    }
}
