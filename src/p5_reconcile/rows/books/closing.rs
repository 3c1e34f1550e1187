//! What is added to the books by P5 and by a person: the end of an epoch, and a finding that was closed with a reason.
//!
//! Rows are added and never changed, so a repeat writes nothing twice. A crash leaves the row or no row. Numbers are closed behind the
//! sale's row, which counts it, so that no order is written with one of them (`orders/persist/numbers.rs` says how).

use crate::domain::ids::SaleId;
use crate::p5_reconcile::rows::BookRows;
use crate::p5_reconcile::rows::books::Series;
use crate::p5_reconcile::rows::books::closing_steps::{count_closing, have_outcome};
use crate::store::mysql::codes::cut;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{closed_findings, sale_epochs};
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

impl BookRows {
    /// Writes down where the acceptance numbers of a series ended: `accepted` is Redis' own sum of units, if Redis can still be
    /// believed. The first row stays. Repeating is safe.
    pub(crate) async fn end(
        &self,
        sale_id: &SaleId,
        series: Series,
        number: u64,
        accepted: Option<i64>,
    ) -> Result<(), DbError> {
        let row = (
            sale_epochs::sale_id.eq(sale_id.as_str().as_bytes()),
            sale_epochs::epoch.eq(series.epoch),
            sale_epochs::shard.eq(series.shard),
            sale_epochs::number.eq(number),
            sale_epochs::accepted.eq(accepted),
        );
        let written = self
            .db
            .run("books_end", async |conn| {
                Ok(diesel::insert_into(sale_epochs::table).values(row).execute(conn).await?)
            })
            .await;
        match written {
            Ok(_) | Err(DbError::Duplicate(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// A finding that a person closes.
#[derive(Debug, Clone)]
pub(crate) struct Closing<'a> {
    /// The finding's code: `P5-RC4`, `REFUSED` or `UNBALANCED`.
    pub code: &'a str,
    /// The numbers it is about, for `P5-RC4`: first and last.
    pub numbers: Option<(Series, u64, u64)>,
    /// The epoch it is about, for the others.
    pub epoch: Option<u32>,
    pub units: i64,
    /// Why, in words; cut to 1,000 characters.
    pub reason: &'a str,
    /// Who; cut to 64 characters.
    pub by: &'a str,
}

/// What became of a closing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosingResult {
    /// Closed now.
    Closed,
    /// These very numbers were closed before.
    Before,
    /// A request has got its outcome with one of the numbers. Nothing was written.
    HasOutcome,
}

impl BookRows {
    /// Writes a closing down. Repeating is safe for numbers.
    pub(crate) async fn close(&self, sale_id: &SaleId, closing: &Closing<'_>) -> Result<ClosingResult, DbError> {
        let (numbers, sale) = (closing.numbers, sale_id.as_str().as_bytes());
        let row = (
            closed_findings::sale_id.eq(sale),
            closed_findings::code.eq(closing.code),
            closed_findings::epoch.eq(numbers.map(|(series, ..)| series.epoch).or(closing.epoch)),
            closed_findings::shard.eq(numbers.map(|(series, ..)| series.shard)),
            closed_findings::first_number.eq(numbers.map(|(_, first, _)| first)),
            closed_findings::last_number.eq(numbers.map(|(.., last)| last)),
            closed_findings::units.eq(closing.units),
            closed_findings::reason.eq(cut(closing.reason, 1000)),
            closed_findings::closed_by.eq(cut(closing.by, 64)),
        );
        let written = self
            .db
            .run("books_close", async |conn| {
                transaction(conn, async |conn| {
                    if let Some((series, first, last)) = numbers {
                        count_closing(conn, sale).await?;
                        if have_outcome(conn, sale, series, first..=last).await? {
                            return Ok(ClosingResult::HasOutcome);
                        }
                    }
                    diesel::insert_into(closed_findings::table).values(row).execute(conn).await?;
                    Ok(ClosingResult::Closed)
                })
                .await
            })
            .await;
        match written {
            Err(DbError::Duplicate(_)) => Ok(ClosingResult::Before),
            written => written,
        }
    }
}

/// What a person closed, or P5: void numbers.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub struct Closed {
    /// The finding's code.
    pub code: String,
    /// Epoch, for numbers and corrections.
    pub epoch: Option<u32>,
    /// Shard, for numbers.
    pub shard: Option<u16>,
    /// First acceptance number, for numbers.
    pub first: Option<u64>,
    /// Last acceptance number, for numbers.
    pub last: Option<u64>,
    /// Number of units it closes.
    pub units: i64,
    /// The grant that offered them again.
    pub reclaimed_by: Option<Vec<u8>>,
    /// Whether P5 closed it: the number's request is decided under another one.
    pub is_void: bool,
}

/// What was closed of a sale.
pub(crate) async fn closed(conn: &mut Conn, sale: &[u8]) -> Result<Vec<Closed>, DbError> {
    let closed = closed_findings::table
        .filter(closed_findings::sale_id.eq(sale))
        .select((
            closed_findings::code,
            closed_findings::epoch,
            closed_findings::shard,
            closed_findings::first_number,
            closed_findings::last_number,
            closed_findings::units,
            closed_findings::reclaimed_by,
            closed_findings::closed_by.eq(crate::p5_reconcile::rows::books::void::BY),
        ))
        .load(conn)
        .await?;
    Ok(closed)
}
