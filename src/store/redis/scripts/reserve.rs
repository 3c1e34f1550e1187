//! The reserve script, and the boot fence in front of it.
//!
//! A server that restarted or was promoted has an empty script cache and answers NOSCRIPT. For this script that answer is the
//! boot fence (`p2_reserve/fence.rs`): the script is loaded only after the acceptance numbers were compared.
//!
//! A server that was a primary before, was demoted and is promoted again still has its cache. So the script of a server carries
//! the server's replication id, which Redis changes at every promotion. The script itself answers NOSCRIPT when that id is not the
//! present one. That holds in every mode: one name in front of two servers is `single`, too.

use super::registry::RESERVE;
use super::slots::{assemble, left_out};
use super::{KEY_AT, evalsha, load};
use crate::config::OutboxKind;
use crate::store::redis::connection::{
    DoneWhen, Node, RedisConnection, RedisFault, Replicated, ServerIncarnation, list, text,
};
use fred::types::Value;
use fred::util::sha1_hash;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The reserve script of one server in one incarnation.
struct AssembledReserve {
    source: String,
    sha: String,
}

impl AssembledReserve {
    /// For the system with this key prefix and this kind of outbox, and a server with this replication id.
    ///
    /// The prefix makes the SHA-1 this system's own. With a shared one, the boot fence of one system would open the rewound
    /// sales of another system on the same server.
    fn new(prefix: &str, outbox: OutboxKind, replication_id: &str) -> Self {
        let source = assemble(RESERVE, |slot| match slot {
            "system" => Some(format!("-- {prefix}")),
            "outbox" => Some(format!("local OUTBOX = '{}'", redis_type_of(outbox))),
            "replication_id" => Some(format!("local REPLICATION_ID = '{replication_id}'")),
            "head" => played_head(),
            other => left_out(other),
        });
        Self { sha: sha1_hash(&source), source }
    }
}

/// What TYPE answers for the key of an outbox.
const fn redis_type_of(outbox: OutboxKind) -> &'static str {
    match outbox {
        OutboxKind::Stream => "stream",
        OutboxKind::List => "list",
    }
}

/// The line of the envelope that this process plays to write: that of a version which is not there yet. Test builds only.
#[cfg(feature = "faults")]
fn played_head() -> Option<String> {
    crate::domain::message::next_version_head_in_lua()
}

#[cfg(not(feature = "faults"))]
const fn played_head() -> Option<String> {
    None
}

/// The reserve scripts of all servers; clones share them.
#[derive(Clone)]
pub(in crate::store::redis) struct ReserveScripts {
    connection: RedisConnection,
    prefix: Arc<str>,
    outbox: OutboxKind,
    /// By address: the script this server may run, as far as this process knows.
    of_servers: Arc<RwLock<HashMap<String, Arc<AssembledReserve>>>>,
}

impl ReserveScripts {
    pub(in crate::store::redis) fn new(connection: RedisConnection, prefix: &str, outbox: OutboxKind) -> Self {
        Self { connection, prefix: prefix.into(), outbox, of_servers: Arc::default() }
    }

    /// Whether the script puts orders in lines into the outbox, which it is given then. An entry of a list is one order, in JSON.
    pub(in crate::store::redis) const fn takes_lines(&self) -> bool {
        matches!(self.outbox, OutboxKind::Stream)
    }

    /// Calls the script on the server that has `key`. `arguments` makes the keys and arguments for one server tried, nearly
    /// always once.
    ///
    /// [`RedisFault::NoScript`] is for the caller: nothing ran, and the boot fence comes first.
    pub(in crate::store::redis) async fn call(
        &self,
        key: &str,
        arguments: impl Fn() -> (Vec<String>, Vec<Value>),
    ) -> Result<Replicated, RedisFault> {
        let mut route = self.connection.route(key)?;
        loop {
            let answer = self.call_on(route.node(), arguments()).await;
            if !route.follow(&answer).await {
                return answer;
            }
        }
    }

