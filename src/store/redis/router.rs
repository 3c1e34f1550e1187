//! Which server a key is on. A single Redis has them all; of a cluster each server has some slots; of a Sentinel set the
//! present master has them all.
//!
//! Where the data is, is looked up at the start, every second, and when a server says that it is not (or no longer) the
//! one. A look that nobody answers changes nothing. Nothing is kept that the servers do not know better.

use super::fault::RedisFault;
use super::locate::{self, Asked, Located, SLOTS};
use super::node::Node;
use crate::config::{Redis, RedisMode};
use crate::store::tls::Trust;
use fred::types::config::{Config, Server, ServerConfig, TlsConfig, TlsConnector};
use futures::future::join_all;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::time::Instant;

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause while nothing is known yet.
const FIRST_LOOK_EVERY: Duration = Duration::from_millis(50);
/// Many who are told at once to look elsewhere look once.
const LOOK_PAUSE: Duration = Duration::from_millis(100);

/// Finds servers.
pub(super) struct Router {
    settings: Redis,
    config: Config,
    /// Whom to ask where the data is, besides the servers that have it.
    seeds: Vec<Arc<Node>>,
    table: RwLock<Arc<Table>>,
    looked_at: tokio::sync::Mutex<Option<Instant>>,
}

#[derive(Default)]
struct Table {
    /// First and last slot, and who has them; sorted.
    ranges: Vec<(u16, u16, Arc<Node>)>,
    replicas: Vec<Arc<Node>>,
}

impl Table {
    fn everyone(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.ranges.iter().map(|(_, _, node)| node).chain(&self.replicas)
    }
}

impl Router {
    /// Starts connecting and, of more than one server, looking.
    pub(super) fn start(settings: &Redis, trust: Option<&Trust>) -> Result<Arc<Self>, RedisFault> {
        let config = config_of(settings, trust)?;
        let mut seeds = Vec::new();
        for server in config.server.hosts() {
            seeds.push(Arc::new(Node::start(&server, &of_seeds(&config), settings)?));
        }
        let table = match (settings.mode, seeds.first()) {
            (RedisMode::Single, Some(only)) => {
                Table { ranges: vec![(0, SLOTS - 1, only.clone())], replicas: Vec::new() }
            }
            (RedisMode::Single | RedisMode::Sentinel | RedisMode::Cluster, _) => Table::default(),
        };
        let router = Arc::new(Self {
            settings: settings.clone(),
            config,
            seeds,
            table: RwLock::new(Arc::new(table)),
            looked_at: tokio::sync::Mutex::default(),
        });
        if settings.mode != RedisMode::Single {
            tokio::spawn(keep_looking(Arc::downgrade(&router)));
        }
        Ok(router)
    }

    fn table(&self) -> Arc<Table> {
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
        let at = table.ranges.partition_point(|(_, last, _)| *last < slot);
        match table.ranges.get(at) {
            Some((first, _, node)) if *first <= slot => Ok(node.clone()),
            Some(_) | None => Err(RedisFault::NotSent(match self.settings.mode {
                RedisMode::Single => "no server".to_owned(),
                RedisMode::Sentinel => "no sentinel has named the master yet".to_owned(),
                RedisMode::Cluster => format!("no server of the cluster has slot {slot}"),
            })),
        }
    }

    /// That no server is known, and what those that were asked had against it.
    pub(super) fn nobody(&self) -> RedisFault {
        let asked: Vec<String> =
            self.seeds.iter().filter(|seed| !seed.is_connected()).map(|seed| seed.away()).collect();
        let why = if asked.is_empty() { String::new() } else { format!(": {}", asked.join("; ")) };
        RedisFault::NotSent(format!("it is not known which servers have the data{why}"))
    }

