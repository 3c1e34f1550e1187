//! Which server has which slots: as the servers of a cluster, or the sentinels, answer. Reads only.
//!
//! All of them get the question at the same time and the newest answer counts: a server that was cut off from the others, or a
//! sentinel that was frozen, still answers what was true before (windows 15 and 16).

use super::fault::RedisFault;
use super::node::Node;
use super::values::{integer, list, optional_text, text};
use fred::types::Value;
use fred::types::config::Server;
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;

/// Slots of a Redis Cluster.
pub(super) const SLOTS: u16 = 16_384;
/// Longest wait for one server: a frozen server must not delay the answers of the others.
const ANSWER_WAIT: Duration = Duration::from_millis(500);

/// A range of slots and the server that has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotRange<S> {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) server: S,
}

impl<S> SlotRange<S> {
    /// Every slot there is.
    pub(super) const fn all(server: S) -> Self {
        Self { first: 0, last: SLOTS - 1, server }
    }

    /// The same slots with another server.
    pub(super) const fn with<T>(&self, server: T) -> SlotRange<T> {
        SlotRange { first: self.first, last: self.last, server }
    }
}

/// Where the data is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Located {
    /// Slots and their primaries.
    pub(super) ranges: Vec<SlotRange<Server>>,
    /// Replicas: they can answer the same question.
    pub(super) replicas: Vec<Server>,
    /// How new the answer is: the epoch of a cluster's, or the sentinels', last election.
    epoch: u64,
}

/// The servers that can answer.
pub(super) enum Source<'a> {
    /// Servers of a cluster.
    Cluster(Vec<Arc<Node>>),
    /// Sentinels, and the name they have for the master.
    Sentinels(&'a [Arc<Node>], &'a str),
}

/// Finds out where the data is; `None` without any answer.
pub(super) async fn locate(source: Source<'_>) -> Option<Located> {
    let answers = match &source {
        Source::Cluster(nodes) => join_all(nodes.iter().map(|node| in_time(node, of_cluster(node)))).await,
        Source::Sentinels(nodes, name) => {
            join_all(nodes.iter().map(|node| in_time(node, of_sentinel(node, name)))).await
        }
    };
    let known = answers.into_iter().flatten().filter(|located| !located.ranges.is_empty());
    // Of equally new answers the answer with most slots: a server that just starts knows few.
    known.max_by_key(|located| (located.epoch, located.slots_count()))
}

async fn in_time(node: &Node, answer: impl Future<Output = Result<Located, RedisFault>>) -> Option<Located> {
    match tokio::time::timeout(ANSWER_WAIT, answer).await {
        Ok(Ok(located)) => Some(located),
        Ok(Err(error)) => {
            tracing::debug!(server = node.address, %error, "redis: a server did not answer where the data is");
            None
        }
        Err(_) => None,
    }
}

async fn of_cluster(node: &Node) -> Result<Located, RedisFault> {
    let info = node.command("CLUSTER", vec![text("INFO")]).await?.as_string().unwrap_or_default();
    let epoch = info.lines().find_map(|line| line.strip_prefix("cluster_current_epoch:")?.trim().parse().ok());
    let slots = node.command("CLUSTER", vec![text("SLOTS")]).await?;
    Ok(Located { epoch: epoch.unwrap_or(0), ..slots_of(slots, &host_of(&node.address))? })
}

async fn of_sentinel(node: &Node, name: &str) -> Result<Located, RedisFault> {
    master_of(node.command("SENTINEL", vec![text("MASTER"), text(name)]).await?)
}

impl Located {
    fn slots_count(&self) -> u32 {
        self.ranges.iter().map(|range| u32::from(range.last - range.first) + 1).sum()
    }
}

fn host_of(address: &str) -> String {
    address.rsplit_once(':').map_or(address, |(host, _port)| host).to_owned()
}

