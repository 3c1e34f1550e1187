//! What every handle works with: the connections, the scripts, and the names of this system's keys.

use super::connection::{DoneWhen, Node, RedisConnection, RedisFault, Replicated, list, optional_text};
use super::keys::Keys;
use super::scripts::{self, ReserveScripts, Script};
use crate::config::{OutboxKind, Redis};
use crate::store::tls::Trust;
use fred::types::Value;
use std::sync::Arc;

/// The only consumer group of every outbox. With a second group, the XDEL of one would delete entries of the other group.
pub const GROUP: &str = "relay";

/// This system's part of one Redis. Each handle has the same one.
pub(super) struct Keyspace {
    pub(super) connection: RedisConnection,
    pub(super) reserve_scripts: ReserveScripts,
    pub(super) keys: Keys,
    pub(super) outbox: OutboxKind,
    /// Shards of every sale; the scripts refuse sales that were warmed for another number.
    pub(super) shards: u16,
}

impl Keyspace {
    pub(super) fn start(settings: &Redis, trust: Option<&Trust>) -> Result<Arc<Self>, RedisFault> {
        let connection = RedisConnection::start(settings, trust)?;
        Ok(Arc::new(Self {
            reserve_scripts: ReserveScripts::new(connection.clone(), &settings.prefix, settings.outbox),
            connection,
            keys: Keys::new(settings.prefix.clone()),
            outbox: settings.outbox,
            shards: settings.shards,
        }))
    }

    /// The key of new outbox entries.
    pub(super) fn outbox_key(&self, shard: u16) -> String {
        match self.outbox {
            OutboxKind::Stream => self.keys.outbox(shard),
            OutboxKind::List => self.keys.outbox_list(shard),
        }
    }

    /// The consumer group, for the scripts that make it; a list has none.
    pub(super) const fn outbox_group(&self) -> &'static str {
        match self.outbox {
            OutboxKind::Stream => GROUP,
            OutboxKind::List => "",
        }
    }

    /// The server that has everything of a shard.
    pub(super) fn node_of_shard(&self, shard: u16) -> Result<Arc<Node>, RedisFault> {
        self.connection.node_of(&self.keys.outbox(shard))
    }

    /// Shards by the server they are on at the moment; those whose server is not known stand together.
    pub(super) fn shards_by_server(&self) -> Vec<Vec<u16>> {
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

    /// Sends one command to the server of its key. `key_at` is the position of the key among the arguments.
    /// The clock of the server that has a shard, Unix microseconds.
    pub(super) async fn clock_us(&self, shard: u16) -> Result<i64, RedisFault> {
        let parts = list(self.node_of_shard(shard)?.command("TIME", vec![]).await?)?;
        let part = |at: usize| parts.get(at).and_then(optional_text).and_then(|part| part.parse::<i64>().ok());
        match (part(0), part(1)) {
            (Some(seconds), Some(micros)) => Ok(seconds * 1_000_000 + micros),
            (None, _) | (_, None) => Err(RedisFault::Contract(format!("TIME answered {parts:?}"))),
        }
    }

    pub(super) async fn command(
        &self,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        self.connection.command(name, key_at, args).await
    }

    /// The same; with the answer comes whether enough replicas have what the command wrote and saw.
    pub(super) async fn replicated(
        &self,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Replicated, RedisFault> {
        self.connection.send(DoneWhen::Replicated, name, key_at, args).await
    }

    /// Sends one command that hands out accepted requests. What too few replicas have stays where it is (window 15): if it
    /// were sent on, a promoted replica would sell its units once more.
    pub(super) async fn hand_out(
        &self,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        self.replicated(name, key_at, args).await?.or_too_few()
    }

    /// Calls a script that accepts nothing.
    pub(super) async fn script(
        &self,
        script: &'static Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        Ok(scripts::call(&self.connection, DoneWhen::Answered, script, keys, args).await?.answer)
    }

    /// Calls a script and answers only when enough replicas have what it did and what it found done before: another server,
    /// or the database, builds on it (windows 15 and 16). A replica that is promoted without it would undo one half.
    pub(super) async fn script_replicated(
        &self,
        script: &'static Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        scripts::call(&self.connection, DoneWhen::Replicated, script, keys, args).await?.or_too_few()
    }
}
