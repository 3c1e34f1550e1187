//! One Redis server and the connections to it.
//!
//! A cluster is a set of these, each with its own connection. fred's cluster client is not used: it stalls as a whole while one
//! server is dead, and here a dead server must cost its own share only (B4).

use super::DoneWhen;
use super::fault::RedisFault;
use super::replicas::{Replicated, ReplicationBarrier};
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

/// Commands that wait in this process for the connection; more of them fail at once instead of piling up in an outage.
const BUFFERED_COMMANDS_MAX: usize = 65_536;
/// A connection that is closed waits this long for the answers to what was sent.
const QUIT_WAIT: Duration = Duration::from_secs(1);

/// Why the last attempt to connect failed, for people.
type LastError = Arc<Mutex<Option<String>>>;

/// One Redis server.
pub(in crate::store::redis) struct Node {
    /// `host:port`, as it is known to this process.
    pub(in crate::store::redis) address: String,
    client: Client,
    config: Config,
    settings: Redis,
    last_error: LastError,
    /// Connected with the first command that has to be on replicas.
    barrier: OnceLock<ReplicationBarrier>,
    /// The same for reads of polls; connected with the first one.
    poll_barrier: OnceLock<ReplicationBarrier>,
}

impl Node {
    /// Starts connecting to `server` with the credentials of `config` and returns at once; the connection is rebuilt for as
    /// long as the node is kept.
    pub(super) fn start(server: &Server, config: &Config, settings: &Redis) -> Result<Self, RedisFault> {
        let server = ServerConfig::Centralized { server: server.clone() };
        let config = Config { server, fail_fast: false, ..config.clone() };
        let address = config.server.hosts().first().map(ToString::to_string).unwrap_or_default();
        let last_error = LastError::default();
        let client = connect(&config, settings, &last_error)?;
        let (settings, barrier, poll_barrier) = (settings.clone(), OnceLock::new(), OnceLock::new());
        let node = Self { address, client, config, settings, last_error, barrier, poll_barrier };
        if node.settings.mode == RedisMode::Single {
            node.prepare();
        }
        Ok(node)
    }

    /// Opens the connections that calls will need, so that the first purchase does not wait for them.
    pub(super) fn prepare(&self) {
        if self.settings.wait_replicas > 0
            && let Err(error) = self.connected(&self.barrier)
        {
            tracing::warn!(server = self.address, %error, "redis: no connection for what has to be on replicas");
        }
    }

    /// Whether a connection stands right now.
    pub(super) fn is_connected(&self) -> bool {
        self.client.is_connected() && self.barrier.get().is_none_or(|barrier| barrier.client.is_connected())
    }

    /// The text "no connection", with the reason if it is known: a wrong password is no dead server.
    pub(super) fn not_connected(&self) -> String {
        match &*self.last_error.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(last_error) => format!("no connection to {}: {last_error}", self.address),
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

    /// Closes the connections after what was sent is answered.
    pub(super) async fn quit(&self) {
        quit(self.clients()).await;
    }

    fn clients(&self) -> Vec<Client> {
        let barriers = [&self.barrier, &self.poll_barrier].into_iter().filter_map(OnceLock::get);
        barriers.map(|barrier| barrier.client.clone()).chain([self.client.clone()]).collect()
    }

    /// Sends one command and returns its answer when it counts as done. `key_at` is the position of its key among the arguments.
    pub(in crate::store::redis) async fn send(
        &self,
        done_when: DoneWhen,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Replicated, RedisFault> {
        if self.settings.wait_replicas > 0 {
            match done_when {
                DoneWhen::Answered => {}
                DoneWhen::Replicated => return self.connected(&self.barrier)?.send(name, key_at, args).await,
                DoneWhen::PolledReplicated => {
                    let barrier = self.connected(&self.poll_barrier)?;
                    // Not yet there at the first poll. Without a connection `send` says so.
                    let deadline = Duration::from_millis(self.settings.connect_timeout_ms);
                    drop(tokio::time::timeout(deadline, barrier.client.wait_for_connect()).await);
                    return barrier.send(name, key_at, args).await;
                }
            }
        }
        Ok(Replicated { answer: self.command(name, args).await?, replicated: true })
    }

    /// Sends one command.
    pub(in crate::store::redis) async fn command(
        &self,
        name: &'static str,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        // A command queued while disconnected could run much later, after its caller has got a failure.
        if !self.client.is_connected() {
            return Err(RedisFault::NotSent(self.not_connected()));
        }
        let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
        Ok(ClientLike::custom::<Value, Value>(&self.client, command, args).await?)
    }

    /// The connection for what has to be on replicas, made when there is none.
    fn connected<'a>(&self, barrier: &'a OnceLock<ReplicationBarrier>) -> Result<&'a ReplicationBarrier, RedisFault> {
        if let Some(barrier) = barrier.get() {
            return Ok(barrier);
        }
        let fresh = ReplicationBarrier::new(connect(&self.config, &self.settings, &self.last_error)?, &self.settings);
        // Of two made at the same time, the second is dropped with its connection.
        Ok(barrier.get_or_init(|| fresh))
    }
}

/// The library's tasks hold their client themselves: without `quit` they would keep the connection, and rebuild it, for ever.
impl Drop for Node {
    fn drop(&mut self) {
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(quit(self.clients()));
        }
    }
}

async fn quit(clients: Vec<Client>) {
    let all = join_all(clients.iter().map(ClientLike::quit));
    drop(tokio::time::timeout(QUIT_WAIT, all).await);
}

/// Starts one connection.
fn connect(config: &Config, settings: &Redis, last_error: &LastError) -> Result<Client, RedisFault> {
    let client = Builder::from_config(config.clone())
        .set_performance_config(PerformanceConfig {
            default_command_timeout: Duration::from_millis(settings.command_timeout_ms),
            ..PerformanceConfig::default()
        })
        .set_connection_config(connection(settings))
        .set_policy(ReconnectPolicy::new_constant(0, 100))
        .build()?;
    // Each connection error is logged here once; without a listener fred would not report it.
    let (last_error, encrypted) = (last_error.clone(), config.tls.is_some());
    client.on_error(move |(error, server)| {
        let server = server.map(|server| server.to_string()).unwrap_or_default();
        tracing::warn!(%error, server, "redis connection");
        *last_error.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(advised("redis", encrypted, &error.to_string()));
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
            // The same address may belong to another server by now.
            RedisMode::Single => vec![
                ReconnectError::ClusterDown,
                ReconnectError::MasterDown,
                ReconnectError::ReadOnly,
                ReconnectError::Loading,
            ],
            // The topology finds the server that has the data now; this server's address does not change.
            RedisMode::Sentinel | RedisMode::Cluster => Vec::new(),
        },
        ..ConnectionConfig::default()
    }
}
