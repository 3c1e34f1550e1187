//! For the benchmark: two ways to take one unit of stock in the database alone. A guarded UPDATE of the one hot row, and a
//! row for each unit that a transaction picks with SKIP LOCKED, so that nobody waits for anybody.
//!
//! A crash leaves the table `bench_units` with the units of a benchmark.

use super::fault::DbError;
use super::pool::{Db, Manager};
use super::schema::sales;
use crate::domain::ids::SaleId;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Unsigned};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection, TransactionManager};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bench_units (sale_id VARBINARY(64) NOT NULL, unit BIGINT UNSIGNED NOT NULL, \
    taken TINYINT NOT NULL DEFAULT 0, PRIMARY KEY (sale_id, unit), KEY ix_free (sale_id, taken, unit)) ENGINE = InnoDB";
const FREE: &str = "SELECT unit FROM bench_units WHERE sale_id = ? AND taken = 0 LIMIT 1 FOR UPDATE SKIP LOCKED";
/// Rows of one INSERT.
const ROWS: usize = 1_000;

#[derive(diesel::QueryableByName)]
struct Unit {
    #[diesel(sql_type = Unsigned<BigInt>)]
    unit: u64,
}

/// `UPDATE … SET stock = stock - 1 WHERE stock >= 1`; whether a unit was taken.
///
/// # Errors
/// [`DbError`].
pub async fn take_guarded(db: &Db, sale: &SaleId) -> Result<bool, DbError> {
    let enough = sales::table.filter(sales::sale_id.eq(sale.as_str().as_bytes())).filter(sales::stock.ge(1));
    db.run("bare_guarded", async |conn| {
        Ok(diesel::update(enough).set(sales::stock.eq(sales::stock - 1)).execute(conn).await? > 0)
    })
    .await
}

/// Makes a row for each of `units`.
///
/// # Errors
/// [`DbError`].
pub async fn make(db: &Db, sale: &SaleId, units: u64) -> Result<(), DbError> {
    let all: Vec<u64> = (1..=units).collect();
    db.run("bare_units", async |conn| Ok(conn.batch_execute(TABLE).await?)).await?;
    for part in all.chunks(ROWS) {
        // A sale id is letters, digits, - and _ only.
        let rows: Vec<String> = part.iter().map(|unit| format!("('{sale}',{unit})")).collect();
        let insert = format!("INSERT INTO bench_units (sale_id, unit) VALUES {}", rows.join(","));
        db.run("bare_units", async |conn| Ok(conn.batch_execute(&insert).await?)).await?;
    }
    Ok(())
}

/// Picks a free row that nobody has locked and takes it, in one transaction; whether there was one.
///
/// # Errors
/// [`DbError`].
pub async fn take_skip_locked(db: &Db, sale: &SaleId) -> Result<bool, DbError> {
    let sale = sale.as_str().as_bytes();
    db.run("bare_skip_locked", async |conn| {
        Manager::begin_transaction(conn).await?;
        let free: Option<Unit> = diesel::sql_query(FREE).bind::<Binary, _>(sale).get_result(conn).await.optional()?;
        if let Some(Unit { unit }) = &free {
            diesel::sql_query("UPDATE bench_units SET taken = 1 WHERE sale_id = ? AND unit = ?")
                .bind::<Binary, _>(sale)
                .bind::<Unsigned<BigInt>, _>(*unit)
                .execute(conn)
                .await?;
        }
        Manager::commit_transaction(conn).await?;
        Ok(free.is_some())
    })
    .await
}

/// Removes the table.
///
/// # Errors
/// [`DbError`].
pub async fn forget(db: &Db) -> Result<(), DbError> {
    db.run("bare_units", async |conn| Ok(conn.batch_execute("DROP TABLE IF EXISTS bench_units").await?)).await
}
