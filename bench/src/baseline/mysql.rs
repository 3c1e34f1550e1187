//! For the benchmark: what the same database does without this system. Two textbook writers into the same tables, with the
//! same session settings and the same durability; neither takes care of repeats, limits or failures.
//!
//! Input: a sale made for it. Output: committed orders. A crash leaves orders of that sale.

use chrono::{DateTime, NaiveDateTime};
use diesel::prelude::*;
use diesel::sql_types::Binary;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection, TransactionManager};
use seckill::domain::ids::SaleId;
use seckill::store::mysql::schema::{orders, sales};
use seckill::store::mysql::{Db, DbError};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use tokio::task::JoinSet;

type BaselineConnection = AsyncMysqlConnection;
pub(super) type BaselineTransactions = <BaselineConnection as AsyncConnection>::TransactionManager;

const OUTCOMES: &str = "/* bare */ INSERT INTO request_outcome \
    (request_id, kind, sale_id, shard, epoch, number, payload_hash) VALUES ";
const ORDERS: &str = "/* bare */ INSERT INTO orders \
    (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, accepted_at) VALUES ";

const BOOK: &str = "INSERT INTO stock_flow (sale_id, delta, kind, orders_count, ref) \
    SELECT sale_id, stock - granted, 'order', granted - stock, 'bare' FROM sales WHERE sale_id = ? AND stock < granted";

/// What is written, and for how long.
#[derive(Debug, Clone)]
pub struct BaselineRun {
    /// A one-per-user sale with more stock than can be sold meanwhile.
    pub sale: SaleId,
    /// The request ids begin above it; no other writer may use them.
    pub above: u64,
    /// No transaction begins after it.
    pub until: Instant,
    /// When the requests were accepted, Unix milliseconds.
    pub at_ms: i64,
}

/// Writes into the journal of stock, once and at the end, what these writers took from a sale: else every audit of this
/// database would find the sale out of balance.
///
/// # Errors
/// [`DbError`].
pub async fn book(db: &Db, sale: &SaleId) -> Result<(), DbError> {
    let sale = sale.as_str().as_bytes();
    db.run("bare_book", async |conn| {
        diesel::sql_query(BOOK).bind::<Binary, _>(sale).execute(conn).await?;
        Ok(())
    })
    .await
}

fn buyer(id: u64) -> Vec<u8> {
    format!("buyer-{id:08}").into_bytes()
}

/// One plain transaction an order (INSERT the order, guarded UPDATE of the stock), on `connections` at once. Returns the
/// committed orders.
///
/// # Errors
/// [`DbError`]; lost deadlocks and lock waits are not errors, they only commit nothing.
pub async fn one_by_one(db: &Db, bare: &BaselineRun, connections: usize) -> Result<u64, DbError> {
    let next = Arc::new(AtomicU64::new(bare.above + 1));
    let mut crew = JoinSet::new();
    for _ in 0..connections {
        crew.spawn(one_writer(db.clone(), bare.clone(), Arc::clone(&next)));
    }
    let mut committed = 0;
    while let Some(done) = crew.join_next().await {
        committed += done.map_err(|error| DbError::Other(error.to_string()))??;
    }
    Ok(committed)
}

async fn one_writer(db: Db, bare: BaselineRun, next: Arc<AtomicU64>) -> Result<u64, DbError> {
    let mut committed = 0;
    while Instant::now() < bare.until {
        let id = next.fetch_add(1, Relaxed);
        let done = order(&db, &bare.sale, id, bare.at_ms).await;
        match done {
            Ok(()) => committed += 1,
            Err(DbError::Deadlock | DbError::LockWait) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(committed)
}

/// One plain transaction: the order of one unit by the buyer with this number, which is its request id too, and the stock.
///
/// # Errors
/// [`DbError`]; after `Deadlock` and `LockWait` nothing is committed and trying again works.
pub async fn order(db: &Db, sale: &SaleId, id: u64, at_ms: i64) -> Result<(), DbError> {
    let sale = sale.as_str().as_bytes();
    db.run("bare_order", async |conn| {
        conn.transaction(async |conn| {
            insert(conn, sale, id, at_ms).await?;
            take(conn, sale, 1).await
        })
        .await
    })
    .await
}

/// The order's row alone.
pub(super) async fn insert(conn: &mut BaselineConnection, sale: &[u8], id: u64, at_ms: i64) -> Result<(), DbError> {
    let user = buyer(id);
    let row = (
        orders::request_id.eq(id),
        orders::sale_id.eq(sale),
        orders::user_id.eq(&user),
        orders::one_per_user_id.eq(Some(&user)),
        orders::quantity.eq(1),
        orders::amount_cents.eq(100),
        orders::source.eq("relay"),
        orders::accepted_at.eq(datetime(at_ms)?),
    );
    diesel::insert_into(orders::table).values(row).execute(conn).await?;
    Ok(())
}

async fn take(conn: &mut BaselineConnection, sale: &[u8], units: i64) -> Result<(), DbError> {
    let enough = sales::table.filter(sales::sale_id.eq(sale)).filter(sales::stock.ge(units));
    match diesel::update(enough).set(sales::stock.eq(sales::stock - units)).execute(conn).await? {
        0 => Err(DbError::Other("the bare sale has no stock left".to_owned())),
        _ => Ok(()),
    }
}

/// Multi-row INSERTs of `group` outcomes and `group` orders and one UPDATE of the stock in each transaction, on one
/// connection (more of them only wait for the same stock row). Returns the committed orders.
///
/// # Errors
/// [`DbError`].
pub async fn rows(db: &Db, bare: &BaselineRun, group: u32) -> Result<u64, DbError> {
    let at = datetime(bare.at_ms)?;
    let sale = bare.sale.as_str().as_bytes();
    let mut committed = 0;
    while Instant::now() < bare.until {
        let first = bare.above + committed + 1;
        let (outcomes, orders) = insert_texts(bare, at, first..first + u64::from(group));
        db.run("bare_rows", async |conn| {
            BaselineTransactions::begin_transaction(conn).await?;
            conn.batch_execute(&outcomes).await?;
            conn.batch_execute(&orders).await?;
            take(conn, sale, i64::from(group)).await?;
            Ok(BaselineTransactions::commit_transaction(conn).await?)
        })
        .await?;
        committed += u64::from(group);
    }
    Ok(committed)
}

/// Both INSERTs. A sale id is letters, digits, - and _ only, so nothing needs to be escaped.
fn insert_texts(bare: &BaselineRun, at: NaiveDateTime, ids: std::ops::Range<u64>) -> (String, String) {
    let sale = &bare.sale;
    let (mut outcomes, mut orders) = (OUTCOMES.to_owned(), ORDERS.to_owned());
    for id in ids {
        let number = id - bare.above;
        let comma = if outcomes.ends_with(')') { "," } else { "" };
        // Writing into a string cannot fail.
        let _ok = write!(outcomes, "{comma}({id},'ORDER','{sale}',0,1,{number},0x{id:032x})");
        let _ok = write!(orders, "{comma}({id},'{sale}','buyer-{id:08}','buyer-{id:08}',1,100,'relay','{at}')");
    }
    (outcomes, orders)
}

/// Unix milliseconds as the database stores times.
fn datetime(unix_ms: i64) -> Result<NaiveDateTime, DbError> {
    let time = DateTime::from_timestamp_millis(unix_ms).map(|time| time.naive_utc());
    time.ok_or_else(|| DbError::Other(format!("time is out of range: {unix_ms} ms")))
}
