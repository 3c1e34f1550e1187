//! What the replicas of each server are configured to, for `doctor`: any of them may be promoted, and its settings are not read
//! before that.
//!
//! Input: the replicas' addresses, as their primaries know them. Output: their settings. Reads only; a crash leaves nothing.

use super::connection::{RedisFault, text};
use super::health::{RedisHealth, Setting};
use fred::types::config::Server;
use futures::future::join_all;
use std::time::Duration;

/// A replica has this long to connect, and as long to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// One replica.
pub(crate) struct ReplicaSettings {
    /// `host:port`, as its primary knows it.
    pub(crate) address: String,
    /// Its settings, or why they could not be read.
    pub(crate) settings: Result<Vec<Setting>, RedisFault>,
}

impl RedisHealth {
    /// The settings of every replica that a server names, read over a connection of its own each.
    pub(crate) async fn replicas(&self) -> Vec<ReplicaSettings> {
        let mut servers = Vec::new();
        for node in self.redis.connection.primaries() {
            // A server that does not answer is reported by the other checks.
            let Ok(info) = node.command("INFO", vec![text("replication")]).await else { continue };
            servers.extend(info.as_string().unwrap_or_default().lines().filter_map(replica_of));
        }
        join_all(servers.into_iter().map(|server| self.replica(server))).await
    }

    async fn replica(&self, server: Server) -> ReplicaSettings {
        let settings = async {
            let node = self.redis.connection.connect_to(&server)?;
            // Without a connection the next call says so.
            drop(tokio::time::timeout(PATIENCE, node.wait_connected()).await);
            let reading = tokio::time::timeout(PATIENCE, self.kept_by(&node)).await;
            let settings = reading.unwrap_or_else(|_| Err(RedisFault::Unknown("no answer in time".to_owned())));
            node.quit().await;
            settings
        };
        ReplicaSettings { address: server.to_string(), settings: settings.await }
    }
}

/// Reads a line such as `slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1`.
fn replica_of(line: &str) -> Option<Server> {
    let (name, fields) = line.trim().split_once(':')?;
    name.strip_prefix("slave")?.parse::<u32>().ok()?;
    let field = |wanted: &str| fields.split(',').find_map(|field| field.strip_prefix(wanted)?.strip_prefix('='));
    Some(Server::new(field("ip")?.to_owned(), field("port")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_are_read_with_their_addresses() {
        let of = |line: &str| replica_of(line).map(|server| server.to_string());
        let line = "slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1\r";
        assert_eq!(of(line), Some("127.0.0.1:6380".to_owned()));
        assert_eq!(
            of("slave12:ip=replica-2.example,port=7001,state=wait_bgsave"),
            Some("replica-2.example:7001".to_owned())
        );
        for other in ["slave_read_only:1", "connected_slaves:1", "role:master", "slave0:ip=h,port=x"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
