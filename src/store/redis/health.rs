//! Settings of the server that a guarantee depends on.

use super::connection::{Node, RedisFault, good_replicas, info_field, list, optional_text, text, value_in};
use super::keyspace::Keyspace;
use crate::config::Durability;
use futures::future::join_all;
use serde::Serialize;
use std::sync::Arc;

/// One setting and whether the guarantees hold with it.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// Its name on the server.
    pub name: &'static str,
    /// The server, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The value that the server has now.
    pub value: String,
    /// What it should be.
    pub expected: String,
    /// Why the guarantees need it.
    pub why: &'static str,
    /// Whether it is so.
    pub ok: bool,
    /// What it is for.
    pub weight: Weight,
    /// Whether nothing may be sold without it, as `redis.durability` has it (otherwise it is logged as a warning).
    pub required: bool,
}

/// What a setting that is not as expected means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The system cannot work, or loses data at once.
    Must,
    /// An accepted request can be lost.
    Promise,
    /// The promises hold, but at a price that need not be paid.
    Advice,
}

const WANTED: [(&str, &str, &str, Weight); 4] = [
    ("maxmemory-policy", "noeviction", "an evicted ledger or stock key is lost data", Weight::Must),
    ("appendonly", "yes", "an accept must survive a restart", Weight::Promise),
    ("appendfsync", "always", "an accept must be on disk before the buyer gets the answer", Weight::Promise),
    ("no-appendfsync-on-rewrite", "no", "a rewrite would silently stop the fsyncs", Weight::Promise),
];
/// Read only with `redis.wait_replicas`.
const MIN_REPLICAS: &str = "min-replicas-to-write";
/// Read only of a cluster.
const COVERAGE: &str = "cluster-require-full-coverage";
/// Primaries of a cluster that can lose one and elect its replica.
const PRIMARIES: u16 = 3;

impl Setting {
    /// Name, value and what was expected, for people.
    #[must_use]
    pub(crate) fn headline(&self) -> String {
        let of = self.server.as_ref().map(|server| format!(" of {server}")).unwrap_or_default();
        format!("{}{of} is {}, expected {}", self.name, self.value, self.expected)
    }
}

/// What the servers are and how they are configured.
#[derive(Clone)]
pub struct RedisHealth {
    pub(super) redis: Arc<Keyspace>,
    pub(super) durability: Durability,
}

impl RedisHealth {
    /// Whether any server that has data is connected right now.
    #[must_use]
    pub(crate) fn is_connected(&self) -> bool {
        self.redis.connection.is_connected()
    }

    /// Whether a replica takes the place of its server by itself.
    #[must_use]
    pub(crate) fn promotes(&self) -> bool {
        !self.redis.connection.is_single()
    }

    /// Reads the settings the guarantees depend on, of every server that can be asked; with `redis.wait_replicas` also the
    /// replicas.
    pub async fn settings(&self) -> Result<Vec<Setting>, RedisFault> {
        let nodes = self.redis.connection.primaries();
        let asked = join_all(nodes.iter().map(|node| self.settings_of(node))).await;
        let mut found = Vec::new();
        let mut away = self.redis.connection.no_server_known();
        for settings in asked {
            match settings {
                Ok(settings) => found.extend(settings),
                // A server that is down sells nothing; before it sells again the boot fence reads its settings.
                Err(fault @ (RedisFault::NotSent(_) | RedisFault::Unknown(_))) => away = fault,
                Err(fault @ (RedisFault::Refused(_) | RedisFault::NoScript | RedisFault::Contract(_))) => {
                    return Err(fault);
                }
            }
        }
        if found.is_empty() { Err(away) } else { Ok(found) }
    }

    async fn settings_of(&self, node: &Node) -> Result<Vec<Setting>, RedisFault> {
        let mut found = self.kept_by(node).await?;
        self.replica_settings(node, &mut found).await?;
        if !self.redis.connection.is_single() {
            found.extend(self.cluster(node).await?);
            found.iter_mut().for_each(|setting| setting.server = Some(node.address.clone()));
        }
        Ok(found)
    }

    /// Whether a server keeps what it has.
    pub(super) async fn kept_by(&self, node: &Node) -> Result<Vec<Setting>, RedisFault> {
        let mut found = Vec::new();
        for (name, expected, why, weight) in WANTED {
            let value = config_value(node, name).await?;
            let (ok, required) = (value == expected, self.requires(weight));
            found.push(Setting { name, server: None, ok, value, expected: expected.into(), why, weight, required });
        }
        Ok(found)
    }

    fn requires(&self, weight: Weight) -> bool {
        match weight {
            Weight::Must => true,
            Weight::Promise => self.is_strict(),
            Weight::Advice => false,
        }
    }

