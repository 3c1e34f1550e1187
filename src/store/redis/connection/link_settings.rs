//! How the client library keeps one connection to a Redis server.
//!
//! Input: the settings of `[redis]`. Output: the library's own. Keeps nothing.

use super::fault::RECONNECT_CODES;
use crate::config::{Redis, RedisMode};
use fred::types::config::{ConnectionConfig, ReconnectError, TcpConfig, UnresponsiveConfig};
use std::time::Duration;

/// Commands that wait in this process for the connection; more of them fail at once instead of piling up in an outage.
const BUFFERED_COMMANDS_MAX: usize = 65_536;

/// How a connection is made, given up and made again; it may be silent for `silence_max`.
pub(super) fn connection_config(settings: &Redis, silence_max: Duration) -> ConnectionConfig {
    ConnectionConfig {
        connection_timeout: Duration::from_millis(settings.connect_timeout_ms),
        internal_command_timeout: Duration::from_millis(settings.connect_timeout_ms),
        max_command_attempts: 1,
        max_command_buffer_len: BUFFERED_COMMANDS_MAX,
        reconnect_on_auth_error: true,
        // A socket that is dropped takes with it what the kernel has not sent. Else the kernel would go on sending for a minute
        // and more, and a purchase would run long after its buyer was answered that its outcome is unknown.
        tcp: TcpConfig { nodelay: Some(true), linger: Some(Duration::ZERO), ..TcpConfig::default() },
        unresponsive: UnresponsiveConfig {
            max_timeout: Some(silence_max),
            interval: Duration::from_millis((settings.command_timeout_ms / 2).max(10)),
        },
        reconnect_errors: match settings.mode {
            // The same address may belong to another server by now.
            RedisMode::Single => RECONNECT_CODES.map(ReconnectError::Custom).to_vec(),
            // The topology finds the server that has the data now; this server's address does not change.
            RedisMode::Sentinel | RedisMode::Cluster => Vec::new(),
        },
        ..ConnectionConfig::default()
    }
}
