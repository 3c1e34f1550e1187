//! Unpaid orders of a sale as a benchmark needs them: all overdue at one moment, and counted.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use seckill::domain::ids::SaleId;
use seckill::store::mysql::{Db, DbError};

#[derive(QueryableByName)]
struct OneNumber {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Sets the enforced deadline of all unpaid orders of a sale to one moment, this number of seconds from now.
///
/// # Errors
/// [`DbError`]; repeating the call is safe.
pub async fn due_in(db: &Db, sale: &SaleId, seconds: u64) -> Result<(), DbError> {
    let set = format!(
        "/* bench */ UPDATE orders SET expire_at = NOW(3) + INTERVAL {seconds} SECOND WHERE sale_id = '{sale}' AND state = 'UNPAID'"
    );
    db.patient().run("bench_overdue", async |conn| Ok(conn.batch_execute(&set).await?)).await
}

/// Seconds until the last deadline of a sale's unpaid orders has passed; below 0 when it has, or there is none.
///
/// # Errors
/// [`DbError`].
pub async fn last_due_in_s(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    let query = "/* bench */ SELECT CAST(COALESCE(TIMESTAMPDIFF(SECOND, NOW(3), MAX(expire_at)), -1) AS SIGNED) AS n \
                 FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id = ? AND state = 'UNPAID'";
    asked(db.patient(), "bench_last_due", query, sale).await
}

/// Unpaid orders of a sale. Reads an index row for each: not for a loop.
///
/// # Errors
/// [`DbError`].
pub async fn count(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    let query = "/* bench */ SELECT COUNT(*) AS n FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id = ? AND state = 'UNPAID'";
    asked(db.patient(), "bench_unpaid", query, sale).await
}

/// Units of a sale in the database, which come back in the transaction that expires their orders.
///
/// # Errors
/// [`DbError`].
pub async fn stock(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    asked(db, "bench_stock", "/* bench */ SELECT stock AS n FROM sales WHERE sale_id = ?", sale).await
}

/// 1 while an event of an order waits to be published, else 0.
///
/// # Errors
/// [`DbError`].
pub async fn event_waits(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    let query = "/* bench */ SELECT COUNT(*) AS n FROM (SELECT 1 FROM order_events WHERE ? IS NOT NULL LIMIT 1) AS one";
    asked(db, "bench_events", query, sale).await
}

async fn asked(db: &Db, name: &'static str, query: &str, sale: &SaleId) -> Result<i64, DbError> {
    let sale = sale.as_str().as_bytes();
    let found: OneNumber =
        db.run(name, async |conn| Ok(diesel::sql_query(query).bind::<Binary, _>(sale).get_result(conn).await?)).await?;
    Ok(found.n)
}
