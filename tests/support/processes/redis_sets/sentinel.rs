//! A primary, its replicas, and the sentinels that watch over them.

use super::node::{Node, Plan};
use super::{data_config, folder, password, url};
use crate::support::basics::files::Folder;
use crate::support::basics::time::eventually;
use seckill::dev::ports::free_port;
use std::collections::BTreeMap;

/// What the sentinels call the set.
const SERVICE: &str = "seckill";

/// A set of one test. It ends with the value.
pub struct SentinelSet {
    nodes: Vec<Node>,
    sentinels: Vec<Node>,
    _folder: Folder,
}

impl SentinelSet {
    /// Starts one, with lines for the settings file of every data node, and waits until all know one another. More than half
    /// of the sentinels agree on a failover.
    pub async fn start(replicas: usize, sentinels: usize, config: &[&str]) -> Self {
        let folder = folder();
        let mut nodes: Vec<Node> = Vec::new();
        for number in 0..=replicas {
            let mut lines = data_config(&[], config);
            if let Some(primary) = nodes.first() {
                lines.push(format!("replicaof 127.0.0.1 {}", primary.port()));
            }
            let (name, port) = (format!("node{number}"), free_port().expect("a port"));
            let plan = Plan { name, port, config: lines, password: password(config), is_sentinel: false };
            nodes.push(Node::spawn(folder.path(), plan).await);
        }
        for node in &nodes {
            node.ready().await;
        }
        let mut watchers = Vec::new();
        for number in 0..sentinels {
            let lines = sentinel_config(nodes[0].port(), sentinels / 2 + 1, password(config));
            let (name, port) = (format!("sentinel{number}"), free_port().expect("a port"));
            let plan = Plan { name, port, config: lines, password: None, is_sentinel: true };
            watchers.push(Node::spawn(folder.path(), plan).await);
        }
        for sentinel in &watchers {
            sentinel.ready().await;
        }
        let set = Self { nodes, sentinels: watchers, _folder: folder };
        set.whole().await;
        set
    }

    /// For `redis.url`. The password is that of the data nodes; the sentinels have none.
    pub fn url(&self) -> String {
        let url = url("redis-sentinel", &self.nodes[0].login(), &self.sentinels);
        format!("{url}&sentinelServiceName={SERVICE}")
    }

    /// The data nodes: first the one that began as the primary.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The sentinels.
    pub fn sentinels(&self) -> &[Node] {
        &self.sentinels
    }

    /// The primary, once all running sentinels name the same.
    pub async fn master(&self) -> &Node {
        self.agreed("one primary", |_| true).await
    }

    /// Waits until all running sentinels name another primary than `old`, and it is one; returns it.
    pub async fn failed_over(&self, old: &Node) -> &Node {
        self.agreed("another primary", |named| named.port() != old.port()).await
    }

    /// Has a sentinel make a replica the primary although the old one is well; returns the new one.
    pub async fn fail_over(&self) -> &Node {
        let old = self.master().await;
        let sentinel = self.sentinels.iter().find(|sentinel| sentinel.runs()).expect("a sentinel that runs");
        sentinel.call(&["SENTINEL", "FAILOVER", SERVICE]).await;
        self.failed_over(old).await
    }

    /// Waits until all sentinels know all of the set and find it well, and all replicas are in step.
    pub async fn whole(&self) {
        eventually("a whole set", async || {
            let Some(master) = self.named().await else { return false };
            for node in self.nodes.iter().filter(|node| node.port() != master.port()) {
                let replication = node.info("replication").await;
                let of = replication.get("master_port").is_some_and(|port| *port == master.port().to_string());
                if !of || replication.get("master_link_status").is_none_or(|link| link != "up") {
                    return false;
                }
            }
            for sentinel in &self.sentinels {
                if !self.finds_all_well(sentinel).await {
                    return false;
                }
            }
            true
        })
        .await;
    }

    async fn finds_all_well(&self, sentinel: &Node) -> bool {
        let Ok(answer) = sentinel.try_call(&["SENTINEL", "MASTER", SERVICE]).await else { return false };
        let master = pairs(&answer);
        let is = |name: &str, wanted: String| master.get(name).is_some_and(|value| *value == wanted);
        let known = is("num-other-sentinels", (self.sentinels.len() - 1).to_string())
            && is("num-slaves", (self.nodes.len() - 1).to_string())
            && is("flags", "master".to_owned());
        let Ok(answer) = sentinel.try_call(&["SENTINEL", "REPLICAS", SERVICE]).await else { return false };
        let replicas: Vec<BTreeMap<String, String>> = answer.as_array().into_iter().flatten().map(pairs).collect();
        let well = |replica: &BTreeMap<String, String>| {
            replica.get("flags").is_some_and(|flags| flags == "slave")
                && replica.get("master-link-status").is_some_and(|link| link == "ok")
        };
        known && replicas.iter().all(well)
    }

    async fn agreed(&self, what: &str, wanted: impl Fn(&Node) -> bool) -> &Node {
        let mut found = None;
        eventually(what, async || {
            found = self.named().await.filter(|named| wanted(named));
            found.is_some()
        })
        .await;
        found.expect(what)
    }

    /// The node that all running sentinels name, when it says itself that it is the primary.
    async fn named(&self) -> Option<&Node> {
        let mut ports = Vec::new();
        for sentinel in self.sentinels.iter().filter(|sentinel| sentinel.runs()) {
            let address = sentinel.try_call(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE]).await.ok()?;
            ports.push(address.get(1)?.as_str()?.parse::<u16>().ok()?);
        }
        ports.dedup();
        let [port] = ports.as_slice() else { return None };
        let node = self.nodes.iter().find(|node| node.port() == *port).expect("a node of this set");
        let is_primary = node.runs() && node.info("replication").await.get("role").is_some_and(|role| role == "master");
        is_primary.then_some(node)
    }
}

/// Failures show within seconds, but a crowded machine is not mistaken for one; and the next failover need not wait long for
/// the last.
fn sentinel_config(primary: u16, quorum: usize, password: Option<&str>) -> Vec<String> {
    let mut lines = vec![
        "bind 127.0.0.1".to_owned(),
        format!("sentinel monitor {SERVICE} 127.0.0.1 {primary} {quorum}"),
        format!("sentinel down-after-milliseconds {SERVICE} 2000"),
        format!("sentinel failover-timeout {SERVICE} 3000"),
        format!("sentinel parallel-syncs {SERVICE} 1"),
    ];
    lines.extend(password.map(|password| format!("sentinel auth-pass {SERVICE} {password}")));
    lines
}

/// A flat list of names and values.
fn pairs(answer: &serde_json::Value) -> BTreeMap<String, String> {
    let words: Vec<&str> = answer.as_array().into_iter().flatten().filter_map(serde_json::Value::as_str).collect();
    words.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}