    /// Every server that has data, each once.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        each_once(self.table().ranges.iter().map(|(_, _, node)| node.clone()))
    }

    /// Waits until every server that has data is connected.
    pub(super) async fn wait_connected(&self) {
        while self.table().ranges.is_empty() {
            self.look().await;
            if self.table().ranges.is_empty() {
                tokio::time::sleep(FIRST_LOOK_EVERY).await;
            }
        }
        join_all(self.primaries().iter().map(|node| node.wait_connected())).await;
    }

    /// After `node` said that it does not have `key` (any more): who has it now, if that is another one.
    pub(super) async fn elsewhere(&self, key: &[u8], node: &Arc<Node>) -> Option<Arc<Node>> {
        if self.is_single() {
            return None;
        }
        let found = self.node_of(key).ok().filter(|found| !Arc::ptr_eq(found, node));
        if found.is_some() {
            return found;
        }
        self.look().await;
        self.node_of(key).ok().filter(|found| !Arc::ptr_eq(found, node))
    }

    /// Looks where the data is, unless someone has while this waited, or a moment before.
    async fn look(&self) {
        let asked_at = Instant::now();
        let mut looked_at = self.looked_at.lock().await;
        if looked_at.is_some_and(|at| at + LOOK_PAUSE > asked_at) {
            return;
        }
        if let Some(located) = self.locate().await {
            self.take_over(&located);
        }
        *looked_at = Some(Instant::now());
    }

    async fn locate(&self) -> Option<Located> {
        match &self.config.server {
            ServerConfig::Sentinel { service_name, .. } => {
                locate::locate(Asked::Sentinels(&self.seeds, service_name)).await
            }
            ServerConfig::Clustered { .. } | ServerConfig::Centralized { .. } => {
                locate::locate(Asked::Cluster(self.everyone())).await
            }
        }
    }

    /// Every server that is known, each once.
    fn everyone(&self) -> Vec<Arc<Node>> {
        each_once(self.seeds.iter().chain(self.table().everyone()).cloned())
    }

    fn take_over(&self, located: &Located) {
        let old = self.table();
        // Connections are kept: what was sent on one is answered there, whoever has the slots by now.
        let node = |server: &Server| {
            let address = server.to_string();
            match old.everyone().chain(&self.seeds).find(|node| node.address == address) {
                Some(known) => Ok(known.clone()),
                None => Node::start(server, &self.config, &self.settings).map(Arc::new),
            }
        };
        let ranges: Result<Vec<_>, RedisFault> =
            located.ranges.iter().map(|(first, last, server)| Ok((*first, *last, node(server)?))).collect();
        let replicas: Result<Vec<_>, RedisFault> = located.replicas.iter().map(node).collect();
        match (ranges, replicas) {
            (Ok(ranges), Ok(replicas)) => {
                for (_, _, primary) in &ranges {
                    primary.expect_calls();
                }
                self.put(&old, Table { ranges, replicas });
            }
            (Err(fault), _) | (_, Err(fault)) => {
                tracing::warn!(error = %fault, "redis: a server's address is unusable");
            }
        }
    }

    fn put(&self, old: &Table, new: Table) {
        let shape = |table: &Table| -> Vec<(u16, u16, String)> {
            table.ranges.iter().map(|(first, last, node)| (*first, *last, node.address.clone())).collect()
        };
        let (before, after) = (shape(old), shape(&new));
        if before != after {
            let servers: Vec<_> = after.iter().map(|(first, last, at)| format!("{first}-{last} {at}")).collect();
            tracing::info!(servers = servers.join(", "), "redis: where the data is");
        }
        // Before the last call on such a server is over: one that stands still would keep its callers until their deadline.
        let kept = |node: &&Arc<Node>| new.everyone().chain(&self.seeds).any(|kept| Arc::ptr_eq(kept, node));
        let gone: Vec<Arc<Node>> = old.everyone().filter(|node| !kept(node)).cloned().collect();
        tokio::spawn(async move { join_all(gone.iter().map(|node| node.quit())).await });
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
    }

    /// Closes every connection.
    pub(super) async fn quit(&self) {
        join_all(self.everyone().iter().map(|node| node.quit())).await;
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

/// What the URL says. Whether and how it is encrypted is said by `trust`: fred would take the system's certificates only.
fn config_of(settings: &Redis, trust: Option<&Trust>) -> Result<Config, RedisFault> {
    let url = settings.url.expose();
    let plain = url.strip_prefix("rediss").map(|rest| format!("redis{rest}"));
    if plain.is_some() != trust.is_some() {
        return Err(RedisFault::Refused("certificates are for rediss:// and only for it".to_owned()));
    }
    let mut config = Config::from_url(plain.as_deref().unwrap_or(url))?;
    config.tls = trust.map(|trust| TlsConfig::from(TlsConnector::from(trust.connector())));
    Ok(config)
}

/// Sentinels have credentials of their own.
fn of_seeds(config: &Config) -> Config {
    match &config.server {
        ServerConfig::Sentinel { username, password, .. } => {
            Config { username: username.clone(), password: password.clone(), database: None, ..config.clone() }
        }
        ServerConfig::Clustered { .. } | ServerConfig::Centralized { .. } => config.clone(),
    }
}

async fn keep_looking(router: Weak<Router>) {
    loop {
        let Some(alive) = router.upgrade() else { return };
        alive.look().await;
        let known = !alive.table().ranges.is_empty();
        drop(alive);
        tokio::time::sleep(if known { LOOK_EVERY } else { FIRST_LOOK_EVERY }).await;
    }
}
