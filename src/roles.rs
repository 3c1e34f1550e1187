//! Pluggable roles: one enum, one exhaustive match, a few lines a role.
//!
//! A process runs any set of roles. Each role has its own handles on the servers, so that one role's trouble with a pool is
//! its own. A role that ends with an error stops the process: a supervisor starts it again, and nothing is lost by it.

mod api;
mod relay;

use crate::config::{QueueType, Settings, api_complaints};
use crate::p4_persist::{Persist, Teller};
use crate::p5_reconcile::{Reconcile, ReconcileContext};
use crate::runtime::{Pace, Stopper, Worker, drive};
use crate::store::mysql::{Address, Db, DbConfig};
use crate::store::rabbit::{self, RabbitConfig};
use crate::store::redis::RedisStore;
use crate::store::tls::{TlsError, TlsFiles, Trust};
use crate::telemetry;
use std::collections::HashSet;
use std::net::TcpListener;
use std::sync::Arc;
use tokio::task::JoinSet;

/// A role starts working once Redis is connected, or after this time without it.
const CONNECT_GRACE: std::time::Duration = std::time::Duration::from_secs(2);

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Role {
    /// P1 and P2: the public HTTP API.
    Api,
    /// P3: outbox to broker.
    Relay,
    /// P4: broker to database.
    Consumer,
    /// P5: audit and compensation.
    Reconcile,
}

impl Role {
    /// Every role, in the order of the pipeline.
    pub const ALL: [Self; 4] = [Self::Api, Self::Relay, Self::Consumer, Self::Reconcile];

    /// The role's one name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Relay => "relay",
            Self::Consumer => "consumer",
            Self::Reconcile => "reconcile",
        }
    }
}

/// Why a process cannot start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// The configuration is not enough for a role; exit code 64.
    #[error("configuration is refused:\n  {}", .0.join("\n  "))]
    Config(Vec<String>),
    /// An address cannot be listened on.
    #[error("{key}: cannot listen on {address}: {source}; choose another address or stop what uses it")]
    Listen {
        /// The configuration key.
        key: &'static str,
        /// Its value.
        address: String,
        /// The system's word.
        source: std::io::Error,
    },
    /// A role ended.
    #[error("{0}")]
    Ended(String),
}

/// The text names the key.
impl From<TlsError> for RoleError {
    fn from(error: TlsError) -> Self {
        Self::Config(vec![error.to_string()])
    }
}

/// Handles on the three servers. Nothing is connected by making them.
#[derive(Clone)]
pub struct Servers {
    /// Redis.
    pub redis: RedisStore,
    /// The database.
    pub db: Db,
    /// How to reach the broker.
    pub rabbit: RabbitConfig,
}

impl Servers {
    /// Handles for the servers of `settings`.
    ///
    /// # Errors
    /// [`RoleError::Config`] when an address cannot be used at all.
    pub fn new(settings: &Settings) -> Result<Self, RoleError> {
        let refused = |key: &str, error: &dyn std::fmt::Display| RoleError::Config(vec![format!("{key}: {error}")]);
        let trust = redis_trust(settings)?;
        let redis = RedisStore::start(&settings.redis, trust.as_ref()).map_err(|error| refused("redis.url", &error))?;
        let mysql = &settings.mysql;
        let db = Db::connect(DbConfig {
            address: Address::new(mysql)?,
            pool_max: mysql.pool_max,
            wait_timeout_ms: mysql.pool_wait_ms,
            connect_timeout_ms: mysql.connect_timeout_ms,
            statement_timeout_ms: mysql.statement_timeout_ms,
        })
        .map_err(|error| refused("mysql.url", &error))?;
        let rabbit = rabbit_config(settings)?;
        rabbit.check().map_err(|error| refused("rabbitmq", &error))?;
        Ok(Self { redis, db, rabbit })
    }
}

/// Certificates for Redis, when its URL encrypts.
///
/// # Errors
/// [`TlsError`] naming the key of a file that cannot be used.
pub fn redis_trust(settings: &Settings) -> Result<Option<Trust>, TlsError> {
    let s = &settings.redis;
    let files = TlsFiles { section: "redis", ca: &s.tls_ca_file, cert: &s.tls_cert_file, key: &s.tls_key_file };
    s.url.is_encrypted().then(|| Trust::read(files)).transpose()
}

/// How to reach the broker.
///
/// # Errors
/// [`TlsError`] naming the key of a file that cannot be used.
pub fn rabbit_config(settings: &Settings) -> Result<RabbitConfig, TlsError> {
    let rabbit = &settings.rabbitmq;
    let files = TlsFiles {
        section: "rabbitmq",
        ca: &rabbit.tls_ca_file,
        cert: &rabbit.tls_cert_file,
        key: &rabbit.tls_key_file,
    };
    let trust = rabbit.url.is_encrypted().then(|| Trust::read(files)).transpose()?;
    Ok(RabbitConfig {
        trust: trust.map(Arc::new),
        prefix: rabbit.prefix.clone(),
        queue_type: match rabbit.queue_type {
            QueueType::Quorum => rabbit::QueueType::Quorum,
            QueueType::Classic => rabbit::QueueType::Classic,
        },
        queues: rabbit.queues,
        declare: rabbit.declare,
        heartbeat_s: rabbit.heartbeat_s,
        connect_timeout_ms: rabbit.connect_timeout_ms,
        retry_delay_ms: settings.p4_persist.retry_delay_ms,
        retry_delay_max_ms: settings.p4_persist.retry_delay_max_ms,
        ..RabbitConfig::new(rabbit.url.expose())
    })
}

