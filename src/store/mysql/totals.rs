//! P5: sums for the balance sheet, and acceptance numbers that never arrived.

use super::fault::DbError;
use super::pool::Db;
use super::schema::{orders, sales};
use crate::domain::ids::SaleId;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Integer, Nullable, SmallInt, Unsigned};
use diesel_async::{AsyncConnection, RunQueryDsl, SimpleAsyncConnection};

/// Numbers looked at in one call of [`gaps`].
const NUMBERS_MAX: u32 = 50_000;
/// Gaps returned by one call of [`gaps`].
const GAPS_MAX: u32 = 1000;

/// What the database counts for a sale, in units; all from one snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// `sales.granted`.
    pub granted: i64,
    /// `sales.stock`.
    pub stock: i64,
    /// Units of all orders that stand.
    pub ordered: i64,
    /// How many orders, cancelled ones too.
    pub orders_count: i64,
    /// Sum of `stock_flow.delta`.
    pub flow: i64,
    /// Units of grants (reclaims too) that Redis is known to have.
    pub granted_applied: i64,
    /// `sales.epoch`.
    pub epoch: u32,
}

#[derive(QueryableByName)]
struct Sum {
    #[diesel(sql_type = BigInt)]
    total: i64,
}

/// Sums of a sale, read in one snapshot; `None` when there is no such sale.
///
/// # Errors
/// [`DbError`].
pub async fn totals(db: &Db, sale_id: &SaleId) -> Result<Option<Totals>, DbError> {
    let sale = sale_id.as_str().as_bytes();
    db.run("totals", async |conn| {
        // For the next transaction only: its first read makes the snapshot that all others share.
        conn.batch_execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").await?;
        conn.transaction(async |conn| {
            let row: Option<(i64, i64, u32)> = sales::table
                .find(sale)
                .select((sales::granted, sales::stock, sales::epoch))
                .first(conn)
                .await
                .optional()?;
            let Some((granted, stock, epoch)) = row else { return Ok(None) };
            let orders_count = orders::table.filter(orders::sale_id.eq(sale)).count().get_result(conn).await?;
            let mut sums = [0; 3];
            for (sum, query) in sums.iter_mut().zip(SUMS) {
                *sum = diesel::sql_query(query).bind::<Binary, _>(sale).get_result::<Sum>(conn).await?.total;
            }
            let [ordered, flow, granted_applied] = sums;
            Ok(Some(Totals { granted, stock, ordered, orders_count, flow, granted_applied, epoch }))
        })
        .await
    })
    .await
}

const SUMS: [&str; 3] = [
    "SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS total FROM orders \
     WHERE sale_id = ? AND cancelled_at IS NULL",
    "SELECT CAST(COALESCE(SUM(delta), 0) AS SIGNED) AS total FROM stock_flow WHERE sale_id = ?",
    "SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS total FROM stock_grants \
     WHERE sale_id = ? AND applied_at IS NOT NULL",
];

/// Rows of the register of one sale in one status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    /// The sale.
    pub sale_id: SaleId,
    /// `open`, `failed_final` or `resolved`.
    pub status: String,
    /// Units wanted.
    pub units: i64,
    /// Rows.
    pub count: i64,
}

#[derive(QueryableByName)]
struct RegisteredRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
    #[diesel(sql_type = diesel::sql_types::Text)]
    status: String,
    #[diesel(sql_type = BigInt)]
    units: i64,
    #[diesel(sql_type = BigInt)]
    rows_count: i64,
}

/// The register counted by sale and status. Reads every row of it: not more than once a second.
///
/// # Errors
/// [`DbError`].
pub async fn registered(db: &Db) -> Result<Vec<Registered>, DbError> {
    let query = "/* totals::registered */ SELECT sale_id, status, CAST(SUM(quantity) AS SIGNED) AS units, \
                 COUNT(*) AS rows_count FROM failed_request GROUP BY sale_id, status";
    let rows: Vec<RegisteredRow> =
        db.run("registered", async |conn| Ok(diesel::sql_query(query).load(conn).await?)).await?;
    rows.into_iter()
        .map(|row| {
            let sale_id = super::codes::read_sale_id(&row.sale_id)?;
            Ok(Registered { sale_id, status: row.status, units: row.units, count: row.rows_count })
        })
        .collect()
}

/// Consecutive acceptance numbers without an outcome, below one that has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// First missing number.
    pub first: u64,
    /// Last missing number.
    pub last: u64,
    /// How long ago the number above it got its outcome, in milliseconds by the database's clock.
    pub age_ms: i64,
}

/// One page of a walk over the acceptance numbers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Gaps {
    /// The gaps found, lowest first.
    pub gaps: Vec<Gap>,
    /// Go on after this number; equal to the `after` of the call when there is nothing above it.
    pub looked_to: u64,
}

/// Which numbers to walk over.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a> {
    /// The sale.
    pub sale_id: &'a SaleId,
    /// The shard.
    pub shard: u16,
    /// The epoch.
    pub epoch: u32,
    /// Only numbers above this one; 0 from the start.
    pub after: u64,
}

#[derive(QueryableByName)]
struct Step {
    #[diesel(sql_type = Unsigned<BigInt>)]
    number: u64,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    previous: Option<u64>,
    #[diesel(sql_type = BigInt)]
    age_ms: i64,
}

/// Missing acceptance numbers of a (sale, shard, epoch) above `after`, at most 50,000 outcomes looked at. A young gap is
/// normal: requests land out of order. Walk on with `looked_to` until it stays where it is.
///
/// # Errors
/// [`DbError`].
pub async fn gaps(db: &Db, numbers: Numbers<'_>) -> Result<Gaps, DbError> {
    let after = numbers.after;
    // The last row of the page is always returned, gap or not: it says how far the page went.
    let query = format!(
        "/* totals::gaps */ WITH page AS (SELECT number, created_at FROM request_outcome \
         WHERE sale_id = ? AND shard = ? AND epoch = ? AND number > ? ORDER BY number LIMIT {NUMBERS_MAX}), \
         steps AS (SELECT number, LAG(number) OVER (ORDER BY number) AS previous, \
         LEAD(number) OVER (ORDER BY number) AS next, created_at FROM page) \
         SELECT number, previous, CAST(TIMESTAMPDIFF(MICROSECOND, created_at, NOW(3)) DIV 1000 AS SIGNED) AS age_ms \
         FROM steps WHERE number <> COALESCE(previous, ?) + 1 OR next IS NULL ORDER BY number LIMIT {GAPS_MAX}"
    );
    let steps: Vec<Step> = db
        .run("gaps", async |conn| {
            Ok(diesel::sql_query(query)
                .bind::<Binary, _>(numbers.sale_id.as_str().as_bytes())
                .bind::<Unsigned<SmallInt>, _>(numbers.shard)
                .bind::<Unsigned<Integer>, _>(numbers.epoch)
                .bind::<Unsigned<BigInt>, _>(after)
                .bind::<Unsigned<BigInt>, _>(after)
                .load(conn)
                .await?)
        })
        .await?;
    let looked_to = steps.last().map_or(after, |step| step.number);
    let gap = |step: &Step| {
        let first = step.previous.unwrap_or(after) + 1;
        (first < step.number).then(|| Gap { first, last: step.number - 1, age_ms: step.age_ms })
    };
    Ok(Gaps { gaps: steps.iter().filter_map(gap).collect(), looked_to })
}
