//! The transaction that persists a group: outcomes → orders → journal (one message) → buyers, of sales and of drops → stock (the hot
//! row, last), commit.
//! Three round trips, because each costs this process and the server about as much as ten orders do.
//!
//! Whatever goes wrong, everything is rolled back: a lock wait (1205) undoes only its statement and a deadlock (1213) the
//! whole transaction, and committing what is left would book stock without orders (windows 67, 68).
//!
//! A node of Galera also undoes a transaction between two statements of one message, when another node was first, and goes on with
//! the message: the error comes at its end (seen with MariaDB 10.11). After BEGIN the rest would be committed statement by
//! statement: orders without an outcome. So the session commits nothing by itself meanwhile, and the stock is taken only where
//! this transaction's own outcome is still to be seen.

use crate::domain::ids::SaleId;
use crate::domain::states::{P6Fulfil, State};
use crate::events::rows::outcome as events;
use crate::faults::{crash_point, left_out};
use crate::orders::persist::plan::{SaleShare, WritePlan};
use crate::orders::rows::purchases::{DROP_PURCHASES, LimitTable, PURCHASES};
use crate::store::mysql::fault::{DbError, Halt};
use crate::store::mysql::pool::{Conn, Db};
use crate::store::mysql::schema::{request_outcome, sales};
use crate::store::mysql::transaction::ROLLBACK;
use crate::store::mysql::values::Values;
use crate::telemetry::count;
use diesel::dsl::exists;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Unsigned};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use std::collections::BTreeMap;
use std::pin::pin;

/// The end of the transaction that the plan's first message opens.
const COMMIT: &str = "COMMIT; SET autocommit = 1";

/// What stopped the transaction; nothing of it remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// A request id or an acceptance number has an outcome.
    Outcome,
    /// A buyer has an order in a one-per-user sale.
    Buyer,
    /// A buyer would pass the cumulative limit of a sale, or the limit of a drop.
    Limit,
    /// Numbers of a sale were closed since they were read: the numbers of the group may be among them.
    Closed,
    /// The guarded update matched no row: too little stock, or no such sale.
    Stock,
}

/// Writes the plan in one transaction. `None`: committed, and its new orders that have to be paid are counted. `Some`: rolled back
/// because of this.
pub(crate) async fn transact(db: &Db, name: &'static str, plan: &WritePlan<'_>) -> Result<Option<Blocked>, DbError> {
    let written = db.run(name, async |conn| {
        match in_transaction(conn, plan).await {
            Ok(()) => Ok(None),
            Err(Halt::Because(blocked)) => Ok(Some(blocked)),
            // A 1062 that no stage expects (from COMMIT, say) is no business answer.
            Err(Halt::Db(DbError::Duplicate(key))) => Err(DbError::Other(format!("unexpected duplicate of {key}"))),
            Err(Halt::Db(error)) => Err(error),
        }
    });
    let blocked = written.await?;
    if blocked.is_none() {
        count(State::P6(P6Fulfil::Unpaid), plan.unpaid_count);
    }
    Ok(blocked)
}

/// All or nothing. After an error of the database the caller closes the connection, which rolls back where the statement
/// ROLLBACK could not. Diesel does not know of the transaction: its beginning is in one message with the INSERTs.
async fn in_transaction(conn: &mut Conn, plan: &WritePlan<'_>) -> Result<(), Halt<Blocked>> {
    let halt = match write(conn, plan).await {
        Ok(()) => return commit(conn).await,
        Err(Halt::Db(_)) if left_out!(Rollback) => return commit(conn).await,
        Err(halt) => halt,
    };
    match (conn.batch_execute(ROLLBACK).await, halt) {
        (Ok(()), halt) | (Err(_), halt @ Halt::Db(_)) => Err(halt),
        // The obstacle is certain, the connection is not.
        (Err(error), Halt::Because(_)) => Err(Halt::Db(error.into())),
    }
}

/// Sends a message and waits for its answer, with a place to die in between. The first poll sends, later polls wait.
async fn send(conn: &mut Conn, message: &str, sent: impl FnOnce()) -> Result<(), Halt<Blocked>> {
    let mut answer = pin!(conn.batch_execute(message));
    tokio::select! {
        biased;
        // A quick server, or a slow process: the answer is there already, and nothing has followed from it yet.
        answered = &mut answer => {
            sent();
            return Ok(answered?);
        }
        () = std::future::ready(()) => sent(),
    }
    Ok(answer.await?)
}

/// After a crash before the answer the outcome is unknown.
async fn commit(conn: &mut Conn) -> Result<(), Halt<Blocked>> {
    send(conn, COMMIT, || crash_point!(CommitSent)).await
}

