//! A number that a request was given although it was decided under another one: the number is closed, and its units are offered again.
//!
//! Input: the number, its units, and why. Output: a row of `closed_findings`, and a grant of the units while the sale sells. One
//! transaction, behind the sale's row: a crash leaves both or nothing, and a repeat finds the number closed.

use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::p5_reconcile::rows::BookRows;
use crate::p5_reconcile::rows::books::Series;
use crate::p5_reconcile::rows::books::closing_steps::{count_closing, have_outcome};
use crate::sales::rows::grants;
use crate::store::mysql::codes::{GrantKind, cut};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{closed_findings, sales};
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;

/// The code of a closed number.
const CODE: &str = "P5-RC4";
/// Who closed it; no person has this name.
pub(crate) const BY: &str = "reconcile";

/// A number without a request of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VoidNumber<'a> {
    pub series: Series,
    pub number: u64,
    /// Units that Redis took under it.
    pub units: i64,
    /// Why, in words; cut to 1,000 characters.
    pub reason: &'a str,
    /// Whether the units are known to be missing in Redis; else they are kept back.
    pub offer: bool,
}

/// What a closing came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Voided {
    /// Closed now; its units are a grant.
    Offered,
    /// Closed now; its units are kept back, because the sale sells no more, or the books have no room for them. `sale reclaim` offers
    /// them.
    KeptBack,
    /// It was closed before, or has an outcome by now: nothing was written.
    Not,
}

impl BookRows {
    /// Closes the number and offers its units again. Repeating is safe.
    pub(crate) async fn close_void(&self, sale_id: &SaleId, void: &VoidNumber<'_>) -> Result<Voided, DbError> {
        let written = self
            .db
            .run("books_void", async |conn| {
                transaction(conn, async |conn| in_transaction(conn, sale_id, void).await).await
            })
            .await;
        match written {
            Err(DbError::Duplicate(_)) => Ok(Voided::Not),
            written => written,
        }
    }
}

async fn in_transaction(conn: &mut Conn, sale_id: &SaleId, void: &VoidNumber<'_>) -> Result<Voided, DbError> {
    let (sale, Series { epoch, shard }) = (sale_id.as_str().as_bytes(), void.series);
    let row = sales::table.find(sale).select((sales::stock, sales::epoch, sales::status)).for_update();
    let row: Option<(i64, u32, String)> = row.first(conn).await.optional()?;
    let Some((stock, epoch_now, status)) = row else { return Ok(Voided::Not) };
    if have_outcome(conn, sale, void.series, void.number..=void.number).await? {
        return Ok(Voided::Not);
    }
    let waiting: WaitingGrants = diesel::sql_query(WAITING).bind::<Binary, _>(sale).get_result(conn).await?;
    let sells = [SaleStatus::Warmed.code(), SaleStatus::Paused.code()].contains(&status.as_str());
    let grant_id = format!("void-{epoch}-{shard}-{}", void.number);
    let grant_id = (void.offer && sells && void.units > 0 && void.units <= stock - waiting.units).then_some(grant_id);
    let row = (
        closed_findings::sale_id.eq(sale),
        closed_findings::code.eq(CODE),
        closed_findings::epoch.eq(epoch),
        closed_findings::shard.eq(shard),
        closed_findings::first_number.eq(void.number),
        closed_findings::last_number.eq(void.number),
        closed_findings::units.eq(void.units),
        closed_findings::reason.eq(cut(void.reason, 1000)),
        closed_findings::closed_by.eq(BY),
        closed_findings::reclaimed_by.eq(grant_id.as_ref().map(String::as_bytes)),
    );
    diesel::insert_into(closed_findings::table).values(row).execute(conn).await?;
    count_closing(conn, sale).await?;
    let Some(grant_id) = grant_id else { return Ok(Voided::KeptBack) };
    grants::write(conn, sale_id, &grant_id, (GrantKind::Reclaim, void.units, epoch_now)).await?;
    Ok(Voided::Offered)
}

impl BookRows {
    /// Whether nothing more is to be learned of a number: it has an outcome, or is closed.
    pub(crate) async fn is_settled(&self, sale_id: &SaleId, series: Series, number: u64) -> Result<bool, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let closed = closed_findings::table
            .filter(closed_findings::sale_id.eq(sale))
            .filter(closed_findings::code.eq(CODE))
            .filter(closed_findings::epoch.eq(series.epoch))
            .filter(closed_findings::shard.eq(series.shard))
            .filter(closed_findings::first_number.le(number))
            .filter(closed_findings::last_number.ge(number));
        self.db
            .run("books_is_settled", async |conn| {
                let settled = have_outcome(conn, sale, series, number..=number).await?;
                Ok(settled || closed.count().get_result::<i64>(conn).await? > 0)
            })
            .await
    }
}

#[derive(QueryableByName)]
struct WaitingGrants {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

/// What grants have been promised and Redis has not been given.
const WAITING: &str = "/* books::void */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units \
    FROM stock_grants WHERE sale_id = ? AND applied_at IS NULL";