/// Roles that run as tasks of this process.
pub struct Running {
    tasks: JoinSet<Result<(), RoleError>>,
    stopper: Stopper,
    /// Public address, when the api role runs.
    pub api: Option<std::net::SocketAddr>,
}

/// Binds an address of the configuration.
///
/// # Errors
/// [`RoleError::Listen`] naming the key.
pub fn bind(key: &'static str, address: &str) -> Result<TcpListener, RoleError> {
    TcpListener::bind(address).map_err(|source| RoleError::Listen { key, address: address.to_owned(), source })
}

/// Starts `roles` as in production.
///
/// # Errors
/// As [`start_with`].
pub fn start(
    settings: &Arc<Settings>,
    roles: &[Role],
    public: Option<TcpListener>,
    stopper: &Stopper,
) -> Result<Running, RoleError> {
    start_with(settings, roles, public, stopper, false)
}

/// Starts `roles`; with `demo_shop` the api role also serves the demo shop, which only a local stack asks for. `public` is the public listener, bound by the caller so that a port is known before anything runs.
///
/// # Errors
/// [`RoleError`] when the configuration is not enough for a role.
pub fn start_with(
    settings: &Arc<Settings>,
    roles: &[Role],
    public: Option<TcpListener>,
    stopper: &Stopper,
    demo_shop: bool,
) -> Result<Running, RoleError> {
    telemetry::traces::start(&settings.traces, &settings.node()).map_err(|why| RoleError::Config(vec![why]))?;
    let mut running = Running { tasks: JoinSet::new(), stopper: stopper.clone(), api: None };
    let until = stopper.clone();
    running.tasks.spawn(async move {
        telemetry::keep_small(until).await;
        Ok(())
    });
    let wanted: HashSet<Role> = roles.iter().copied().collect();
    let mut public = public;
    for role in Role::ALL.into_iter().filter(|role| wanted.contains(role)) {
        let servers = Servers::new(settings)?;
        let s = settings.clone();
        tracing::info!(role = role.name(), node = %s.node(), "role starts");
        match role {
            Role::Api => {
                let complaints = api_complaints(settings);
                if !complaints.is_empty() {
                    return Err(RoleError::Config(complaints));
                }
                let listener = match public.take() {
                    Some(listener) => listener,
                    None => bind("http.listen", &s.http.listen)?,
                };
                running.api = listener.local_addr().ok();
                running.serve_api(&s, servers, listener, demo_shop)?;
            }
            Role::Relay => {
                let stopper = running.stopper.clone();
                running.tasks.spawn(async move { relay::run(s, servers, stopper).await });
            }
            Role::Consumer => {
                let Servers { db, redis, rabbit } = servers;
                let (doubted, until) = (db.clone(), running.stopper.clone());
                running.tasks.spawn(async move { crate::health::tell_database_doubts(doubted, until).await });
                running.spawn(Teller::new(&db, &rabbit, &s.p4_persist), Pace::idle_ms(1_000), redis.clone());
                for writer in Persist::writers(&db, &redis, &rabbit, &s.p4_persist) {
                    running.spawn(writer, Pace::idle_ms(10), redis.clone());
                }
            }
            Role::Reconcile => {
                let Servers { db, redis, rabbit } = servers;
                let context = ReconcileContext::new(db, redis.clone(), rabbit, &s);
                let reconcile = Reconcile::new(context, s.p5_reconcile.clone(), s.p1_entry.backlog_max);
                running.spawn(reconcile, Pace::idle_ms(100), redis);
            }
        }
    }
    Ok(running)
}

impl Running {
    /// Runs a background phase. Redis gets a moment to connect first, so that a normal start logs no trouble.
    fn spawn<W: Worker + 'static>(&mut self, worker: W, pace: Pace, redis: RedisStore) {
        let stopper = self.stopper.clone();
        self.tasks.spawn(async move {
            redis.wait_connected(CONNECT_GRACE).await;
            drive(worker, pace, stopper).await.map_err(|fault| RoleError::Ended(fault.to_string()))
        });
    }

    /// Waits until the stopper is pulled or a role ends by itself, then lets everything drain within `deadline`.
    ///
    /// # Errors
    /// The first error of a role; the others are stopped too.
    pub async fn until_stopped(mut self, deadline: std::time::Duration) -> Result<(), RoleError> {
        let mut first = Ok(());
        tokio::select! {
            () = self.stopper.stopped() => {}
            ended = self.tasks.join_next() => first = outcome(ended),
        }
        self.stopper.stop();
        let draining = async {
            while let Some(ended) = self.tasks.join_next().await {
                let ended = outcome(Some(ended));
                if first.is_ok() {
                    first = ended;
                }
            }
        };
        if tokio::time::timeout(deadline, draining).await.is_err() {
            tracing::warn!(
                deadline_s = deadline.as_secs(),
                "not everything drained in time; the next process picks it up"
            );
        }
        telemetry::traces::flush().await;
        first
    }
}

fn outcome(ended: Option<Result<Result<(), RoleError>, tokio::task::JoinError>>) -> Result<(), RoleError> {
    match ended {
        None => Ok(()),
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) => Err(RoleError::Ended(format!("a role's task died: {error}"))),
    }
}
