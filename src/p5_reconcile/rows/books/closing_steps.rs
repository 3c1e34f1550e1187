//! Steps of each closing of numbers, by a person or by P5: no order is written with a number that is about to be closed.
//!
//! Input: the sale, its numbers. Output: the count in the sale's row that orders compare (`orders/persist/numbers.rs` says how). Part
//! of a transaction, which a crash leaves out as a whole.

use crate::p5_reconcile::rows::books::Series;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{request_outcome, sales};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::ops::RangeInclusive;

/// Counts that numbers of the sale are closed. From here on no order of it is written before this transaction ends, and the next one
/// reads its closed numbers again.
pub(super) async fn count_closing(conn: &mut Conn, sale: &[u8]) -> Result<(), DbError> {
    let counted = diesel::update(sales::table.find(sale)).set(sales::closings.eq(sales::closings + 1));
    counted.execute(conn).await?;
    Ok(())
}

/// Whether one of these numbers has an outcome.
pub(super) async fn have_outcome(
    conn: &mut Conn,
    sale: &[u8],
    series: Series,
    numbers: RangeInclusive<u64>,
) -> Result<bool, DbError> {
    let of_numbers = request_outcome::table
        .filter(request_outcome::sale_id.eq(sale))
        .filter(request_outcome::shard.eq(series.shard))
        .filter(request_outcome::epoch.eq(series.epoch))
        .filter(request_outcome::number.between(*numbers.start(), *numbers.end()));
    Ok(of_numbers.count().get_result::<i64>(conn).await? > 0)
}
