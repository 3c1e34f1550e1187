//! Outcomes counted along their acceptance numbers, in pieces of [`PIECE`] on `uk_acceptance`: no query grows with the sale.

use crate::domain::ids::SaleId;
use crate::faults::left_out;
use crate::p5_reconcile::rows::BookRows;
use crate::store::mysql::codes::reasons_with_unit;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, SmallInt, Unsigned};
use diesel_async::RunQueryDsl;

/// Acceptance numbers counted by one query.
pub const PIECE: u64 = 20_000;

/// The acceptance numbers of one shard in one epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Series {
    /// The epoch of the sale.
    pub epoch: u32,
    /// The shard that gives the numbers.
    pub shard: u16,
}

/// A sum over outcomes; units, but for `count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Number of outcomes.
    pub count: u64,
    /// Units of orders, cancelled or not.
    pub ordered: i64,
    /// Units of failures.
    pub failed: i64,
    /// Of those failures that Redis had taken units for, offered again or not.
    pub held: i64,
    /// Outcomes that have an order.
    pub orders: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.ordered += other.ordered;
        self.failed += other.failed;
        self.held += other.held;
        self.orders += other.orders;
    }
}

/// The outcomes with numbers above `after`, up to `to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Numbers above this one.
    pub after: u64,
    /// Up to this one.
    pub to: u64,
    /// What they sum up to.
    pub tally: Tally,
    /// Numbers without an outcome: first and last of each run of them.
    pub missing: Vec<(u64, u64)>,
}

/// What to read of a series.
#[derive(Debug, Clone)]
pub struct SeriesQuery {
    /// The series to read.
    pub series: Series,
    /// Numbers up to this one were counted before.
    pub after: u64,
    /// The last number to count.
    pub to: u64,
    /// Numbers without an outcome when they were counted: has any of them one by now?
    pub holes: Vec<(u64, u64)>,
    /// Count the outcomes above `to`, too.
    pub above: bool,
}

/// What was read of a series.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SeriesRead {
    /// The highest number that has an outcome; 0 without one.
    pub highest: u64,
    /// The pieces, in order.
    pub pieces: Vec<Piece>,
    /// Sum of the outcomes above the last requested number.
    pub above: Tally,
    /// The lowest number of a hole that has an outcome by now.
    pub filled: Option<u64>,
}

/// Acceptance numbers above `after`, up to `to`.
#[derive(Debug, Clone, Copy)]
struct NumberRange {
    after: u64,
    to: u64,
}

/// A query whose first six parameters are the bounds of a series: sale, shard and epoch, each as `>= ?` and `<= ?`.
pub(crate) fn of_series<'a>(
    query: impl Into<String>,
    sale: &'a [u8],
    series: Series,
) -> BoxedSqlQuery<'a, Mysql, SqlQuery> {
    diesel::sql_query(query)
        .into_boxed()
        .bind::<Binary, _>(sale)
        .bind::<Binary, _>(sale)
        .bind::<Unsigned<SmallInt>, _>(series.shard)
        .bind::<Unsigned<SmallInt>, _>(series.shard)
        .bind::<Unsigned<Integer>, _>(series.epoch)
        .bind::<Unsigned<Integer>, _>(series.epoch)
}

impl BookRows {
    /// Counts `wanted` in pieces, outside of any snapshot: for numbers that do not change any more.
    pub async fn count(&self, sale_id: &SaleId, asked: &SeriesQuery) -> Result<SeriesRead, DbError> {
        let sale = sale_id.as_str().as_bytes();
        self.db.patient().run("books_count", async |conn| read(conn, sale, asked).await).await
    }
}

#[derive(QueryableByName)]
struct Highest {
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    number: Option<u64>,
}

#[derive(QueryableByName)]
struct TallyRow {
    #[diesel(sql_type = BigInt)]
    counted: i64,
    #[diesel(sql_type = BigInt)]
    ordered: i64,
    #[diesel(sql_type = BigInt)]
    failed: i64,
    #[diesel(sql_type = BigInt)]
    held: i64,
    #[diesel(sql_type = BigInt)]
    orders_count: i64,
}

// The numbers of a series are named by >= and <= of the same value, everywhere. With "=" (BETWEEN with equal ends is made one)
// the servers may look up all of the series
// (`ref` on three columns of `uk_acceptance`) and drop the numbers that are not wanted one by one, which costs as much as the
// sale is large; MariaDB does so where other sales are small. Nothing is looked up by >= and <=: that leaves the range, whose order is that of the whole key.
// The index is named, because a piece that is half of a young table would be read as the table.
fn tally() -> String {
    format!(
        "/* books::tally */ SELECT COUNT(*) AS counted, \
    CAST(COALESCE(SUM(o.quantity), 0) AS SIGNED) AS ordered, CAST(COALESCE(SUM(f.quantity), 0) AS SIGNED) AS failed, \
    CAST(COALESCE(SUM(IF(f.reason IN ({}), f.quantity, 0)), 0) AS SIGNED) \
    AS held, COUNT(o.request_id) AS orders_count FROM request_outcome r FORCE INDEX (uk_acceptance) \
    LEFT JOIN orders o ON o.request_id = r.request_id AND r.kind = 'ORDER' \
    LEFT JOIN failed_request f ON f.request_id = r.request_id AND r.kind = 'FAILED' \
    WHERE r.sale_id >= ? AND r.sale_id <= ? AND r.shard >= ? AND r.shard <= ? AND r.epoch >= ? AND r.epoch <= ? AND r.number > ? AND r.number <= ?",
        reasons_with_unit()
    )
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = Unsigned<BigInt>)]
    number: u64,
}

