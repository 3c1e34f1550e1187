//! Sessions of the database: how one is set up, how long it may be silent, and whether one that lay in the pool is used again.
//!
//! Input: the address. Output: sessions for the pool and for the leader's lock. A process that crashes, hangs or vanishes with
//! its host leaves sessions that the server ends after [`IDLE_S`], with a rollback: until then it holds what they have locked.

use super::address::DatabaseAddress;
use super::database_server::Established;
use super::database_state::DatabaseState;
use super::fault::DbError;
use deadpool::managed::{Manager, Metrics, PoolError, RecycleError, RecycleResult, TimeoutType};
use diesel_async::pooled_connection::PoolableConnection;
use diesel_async::{AsyncMysqlConnection, SimpleAsyncConnection};
use std::time::{Duration, Instant};

/// A connection as the closures of [`Db::run`](super::Db::run) get it.
pub(crate) type Conn = AsyncMysqlConnection;

/// The server ends a session that is silent for this long, in seconds, and with it the transaction and the locks of a process
/// whose host is frozen or gone: else the first consumer that vanishes between UPDATE and COMMIT would hold its sale for the
/// eight hours of the server's default. Long against the pauses of a busy process.
pub(crate) const IDLE_S: u32 = 6;
/// The same within a transaction that has written. MariaDB only.
const IDLE_IN_WRITE_S: u32 = 5;
/// A session that lay in the pool for this long is closed by this process: for those that the server closes it writes a
/// warning into its log. Well below [`IDLE_S`].
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(3);
/// A session that was idle for longer than this is tested before it is used.
const IDLE_TRUSTED: Duration = Duration::from_millis(500);
/// One that is used all the time is tested this often: a server may be demoted, and still answer reads.
const TESTED_TRUSTED: Duration = Duration::from_secs(1);
/// Most seconds a statement waits for a row lock before 1205.
pub(crate) const LOCK_WAIT_MAX_S: u64 = 3;

/// Seconds a statement waits for a row lock: less than it may take at all, because 1205 says that the row of one sale is locked, and
/// a statement that took too long says that the database is in trouble. The server's least is one second.
fn lock_wait_s(statement_timeout_ms: u64) -> u64 {
    (statement_timeout_ms.saturating_sub(1) / 1000).clamp(1, LOCK_WAIT_MAX_S)
}

/// A session of the pool.
pub(crate) struct PooledSession {
    pub(crate) conn: Conn,
    /// Its server's place in the list of addresses.
    pub(crate) server: usize,
    used_at: Instant,
    tested_at: Instant,
}

impl PooledSession {
    /// Notes that a call has just ended.
    pub(crate) fn used(&mut self) {
        self.used_at = Instant::now();
    }

    /// Notes that its server takes writes.
    pub(crate) fn passed_a_test(&mut self) {
        self.used_at = Instant::now();
        self.tested_at = self.used_at;
    }

    pub(crate) fn idle(&self) -> Duration {
        self.used_at.elapsed()
    }
}

/// Opens the sessions of a pool and tests them.
pub(crate) struct SessionManager {
    pub(crate) address: DatabaseAddress,
    pub(crate) statement_timeout_ms: u64,
    /// The pool gives creation a deadline; this is the one of a test.
    pub(crate) test_timeout: Duration,
}

impl Manager for SessionManager {
    type Type = PooledSession;
    type Error = DbError;

    async fn create(&self) -> Result<PooledSession, DbError> {
        let (conn, server) = open_session(&self.address, self.statement_timeout_ms).await?;
        let now = Instant::now();
        Ok(PooledSession { conn, server, used_at: now, tested_at: now })
    }

    async fn recycle(&self, session: &mut PooledSession, _: &Metrics) -> RecycleResult<DbError> {
        if std::thread::panicking() || session.conn.is_broken() {
            return Err(RecycleError::message("a transaction was left open"));
        }
        if session.server != self.address.in_use() {
            return Err(RecycleError::message("another server is used by now"));
        }
        if session.idle() <= IDLE_TRUSTED && session.tested_at.elapsed() <= TESTED_TRUSTED {
            return Ok(());
        }
        // A server that stands still would be waited for for ever.
        let state = match tokio::time::timeout(self.test_timeout, DatabaseState::of(&mut session.conn)).await {
            Ok(state) => state.map_err(DbError::from),
            Err(_elapsed) => Err(DbError::Timeout("a test of an idle connection".to_owned())),
        };
        match state {
            Ok(state) if !state.is_read_only => {
                session.passed_a_test();
                Ok(())
            }
            Ok(_read_only) => {
                self.address.give_up(session.server);
                Err(RecycleError::message("the server takes no writes any more"))
            }
            Err(error) => {
                if error.is_about_the_server() {
                    self.address.give_up(session.server);
                }
                Err(RecycleError::Backend(error))
            }
        }
    }
}

/// Why the pool has no session to give.
pub(crate) fn pool_error(error: &PoolError<DbError>) -> DbError {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => DbError::Timeout("all connections of the pool are busy".to_owned()),
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
            DbError::Unavailable("connecting took too long".to_owned())
        }
        PoolError::Backend(error) => error.clone(),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            DbError::Unavailable(error.to_string())
        }
    }
}

/// Opens a connection whose session waits as long as its statements may; returns its server's place, too. What every session has
/// alike, [`DatabaseAddress`] has set. The commented parts are read by one of the two servers only: `/*M! … */` by MariaDB,
/// `/*!80000 … */` by MySQL.
pub(crate) async fn open_session(
    address: &DatabaseAddress,
    statement_timeout_ms: u64,
) -> diesel::ConnectionResult<(Conn, usize)> {
    let Established { mut conn, server, is_galera, .. } = address.establish().await?;
    let seconds = format!("{}.{:03}", statement_timeout_ms / 1000, statement_timeout_ms % 1000);
    // A read on one node of Galera waits for what was committed on the others: "no outcome" decides what is written.
    let reads_all = if is_galera { ", wsrep_sync_wait = 1" } else { "" };
    let lock_wait_s = lock_wait_s(statement_timeout_ms);
    let waits = format!(
        "SET SESSION innodb_lock_wait_timeout = {lock_wait_s}, wait_timeout = {IDLE_S}, net_read_timeout = {IDLE_S}{reads_all} \
         /*M! , max_statement_time = {seconds}, idle_write_transaction_timeout = {IDLE_IN_WRITE_S} */ \
         /*!80000 , max_execution_time = {statement_timeout_ms} */"
    );
    conn.batch_execute(&waits).await.map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
    Ok((conn, server))
}

#[cfg(test)]
mod tests {
    use super::lock_wait_s;

    #[test]
    fn a_lock_is_waited_for_less_long_than_a_statement_may_take() {
        for (statement_ms, wait_s) in
            [(10, 1), (1000, 1), (1001, 1), (2000, 1), (2001, 2), (3000, 2), (4000, 3), (600_000, 3)]
        {
            assert_eq!(lock_wait_s(statement_ms), wait_s, "{statement_ms} ms");
        }
    }
}
