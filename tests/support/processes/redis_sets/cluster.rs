//! A Redis Cluster: its primaries share the slots evenly, node `i` and node `i + primaries` serve the same ones.

use super::node::{Node, Plan, fields};
use super::view::{self, Seen};
use super::{data_config, folder, password, url};
use crate::support::basics::files::Folder;
use crate::support::basics::time::eventually;
use seckill::dev::ports::free_port;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SLOTS: usize = 16_384;
/// After this time a replica that was ordered to take over, and has not, is ordered again.
const AGAIN: Duration = Duration::from_secs(1);
/// Redis 7.0 keeps the votes it was elected with. A node that is ordered to take over again within two node timeouts counts them
/// once more, serves for a moment as a primary that no node has elected, and loses what it accepted; then, until four are over,
/// it does nothing.
const REST: Duration = Duration::from_secs(9);

/// Failures show within seconds, but a crowded machine is not mistaken for one; a node that is left alone never moves to
/// another primary; what has no primary refuses, and the rest goes on.
const CLUSTER: [&str; 5] = [
    "cluster-enabled yes",
    "cluster-node-timeout 2000",
    "cluster-require-full-coverage no",
    "cluster-allow-replica-migration no",
    "cluster-replica-validity-factor 0",
];

/// How a replica takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// The primary hands over: it stops clients until the replica has everything.
    Agreed,
    /// Without the primary, with the vote of the others.
    Voted,
    /// Without asking anyone.
    Takeover,
}

/// A cluster of one test. It ends with the value.
pub struct Cluster {
    nodes: Vec<Node>,
    primaries: usize,
    /// When each node became primary, by port.
    elected: Mutex<BTreeMap<u16, Instant>>,
    _folder: Folder,
}

impl Cluster {
    /// Starts one, with lines for the settings file of every node (`min-replicas-to-write 1`), and waits until it is whole.
    pub async fn start(primaries: usize, replicas_each: usize, config: &[&str]) -> Self {
        let folder = folder();
        let mut nodes = Vec::new();
        let mut buses = Vec::new();
        for number in 0..primaries * (replicas_each + 1) {
            let mut lines = data_config(&CLUSTER, config);
            let bus = free_port().expect("a port");
            lines.push(format!("cluster-port {bus}"));
            buses.push(bus);
            let port = free_port().expect("a port");
            let name = format!("node{number}");
            let plan = Plan { name, port, config: lines, password: password(config), is_sentinel: false };
            nodes.push(Node::spawn(folder.path(), plan).await);
        }
        let cluster = Self { nodes, primaries, elected: Mutex::default(), _folder: folder };
        cluster.join(&buses).await;
        cluster.whole().await;
        cluster
    }

    /// Gives out the slots, makes everybody known to everybody, and attaches the replicas.
    async fn join(&self, buses: &[u16]) {
        for (number, node) in self.nodes.iter().enumerate() {
            node.ready().await;
            // Different from the beginning: nodes of one epoch would first have to settle who gets a new one.
            node.call(&["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()]).await;
            if number < self.primaries {
                let (first, next) = (SLOTS * number / self.primaries, SLOTS * (number + 1) / self.primaries);
                node.call(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &(next - 1).to_string()]).await;
            }
        }
        for (number, node) in self.nodes.iter().enumerate() {
            for (other, bus) in self.nodes.iter().zip(buses).skip(number + 1) {
                let port = other.port().to_string();
                node.call(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus.to_string()]).await;
            }
        }
        for (number, node) in self.nodes.iter().enumerate().skip(self.primaries) {
            let id = self.nodes[number % self.primaries].call(&["CLUSTER", "MYID"]).await;
            let id = id.as_str().expect("an id");
            eventually("a replica of a node it knows", async || {
                node.try_call(&["CLUSTER", "REPLICATE", id]).await.is_ok()
            })
            .await;
        }
    }

    /// For `redis.url`.
    pub fn url(&self) -> String {
        url("redis-cluster", &self.nodes[0].login(), &self.nodes[..self.primaries])
    }

    /// All nodes: first those that began as primaries.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The slot of a key, or of a hash tag like `{3}`.
    pub async fn slot_of(&self, key: &str) -> u16 {
        let node = self.running().next().expect("a node that runs");
        let slot = node.call(&["CLUSTER", "KEYSLOT", key]).await;
        slot.as_u64().and_then(|slot| u16::try_from(slot).ok()).expect("a slot")
    }

    /// The node that serves a slot; of two that both believe it, the later one.
    pub async fn primary_of_slot(&self, slot: u16) -> &Node {
        let mut claims = Vec::new();
        for node in self.running() {
            claims.extend(view::owner(&self.view(node).await, slot));
        }
        self.at(claims.into_iter().max().expect("a node serves it").1)
    }

    /// The node that serves a key, or a hash tag like `{3}`.
    pub async fn primary_of_tag(&self, key: &str) -> &Node {
        self.primary_of_slot(self.slot_of(key).await).await
    }

    /// Sends a command to the node that serves `key`.
    pub async fn call(&self, key: &str, command: &[&str]) -> Value {
        self.primary_of_tag(key).await.call(command).await
    }