    async fn call_on(&self, node: &Node, (keys, args): (Vec<String>, Vec<Value>)) -> Result<Replicated, RedisFault> {
        let script = match self.known(node) {
            Some(script) => script,
            None => self.learn(node, &replication_id(node).await?),
        };
        let answer = node.send(DoneWhen::Replicated, "EVALSHA", KEY_AT, evalsha(&script.sha, keys, args)).await;
        if matches!(answer, Err(RedisFault::NoScript)) {
            // The server restarted or was promoted: after the boot fence it may run another script.
            self.of_servers.write().unwrap_or_else(PoisonError::into_inner).remove(&node.address);
        }
        answer
    }

    fn known(&self, node: &Node) -> Option<Arc<AssembledReserve>> {
        self.of_servers.read().unwrap_or_else(PoisonError::into_inner).get(&node.address).cloned()
    }

    fn learn(&self, node: &Node, replication_id: &str) -> Arc<AssembledReserve> {
        let script = Arc::new(self.assembled(replication_id));
        let mut of_servers = self.of_servers.write().unwrap_or_else(PoisonError::into_inner);
        of_servers.insert(node.address.clone(), script.clone());
        script
    }

    fn assembled(&self, replication_id: &str) -> AssembledReserve {
        AssembledReserve::new(&self.prefix, self.outbox, replication_id)
    }

    /// Whether the server that has `key` knows the script: no restart or fail-over since the boot fence was passed.
    pub(in crate::store::redis) async fn is_loaded(&self, key: &str) -> Result<bool, RedisFault> {
        let node = self.connection.node_of(key)?;
        let script = self.assembled(&replication_id(&node).await?);
        let known = list(node.command("SCRIPT", vec![text("EXISTS"), text(script.sha)]).await?)?;
        Ok(known.first().is_some_and(|known| *known == Value::Integer(1)))
    }

    /// Loads the script on the server that has `key`, for the incarnation that was compared.
    pub(in crate::store::redis) async fn load(
        &self,
        key: &str,
        incarnation: &ServerIncarnation,
    ) -> Result<(), RedisFault> {
        let node = self.connection.node_of(key)?;
        let script = self.learn(&node, &incarnation.replication_id);
        load(&node, &script.source).await
    }
}

/// The id that the script of a server carries.
async fn replication_id(node: &Node) -> Result<String, RedisFault> {
    Ok(ServerIncarnation::of(node).await?.replication_id)
}

#[cfg(test)]
mod tests {
    use super::super::slots::slots_in;
    use super::{AssembledReserve, RESERVE};
    use crate::config::OutboxKind;

    #[test]
    fn every_slot_is_in_the_script_once() {
        let mut slots = slots_in(RESERVE);
        slots.sort_unstable();
        let of_drops = ["drop_counted", "drop_frozen", "drop_whole"];
        let of_all = ["head", "ledger", "limited", "lowest", "outbox", "replay_check", "replication_id", "system"];
        assert_eq!(slots, [&of_drops[..], &of_all].concat());
    }

    #[test]
    fn systems_outboxes_and_promotions_have_scripts_of_their_own() {
        let (stream, list) = (OutboxKind::Stream, OutboxKind::List);
        let scripts = [
            AssembledReserve::new("p", stream, "00"),
            AssembledReserve::new("q", stream, "00"),
            AssembledReserve::new("p", list, "00"),
            AssembledReserve::new("p", stream, "00ff"),
        ];
        assert!(scripts[1].source.contains("\n-- q\n"));
        assert!(scripts[2].source.contains("\nlocal OUTBOX = 'list'\n"));
        assert!(scripts[3].source.contains("\nlocal REPLICATION_ID = '00ff'\n"));
        let different: std::collections::BTreeSet<&str> = scripts.iter().map(|script| script.sha.as_str()).collect();
        assert_eq!(different.len(), scripts.len());
        assert!(scripts.iter().all(|script| script.source.starts_with("#!lua\n")));
    }
}