/// The numbers of a piece that have an outcome.
const NUMBERS: &str = "/* books::numbers */ SELECT number FROM request_outcome FORCE INDEX (uk_acceptance) \
    WHERE sale_id >= ? AND sale_id <= ? AND shard >= ? AND shard <= ? AND epoch >= ? AND epoch <= ? AND number > ? AND number <= ? ORDER BY sale_id, shard, epoch, number";

pub(crate) async fn read(conn: &mut Conn, sale: &[u8], asked: &SeriesQuery) -> Result<SeriesRead, DbError> {
    let of = SaleSeries { sale, series: asked.series };
    let mut read = SeriesRead { highest: of.highest(conn).await?, ..SeriesRead::default() };
    for (first, last) in &asked.holes {
        if of.tally(conn, NumberRange { after: first - 1, to: *last }).await?.count > 0 {
            read.filled = Some(*first);
            break;
        }
    }
    let mut after = asked.after;
    while after < asked.to {
        // Pieces begin at multiples, so that whole ones can be remembered.
        let to = ((after / PIECE + 1) * PIECE).min(asked.to);
        let range = NumberRange { after, to };
        let tally = of.tally(conn, range).await?;
        let missing = if tally.count < to - after { of.missing(conn, range).await? } else { Vec::new() };
        read.pieces.push(Piece { after, to, tally, missing });
        after = to;
    }
    if asked.above {
        read.above = of.tally(conn, NumberRange { after: asked.to, to: u64::MAX }).await?;
    }
    Ok(read)
}

/// One series of one sale.
struct SaleSeries<'a> {
    sale: &'a [u8],
    series: Series,
}

impl SaleSeries<'_> {
    async fn highest(&self, conn: &mut Conn) -> Result<u64, DbError> {
        let row: Highest = diesel::sql_query(
            "/* books::highest */ SELECT MAX(number) AS number FROM request_outcome \
             WHERE sale_id = ? AND shard = ? AND epoch = ?",
        )
        .bind::<Binary, _>(self.sale)
        .bind::<Unsigned<SmallInt>, _>(self.series.shard)
        .bind::<Unsigned<Integer>, _>(self.series.epoch)
        .get_result(conn)
        .await?;
        Ok(row.number.unwrap_or(0))
    }

    async fn tally(&self, conn: &mut Conn, range: NumberRange) -> Result<Tally, DbError> {
        let mut query = tally();
        // All that is above the count.
        let is_above = range.to == u64::MAX;
        if is_above && left_out!(CancelledAbove) {
            query = query.replace("SUM(o.quantity)", "SUM(IF(o.cancelled_at IS NULL, o.quantity, 0))");
        }
        if is_above && left_out!(ReclaimedAbove) {
            query = query.replace("IF(f.reason IN", "IF(f.reclaimed_by IS NULL AND f.reason IN");
        }
        let row: TallyRow = of_series(query, self.sale, self.series)
            .bind::<Unsigned<BigInt>, _>(range.after)
            .bind::<Unsigned<BigInt>, _>(range.to)
            .get_result(conn)
            .await?;
        let count = |rows: i64| u64::try_from(rows).unwrap_or(0);
        let (ordered, failed, held) = (row.ordered, row.failed, row.held);
        Ok(Tally { count: count(row.counted), ordered, failed, held, orders: count(row.orders_count) })
    }

    async fn missing(&self, conn: &mut Conn, range: NumberRange) -> Result<Vec<(u64, u64)>, DbError> {
        let there: Vec<Number> = of_series(NUMBERS, self.sale, self.series)
            .bind::<Unsigned<BigInt>, _>(range.after)
            .bind::<Unsigned<BigInt>, _>(range.to)
            .load(conn)
            .await?;
        Ok(gaps(there.into_iter().map(|row| row.number), range))
    }
}

/// The runs of numbers of `range` that are not among `there`, which is in order.
fn gaps(there: impl Iterator<Item = u64>, range: NumberRange) -> Vec<(u64, u64)> {
    let (mut gaps, mut next) = (Vec::new(), range.after + 1);
    for number in there {
        if number > next {
            gaps.push((next, number - 1));
        }
        next = number + 1;
    }
    if next <= range.to {
        gaps.push((next, range.to));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::{NumberRange, gaps};

    #[test]
    fn gaps_are_the_runs_between_before_and_behind_what_is_there() {
        let of = |there: Vec<u64>, after, to| gaps(there.into_iter(), NumberRange { after, to });
        assert_eq!(of([1, 2, 3].into(), 0, 3), []);
        assert_eq!(of([2, 5].into(), 0, 7), [(1, 1), (3, 4), (6, 7)]);
        assert_eq!(of(vec![], 20, 22), [(21, 22)]);
    }
}