    async fn replica_settings(&self, node: &Node, found: &mut Vec<Setting>) -> Result<(), RedisFault> {
        let (wanted, connected) = (self.redis.connection.wait_replicas(), self.replicas_of(node).await?);
        // Of a single server no replica is promoted: they are copies.
        if !self.redis.connection.is_single() {
            found.push(Setting {
                name: "redis.wait_replicas",
                server: None,
                ok: wanted >= connected,
                value: wanted.to_string(),
                expected: format!("{connected} or more"),
                why: "one of the replicas that need not have what was accepted last may be promoted",
                weight: Weight::Promise,
                required: self.requires(Weight::Promise),
            });
        }
        if wanted == 0 {
            return Ok(());
        }
        let least = config_value(node, MIN_REPLICAS).await?;
        found.push(Setting {
            name: MIN_REPLICAS,
            server: None,
            ok: least.parse::<u16>().is_ok_and(|least| least >= wanted),
            value: least,
            expected: format!("{wanted} or more"),
            why: "without it an accept is made first and found to be on too few replicas then, and its buyer gets 504",
            weight: Weight::Advice,
            required: false,
        });
        found.push(Setting {
            name: "connected replicas",
            server: None,
            ok: connected >= wanted,
            value: connected.to_string(),
            expected: format!("{wanted} or more"),
            why: "no accept is safe before redis.wait_replicas of them have it",
            weight: Weight::Must,
            // One server without its replicas must not close the others: its own accepts are refused one by one.
            required: self.redis.connection.is_single(),
        });
        Ok(())
    }

    /// Of a cluster: whether it is whole, and whether the other servers go on when one is lost.
    async fn cluster(&self, node: &Node) -> Result<Vec<Setting>, RedisFault> {
        let known = node.command("INFO", vec![text("cluster")]).await?.as_string().unwrap_or_default();
        if !known.lines().any(|line| line.trim() == "cluster_enabled:1") {
            return Ok(Vec::new());
        }
        let coverage = config_value(node, COVERAGE).await?;
        let info = node.command("CLUSTER", vec![text("INFO")]).await?.as_string().unwrap_or_default();
        let field = |name: &str| value_in(&info, name).unwrap_or_default();
        let lost = ["cluster_slots_pfail", "cluster_slots_fail"].map(|name| field(name).parse::<u32>().unwrap_or(0));
        let (state, size) = (field("cluster_state"), field("cluster_size"));
        let lost: u32 = lost.iter().sum();
        let of_cluster = |name, ok, value: String, expected: &str, why, weight| Setting {
            name,
            server: None,
            ok,
            value,
            expected: expected.to_owned(),
            why,
            weight,
            // One server's view of the others closes no sale.
            required: false,
        };
        let well = state == "ok" && lost == 0;
        let majority = size.parse::<u16>().is_ok_and(|primaries| primaries >= PRIMARIES);
        Ok(vec![
            of_cluster(
                COVERAGE,
                coverage == "no",
                coverage,
                "no",
                "with yes the loss of one server stops the sales of all",
                Weight::Advice,
            ),
            of_cluster(
                "cluster_state",
                well,
                format!("{state}, {lost} slots without a server"),
                "ok, 0 slots without a server",
                "the sales' parts on these slots sell nothing",
                Weight::Must,
            ),
            of_cluster(
                "cluster_size",
                majority,
                size.to_owned(),
                "3 or more",
                "with fewer primaries there is no majority to replace one that is lost",
                Weight::Advice,
            ),
        ])
    }

    /// Whether nothing may be sold while an accepted request could be lost (`redis.durability = "strict"`).
    #[must_use]
    pub(crate) fn is_strict(&self) -> bool {
        match self.durability {
            Durability::Strict => true,
            Durability::Warn => false,
        }
    }

    /// Version of the servers that answer, the oldest. Compatible servers of other names report the Redis version that they match.
    pub async fn version(&self) -> Result<String, RedisFault> {
        let nodes = self.redis.connection.primaries();
        let asked = join_all(nodes.iter().map(|node| info_field(node, "server", "redis_version"))).await;
        let (mut versions, mut away) = (Vec::new(), self.redis.connection.no_server_known());
        for version in asked {
            match version {
                Ok(version) => versions.push(version),
                Err(fault) => away = fault,
            }
        }
        let parts = |version: &String| version.split('.').map(|part| part.parse().unwrap_or(0)).collect::<Vec<u32>>();
        versions.into_iter().min_by_key(parts).ok_or(away)
    }

    /// Whether every server that has data answers. All are asked at once, so a silent one keeps no other from being asked.
    ///
    /// # Errors
    /// The [`RedisFault`] of the first one that does not answer, or of a shard whose server is not known.
    pub async fn ping(&self) -> Result<(), RedisFault> {
        let nodes = self.redis.connection.primaries();
        for answer in join_all(nodes.iter().map(|node| node.command("PING", vec![]))).await {
            answer?;
        }
        self.redis.node_of_shard(0).map(|_known| ())
    }

    /// Replicas of a server that are connected and have answered lately.
    async fn replicas_of(&self, node: &Node) -> Result<u16, RedisFault> {
        let info = node.command("INFO", vec![text("replication")]).await?.as_string().unwrap_or_default();
        Ok(good_replicas(&info))
    }

    /// The clock of the server that has a shard, Unix milliseconds: ages are only compared within one clock (window 95).
    pub(crate) async fn clock_ms(&self, shard: u16) -> Result<i64, RedisFault> {
        Ok(self.redis.clock_us(shard).await? / 1000)
    }
}

pub(super) async fn config_value(node: &Node, name: &'static str) -> Result<String, RedisFault> {
    let reply = list(node.command("CONFIG", vec![text("GET"), text(name)]).await?)?;
    Ok(reply.get(1).and_then(optional_text).unwrap_or_default())
}
