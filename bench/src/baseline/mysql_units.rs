//! For the benchmark: three strategies that take one unit of stock in the database alone. A guarded UPDATE of the one hot
//! row; the same row with a version column, read first and written only if no other session wrote it; and a row for each unit
//! that a transaction picks with SKIP LOCKED, so that no session waits for another. All can write the order in the same
//! transaction, as their users do.
//!
//! A crash leaves the tables `bench_units` and `bench_versions` with the stock of a benchmark.

use super::StockAttempt;
use super::mysql::{BaselineTransactions, insert};
use super::redis::TRIES;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Unsigned};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection, TransactionManager};
use seckill::domain::ids::SaleId;
use seckill::store::mysql::schema::{orders, sales};
use seckill::store::mysql::{Db, DbError};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bench_units (sale_id VARBINARY(64) NOT NULL, unit BIGINT UNSIGNED NOT NULL, \
    taken TINYINT NOT NULL DEFAULT 0, PRIMARY KEY (sale_id, unit), KEY ix_free (sale_id, taken, unit)) ENGINE = InnoDB";
const FREE: &str = "SELECT unit FROM bench_units WHERE sale_id = ? AND taken = 0 LIMIT 1 FOR UPDATE SKIP LOCKED";
const TAKEN: &str = "SELECT COUNT(*) AS count FROM bench_units WHERE sale_id = ? AND taken = 1";
const VERSIONS: &str = "CREATE TABLE IF NOT EXISTS bench_versions (sale_id VARBINARY(64) NOT NULL, stock BIGINT NOT NULL, \
    version BIGINT UNSIGNED NOT NULL, PRIMARY KEY (sale_id)) ENGINE = InnoDB";
const READ_VERSION: &str = "SELECT stock, version FROM bench_versions WHERE sale_id = ?";
const UPDATE_VERSION: &str =
    "UPDATE bench_versions SET stock = stock - 1, version = version + 1 WHERE sale_id = ? AND version = ?";
const DOUBLED: &str = "SELECT COUNT(*) - COUNT(DISTINCT user_id) AS count FROM orders WHERE sale_id = ?";
/// Rows of one INSERT.
const ROWS: usize = 1_000;

#[derive(diesel::QueryableByName)]
struct Unit {
    #[diesel(sql_type = Unsigned<BigInt>)]
    unit: u64,
}

#[derive(diesel::QueryableByName)]
struct VersionedStock {
    #[diesel(sql_type = BigInt)]
    stock: i64,
    #[diesel(sql_type = Unsigned<BigInt>)]
    version: u64,
}

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// An order that is to be committed with the unit or not at all.
#[derive(Debug, Clone, Copy)]
pub struct BareOrder {
    /// The buyer's number, and the request id.
    pub id: u64,
    /// Unix milliseconds.
    pub at_ms: i64,
}

