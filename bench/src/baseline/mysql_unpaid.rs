//! Unpaid orders of a sale as a benchmark needs them: all overdue at one moment, and counted.

use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use seckill::domain::ids::SaleId;
use seckill::store::mysql::{Db, DbError};

#[derive(QueryableByName)]
struct Unpaid {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// Sets the enforced deadline of all unpaid orders of a sale to one moment, so many seconds from now.
///
/// # Errors
/// [`DbError`]; repeating the call is safe.
pub async fn due_in(db: &Db, sale: &SaleId, seconds: u64) -> Result<(), DbError> {
    let set = format!(
        "/* bench */ UPDATE orders SET expire_at = NOW(3) + INTERVAL {seconds} SECOND WHERE sale_id = '{sale}' AND state = 'UNPAID'"
    );
    db.patient().run("bench_overdue", async |conn| Ok(conn.batch_execute(&set).await?)).await
}

/// Unpaid orders of a sale.
///
/// # Errors
/// [`DbError`].
pub async fn count(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    let query = "/* bench */ SELECT COUNT(*) AS n FROM orders FORCE INDEX (ix_orders_sale) WHERE sale_id = ? AND state = 'UNPAID'";
    let sale = sale.as_str().as_bytes();
    let counted: Unpaid = db
        .run("bench_unpaid", async |conn| Ok(diesel::sql_query(query).bind::<Binary, _>(sale).get_result(conn).await?))
        .await?;
    Ok(counted.n)
}