/// Reads a list of (first slot, last slot, primary, replicas…). A server that does not know its own address gives none; the
/// address that this question was sent to holds then.
fn slots_of(reply: Value, own_host: &str) -> Result<Located, RedisFault> {
    let mut located = Located::default();
    for range in list(reply)? {
        let mut parts = list(range)?.into_iter();
        let mut slot = || {
            let slot = parts.next().map_or(Ok(-1), |value| integer(&value))?;
            let slot = u16::try_from(slot).ok().filter(|slot| *slot < SLOTS);
            slot.ok_or_else(|| RedisFault::Contract("CLUSTER SLOTS names a slot that does not exist".to_owned()))
        };
        let (first, last) = (slot()?, slot()?);
        let mut servers = parts.map(|server| server_of(server, own_host));
        let Some(primary) = servers.next() else { continue };
        located.ranges.push(SlotRange { first, last, server: primary? });
        for replica in servers {
            located.replicas.push(replica?);
        }
    }
    located.ranges.sort_by_key(|range| range.first);
    Ok(located)
}

fn server_of(value: Value, own_host: &str) -> Result<Server, RedisFault> {
    let parts = list(value)?;
    let host = parts.first().and_then(optional_text).filter(|host| !host.is_empty() && host != "?");
    let port = parts.get(1).map_or(Ok(0), integer)?;
    let port = u16::try_from(port).map_err(|_| RedisFault::Contract(format!("CLUSTER SLOTS names port {port}")))?;
    Ok(Server::new(host.unwrap_or_else(|| own_host.to_owned()), port))
}

/// Field, value, field, value …; the master has every slot.
fn master_of(reply: Value) -> Result<Located, RedisFault> {
    let fields: Vec<String> = list(reply)?.iter().map(|field| field.as_string().unwrap_or_default()).collect();
    let field = |wanted: &str| fields.chunks_exact(2).find(|pair| pair[0] == wanted).map(|pair| pair[1].as_str());
    let port = field("port").and_then(|port| port.parse::<u16>().ok());
    let (Some(host), Some(port)) = (field("ip"), port) else {
        return Err(RedisFault::Contract(format!("SENTINEL MASTER answered {fields:?}")));
    };
    let epoch = field("config-epoch").and_then(|epoch| epoch.parse().ok()).unwrap_or(0);
    Ok(Located { ranges: vec![SlotRange::all(Server::new(host, port))], replicas: Vec::new(), epoch })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Value {
        Value::Array(words.iter().map(|word| text(*word)).collect())
    }

    fn server(host: &str, port: i64) -> Value {
        Value::Array(vec![text(host), Value::Integer(port), text("id")])
    }

    #[test]
    fn slots_are_read_with_or_without_an_address() {
        let range = |first, last, servers: Vec<Value>| {
            Value::Array([vec![Value::Integer(first), Value::Integer(last)], servers].concat())
        };
        let reply = Value::Array(vec![
            range(8_000, 16_383, vec![server("", 7_001)]),
            range(0, 7_999, vec![server("10.0.0.1", 7_000), server("10.0.0.2", 7_002)]),
        ]);
        let located = slots_of(reply, "asked").unwrap();
        assert_eq!(
            located.ranges,
            [
                SlotRange { first: 0, last: 7_999, server: Server::new("10.0.0.1", 7_000) },
                SlotRange { first: 8_000, last: 16_383, server: Server::new("asked", 7_001) }
            ]
        );
        assert_eq!(located.replicas, [Server::new("10.0.0.2", 7_002)]);
        assert_eq!(located.slots_count(), u32::from(SLOTS));
        let beyond = Value::Array(vec![range(0, 16_384, vec![server("h", 1)])]);
        assert!(matches!(slots_of(beyond, "asked"), Err(RedisFault::Contract(_))));
    }

    #[test]
    fn a_sentinels_master_has_every_slot() {
        let located = master_of(words(&["name", "m", "ip", "10.0.0.9", "port", "6380", "config-epoch", "7"])).unwrap();
        assert_eq!(located.ranges, [SlotRange::all(Server::new("10.0.0.9", 6_380))]);
        assert_eq!(located.epoch, 7);
        assert!(matches!(master_of(words(&["ip", "10.0.0.9"])), Err(RedisFault::Contract(_))));
    }

    #[test]
    fn the_host_is_what_stands_before_the_port() {
        assert_eq!(host_of("127.0.0.1:6379"), "127.0.0.1");
        assert_eq!(host_of("::1:6379"), "::1");
    }
}
