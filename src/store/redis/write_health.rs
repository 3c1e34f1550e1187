//! Whether each server takes writes now, and which of its settings would stop them in mid-sale. For `seckill doctor`.
//!
//! Input: nothing. Output: the words of a server that refuses every write, and settings that can bring it to that. Changes nothing;
//! a crash leaves nothing.

use super::connection::{Node, RedisFault, info_field, text};
use super::health::{RedisHealth, config_value};
use super::rights::DENIED;
use std::sync::Arc;

/// Begins of answers with which a server that cannot be written to ends the connection, too.
const TURNED_AWAY: [&str; 3] = ["READONLY", "MASTERDOWN", "LOADING"];

/// What would stop the writes to a server, by its own settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WriteStops {
    /// The server.
    pub(crate) address: String,
    /// Times of snapshots (`save`), where a failed one stops all writes (`stop-writes-on-bgsave-error`).
    pub(crate) snapshots: Option<String>,
    /// Whether the last snapshot was made.
    pub(crate) is_saved: bool,
    /// Replicas without which it takes no writes (`min-replicas-to-write`).
    pub(crate) replicas_min: u16,
}

impl RedisHealth {
    /// The words of each server that refuses to write for another reason than the account's rights: NOREPLICAS, MISCONF, OOM and
    /// READONLY come before the command is checked, so one that would write nothing is enough.
    pub(crate) async fn refused_writes(&self) -> Result<Vec<String>, RedisFault> {
        let mut refused = Vec::new();
        for node in self.redis.connection.primaries() {
            // A key of a shard that this server has, and that is never written.
            let Some(key) = self.key_on(&node) else { continue };
            match node.command("SET", vec![text(&key), text("value"), text("XX")]).await {
                Err(RedisFault::Refused(words)) if !words.starts_with(DENIED) => {
                    refused.push(format!("{}: {words}", node.address));
                }
                Err(RedisFault::Unknown(words)) if TURNED_AWAY.iter().any(|code| words.starts_with(code)) => {
                    refused.push(format!("{}: {words}", node.address));
                }
                Ok(_) | Err(RedisFault::Refused(_)) => {}
                Err(
                    fault @ (RedisFault::NotSent(_)
                    | RedisFault::Unknown(_)
                    | RedisFault::NoScript
                    | RedisFault::Contract(_)),
                ) => return Err(fault),
            }
        }
        Ok(refused)
    }

    /// What would stop the writes of each server.
    pub(crate) async fn write_stops(&self) -> Result<Vec<WriteStops>, RedisFault> {
        let mut found = Vec::new();
        for node in self.redis.connection.primaries() {
            let times = config_value(&node, "save").await?;
            let stops = config_value(&node, "stop-writes-on-bgsave-error").await? == "yes";
            let last = info_field(&node, "persistence", "rdb_last_bgsave_status").await?;
            let replicas_min = config_value(&node, "min-replicas-to-write").await?;
            found.push(WriteStops {
                address: node.address.clone(),
                snapshots: (stops && !times.trim().is_empty()).then_some(times),
                is_saved: last == "ok",
                replicas_min: replicas_min.parse().unwrap_or(0),
            });
        }
        Ok(found)
    }

    /// Replicas that each accept waits for (`redis.wait_replicas`).
    pub(crate) fn wait_replicas(&self) -> u16 {
        self.redis.connection.wait_replicas()
    }

    /// A key of a shard that this server has; it is never written.
    pub(super) fn key_on(&self, node: &Arc<Node>) -> Option<String> {
        let shard = (0..self.redis.shards)
            .find(|shard| self.redis.node_of_shard(*shard).is_ok_and(|of| Arc::ptr_eq(&of, node)))?;
        Some(format!("{}:{{{shard}}}:doctor", self.redis.keys.prefix()))
    }
}
