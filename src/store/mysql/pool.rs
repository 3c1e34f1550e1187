//! The pool, and [`Db::run`]: the only way to the database.
//!
//! A dropped or timed-out call leaves a statement in flight; were its connection used again, every later answer on it would
//! belong to the statement before (window 66). So a connection goes back to the pool only after its call finished and
//! left it in step; in every other case (error, deadline, dropped future, panic) it is closed, and the server rolls
//! its transaction back. A crash of the process is the same case.
//!
//! Calls on one of several servers end within a second once another one was reached: those that count would wait for their own
//! deadline of two minutes, and with them their callers.

use super::address::DatabaseAddress;
use super::db_config::DbConfig;
use super::fault::DbError;
pub(crate) use super::sessions::Conn;
use super::sessions::{IDLE_MAX, SessionManager, open_session, pool_error};
use crate::faults::left_out;
use deadpool::Runtime;
use deadpool::managed::{Object, Pool};
use diesel::connection::TransactionManagerStatus;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection, TransactionManager};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// What remembers whether a transaction is open on a connection.
type Transactions = <Conn as AsyncConnection>::TransactionManager;

/// How often idle connections are checked.
const IDLE_CHECK: Duration = Duration::from_secs(1);
/// Deadline of a statement that counts, and the connections for such statements.
const PATIENT_MS: u64 = 60_000;
const PATIENT_CONNECTIONS: usize = 2;

/// The database. Cheap to clone; all clones share one pool.
#[derive(Clone)]
pub struct Db {
    inner: Arc<DbInner>,
}

struct DbInner {
    pool: Pool<SessionManager>,
    /// Whether a task closes idle connections.
    closes_idle: AtomicBool,
    config: DbConfig,
    patient: OnceLock<Db>,
}

/// An `AsyncFnOnce` whose future is `Send`; the compiler cannot say that without a helper trait yet.
pub trait Work<Arg, Out>: AsyncFnOnce(Arg) -> Out + FnOnce(Arg) -> <Self as Work<Arg, Out>>::Fut {
    /// The closure's future.
    type Fut: Future<Output = Out>;
}

impl<F, Arg, Fut, Out> Work<Arg, Out> for F
where
    F: AsyncFnOnce(Arg) -> Out + FnOnce(Arg) -> Fut,
    Fut: Future<Output = Out>,
{
    type Fut = Fut;
}

/// Closes its connection unless the call has finished ([`ConnectionGuard::give_back`]).
struct ConnectionGuard(Option<Object<SessionManager>>);

impl ConnectionGuard {
    fn give_back(mut self) {
        if let Some(mut object) = self.0.take() {
            object.used();
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let Some(mut object) = self.0.take() else { return };
        if left_out!(Discard) {
            // Diesel would not use a connection again that was left inside a transaction; make it forget.
            *Transactions::transaction_manager_status_mut(&mut object.conn) = TransactionManagerStatus::default();
            // Nor is it tested: the test is done once a second, and would notice most of them.
            object.passed_a_test();
            return;
        }
        drop(Object::take(object));
    }
}

impl Db {
    /// Prepares a pool; connects lazily, so an unavailable database shows in [`Db::run`], not here.
    pub fn connect(config: DbConfig) -> Result<Self, DbError> {
        let connect_timeout = Duration::from_millis(config.connect_timeout_ms);
        let manager = SessionManager {
            address: config.address.clone(),
            statement_timeout_ms: config.statement_timeout_ms,
            test_timeout: connect_timeout,
        };
        let pool = Pool::builder(manager)
            .max_size(config.pool_max.max(1))
            .wait_timeout(Some(Duration::from_millis(config.wait_timeout_ms)))
            .create_timeout(Some(config.address.patience() + connect_timeout))
            .recycle_timeout(Some(connect_timeout))
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| DbError::Other(error.to_string()))?;
        let inner = Arc::new(DbInner { pool, closes_idle: AtomicBool::new(false), config, patient: OnceLock::new() });
        Ok(Self { inner })
    }

    /// Runs `work` on a connection of the pool, within the deadline; `name` labels `seckill_mysql_seconds`.
    ///
    /// Dropping the returned future is safe at any moment; whether an open COMMIT took effect is then unknown.
    ///
    /// # Errors
    /// [`DbError`]: that of `work`, or of getting a connection, or [`DbError::Timeout`] at the deadline and soon after another server
    /// was reached.
    pub async fn run<T, F>(&self, name: &'static str, work: F) -> Result<T, DbError>
    where
        for<'c> F: AsyncFnOnce(&'c mut AsyncMysqlConnection) -> Result<T, DbError>
            + Work<&'c mut AsyncMysqlConnection, Result<T, DbError>, Fut: Send>,
    {
        let started = Instant::now();
        let result = self.run_guarded(name, work).await;
        metrics::histogram!("seckill_mysql_seconds", "name" => name).record(started.elapsed().as_secs_f64());
        if matches!(&result, Err(DbError::Unavailable(_) | DbError::WrongNode(_) | DbError::Damaged(_))) {
            self.forget_idle();
        }
        result
    }

