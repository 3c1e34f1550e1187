//! The pool, and [`Db::run`]: the only way to the database.
//!
//! A dropped or timed-out call leaves a statement in flight; were its connection used again, every later answer on it would
//! belong to the statement before (window 66). So a connection goes back to the pool only after its call finished and
//! left it in step; in every other case (error, deadline, dropped future, panic) it is closed, and the server rolls
//! its transaction back. A crash of the process is the same case.

use super::address::DatabaseAddress;
use super::fault::DbError;
use super::sale_facts::SaleFactsCache;
use crate::faults::left_out;
use deadpool::Runtime;
use deadpool::managed::{PoolError, TimeoutType};
use diesel::connection::TransactionManagerStatus;
use diesel_async::pooled_connection::deadpool::{Hook, HookError, Object, Pool};
use diesel_async::pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection, TransactionManager};
use futures::FutureExt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// A connection as the closures of [`Db::run`] get it.
pub(super) type Conn = AsyncMysqlConnection;
/// What remembers whether a transaction is open on it.
pub(super) type Manager = <Conn as AsyncConnection>::TransactionManager;

/// A connection that was idle for longer than this is tested before it is used.
const IDLE_TRUSTED: Duration = Duration::from_millis(500);
/// Deadline of a statement that counts, and the connections for such statements.
const PATIENT_MS: u64 = 60_000;
const PATIENT_CONNECTIONS: usize = 2;
/// Seconds a statement waits for a row lock before 1205.
const LOCK_WAIT_S: u32 = 3;

/// How to reach the database and how long to wait for it.
#[derive(Clone)]
pub struct DbConfig {
    /// Where it is.
    pub address: DatabaseAddress,
    /// Most connections open at once, 1 ….
    pub pool_max: usize,
    /// Longest wait for a free connection.
    pub wait_timeout_ms: u64,
    /// Longest wait for a new connection.
    pub connect_timeout_ms: u64,
    /// Longest run of one statement, enforced by the server; a whole [`Db::run`] may take twice as long, enforced here.
    pub statement_timeout_ms: u64,
}

/// Without the address, which holds a password.
impl std::fmt::Debug for DbConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbConfig").field("pool_max", &self.pool_max).finish_non_exhaustive()
    }
}

/// The database. Cheap to clone; all clones share one pool.
#[derive(Clone)]
pub struct Db {
    inner: Arc<DbInner>,
}

struct DbInner {
    pool: Pool<Conn>,
    config: DbConfig,
    sale_facts: SaleFactsCache,
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
struct ConnectionGuard(Option<Object<Conn>>);

impl ConnectionGuard {
    fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let Some(mut object) = self.0.take() else { return };
        if left_out!(Discard) {
            // Diesel would not use a connection again that was left inside a transaction; make it forget.
            let conn: &mut Conn = &mut object;
            *Manager::transaction_manager_status_mut(conn) = TransactionManagerStatus::default();
            return;
        }
        drop(Object::take(object));
    }
}

impl Db {
    /// Prepares a pool; connects lazily, so an unavailable database shows in [`Db::run`], not here.
    pub fn connect(config: DbConfig) -> Result<Self, DbError> {
        let mut manager_config = ManagerConfig::default();
        manager_config.recycling_method = RecyclingMethod::Fast;
        let statement_timeout_ms = config.statement_timeout_ms;
        let address = config.address.clone();
        manager_config.custom_setup = Box::new(move |_url| open_session(address.clone(), statement_timeout_ms).boxed());
        let manager = AsyncDieselConnectionManager::new_with_config(config.address.url(), manager_config);
        // The pool gives its own steps a deadline, and a hook none: a server that stands still would be waited for for ever.
        let deadline = Duration::from_millis(config.connect_timeout_ms);
        let liveness_test = Hook::async_fn(move |conn: &mut Conn, metrics| {
            let idle = metrics.last_used();
            Box::pin(async move {
                if idle <= IDLE_TRUSTED {
                    return Ok(());
                }
                match tokio::time::timeout(deadline, conn.batch_execute("DO 0")).await {
                    Ok(lives) => lives.map_err(|error| HookError::message(error.to_string())),
                    Err(_elapsed) => Err(HookError::message("the connection did not answer")),
                }
            })
        });
        let pool = Pool::builder(manager)
            .max_size(config.pool_max.max(1))
            .wait_timeout(Some(Duration::from_millis(config.wait_timeout_ms)))
            .create_timeout(Some(Duration::from_millis(config.connect_timeout_ms)))
            .recycle_timeout(Some(Duration::from_millis(config.connect_timeout_ms)))
            .runtime(Runtime::Tokio1)
            .pre_recycle(liveness_test)
            .build()
            .map_err(|error| DbError::Other(error.to_string()))?;
        Ok(Self {
            inner: Arc::new(DbInner { pool, config, sale_facts: SaleFactsCache::default(), patient: OnceLock::new() }),
        })
    }

