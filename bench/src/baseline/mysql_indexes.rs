//! The indexes of `orders`: dropped and made again, to measure what each costs.

use diesel_async::SimpleAsyncConnection;
use seckill::store::mysql::{Db, DbError};

/// Name of each, and how the migrations make it.
pub const OF_ORDERS: [(&str, &str); 2] = [
    ("ix_orders_deadline", "KEY ix_orders_deadline (sale_id, state, expire_at, request_id, quantity)"),
    ("uk_sale_user", "UNIQUE KEY uk_sale_user (user_id, sale_id, one_per_user_id)"),
];

/// Leaves of these indexes only those that `kept` names.
///
/// # Errors
/// [`DbError`]; after one the database is of no use for a measurement.
pub async fn keep(db: &Db, kept: &[&str]) -> Result<(), DbError> {
    db.patient()
        .run("bench_indexes", async |conn| {
            for (name, key) in OF_ORDERS {
                // MySQL knows no IF EXISTS here, so each is dropped from the state in which all are there.
                if !kept.contains(&name) {
                    conn.batch_execute(&format!("/* bench: {key} */ ALTER TABLE orders DROP KEY {name}")).await?;
                }
            }
            Ok(())
        })
        .await
}

/// Makes those again that [`keep`] dropped.
///
/// # Errors
/// [`DbError`]; after one the database is of no use for a measurement.
pub async fn restore(db: &Db, kept: &[&str]) -> Result<(), DbError> {
    db.patient()
        .run("bench_indexes", async |conn| {
            for (_, key) in OF_ORDERS.into_iter().filter(|(name, _)| !kept.contains(name)) {
                conn.batch_execute(&format!("/* bench */ ALTER TABLE orders ADD {key}")).await?;
            }
            Ok(())
        })
        .await
}
