//! Redis Cluster and Redis Sentinel on loopback, each set with own ports and own data, to be killed, frozen and failed over
//! by one test. Shared by the test binaries.
//!
//! Every server keeps its settings in a file it may rewrite, as real ones do: what a failover made of it, it still is after
//! a restart. A set ends with its value, its data with it.

mod cluster;
mod node;
mod sentinel;
mod view;

pub use cluster::{Cluster, Force};
pub use node::Node;
pub use sentinel::SentinelSet;

use crate::support::basics::files::Folder;
use std::sync::atomic::{AtomicU32, Ordering};

/// Settings of every data node: what is answered is on the disk, nothing is evicted, replicas are in step quickly.
const DURABLE: [&str; 7] = [
    "bind 127.0.0.1",
    "appendonly yes",
    "appendfsync always",
    "save \"\"",
    "maxmemory-policy noeviction",
    "repl-diskless-sync-delay 0",
    "enable-debug-command local",
];

/// A folder for one set; it goes away with the set.
fn folder() -> Folder {
    static SETS: AtomicU32 = AtomicU32::new(0);
    Folder::new(&format!("redis-set{}", SETS.fetch_add(1, Ordering::SeqCst)))
}

/// The settings of a data node: those of its set, then the test's own, which win.
fn data_config(set: &[&str], own: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = DURABLE.iter().chain(set).chain(own).map(|line| (*line).to_owned()).collect();
    if let Some(password) = password(own) {
        lines.push(format!("masterauth {password}"));
    }
    lines
}

/// The password that settings ask for.
fn password<'a>(config: &[&'a str]) -> Option<&'a str> {
    config.iter().find_map(|line| line.strip_prefix("requirepass "))
}

/// `scheme://first?node=second&node=third`, with the password when there is one.
fn url(scheme: &str, login: &str, nodes: &[Node]) -> String {
    let addresses: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
    let (first, others) = addresses.split_first().expect("a node");
    let others: Vec<String> = others.iter().map(|address| format!("node={address}")).collect();
    format!("{scheme}://{login}{first}?{}", others.join("&"))
}