    /// Runs `work` on a connection of the pool, within the deadline; `name` labels `seckill_mysql_seconds`.
    ///
    /// Dropping the returned future is safe at any moment; whether an open COMMIT took effect is then unknown.
    ///
    /// # Errors
    /// [`DbError`]: that of `work`, or of getting a connection, or [`DbError::Timeout`] at the deadline.
    pub async fn run<T, F>(&self, name: &'static str, work: F) -> Result<T, DbError>
    where
        for<'c> F: AsyncFnOnce(&'c mut AsyncMysqlConnection) -> Result<T, DbError>
            + Work<&'c mut AsyncMysqlConnection, Result<T, DbError>, Fut: Send>,
    {
        let started = Instant::now();
        let result = self.run_guarded(name, work).await;
        metrics::histogram!("seckill_mysql_seconds", "name" => name).record(started.elapsed().as_secs_f64());
        if matches!(&result, Err(DbError::Unavailable(_))) {
            self.forget_idle();
        }
        result
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
        let conn: &mut AsyncMysqlConnection = object;
        let result = match tokio::time::timeout(self.deadline(), work(conn)).await {
            Ok(result) => result,
            Err(_elapsed) => {
                // A host that vanished without a word answers on none of them, and each would take its own deadline.
                self.forget_idle();
                Err(DbError::Timeout(format!("{name} took longer than {:?}", self.deadline())))
            }
        };
        if result.as_ref().err().is_none_or(DbError::keeps_connection) {
            guard.give_back();
        }
        result
    }

    /// A connection of the pool. Idle connections are tried in turn, so the whole search has a deadline, too.
    async fn connection(&self) -> Result<Object<Conn>, DbError> {
        let config = &self.inner.config;
        let patience = Duration::from_millis(config.wait_timeout_ms.saturating_add(config.connect_timeout_ms));
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

    /// A connection of its own outside the pool, for things that live as long as a connection does (`GET_LOCK`).
    pub(super) async fn dedicated(&self) -> Result<Conn, DbError> {
        let config = &self.inner.config;
        let opening = open_session(config.address.clone(), config.statement_timeout_ms);
        match tokio::time::timeout(Duration::from_millis(config.connect_timeout_ms), opening).await {
            Ok(opened) => Ok(opened?),
            Err(_elapsed) => Err(DbError::Unavailable("connecting took too long".to_owned())),
        }
    }

    pub(super) fn sale_facts(&self) -> &SaleFactsCache {
        &self.inner.sale_facts
    }

    pub(super) fn deadline(&self) -> Duration {
        Duration::from_millis(self.inner.config.statement_timeout_ms.saturating_mul(2))
    }
}

fn pool_error(error: &PoolError<diesel_async::pooled_connection::PoolError>) -> DbError {
    match error {
        PoolError::Timeout(TimeoutType::Wait) => DbError::Timeout("all connections of the pool are busy".to_owned()),
        PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => {
            DbError::Unavailable("connecting took too long".to_owned())
        }
        PoolError::Backend(_) | PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            DbError::Unavailable(error.to_string())
        }
    }
}

/// Opens a connection and sets the session up the same way on both servers. The commented parts are read by one of them
/// only: `/*M! … */` by MariaDB, `/*!80000 … */` by MySQL.
async fn open_session(address: DatabaseAddress, statement_timeout_ms: u64) -> diesel::ConnectionResult<Conn> {
    let mut conn = address.establish().await?;
    let seconds = format!("{}.{:03}", statement_timeout_ms / 1000, statement_timeout_ms % 1000);
    let session = format!(
        "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,NO_ZERO_DATE,\
         NO_ZERO_IN_DATE', time_zone = '+00:00', lc_messages = 'en_US', innodb_lock_wait_timeout = {LOCK_WAIT_S} \
         /*M! , max_statement_time = {seconds} */ /*!80000 , max_execution_time = {statement_timeout_ms} */"
    );
    for statement in ["SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", &session] {
        conn.batch_execute(statement).await.map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
    }
    Ok(conn)
}