/// `UPDATE … SET stock = stock - 1 WHERE stock >= 1`, and the order if there is one; whether a unit was taken.
///
/// # Errors
/// [`DbError`].
pub async fn take_guarded(db: &Db, sale: &SaleId, order: Option<BareOrder>) -> Result<bool, DbError> {
    let sale = sale.as_str().as_bytes();
    let enough = sales::table.filter(sales::sale_id.eq(sale)).filter(sales::stock.ge(1));
    let one_less = diesel::update(enough).set(sales::stock.eq(sales::stock - 1));
    db.run("bare_guarded", async |conn| {
        let Some(order) = order else { return Ok(one_less.execute(conn).await? > 0) };
        BaselineTransactions::begin_transaction(conn).await?;
        let taken = one_less.execute(conn).await? > 0;
        if taken {
            insert(conn, sale, order.id, order.at_ms).await?;
        }
        BaselineTransactions::commit_transaction(conn).await?;
        Ok(taken)
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

/// Picks a free row that no session has locked and takes it, in one transaction, with the order if there is one; whether there
/// was such a row.
///
/// # Errors
/// [`DbError`].
pub async fn take_skip_locked(db: &Db, sale: &SaleId, order: Option<BareOrder>) -> Result<bool, DbError> {
    let sale = sale.as_str().as_bytes();
    db.run("bare_skip_locked", async |conn| {
        BaselineTransactions::begin_transaction(conn).await?;
        let free: Option<Unit> = diesel::sql_query(FREE).bind::<Binary, _>(sale).get_result(conn).await.optional()?;
        if let Some(Unit { unit }) = &free {
            diesel::sql_query("UPDATE bench_units SET taken = 1 WHERE sale_id = ? AND unit = ?")
                .bind::<Binary, _>(sale)
                .bind::<Unsigned<BigInt>, _>(*unit)
                .execute(conn)
                .await?;
            if let Some(order) = order {
                insert(conn, sale, order.id, order.at_ms).await?;
            }
        }
        BaselineTransactions::commit_transaction(conn).await?;
        Ok(free.is_some())
    })
    .await
}

/// Makes the row with the version of one sale.
///
/// # Errors
/// [`DbError`].
pub async fn make_version(db: &Db, sale: &SaleId, units: i64) -> Result<(), DbError> {
    let insert = diesel::sql_query("INSERT INTO bench_versions (sale_id, stock, version) VALUES (?, ?, 0)");
    let insert = insert.bind::<Binary, _>(sale.as_str().as_bytes()).bind::<BigInt, _>(units);
    db.run("bare_versions", async |conn| {
        conn.batch_execute(VERSIONS).await?;
        insert.execute(conn).await?;
        Ok(())
    })
    .await
}

/// Reads stock and version, and updates the row if it still has this version; again when somebody else was faster. With
/// the order if there is one, in the same transaction.
///
/// # Errors
/// [`DbError`].
pub async fn take_versioned(db: &Db, sale: &SaleId, order: Option<BareOrder>) -> Result<StockAttempt, DbError> {
    for retries in 0..TRIES {
        if let Some(is_taken) = try_version(db, sale, order).await? {
            return Ok(StockAttempt { is_taken, retries });
        }
    }
    Ok(StockAttempt { is_taken: false, retries: TRIES })
}

/// One try: whether a unit was taken; `None` when the row had another version by then.
async fn try_version(db: &Db, sale: &SaleId, order: Option<BareOrder>) -> Result<Option<bool>, DbError> {
    let sale = sale.as_str().as_bytes();
    db.run("bare_versions", async |conn| {
        let read = diesel::sql_query(READ_VERSION).bind::<Binary, _>(sale);
        let VersionedStock { stock, version } = read.get_result(conn).await?;
        if stock <= 0 {
            return Ok(Some(false));
        }
        let update = diesel::sql_query(UPDATE_VERSION).bind::<Binary, _>(sale).bind::<Unsigned<BigInt>, _>(version);
        let Some(order) = order else { return Ok((update.execute(conn).await? > 0).then_some(true)) };
        BaselineTransactions::begin_transaction(conn).await?;
        if update.execute(conn).await? == 0 {
            BaselineTransactions::rollback_transaction(conn).await?;
            return Ok(None);
        }
        insert(conn, sale, order.id, order.at_ms).await?;
        BaselineTransactions::commit_transaction(conn).await?;
        Ok(Some(true))
    })
    .await
}

/// Units that are left in the row with the version.
///
/// # Errors
/// [`DbError`].
pub async fn version_left(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    let read = diesel::sql_query(READ_VERSION).bind::<Binary, _>(sale.as_str().as_bytes());
    db.run("bare_versions", async |conn| {
        let left: VersionedStock = read.get_result(conn).await?;
        Ok(left.stock)
    })
    .await
}

/// Units whose rows are taken.
///
/// # Errors
/// [`DbError`].
pub async fn taken(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    let sale = sale.as_str().as_bytes();
    db.run("bare_units", async |conn| {
        let taken: Count = diesel::sql_query(TAKEN).bind::<Binary, _>(sale).get_result(conn).await?;
        Ok(taken.count)
    })
    .await
}

/// Who has an order of the sale: request ids, which are the buyers' numbers.
///
/// # Errors
/// [`DbError`].
pub async fn ordered(db: &Db, sale: &SaleId) -> Result<Vec<u64>, DbError> {
    let of_sale = orders::table.filter(orders::sale_id.eq(sale.as_str().as_bytes()));
    db.run("bare_ordered", async |conn| Ok(of_sale.select(orders::request_id).load(conn).await?)).await
}

/// Orders of the sale beyond the first of each buyer.
///
/// # Errors
/// [`DbError`].
pub async fn doubled(db: &Db, sale: &SaleId) -> Result<i64, DbError> {
    let doubled = diesel::sql_query(DOUBLED).bind::<Binary, _>(sale.as_str().as_bytes());
    db.run("bare_doubled", async |conn| {
        let doubled: Count = doubled.get_result(conn).await?;
        Ok(doubled.count)
    })
    .await
}

/// Removes the tables.
///
/// # Errors
/// [`DbError`].
pub async fn forget(db: &Db) -> Result<(), DbError> {
    db.run("bare_units", async |conn| {
        Ok(conn.batch_execute("DROP TABLE IF EXISTS bench_units, bench_versions").await?)
    })
    .await
}