    /// Starts the task that closes idle connections, unless it runs.
    fn close_idle_later(&self) {
        if !self.inner.closes_idle.swap(true, Ordering::Relaxed) {
            let closer = IdleCloser(Arc::downgrade(&self.inner));
            tokio::spawn(async move { closer.run().await });
        }
    }

    /// One lost connection usually means that all are: the idle ones need not fail one by one.
    fn forget_idle(&self) {
        if !left_out!(Discard) {
            self.inner.pool.retain(|_, _| false);
        }
    }

    async fn run_guarded<T, F>(&self, name: &'static str, work: F) -> Result<T, DbError>
    where
        for<'c> F: AsyncFnOnce(&'c mut AsyncMysqlConnection) -> Result<T, DbError>
            + Work<&'c mut AsyncMysqlConnection, Result<T, DbError>, Fut: Send>,
    {
        let mut guard = ConnectionGuard(Some(self.connection().await?));
        let Some(object) = guard.0.as_mut() else {
            return Err(DbError::Other("no connection in the guard".to_owned()));
        };
        let (server, address) = (object.server, &self.inner.config.address);
        let working = tokio::time::timeout(self.deadline(), work(&mut object.conn));
        let ended = tokio::select! {
            biased;
            ended = working => ended,
            () = address.left(server) => Ok(Err(DbError::Timeout(format!("{name}: another server is used by now")))),
        };
        let result = match ended {
            Ok(result) => result,
            Err(_elapsed) => {
                address.give_up(server);
                // A host that vanished without a word answers on none of them, and each would take its own deadline.
                self.forget_idle();
                Err(DbError::Timeout(format!("{name} took longer than {:?}", self.deadline())))
            }
        };
        if matches!(&result, Err(DbError::WrongNode(_) | DbError::Damaged(_))) {
            address.give_up(server);
        }
        if result.as_ref().err().is_none_or(DbError::keeps_connection) {
            guard.give_back();
            self.close_idle_later();
        }
        result
    }

    /// A connection of the pool. Idle connections are tried in turn, so the whole search has a deadline, too.
    async fn connection(&self) -> Result<Object<SessionManager>, DbError> {
        let config = &self.inner.config;
        let patience = Duration::from_millis(config.wait_timeout_ms.saturating_add(config.connect_timeout_ms));
        let patience = patience + config.address.patience();
        match tokio::time::timeout(patience, self.inner.pool.get()).await {
            Ok(got) => got.map_err(|error| pool_error(&error)),
            Err(_elapsed) => Err(DbError::Unavailable("no connection of the pool answered in time".to_owned())),
        }
    }

    /// Sends the server a statement that does nothing.
    pub async fn ping(&self) -> Result<(), DbError> {
        self.run("ping", async |conn| Ok(conn.batch_execute("DO 0").await?)).await
    }

    /// The same database with a longer deadline, for counting: the deadline of ordinary statements would stop P5 at some million
    /// orders of a sale. It has a few connections of its own, so that counting takes none from the writers.
    #[must_use]
    pub fn patient(&self) -> &Self {
        self.inner.patient.get_or_init(|| {
            let statement_timeout_ms = self.inner.config.statement_timeout_ms.max(PATIENT_MS);
            let config = DbConfig { pool_max: PATIENT_CONNECTIONS, statement_timeout_ms, ..self.inner.config.clone() };
            // Built like the first pool. Should it fail, counting has the shorter deadline.
            Self::connect(config).unwrap_or_else(|_error| self.clone())
        })
    }

    /// A connection of its own outside the pool, for things that live as long as a connection does (`GET_LOCK`), and its server.
    pub(crate) async fn dedicated(&self) -> Result<(Conn, usize), DbError> {
        let config = &self.inner.config;
        let opening = open_session(&config.address, config.statement_timeout_ms);
        let patience = config.address.patience() + Duration::from_millis(config.connect_timeout_ms);
        match tokio::time::timeout(patience, opening).await {
            Ok(opened) => Ok(opened?),
            Err(_elapsed) => Err(DbError::Unavailable("connecting took too long".to_owned())),
        }
    }

    /// Where the database is.
    pub(super) fn address(&self) -> &DatabaseAddress {
        &self.inner.config.address
    }

    /// Whether the server with this place is the one in use.
    pub(crate) fn uses(&self, server: usize) -> bool {
        self.inner.config.address.in_use() == server
    }

    pub(crate) fn deadline(&self) -> Duration {
        Duration::from_millis(self.inner.config.statement_timeout_ms.saturating_mul(2))
    }
}

/// Closes connections that lie idle, as long as there are any.
struct IdleCloser(Weak<DbInner>);

impl IdleCloser {
    async fn run(&self) {
        loop {
            tokio::time::sleep(IDLE_CHECK).await;
            let Some(inner) = self.0.upgrade() else { return };
            inner.pool.retain(|session, _| session.idle() < IDLE_MAX);
            if inner.pool.status().size == 0 {
                return;
            }
        }
    }
}

impl Drop for IdleCloser {
    /// Also when its runtime ends before it does: the next call starts another.
    fn drop(&mut self) {
        if let Some(inner) = self.0.upgrade() {
            inner.closes_idle.store(false, Ordering::Relaxed);
        }
    }
}