async fn write(conn: &mut Conn, plan: &WritePlan<'_>) -> Result<(), Halt<Blocked>> {
    let opened = send(conn, &plan.opening, || crash_point!(InsertsSent)).await;
    opened.map_err(|halt| match halt {
        Halt::Db(error) if error.is_duplicate_of("uk_sale_user") => Halt::Because(Blocked::Buyer),
        // The journal's key; no request explains it.
        Halt::Db(error) if error.is_duplicate_of("uk_flow_ref") => Halt::Db(error),
        // A request's id or its acceptance number. PRIMARY may be that of `orders` as well; `one.rs` finds out.
        Halt::Db(error) if error.is_duplicate() => Halt::Because(Blocked::Outcome),
        halt @ (Halt::Because(_) | Halt::Db(_)) => halt,
    })?;
    crash_point!(AfterOrder);
    if !plan.events.is_empty() {
        events::write(conn, &plan.events).await?;
    }
    for (sale_id, share) in &plan.shares {
        if let Some((limit, buyers)) = &share.buyers {
            count_buyers(conn, (PURCHASES, sale_id.as_str()), (Some(*limit), buyers)).await?;
        }
    }
    for (drop_id, share) in &plan.drops {
        let limit = share.limit.filter(|_limit| !left_out!(DropGuard));
        count_buyers(conn, (DROP_PURCHASES, drop_id.as_str()), (limit, &share.buyers)).await?;
    }
    for (sale_id, share) in &plan.shares {
        take_stock(conn, sale_id, share).await?;
    }
    crash_point!(AfterStock);
    Ok(())
}

/// Adds what each buyer gets and checks whether anyone passed the limit. The rows are locked by the upsert, so the check
/// sees what will be committed; its row count is not used, because this driver counts matched rows (window 70).
async fn count_buyers(
    conn: &mut Conn,
    (LimitTable { table, column, insert }, id): (LimitTable, &str),
    (limit, buyers): (Option<u64>, &BTreeMap<Vec<u8>, u64>),
) -> Result<(), Halt<Blocked>> {
    let mut upsert = Values::insert(insert, buyers.len());
    let mut users = Values::list(buyers.len());
    for (user, units) in buyers {
        upsert.row();
        upsert.bytes(id.as_bytes());
        upsert.bytes(user);
        upsert.number(*units);
        users.bytes(user);
    }
    conn.batch_execute(&(upsert.finish() + " ON DUPLICATE KEY UPDATE quantity = quantity + VALUES(quantity)")).await?;
    let Some(limit) = limit else { return Ok(()) };
    let above = format!(
        "/* landing */ SELECT COUNT(*) AS above FROM {table} WHERE {column} = ? AND quantity > ? AND user_id IN {}",
        users.finish()
    );
    let above = diesel::sql_query(above).bind::<Binary, _>(id.as_bytes()).bind::<Unsigned<BigInt>, _>(limit);
    let above: Above = above.get_result(conn).await?;
    if above.above == 0 { Ok(()) } else { Err(Halt::Because(Blocked::Limit)) }
}

#[derive(QueryableByName)]
struct Above {
    #[diesel(sql_type = BigInt)]
    above: i64,
}

async fn take_stock(conn: &mut Conn, sale_id: &SaleId, share: &SaleShare) -> Result<(), Halt<Blocked>> {
    let own_outcome = request_outcome::table.find(share.first_request);
    let row = sales::table.find(sale_id.as_str().as_bytes());
    let enough = row.filter(sales::stock.ge(share.units)).filter(sales::closings.eq(share.closings));
    let less = diesel::update(enough).set(sales::stock.eq(sales::stock - share.units));
    let updated = less.filter(exists(own_outcome)).execute(conn).await;
    match updated.map_err(DbError::from) {
        Ok(0) => match own_outcome.count().get_result::<i64>(conn).await? {
            0 => Err(Halt::Db(DbError::Deadlock)),
            _ => match row.select(sales::closings).first::<u32>(conn).await.optional()? {
                Some(closings) if closings != share.closings => Err(Halt::Because(Blocked::Closed)),
                Some(_) | None => Err(Halt::Because(Blocked::Stock)),
            },
        },
        Ok(_) => Ok(()),
        // The hot row itself is locked: a smaller group of this sale would wait as well, other sales would not.
        Err(DbError::LockWait) => Err(Halt::Db(DbError::SaleLocked(sale_id.clone()))),
        Err(error) => Err(Halt::Db(error)),
    }
}
