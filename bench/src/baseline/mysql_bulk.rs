//! For the benchmark: orders that landed long ago, written in bulk, so that a sale of ten million of them is there in minutes.
//!
//! Input: a one-per-user sale made for it. Output: outcomes, orders, journal and stock, as landing would have left them an hour
//! ago. A crash leaves whole pieces of them and the table `bench_numbers`.

use diesel::sql_types::{BigInt, Binary, SmallInt, Unsigned};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use seckill::domain::ids::SaleId;
use seckill::store::mysql::{Db, DbError};

/// Most orders of one transaction.
pub const PIECE: u64 = 50_000;
/// Orders of one row of the journal.
const GROUP: u64 = 100;

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bench_numbers (n INT UNSIGNED NOT NULL PRIMARY KEY) ENGINE = InnoDB";
/// 0 to 49,999, from tables of ten digits: both servers know these, and no depth of recursion limits them.
const NUMBERS: &str = "INSERT IGNORE INTO bench_numbers SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d FROM \
    (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) a, \
    (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) b, \
    (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) c, \
    (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6 UNION SELECT 7 UNION SELECT 8 UNION SELECT 9) e, \
    (SELECT 0 d UNION SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) f";
const OUTCOMES: &str = "/* bulk */ INSERT INTO request_outcome \
    (request_id, kind, sale_id, shard, epoch, number, payload_hash, created_at) \
    SELECT ? + n, 'ORDER', ?, ?, 1, ? + n, UNHEX(LEFT(SHA2(n, 256), 32)), NOW(3) - INTERVAL 1 HOUR FROM bench_numbers WHERE n < ? ORDER BY n";
const ORDERS: &str = "/* bulk */ INSERT INTO orders \
    (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at, created_at) \
    SELECT ? + n, ?, CONCAT('bulk-', LPAD(? + n, 12, '0')), CONCAT('bulk-', LPAD(? + n, 12, '0')), 1, 100, 'relay', \
    NOW(3) - INTERVAL 1 HOUR, NOW(3) - INTERVAL 1 HOUR FROM bench_numbers WHERE n < ? ORDER BY n";
const FLOW: &str = "/* bulk */ INSERT INTO stock_flow (sale_id, delta, kind, orders_count, ref, created_at) \
    SELECT ?, -units, 'order', units, CAST(first AS CHAR), NOW(3) - INTERVAL 1 HOUR FROM \
    (SELECT ? + n * 100 AS first, LEAST(100, CAST(? AS SIGNED) - n * 100) AS units FROM bench_numbers WHERE n < ? ORDER BY n) AS grouped";
const OLDER: &str = "/* bulk */ UPDATE stock_flow SET created_at = created_at - INTERVAL 2 HOUR WHERE sale_id = ?";
const STOCK: &str = "/* bulk */ UPDATE sales SET stock = stock - ? WHERE sale_id = ?";

/// Orders of one unit with acceptance numbers that follow each other.
#[derive(Debug, Clone, Copy)]
pub struct Bulk<'a> {
    /// The sale: one per user, in its first epoch.
    pub sale: &'a SaleId,
    /// The shard of all their buyers.
    pub shard: u16,
    /// The first acceptance number.
    pub number: u64,
    /// The first request id; no other writer may use these ids.
    pub request_id: u64,
    /// How many, at most [`PIECE`].
    pub count: u64,
}

/// Makes what the others count with, and the sale older than its orders: the journal is read in the order of time.
///
/// # Errors
/// [`DbError`]; repeating the call is safe.
pub async fn prepare(db: &Db, sale: &SaleId) -> Result<(), DbError> {
    let sale = sale.as_str().as_bytes();
    db.patient()
        .run("bulk_prepare", async |conn| {
            conn.batch_execute(TABLE).await?;
            conn.batch_execute(NUMBERS).await?;
            diesel::sql_query(OLDER).bind::<Binary, _>(sale).execute(conn).await?;
            Ok(())
        })
        .await
}

