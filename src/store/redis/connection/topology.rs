//! Which server a key is on. A single Redis has all keys; in a cluster each server has some slots; in a Sentinel set the
//! present master has all keys.
//!
//! The table of slots is refreshed at the start, every second, and when a server answers that it does not have a key (any
//! more). A refresh without an answer changes nothing. Nothing is stored: the servers know better.

use super::discovery::{Located, SlotRange, Source, locate};
use super::fault::RedisFault;
use super::node::Node;
use crate::config::{Redis, RedisMode};
use crate::store::tls::Trust;
use fred::types::config::{Config, Server, ServerConfig, TlsConfig, TlsConnector};
use futures::future::join_all;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Pause between two refreshes.
const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// The same while no server is known yet.
const FIRST_REFRESH_EVERY: Duration = Duration::from_millis(50);
/// Many commands that are refused at the same time cause one refresh.
const REFRESH_PAUSE: Duration = Duration::from_millis(100);

/// The servers of one Redis, and which of them has which keys.
pub(super) struct RedisTopology {
    settings: Redis,
    config: Config,
    /// The servers of the URL. They know where the data is, whether they have some or not.
    seeds: Vec<Arc<Node>>,
    table: RwLock<Arc<SlotTable>>,
    refreshed_at: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Default)]
struct SlotTable {
    /// Sorted by slot.
    ranges: Vec<SlotRange<Arc<Node>>>,
    replicas: Vec<Arc<Node>>,
}

impl SlotTable {
    fn all_nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.ranges.iter().map(|range| &range.server).chain(&self.replicas)
    }
}

impl RedisTopology {
    /// Starts connecting and, with more than one server, refreshing.
    pub(super) fn start(settings: &Redis, trust: Option<&Trust>) -> Result<Arc<Self>, RedisFault> {
        let config = config_of(settings, trust)?;
        let mut seeds = Vec::new();
        for server in config.server.hosts() {
            seeds.push(Arc::new(Node::start(&server, &config_of_seeds(&config), settings)?));
        }
        let table = match (settings.mode, seeds.first()) {
            (RedisMode::Single, Some(only)) => {
                SlotTable { ranges: vec![SlotRange::all(only.clone())], replicas: Vec::new() }
            }
            (RedisMode::Single | RedisMode::Sentinel | RedisMode::Cluster, _) => SlotTable::default(),
        };
        let topology = Arc::new(Self {
            settings: settings.clone(),
            config,
            seeds,
            table: RwLock::new(Arc::new(table)),
            refreshed_at: tokio::sync::Mutex::default(),
        });
        if settings.mode != RedisMode::Single {
            tokio::spawn(keep_refreshing(Arc::downgrade(&topology)));
        }
        Ok(topology)
    }

    fn table(&self) -> Arc<SlotTable> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether there is one server, now and always.
    pub(super) fn is_single(&self) -> bool {
        self.settings.mode == RedisMode::Single
    }

    /// The server that has `key`, as far as is known.
    pub(super) fn node_of(&self, key: &[u8]) -> Result<Arc<Node>, RedisFault> {
        let table = self.table();
        let slot = if self.settings.mode == RedisMode::Cluster { fred::util::redis_keyslot(key) } else { 0 };
        let at = table.ranges.partition_point(|range| range.last < slot);
        match table.ranges.get(at) {
            Some(range) if range.first <= slot => Ok(range.server.clone()),
            Some(_) | None => Err(RedisFault::NotSent(match self.settings.mode {
                RedisMode::Single => "no server".to_owned(),
                RedisMode::Sentinel => "no sentinel has named the master yet".to_owned(),
                RedisMode::Cluster => format!("no server of the cluster has slot {slot}"),
            })),
        }
    }

    /// The fault for "no server is known", with the reasons of the seeds that are not connected.
    pub(super) fn no_server_known(&self) -> RedisFault {
        let reasons: Vec<String> =
            self.seeds.iter().filter(|seed| !seed.is_connected()).map(|seed| seed.not_connected()).collect();
        let why = if reasons.is_empty() { String::new() } else { format!(": {}", reasons.join("; ")) };
        RedisFault::NotSent(format!("it is not known which servers have the data{why}"))
    }

