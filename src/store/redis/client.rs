//! The handle, and how a command gets to its server.

use super::fault::RedisFault;
use super::keys::Keys;
use super::node::Node;
use super::replicas::Promised;
use super::router::Router;
use super::scripts::{Script, script_on};
use crate::config::{Durability, Outbox, Redis};
use crate::store::tls::Trust;
use fred::types::Value;
use std::sync::Arc;
use std::time::Duration;

/// Servers that are tried for one command: one that says the data is elsewhere did nothing.
const SERVERS_TRIED: usize = 3;

/// What is done on the server of a key.
pub(super) enum Call {
    /// One command.
    Command(&'static str),
    /// One command whose answer may be told only when enough replicas have it.
    Promised(&'static str),
    /// A script that accepts nothing.
    Script(&'static Script),
    /// A script whose answer may be built on elsewhere only when enough replicas have what it did.
    Kept(&'static Script),
    /// The reserve script; its SHA-1, the first argument, is filled in.
    Reserve,
}

/// A handle on Redis; clones share the connections.
#[derive(Clone)]
pub struct RedisStore {
    pub(super) router: Arc<Router>,
    /// The keys of this system.
    pub keys: Keys,
    pub(super) wait_replicas: u16,
    pub(super) durability: Durability,
    pub(super) outbox: Outbox,
    /// Shards of every sale; the scripts refuse sales that were warmed for another number.
    pub(super) shards: u16,
}

impl RedisStore {
    /// Starts connecting and returns at once; connections are rebuilt for as long as the handle lives. With `trust` they are
    /// encrypted.
    ///
    /// # Errors
    /// [`RedisFault::Refused`] when `redis.url` cannot be used at all.
    pub fn start(settings: &Redis, trust: Option<&Trust>) -> Result<Self, RedisFault> {
        Ok(Self {
            router: Router::start(settings, trust)?,
            keys: Keys::new(settings.prefix.clone()),
            wait_replicas: settings.wait_replicas,
            durability: settings.durability,
            outbox: settings.outbox,
            shards: settings.shards,
        })
    }

    /// Whether any server that has data is connected right now.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.router.primaries().iter().any(|node| node.is_connected())
    }

    /// Waits for the first connection to every server that has data, at most `deadline`; whether there is any.
    pub async fn wait_connected(&self, deadline: Duration) -> bool {
        // Whether they all came shows in the answers.
        drop(tokio::time::timeout(deadline, self.router.wait_connected()).await);
        self.is_connected()
    }

    /// Closes the connections after what was sent is answered.
    pub async fn quit(&self) {
        self.router.quit().await;
    }

    /// Shards by the server they are on at the moment; those whose server is not known stand together.
    #[must_use]
    pub fn shards_by_server(&self) -> Vec<Vec<u16>> {
        let mut servers: Vec<(Option<Arc<Node>>, Vec<u16>)> = Vec::new();
        for shard in 0..self.shards {
            let node = self.node_of_shard(shard).ok();
            let same = |known: &Option<Arc<Node>>| match (known, &node) {
                (Some(known), Some(node)) => Arc::ptr_eq(known, node),
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            match servers.iter_mut().find(|(known, _)| same(known)) {
                Some((_, shards)) => shards.push(shard),
                None => servers.push((node, vec![shard])),
            }
        }
        servers.into_iter().map(|(_, shards)| shards).collect()
    }

    /// Every server that has data, and its shards.
    #[must_use]
    pub fn servers(&self) -> Vec<(String, Vec<u16>)> {
        let has = |node: &Arc<Node>, shard: &u16| self.node_of_shard(*shard).is_ok_and(|of| Arc::ptr_eq(&of, node));
        let nodes = self.router.primaries();
        nodes
            .iter()
            .map(|node| (node.address.clone(), (0..self.shards).filter(|shard| has(node, shard)).collect()))
            .collect()
    }

    /// The server that has everything of a shard.
    pub(super) fn node_of_shard(&self, shard: u16) -> Result<Arc<Node>, RedisFault> {
        self.router.node_of(self.keys.outbox(shard).as_bytes())
    }

    /// Sends one command to the server of its key. `key` is the position of the key among the arguments.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub async fn command(&self, name: &'static str, key: usize, args: Vec<Value>) -> Result<Value, RedisFault> {
        Ok(self.routed(&Call::Command(name), key, args).await?.answer)
    }

    /// Sends one command to every server that has data. Returns their answers.
    ///
    /// # Errors
    /// [`RedisFault`] of the first server that fails; those before it have run the command.
    pub async fn command_on_every_server(&self, name: &'static str, args: &[Value]) -> Result<Vec<Value>, RedisFault> {
        let mut answers = Vec::new();
        for node in self.router.primaries() {
            answers.push(node.command(name, args.to_vec()).await?);
        }
        Ok(answers)
    }

    /// Makes a call on the server of its key, and on the server that has the key by now if that one says it has not.
    pub(super) async fn routed(&self, call: &Call, key: usize, args: Vec<Value>) -> Result<Promised, RedisFault> {
        let mut node = self.router.node_of(bytes_of(&args, key))?;
        if self.router.is_single() {
            return self.call_on(call, &node, args).await;
        }
        for _ in 1..SERVERS_TRIED {
            match self.call_on(call, &node, args.clone()).await {
                Err(fault) if fault.is_elsewhere() => match self.router.elsewhere(bytes_of(&args, key), &node).await {
                    Some(other) => node = other,
                    None => return Err(fault),
                },
                done => return done,
            }
        }
        self.call_on(call, &node, args).await
    }

    async fn call_on(&self, call: &Call, node: &Arc<Node>, args: Vec<Value>) -> Result<Promised, RedisFault> {
        let plain = |answer| Promised { answer, replicated: true };
        match call {
            Call::Command(name) => node.command(name, args).await.map(plain),
            Call::Promised(name) => self.promised_on(node, name, args).await,
            Call::Script(script) => script_on(node, script, args).await.map(plain),
            Call::Kept(script) => self.kept_on(node, script, args).await,
            Call::Reserve => self.reserve_on(node, args).await,
        }
    }
}

/// The argument at `at`, for the slot.
fn bytes_of(args: &[Value], at: usize) -> &[u8] {
    args.get(at).and_then(Value::as_bytes).unwrap_or_default()
}

/// Shorthand for argument lists.
pub(super) fn text(value: impl Into<String>) -> Value {
    Value::String(value.into().into())
}

/// Reads an integer, whether it came as a number or as digits.
pub(super) fn integer(value: &Value) -> Result<i64, RedisFault> {
    value.as_i64().ok_or_else(|| RedisFault::Contract(format!("expected a number, got {value:?}")))
}

/// Reads a list.
pub(super) fn list(value: Value) -> Result<Vec<Value>, RedisFault> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        other @ (Value::Boolean(_)
        | Value::Integer(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Queued
        | Value::Map(_)) => Err(RedisFault::Contract(format!("expected a list, got {other:?}"))),
    }
}

/// Reads a text; `None` for null.
pub(super) fn optional_text(value: &Value) -> Option<String> {
    if value.is_null() { None } else { value.as_string() }
}