/// Writes them, in one transaction.
///
/// # Errors
/// [`DbError`]; after an unknown outcome the sale is of no use then.
pub async fn write(db: &Db, bulk: Bulk<'_>) -> Result<(), DbError> {
    let sale = bulk.sale.as_str().as_bytes();
    let units = i64::try_from(bulk.count).unwrap_or(i64::MAX);
    let wrote = async |conn: &mut AsyncMysqlConnection| {
        diesel::sql_query(OUTCOMES)
            .bind::<Unsigned<BigInt>, _>(bulk.request_id)
            .bind::<Binary, _>(sale)
            .bind::<Unsigned<SmallInt>, _>(bulk.shard)
            .bind::<Unsigned<BigInt>, _>(bulk.number)
            .bind::<Unsigned<BigInt>, _>(bulk.count)
            .execute(conn)
            .await?;
        diesel::sql_query(ORDERS)
            .bind::<Unsigned<BigInt>, _>(bulk.request_id)
            .bind::<Binary, _>(sale)
            .bind::<Unsigned<BigInt>, _>(bulk.request_id)
            .bind::<Unsigned<BigInt>, _>(bulk.request_id)
            .bind::<Unsigned<BigInt>, _>(bulk.count)
            .execute(conn)
            .await?;
        diesel::sql_query(FLOW)
            .bind::<Binary, _>(sale)
            .bind::<Unsigned<BigInt>, _>(bulk.request_id)
            .bind::<BigInt, _>(units)
            .bind::<Unsigned<BigInt>, _>(bulk.count.div_ceil(GROUP))
            .execute(conn)
            .await?;
        diesel::sql_query(STOCK).bind::<BigInt, _>(units).bind::<Binary, _>(sale).execute(conn).await?;
        Ok(())
    };
    db.patient().run("bulk_write", async |conn| conn.transaction(async |conn| wrote(conn).await).await).await
}

/// Ends them as orders of a sale with a payment step end: of three one expired, in one batch, and the others were paid. Returns the units
/// that came back, under the grant `return-<request_id>`; Redis is to be given them.
///
/// # Errors
/// [`DbError`]; after an unknown outcome the sale is of no use then.
pub async fn end(db: &Db, bulk: Bulk<'_>) -> Result<i64, DbError> {
    let (sale, first, behind) = (bulk.sale, bulk.request_id, bulk.request_id + bulk.count);
    let units = (behind - 1) / 3 - (first - 1) / 3;
    let ago = "NOW(3) - INTERVAL 1 HOUR";
    let ended = format!(
        "/* bulk */ UPDATE orders SET state = IF(request_id % 3 = 0, 'EXPIRED', 'PAID'), state_at = {ago}, expire_at = {ago} \
         WHERE request_id >= {first} AND request_id < {behind}; \
         INSERT INTO payments (payment_id, request_id, sale_id, amount_cents, currency, state) \
         SELECT CAST(request_id AS CHAR), request_id, sale_id, 100, 'CNY', 'APPLIED' FROM orders \
         WHERE request_id >= {first} AND request_id < {behind} AND state = 'PAID'; \
         INSERT INTO stock_flow (sale_id, delta, kind, ref, created_at) VALUES ('{sale}', {units}, 'expire', '{first}', {ago}); \
         INSERT INTO stock_grants (sale_id, grant_id, kind, quantity, epoch, applied_at) \
         VALUES ('{sale}', 'return-{first}', 'reclaim', {units}, 1, {ago}); \
         UPDATE sales SET stock = stock + {units} WHERE sale_id = '{sale}'"
    );
    let write = async |conn: &mut AsyncMysqlConnection| Ok(conn.batch_execute(&ended).await?);
    db.patient().run("bulk_end", async |conn| conn.transaction(async |conn| write(conn).await).await).await?;
    Ok(i64::try_from(units).unwrap_or(i64::MAX))
}

/// Lets the time of a sale's line be over.
///
/// # Errors
/// [`DbError`]; repeating the call is safe.
pub async fn close_line(db: &Db, sale: &SaleId) -> Result<(), DbError> {
    let query = "UPDATE sale_lines SET closes_at = NOW(3) WHERE sale_id = ?";
    db.run("bulk_close_line", async |conn| {
        diesel::sql_query(query).bind::<Binary, _>(sale.as_str().as_bytes()).execute(conn).await?;
        Ok(())
    })
    .await
}

/// Updates the tables' statistics, as a server does some time after they grew, and removes what [`prepare`] made.
///
/// # Errors
/// [`DbError`]; repeating the call is safe.
pub async fn finish(db: &Db) -> Result<(), DbError> {
    db.patient()
        .run("bulk_finish", async |conn| {
            // Each answers with rows, which a batch may not.
            for table in ["request_outcome", "orders", "stock_flow", "payments"] {
                let analyze = format!("ANALYZE TABLE {table}");
                let _analyzed: Vec<Analyzed> = diesel::sql_query(analyze).load(conn).await?;
            }
            Ok(conn.batch_execute("DROP TABLE IF EXISTS bench_numbers").await?)
        })
        .await
}

/// The answer to an ANALYZE; it is not read.
#[derive(diesel::QueryableByName)]
struct Analyzed {}
