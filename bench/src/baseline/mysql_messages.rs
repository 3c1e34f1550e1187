//! For the benchmark: what two message schemes write into the database, so that an order and its event cannot part. The
//! outbox has an event row in the order's transaction. The half message has a row that says how the transaction ended;
//! a check-back reads it, and when there is none it writes one first, so that the transaction can no longer commit.
//!
//! A crash leaves the tables `bench_outbox` and `bench_transactions` with the rows of a benchmark.

use super::mysql::{BaselineTransactions, insert};
use super::mysql_units::BareOrder;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Bool, Unsigned};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection, TransactionManager};
use seckill::domain::ids::SaleId;
use seckill::store::mysql::schema::sales;
use seckill::store::mysql::{Db, DbError};

const OUTBOX: &str = "CREATE TABLE IF NOT EXISTS bench_outbox (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, \
    sale_id VARBINARY(64) NOT NULL, request_id BIGINT UNSIGNED NOT NULL, sent TINYINT(1) NOT NULL DEFAULT 0, \
    PRIMARY KEY (id), KEY ix_unsent (sale_id, sent, id)) ENGINE = InnoDB";
const TRANSACTIONS: &str = "CREATE TABLE IF NOT EXISTS bench_transactions (request_id BIGINT UNSIGNED NOT NULL, \
    sale_id VARBINARY(64) NOT NULL, committed TINYINT(1) NOT NULL, checked TINYINT(1) NOT NULL DEFAULT 0, \
    PRIMARY KEY (request_id)) ENGINE = InnoDB";
const UNSENT: &str = "SELECT id, request_id FROM bench_outbox WHERE sale_id = ? AND sent = 0 ORDER BY id LIMIT ?";
const ROLL_BACK_UNLESS_THERE: &str = "INSERT INTO bench_transactions (request_id, sale_id, committed, checked) \
    VALUES (?, ?, 0, 1) ON DUPLICATE KEY UPDATE checked = 1";
const CHECKED: &str = "SELECT CAST(COALESCE(SUM(committed = 1), 0) AS SIGNED) AS committed, \
    CAST(COALESCE(SUM(committed = 0), 0) AS SIGNED) AS rolled_back FROM bench_transactions WHERE sale_id = ? AND checked = 1";

/// An event that the relay has not marked as sent.
#[derive(Debug, Clone, Copy, diesel::QueryableByName)]
pub struct OutboxRow {
    /// Its place in the outbox.
    #[diesel(sql_type = Unsigned<BigInt>)]
    pub id: u64,
    /// The order that the event is about.
    #[diesel(sql_type = Unsigned<BigInt>)]
    pub request_id: u64,
}

#[derive(diesel::QueryableByName)]
struct CommittedFlag {
    #[diesel(sql_type = Bool)]
    committed: bool,
}

/// How many transactions a check-back decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, diesel::QueryableByName)]
pub struct CheckBacks {
    /// Found committed: the event was published.
    #[diesel(sql_type = BigInt)]
    pub committed: i64,
    /// Not found, and from then on impossible: the half message was dropped.
    #[diesel(sql_type = BigInt)]
    pub rolled_back: i64,
}

/// How a local transaction of the half message scheme ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalTransaction {
    /// Stock taken, order written.
    Committed,
    /// No stock; nothing written.
    SoldOut,
    /// A check-back came first and decided that it never happened; nothing written.
    TooLate,
}

/// Makes both tables.
///
/// # Errors
/// [`DbError`].
pub async fn make(db: &Db) -> Result<(), DbError> {
    db.run("bare_messages", async |conn| {
        conn.batch_execute(OUTBOX).await?;
        Ok(conn.batch_execute(TRANSACTIONS).await?)
    })
    .await
}

/// Removes both tables.
///
/// # Errors
/// [`DbError`].
pub async fn forget(db: &Db) -> Result<(), DbError> {
    let drop = "DROP TABLE IF EXISTS bench_outbox, bench_transactions";
    db.run("bare_messages", async |conn| Ok(conn.batch_execute(drop).await?)).await
}

