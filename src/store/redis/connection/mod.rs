//! Connections to the servers, and how a command gets to the server of its key. Knows no script, and by name the barrier key only.
//!
//! One pipelined connection serves all tasks of a process (a pool brings nothing), but for polls, which have one of their own: a
//! purchase must not wait behind the crowd that asks. No command is ever sent twice by itself:
//! `max_command_attempts` is 1, because a connection lost after a script ran would otherwise run it again.
//!
//! A command takes two steps: [`Route`] picks the server, [`Node`] sends. A server that answers "not mine" ran nothing, so
//! the command goes to the server that has the key by then.
//!
//! Routing is written by hand: in the client library's own cluster mode one dead server stalls the commands to all of them.

mod discovery;
mod fault;
mod info;
mod link;
mod link_settings;
mod node;
mod replicas;
mod silence;
mod topology;
mod trouble;
mod values;

pub use fault::RedisFault;
pub(crate) use info::ServerIncarnation;
pub(super) use info::{info_field, value_in};
pub(super) use node::Node;
pub(super) use replicas::{Replicated, good_replicas};
pub(super) use values::{integer, list, optional_text, text};

use crate::config::Redis;
use crate::store::tls::Trust;
use fred::types::Value;
use fred::types::config::Server;
use std::sync::Arc;
use std::time::Duration;
use topology::RedisTopology;

/// Servers that are tried for one command: a server that says the data is elsewhere did nothing.
const SERVERS_TRIED: usize = 3;

/// When a command counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DoneWhen {
    /// As soon as the server has answered.
    Answered,
    /// The same for a read that many ask for, over a connection on which no purchase waits: there are two of them.
    Polled,
    /// When enough replicas have what it wrote and what it saw (`redis.wait_replicas`).
    Replicated,
    /// The same for a read that many ask for, over a connection on which no purchase waits.
    PolledReplicated,
}

/// Connections to every server of one Redis; clones share them.
#[derive(Clone)]
pub(super) struct RedisConnection {
    topology: Arc<RedisTopology>,
    wait_replicas: u16,
}

impl RedisConnection {
    /// Starts connecting and returns at once; connections are rebuilt for as long as the handle lives.
    pub(super) fn start(settings: &Redis, trust: Option<&Trust>) -> Result<Self, RedisFault> {
        Ok(Self { topology: RedisTopology::start(settings, trust)?, wait_replicas: settings.wait_replicas })
    }

    pub(super) fn is_connected(&self) -> bool {
        self.primaries().iter().any(|node| node.is_connected())
    }

    /// Waits for the first connection to every server that has data, at most `deadline`; whether there is any.
    pub(super) async fn wait_connected(&self, deadline: Duration) -> bool {
        // Whether all of them came shows in the answers.
        drop(tokio::time::timeout(deadline, self.topology.wait_connected()).await);
        self.is_connected()
    }

    /// Closes the connections after what was sent is answered.
    pub(super) async fn quit(&self) {
        self.topology.quit().await;
    }

    /// Whether there is one server, now and always: no other one can be promoted.
    pub(super) fn is_single(&self) -> bool {
        self.topology.is_single()
    }

    pub(super) const fn wait_replicas(&self) -> u16 {
        self.wait_replicas
    }

    /// Every server that has data, each once.
    pub(super) fn primaries(&self) -> Vec<Arc<Node>> {
        self.topology.primaries()
    }

    /// A connection to one more server, such as a replica, with the same credentials.
    pub(super) fn connect_to(&self, server: &Server) -> Result<Node, RedisFault> {
        self.topology.connect_to(server)
    }

    /// The fault for "no server is known", with what the first servers had against it.
    pub(super) fn no_server_known(&self) -> RedisFault {
        self.topology.no_server_known()
    }

    /// The server that has `key`, as far as is known.
    pub(super) fn node_of(&self, key: &str) -> Result<Arc<Node>, RedisFault> {
        self.topology.node_of(key.as_bytes())
    }

    /// A way to the server that has `key`.
    pub(super) fn route<'a>(&'a self, key: &str) -> Result<Route<'a>, RedisFault> {
        Route::new(&self.topology, key.as_bytes())
    }

    /// Sends one command to the server of its key. `key_at` is the position of the key among the arguments.
    pub(super) async fn command(
        &self,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        Ok(self.send(DoneWhen::Answered, name, key_at, args).await?.answer)
    }

    /// The same, and when the command counts as done.
    pub(super) async fn send(
        &self,
        done_when: DoneWhen,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Replicated, RedisFault> {
        let key = args.get(key_at).and_then(Value::as_bytes).unwrap_or_default();
        let mut route = Route::new(&self.topology, key)?;
        while route.may_move() {
            let answer = route.node().send(done_when, name, key_at, args.clone()).await;
            if !route.follow(&answer).await {
                return answer;
            }
        }
        route.node().send(done_when, name, key_at, args).await
    }
}

/// The way of one command: the server that has its key as far as is known, and how often that may still change.
pub(super) struct Route<'a> {
    topology: &'a RedisTopology,
    key: Vec<u8>,
    node: Arc<Node>,
    moves_left: usize,
}

impl<'a> Route<'a> {
    fn new(topology: &'a RedisTopology, key: &[u8]) -> Result<Self, RedisFault> {
        let node = topology.node_of(key)?;
        if topology.is_single() {
            return Ok(Self { topology, key: Vec::new(), node, moves_left: 0 });
        }
        Ok(Self { topology, key: key.to_vec(), node, moves_left: SERVERS_TRIED - 1 })
    }

    pub(super) fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Whether another server may have the key by the time this one answers.
    pub(super) const fn may_move(&self) -> bool {
        self.moves_left > 0
    }

    /// After an answer: whether to send the command again, because another server has the key by now.
    pub(super) async fn follow<T>(&mut self, answer: &Result<T, RedisFault>) -> bool {
        if self.moves_left == 0 || !matches!(answer, Err(fault) if fault.is_elsewhere()) {
            return false;
        }
        self.moves_left -= 1;
        let Some(other) = self.topology.moved_to(&self.key, &self.node).await else { return false };
        self.node = other;
        true
    }
}
