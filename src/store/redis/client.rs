//! The connection, and what an error says about whether the command ran.

use super::keys::Keys;
use super::replicas::Barrier;
use super::scripts::OwnReserve;
use crate::config::{Durability, Outbox, Redis};
use fred::clients::Client;
use fred::error::{Error, ErrorKind};
use fred::interfaces::{ClientLike, EventInterface};
use fred::types::config::{
    Config, ConnectionConfig, PerformanceConfig, ReconnectError, ReconnectPolicy, TcpConfig, UnresponsiveConfig,
};
use fred::types::{Builder, ClusterHash, CustomCommand, Value};
use std::sync::Arc;
use std::time::Duration;

/// Commands waiting in this process for the connection; further ones fail at once instead of piling up in an outage.
const BUFFERED_COMMANDS_MAX: usize = 65_536;

/// Why a command has no answer, told apart by what it means for the data.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {
    /// The command never left this process.
    #[error("redis is not connected ({0}); check redis.url and that the server runs")]
    NotSent(String),
    /// It may or may not have run. Look, don't guess.
    #[error("redis did not answer, the outcome is unknown ({0})")]
    Unknown(String),
    /// The script is not in the server's cache; it did not run.
    #[error("redis does not know the script (it restarted or failed over)")]
    NoScript,
    /// The server answered with an error; nothing was written.
    #[error("redis refused: {0}")]
    Refused(String),
    /// The answer has another shape than this build expects.
    #[error("redis answered in an unexpected shape: {0}")]
    Contract(String),
}

impl From<Error> for RedisFault {
    fn from(error: Error) -> Self {
        let text = error.details().to_owned();
        match error.kind() {
            ErrorKind::Timeout | ErrorKind::Canceled | ErrorKind::IO => Self::Unknown(text),
            ErrorKind::Backpressure => Self::NotSent(text),
            ErrorKind::Parse | ErrorKind::Protocol => Self::Contract(text),
            ErrorKind::Unknown | ErrorKind::NotFound if text.starts_with("NOSCRIPT") => Self::NoScript,
            ErrorKind::Config
            | ErrorKind::Auth
            | ErrorKind::Routing
            | ErrorKind::InvalidCommand
            | ErrorKind::InvalidArgument
            | ErrorKind::Url
            | ErrorKind::Unknown
            | ErrorKind::Cluster
            | ErrorKind::Sentinel
            | ErrorKind::NotFound => Self::Refused(text),
        }
    }
}

/// A handle on Redis; clones share the connection.
#[derive(Clone)]
pub struct RedisStore {
    client: Client,
    /// The keys of this system.
    pub keys: Keys,
    pub(super) own_reserve: Arc<OwnReserve>,
    pub(super) barrier: Option<Barrier>,
    pub(super) durability: Durability,
    pub(super) outbox: Outbox,
    /// Shards of every sale; the scripts refuse sales that were warmed for another number.
    pub(super) shards: u16,
}

impl RedisStore {
    /// Starts connecting and returns at once; the connection is rebuilt for as long as the handle lives.
    ///
    /// # Errors
    /// [`RedisFault::Refused`] when `redis.url` cannot be used at all.
    pub fn start(settings: &Redis) -> Result<Self, RedisFault> {
        let barrier = match settings.wait_replicas {
            0 => None,
            _ => Some(Barrier::new(connect(settings)?, settings)),
        };
        Ok(Self {
            client: connect(settings)?,
            keys: Keys::new(settings.prefix.clone()),
            own_reserve: Arc::new(OwnReserve::new(&settings.prefix, settings.outbox)),
            barrier,
            durability: settings.durability,
            outbox: settings.outbox,
            shards: settings.shards,
        })
    }

    /// Whether a connection stands right now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.client.is_connected() && self.barrier.as_ref().is_none_or(|barrier| barrier.client.is_connected())
    }

    /// Waits for the first connection, at most `deadline`.
    pub async fn wait_connected(&self, deadline: Duration) -> bool {
        let connected = async {
            if let Some(barrier) = &self.barrier {
                barrier.client.wait_for_connect().await?;
            }
            self.client.wait_for_connect().await
        };
        tokio::time::timeout(deadline, connected).await.is_ok_and(|connected| connected.is_ok())
    }

    /// Closes the connection after what was sent is answered.
    pub async fn quit(&self) {
        // At the end of the process; a server that is gone already has nothing to be told.
        let quit = async {
            if let Some(barrier) = &self.barrier {
                drop(barrier.client.quit().await);
            }
            self.client.quit().await
        };
        drop(tokio::time::timeout(Duration::from_secs(1), quit).await);
    }

    /// Sends one command. `key` is the position of the key among the arguments (for the cluster slot).
    pub(super) async fn command(&self, name: &'static str, key: usize, args: Vec<Value>) -> Result<Value, RedisFault> {
        // A command queued while disconnected could run much later, after its caller was told it failed.
        if !self.client.is_connected() {
            return Err(RedisFault::NotSent("no connection".to_owned()));
        }
        let command = CustomCommand::new_static(name, ClusterHash::Offset(key), false);
        Ok(fred::interfaces::ClientLike::custom::<Value, Value>(&self.client, command, args).await?)
    }
}

/// Starts one connection.
fn connect(settings: &Redis) -> Result<Client, RedisFault> {
    let mut config = Config::from_url(settings.url.expose())?;
    config.fail_fast = false;
    let client = Builder::from_config(config)
        .set_performance_config(PerformanceConfig {
            default_command_timeout: Duration::from_millis(settings.command_timeout_ms),
            ..PerformanceConfig::default()
        })
        .set_connection_config(connection(settings))
        .set_policy(ReconnectPolicy::new_constant(0, 100))
        .build()?;
    // Connection errors are told here once each; without a listener fred would keep them to itself.
    client.on_error(|(error, _server)| async move {
        tracing::warn!(%error, "redis connection");
        Ok(())
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
        reconnect_errors: vec![
            ReconnectError::ClusterDown,
            ReconnectError::MasterDown,
            ReconnectError::ReadOnly,
            ReconnectError::Loading,
        ],
        ..ConnectionConfig::default()
    }
}

/// Shorthand for argument lists.
pub(super) fn text(value: impl Into<String>) -> Value {
    Value::String(value.into().into())
}

/// Reads an integer, whether it came as a number or as digits.
pub(super) fn integer(value: &Value) -> Result<i64, RedisFault> {
    value.as_i64().ok_or_else(|| RedisFault::Contract(format!("expected a number, got {value:?}")))
}

/// Reads a list.
pub(super) fn list(value: Value) -> Result<Vec<Value>, RedisFault> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        other @ (Value::Boolean(_)
        | Value::Integer(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Queued
        | Value::Map(_)) => Err(RedisFault::Contract(format!("expected a list, got {other:?}"))),
    }
}

/// Reads a text; `None` for null.
pub(super) fn optional_text(value: &Value) -> Option<String> {
    if value.is_null() { None } else { value.as_string() }
}