    /// A running replica of the slots that `node` serves or has served; `node` itself when another one serves them now.
    pub async fn replica_of(&self, node: &Node) -> &Node {
        let group = self.number(node) % self.primaries;
        for node in self.nodes.iter().skip(group).step_by(self.primaries).filter(|node| node.runs()) {
            if node.info("replication").await.get("role").is_some_and(|role| role == "slave") {
                return node;
            }
        }
        panic!("{} has no replica", node.port());
    }

    /// Waits until every running node says that another one serves what `old` served, and returns that one.
    pub async fn failed_over(&self, old: &Node) -> &Node {
        let slot = self.first_slot(old);
        let mut new = None;
        eventually("another primary", async || {
            new = self.agreed(slot).await.filter(|owner| owner.port() != old.port());
            new.is_some()
        })
        .await;
        let new = new.expect("another primary");
        self.note_elected(new);
        new
    }

    /// Makes `replica` the primary, and waits until all running nodes agree.
    ///
    /// Right after a failover of the same slots this takes a while: see [`REST`].
    pub async fn fail_over_to(&self, replica: &Node, force: Force) {
        let how: &[&str] = match force {
            Force::Agreed => &["CLUSTER", "FAILOVER"],
            Force::Voted => &["CLUSTER", "FAILOVER", "FORCE"],
            Force::Takeover => &["CLUSTER", "FAILOVER", "TAKEOVER"],
        };
        let slot = self.first_slot(replica);
        eventually("it may be elected again", async || self.elected_since(replica).is_none_or(|since| since > REST))
            .await;
        let mut sent: Option<Instant> = None;
        eventually("the replica takes over", async || {
            // No node votes twice about one primary within two node timeouts; a replica without votes gives up.
            if sent.is_none_or(|sent| sent.elapsed() > AGAIN) {
                drop(replica.try_call(how).await);
                sent = Some(Instant::now());
            }
            self.agreed(slot).await.is_some_and(|owner| owner.port() == replica.port())
        })
        .await;
        self.note_elected(replica);
    }

    fn elected_since(&self, node: &Node) -> Option<Duration> {
        let elected = self.elected.lock().expect("no thread panics with it");
        elected.get(&node.port()).map(Instant::elapsed)
    }

    fn note_elected(&self, node: &Node) {
        self.elected.lock().expect("no thread panics with it").insert(node.port(), Instant::now());
    }

    /// Waits until all nodes run, serve and know one another, and all replicas are in step.
    pub async fn whole(&self) {
        eventually("a whole cluster", async || {
            for node in &self.nodes {
                if !self.finds_all_well(node).await {
                    return false;
                }
            }
            true
        })
        .await;
    }

    async fn finds_all_well(&self, node: &Node) -> bool {
        let view = self.view(node).await;
        let all = view.len() == self.nodes.len() && view.iter().all(Seen::is_well);
        let replicas = view.iter().filter(|seen| seen.is("slave")).count();
        let replication = node.info("replication").await;
        let in_step = match replication.get("role").map(String::as_str) {
            Some("slave") => replication.get("master_link_status").is_some_and(|link| link == "up"),
            Some(_) | None => (0..self.nodes.len() / self.primaries - 1).all(|number| {
                replication.get(&format!("slave{number}")).is_some_and(|slave| slave.contains("state=online"))
            }),
        };
        all && in_step && replicas == self.nodes.len() - self.primaries && self.serves(node).await
    }

    async fn serves(&self, node: &Node) -> bool {
        let info = node.try_call(&["CLUSTER", "INFO"]).await.unwrap_or_default();
        fields(info.as_str().unwrap_or_default()).get("cluster_state").is_some_and(|state| state == "ok")
    }

    /// The node that all running ones believe to serve a slot, and that believes so too.
    async fn agreed(&self, slot: u16) -> Option<&Node> {
        let mut owners = Vec::new();
        for node in self.running() {
            owners.push(view::owner(&self.view(node).await, slot)?.1);
        }
        owners.dedup();
        let [owner] = owners.as_slice() else { return None };
        let owner = self.at(*owner);
        (owner.runs() && self.serves(owner).await).then_some(owner)
    }

    /// What a node believes; nothing when it does not answer.
    async fn view(&self, node: &Node) -> Vec<Seen> {
        let text = node.try_call(&["CLUSTER", "NODES"]).await.unwrap_or_default();
        view::read(text.as_str().unwrap_or_default())
    }

    fn running(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.runs())
    }

    /// The first slot that this node and those beside it serve.
    fn first_slot(&self, node: &Node) -> u16 {
        let first = SLOTS * (self.number(node) % self.primaries) / self.primaries;
        u16::try_from(first).expect("a slot")
    }

    fn number(&self, node: &Node) -> usize {
        self.nodes.iter().position(|own| own.port() == node.port()).expect("a node of this cluster")
    }

    fn at(&self, port: u16) -> &Node {
        self.nodes.iter().find(|node| node.port() == port).expect("a node of this cluster")
    }
}
