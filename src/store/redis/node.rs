//! One Redis server and the connections to it.
//!
//! A cluster is a set of these, each with its own connection, and not fred's cluster client: that one stalls as a whole while
//! one server is dead, and here a dead server must cost its own share only (B4).

use super::fault::RedisFault;
use super::replicas::Barrier;
use super::scripts::OwnReserve;
use crate::config::{Redis, RedisMode};
use crate::store::tls::advised;
use fred::clients::Client;
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::{
    Config, ConnectionConfig, PerformanceConfig, ReconnectError, ReconnectPolicy, Server, ServerConfig, TcpConfig,
    UnresponsiveConfig,
};
use fred::types::{Builder, ClusterHash, CustomCommand, Value};
use futures::future::join_all;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Commands waiting in this process for the connection; further ones fail at once instead of piling up in an outage.
const BUFFERED_COMMANDS_MAX: usize = 65_536;
/// A server that is left gets this long to answer what was sent.
const QUIT: Duration = Duration::from_secs(1);

/// Why the last attempt to connect failed, for people.
type Trouble = Arc<Mutex<Option<String>>>;

/// One server.
pub(super) struct Node {
    /// `host:port`.
    pub(super) address: String,
    client: Client,
    config: Config,
    settings: Redis,
    trouble: Trouble,
    /// Connected with the first command that has to be on replicas.
    barrier: OnceLock<Barrier>,
    /// The reserve script as this process last knew that this server may run it.
    reserve: Mutex<Option<Arc<OwnReserve>>>,
}

impl Node {
    /// Starts connecting to `server` with the credentials of `config` and returns at once; the connection is rebuilt for as
    /// long as the node is kept.
    pub(super) fn start(server: &Server, config: &Config, settings: &Redis) -> Result<Self, RedisFault> {
        let server = ServerConfig::Centralized { server: server.clone() };
        let config = Config { server, fail_fast: false, ..config.clone() };
        let address = config.server.hosts().first().map(ToString::to_string).unwrap_or_default();
        let trouble = Trouble::default();
        let client = connect(&config, settings, &trouble)?;
        let node = Self {
            address,
            client,
            config,
            settings: settings.clone(),
            trouble,
            barrier: OnceLock::new(),
            reserve: Mutex::default(),
        };
        if settings.mode == RedisMode::Single {
            node.expect_calls();
        }
        Ok(node)
    }

    /// Connects what calls will need, so that the first purchase finds it there.
    pub(super) fn expect_calls(&self) {
        if self.settings.wait_replicas > 0
            && let Err(error) = self.barrier()
        {
            tracing::warn!(server = self.address, %error, "redis: no connection for what has to be on replicas");
        }
    }

    /// Whether a connection stands right now.
    pub(super) fn is_connected(&self) -> bool {
        self.client.is_connected() && self.barrier.get().is_none_or(|barrier| barrier.client.is_connected())
    }

    /// That there is no connection, and why if that is known: a wrong password is no dead server.
    pub(super) fn away(&self) -> String {
        match &*self.trouble.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(trouble) => format!("no connection to {}: {trouble}", self.address),
            None => format!("no connection to {}", self.address),
        }
    }

    /// Waits for the first connection.
    pub(super) async fn wait_connected(&self) -> bool {
        if let Some(barrier) = self.barrier.get()
            && barrier.client.wait_for_connect().await.is_err()
        {
            return false;
        }
        self.client.wait_for_connect().await.is_ok()
    }

    /// Closes the connections after what was sent is answered. A server that is gone already has nothing to be told.
    pub(super) async fn quit(&self) {
        quit(self.clients()).await;
    }

    fn clients(&self) -> Vec<Client> {
        self.barrier.get().map(|barrier| barrier.client.clone()).into_iter().chain([self.client.clone()]).collect()
    }

    /// Sends one command.
    pub(super) async fn command(&self, name: &'static str, args: Vec<Value>) -> Result<Value, RedisFault> {
        // A command queued while disconnected could run much later, after its caller was told it failed.
        if !self.client.is_connected() {
            return Err(RedisFault::NotSent(self.away()));
        }
        let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
        Ok(ClientLike::custom::<Value, Value>(&self.client, command, args).await?)
    }

    /// The connection for what has to be on replicas.
    pub(super) fn barrier(&self) -> Result<&Barrier, RedisFault> {
        if let Some(barrier) = self.barrier.get() {
            return Ok(barrier);
        }
        let fresh = Barrier::new(connect(&self.config, &self.settings, &self.trouble)?, &self.settings);
        // Of two that came at once, the second is dropped with its connection.
        Ok(self.barrier.get_or_init(|| fresh))
    }

    /// The reserve script this server may run, as far as this process knows.
    pub(super) fn reserve(&self) -> Option<Arc<OwnReserve>> {
        self.reserve.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_reserve(&self, script: Option<Arc<OwnReserve>>) {
        *self.reserve.lock().unwrap_or_else(PoisonError::into_inner) = script;
    }
}

/// The library's tasks hold their client themselves: without a word they would keep the connection, and rebuild it, for ever.
impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(quit(self.clients()));
        }
    }
}

async fn quit(clients: Vec<Client>) {
    let all = join_all(clients.iter().map(ClientLike::quit));
    drop(tokio::time::timeout(QUIT, all).await);
}

/// Starts one connection.
fn connect(config: &Config, settings: &Redis, trouble: &Trouble) -> Result<Client, RedisFault> {
    let client = Builder::from_config(config.clone())
        .set_performance_config(PerformanceConfig {
            default_command_timeout: Duration::from_millis(settings.command_timeout_ms),
            ..PerformanceConfig::default()
        })
        .set_connection_config(connection(settings))
        .set_policy(ReconnectPolicy::new_constant(0, 100))
        .build()?;
    // Connection errors are told here once each; without a listener fred would keep them to itself.
    let (trouble, encrypted) = (trouble.clone(), config.tls.is_some());
    client.on_error(move |(error, server)| {
        let server = server.map(|server| server.to_string()).unwrap_or_default();
        tracing::warn!(%error, server, "redis connection");
        *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(advised("redis", encrypted, &error.to_string()));
        async { Ok(()) }
    });
    client.connect();
    Ok(client)
}

fn connection(settings: &Redis) -> ConnectionConfig {
    ConnectionConfig {
        connection_timeout: Duration::from_millis(settings.connect_timeout_ms),
        internal_command_timeout: Duration::from_millis(settings.connect_timeout_ms),
        max_command_attempts: 1,
        max_command_buffer_len: BUFFERED_COMMANDS_MAX,
        reconnect_on_auth_error: true,
        tcp: TcpConfig { nodelay: Some(true), ..TcpConfig::default() },
        unresponsive: UnresponsiveConfig {
            max_timeout: Some(Duration::from_millis(settings.command_timeout_ms * 2)),
            interval: Duration::from_millis((settings.command_timeout_ms / 2).max(10)),
        },
        reconnect_errors: match settings.mode {
            // Behind one name there may be another server by now.
            RedisMode::Single => vec![
                ReconnectError::ClusterDown,
                ReconnectError::MasterDown,
                ReconnectError::ReadOnly,
                ReconnectError::Loading,
            ],
            // The router looks where the data is now; this server's address does not change.
            RedisMode::Sentinel | RedisMode::Cluster => Vec::new(),
        },
        ..ConnectionConfig::default()
    }
}
