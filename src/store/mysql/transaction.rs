//! A transaction of several statements: all of it, or nothing.
//!
//! A node of Galera undoes a transaction at any moment, when another node was first. The error belongs to the statement that is under way,
//! or to the next one, and there are ways past it: it comes at the end of a message of several statements, and not every command may
//! answer with one. What the session does next is then no longer inside the transaction. After BEGIN each of those statements would be
//! committed by itself: a grant without the order that it is for.
//!
//! So the session commits nothing by itself meanwhile, and the end is committed only where the beginning is still there: a savepoint goes
//! with its transaction. Input: the work. Output: its result, committed. A crash or a lost answer leaves all of it or nothing.

use super::fault::DbError;
use super::pool::{Conn, Work};
use diesel_async::SimpleAsyncConnection;

/// The savepoint's name is in the texts of [`DbError`], too: without it the transaction was undone, and trying again works.
const OPEN: &str = "SET autocommit = 0; BEGIN; SAVEPOINT seckill";
const COMMIT: &str = "RELEASE SAVEPOINT seckill; COMMIT; SET autocommit = 1";
const HALF: &str = "COMMIT; BEGIN; SAVEPOINT seckill";
/// The end of a transaction that began with autocommit off, whatever else its beginning was.
pub(crate) const ROLLBACK: &str = "ROLLBACK; SET autocommit = 1";

/// Does `work` in one transaction. It may not begin another one.
///
/// # Errors
/// That of `work`, after which nothing of it remains; or [`DbError::Deadlock`] where the server had undone it. After
/// [`DbError::Unavailable`] and [`DbError::Timeout`] it is unknown.
pub async fn transaction<T, E, F>(conn: &mut Conn, work: F) -> Result<T, E>
where
    E: From<DbError>,
    for<'c> F: AsyncFnOnce(&'c mut Conn) -> Result<T, E> + Work<&'c mut Conn, Result<T, E>, Fut: Send>,
{
    send(conn, OPEN).await?;
    let done = match work(conn).await {
        Ok(done) => send(conn, COMMIT).await.map(|()| done).map_err(E::from),
        Err(error) => Err(error),
    };
    if done.is_err() {
        // Where this is not answered, what stopped the work is not certain either, and the caller closes the connection.
        send(conn, ROLLBACK).await?;
    }
    done
}

/// Only without a mechanism: commits what was written so far, and goes on in another transaction.
pub(crate) async fn commit_half(conn: &mut Conn) -> Result<(), DbError> {
    send(conn, HALF).await
}

async fn send(conn: &mut Conn, message: &str) -> Result<(), DbError> {
    Ok(conn.batch_execute(message).await?)
}