    /// Every server that has data, each once.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        each_once(self.table().ranges.iter().map(|range| range.server.clone()))
    }

    /// A connection to one more server.
    pub(super) fn connect_to(&self, server: &Server) -> Result<Node, RedisFault> {
        Node::start(server, &self.config, &self.settings)
    }

    /// Waits until every server that has data is connected.
    pub(super) async fn wait_connected(&self) {
        while self.table().ranges.is_empty() {
            self.refresh().await;
            if self.table().ranges.is_empty() {
                tokio::time::sleep(FIRST_REFRESH_EVERY).await;
            }
        }
        join_all(self.primaries().iter().map(|node| node.wait_connected())).await;
    }

    /// After `node` answered that it does not have `key` (any more): the server that has it now, if it is another one.
    pub(super) async fn moved_to(&self, key: &[u8], node: &Arc<Node>) -> Option<Arc<Node>> {
        if self.is_single() {
            return None;
        }
        let found = self.node_of(key).ok().filter(|found| !Arc::ptr_eq(found, node));
        if found.is_some() {
            return found;
        }
        self.refresh().await;
        self.node_of(key).ok().filter(|found| !Arc::ptr_eq(found, node))
    }

    /// Refreshes the table, unless another task has done so while this one waited, or a moment before.
    async fn refresh(&self) {
        let asked_at = Instant::now();
        let mut refreshed_at = self.refreshed_at.lock().await;
        if refreshed_at.is_some_and(|at| at + REFRESH_PAUSE > asked_at) {
            return;
        }
        if let Some(located) = self.locate().await {
            self.adopt(&located);
        }
        *refreshed_at = Some(Instant::now());
    }

    async fn locate(&self) -> Option<Located> {
        match &self.config.server {
            ServerConfig::Sentinel { service_name, .. } => locate(Source::Sentinels(&self.seeds, service_name)).await,
            ServerConfig::Clustered { .. } | ServerConfig::Centralized { .. } => {
                locate(Source::Cluster(self.all_nodes())).await
            }
        }
    }

    /// Every server that is known, each once.
    fn all_nodes(&self) -> Vec<Arc<Node>> {
        each_once(self.seeds.iter().chain(self.table().all_nodes()).cloned())
    }

    fn adopt(&self, located: &Located) {
        let old = self.table();
        // Connections are kept: a command is answered on the connection it was sent on, wherever its slot is by now.
        let node = |server: &Server| {
            let address = server.to_string();
            match old.all_nodes().chain(&self.seeds).find(|node| node.address == address) {
                Some(known) => Ok(known.clone()),
                None => Node::start(server, &self.config, &self.settings).map(Arc::new),
            }
        };
        let ranges: Result<Vec<_>, RedisFault> =
            located.ranges.iter().map(|range| Ok(range.with(node(&range.server)?))).collect();
        let replicas: Result<Vec<_>, RedisFault> = located.replicas.iter().map(node).collect();
        match (ranges, replicas) {
            (Ok(ranges), Ok(replicas)) => {
                ranges.iter().for_each(|range| range.server.prepare());
                self.replace(&old, SlotTable { ranges, replicas });
            }
            (Err(fault), _) | (_, Err(fault)) => {
                tracing::warn!(error = %fault, "redis: a server's address is unusable");
            }
        }
    }

    fn replace(&self, old: &SlotTable, new: SlotTable) {
        let shape = |table: &SlotTable| -> Vec<SlotRange<String>> {
            table.ranges.iter().map(|range| range.with(range.server.address.clone())).collect()
        };
        let (before, after) = (shape(old), shape(&new));
        if before != after {
            let servers: Vec<_> =
                after.iter().map(|range| format!("{}-{} {}", range.first, range.last, range.server)).collect();
            tracing::info!(servers = servers.join(", "), "redis: servers and their slots");
        }
        // At once, not after the last call on such a server: a frozen server would keep its callers until their deadline.
        let kept = |node: &&Arc<Node>| new.all_nodes().chain(&self.seeds).any(|kept| Arc::ptr_eq(kept, node));
        let gone: Vec<Arc<Node>> = old.all_nodes().filter(|node| !kept(node)).cloned().collect();
        tokio::spawn(async move { join_all(gone.iter().map(|node| node.quit())).await });
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
    }

    /// Closes every connection.
    pub(super) async fn quit(&self) {
        join_all(self.all_nodes().iter().map(|node| node.quit())).await;
    }
}

fn each_once(nodes: impl Iterator<Item = Arc<Node>>) -> Vec<Arc<Node>> {
    let mut once: Vec<Arc<Node>> = Vec::new();
    for node in nodes {
        if !once.iter().any(|known| Arc::ptr_eq(known, &node)) {
            once.push(node);
        }
    }
    once
}

/// The settings of the URL. Encryption comes from `trust` alone: fred would take the system's certificates only.
fn config_of(settings: &Redis, trust: Option<&Trust>) -> Result<Config, RedisFault> {
    let url = settings.url.expose();
    let plain = url.strip_prefix("rediss").map(|rest| format!("redis{rest}"));
    if plain.is_some() != trust.is_some() {
        return Err(RedisFault::Refused("certificates are for rediss:// and only for it".to_owned()));
    }
    let mut config = Config::from_url(plain.as_deref().unwrap_or(url)).map_err(|error| RedisFault::unusable(&error))?;
    config.tls = trust.map(|trust| TlsConfig::from(TlsConnector::from(trust.connector())));
    Ok(config)
}

/// Sentinels have credentials of their own.
fn config_of_seeds(config: &Config) -> Config {
    match &config.server {
        ServerConfig::Sentinel { username, password, .. } => {
            Config { username: username.clone(), password: password.clone(), database: None, ..config.clone() }
        }
        ServerConfig::Clustered { .. } | ServerConfig::Centralized { .. } => config.clone(),
    }
}

async fn keep_refreshing(topology: Weak<RedisTopology>) {
    loop {
        let Some(alive) = topology.upgrade() else { return };
        alive.refresh().await;
        let known = !alive.table().ranges.is_empty();
        drop(alive);
        tokio::time::sleep(if known { REFRESH_EVERY } else { FIRST_REFRESH_EVERY }).await;
    }
}