/// One transaction: the guarded UPDATE of the stock, the order, and the event in the outbox; whether a unit was taken.
///
/// # Errors
/// [`DbError`]; after `Deadlock` and `LockWait` nothing is committed and trying again works.
pub async fn order_with_event(db: &Db, sale: &SaleId, order: BareOrder) -> Result<bool, DbError> {
    let sale = sale.as_str().as_bytes();
    let enough = sales::table.filter(sales::sale_id.eq(sale)).filter(sales::stock.ge(1));
    let one_less = diesel::update(enough).set(sales::stock.eq(sales::stock - 1));
    let event = diesel::sql_query("INSERT INTO bench_outbox (sale_id, request_id) VALUES (?, ?)");
    let event = event.bind::<Binary, _>(sale).bind::<Unsigned<BigInt>, _>(order.id);
    db.run("bare_outbox", async |conn| {
        BaselineTransactions::begin_transaction(conn).await?;
        let taken = one_less.execute(conn).await? > 0;
        if taken {
            insert(conn, sale, order.id, order.at_ms).await?;
            event.execute(conn).await?;
        }
        BaselineTransactions::commit_transaction(conn).await?;
        Ok(taken)
    })
    .await
}

/// The oldest events that are not marked as sent.
///
/// # Errors
/// [`DbError`].
pub async fn unsent(db: &Db, sale: &SaleId, limit: i64) -> Result<Vec<OutboxRow>, DbError> {
    let unsent = diesel::sql_query(UNSENT).bind::<Binary, _>(sale.as_str().as_bytes()).bind::<BigInt, _>(limit);
    db.run("bare_unsent", async |conn| Ok(unsent.load(conn).await?)).await
}

/// Marks events as sent.
///
/// # Errors
/// [`DbError`]; then some may be published again.
pub async fn mark_sent(db: &Db, rows: &[OutboxRow]) -> Result<(), DbError> {
    let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    let mark = format!("UPDATE bench_outbox SET sent = 1 WHERE id IN ({})", ids.join(","));
    db.run("bare_mark_sent", async |conn| Ok(conn.batch_execute(&mark).await?)).await
}

/// The local transaction between a half message and its commit: the guarded UPDATE of the stock, the row that says that it
/// committed, and the order.
///
/// # Errors
/// [`DbError`]; after `Deadlock` and `LockWait` nothing is committed and trying again works.
pub async fn order_after_half(db: &Db, sale: &SaleId, order: BareOrder) -> Result<LocalTransaction, DbError> {
    let sale = sale.as_str().as_bytes();
    let enough = sales::table.filter(sales::sale_id.eq(sale)).filter(sales::stock.ge(1));
    let one_less = diesel::update(enough).set(sales::stock.eq(sales::stock - 1));
    let state = diesel::sql_query("INSERT INTO bench_transactions (request_id, sale_id, committed) VALUES (?, ?, 1)");
    let state = state.bind::<Unsigned<BigInt>, _>(order.id).bind::<Binary, _>(sale);
    db.run("bare_half", async |conn| {
        BaselineTransactions::begin_transaction(conn).await?;
        if one_less.execute(conn).await? == 0 {
            BaselineTransactions::rollback_transaction(conn).await?;
            return Ok(LocalTransaction::SoldOut);
        }
        match state.execute(conn).await.map_err(DbError::from) {
            Ok(_) => {}
            Err(DbError::Duplicate(_)) => {
                BaselineTransactions::rollback_transaction(conn).await?;
                return Ok(LocalTransaction::TooLate);
            }
            Err(error) => return Err(error),
        }
        insert(conn, sale, order.id, order.at_ms).await?;
        BaselineTransactions::commit_transaction(conn).await?;
        Ok(LocalTransaction::Committed)
    })
    .await
}

/// The check-back: whether the transaction of this order committed. If it has not, it never will. One that is under way is
/// waited for.
///
/// # Errors
/// [`DbError`]; nothing is decided then.
pub async fn check_back(db: &Db, sale: &SaleId, request_id: u64) -> Result<bool, DbError> {
    let decide = diesel::sql_query(ROLL_BACK_UNLESS_THERE);
    let decide = decide.bind::<Unsigned<BigInt>, _>(request_id).bind::<Binary, _>(sale.as_str().as_bytes());
    let read = diesel::sql_query("SELECT committed FROM bench_transactions WHERE request_id = ?");
    let read = read.bind::<Unsigned<BigInt>, _>(request_id);
    db.run("bare_check_back", async |conn| {
        decide.execute(conn).await?;
        let decided: CommittedFlag = read.get_result(conn).await?;
        Ok(decided.committed)
    })
    .await
}

/// What the check-backs of a sale decided.
///
/// # Errors
/// [`DbError`].
pub async fn check_backs(db: &Db, sale: &SaleId) -> Result<CheckBacks, DbError> {
    let counted = diesel::sql_query(CHECKED).bind::<Binary, _>(sale.as_str().as_bytes());
    db.run("bare_check_backs", async |conn| Ok(counted.get_result(conn).await?)).await
}
