//! The scripts of `lua/`, called by their SHA-1 only.
//!
//! `EVAL` is never used: a server that restarted or was promoted has an empty script cache and answers NOSCRIPT, and that
//! answer is the boot fence (`p2_reserve/fence.rs`). Whoever gets it for `reserve` compares acceptance numbers before loading;
//! the other scripts cannot accept anything and are loaded on the spot.
//!
//! A server that was a primary before, was demoted and is promoted again still has its cache. So where servers can be promoted
//! (Sentinel, Cluster) the reserve script of a server carries the server's replication id, which Redis makes anew at every
//! promotion, and answers NOSCRIPT itself when that is not the present one.

use super::client::{Call, RedisStore, list, text};
use super::fault::RedisFault;
use super::health::Life;
use super::node::Node;
use super::replicas::Promised;
use crate::config::Outbox;
use crate::faults::Mechanism;
use fred::types::Value;
use fred::util::sha1_hash;
use std::sync::{Arc, LazyLock};

/// One script of `lua/`.
pub(super) struct Script {
    source: &'static str,
    sha: LazyLock<String>,
}

/// Times a script is loaded and called again. Only another restart between the two takes a second round.
const LOAD_TRIES: u32 = 3;

/// The reserve script as this system's own: its source ends with the key prefix, so that its SHA-1 is shared with no other
/// system on the same server. Else the fence of one would let the rewound sales of the other through.
pub(super) struct OwnReserve {
    source: String,
    sha: String,
}

impl OwnReserve {
    /// For the system with this key prefix and this kind of outbox; on a server that can be promoted, for as long as it has
    /// this replication id.
    pub(super) fn new(prefix: &str, outbox: Outbox, replication_id: Option<&str>) -> Self {
        let mut source = format!("{}\n-- {prefix}\n", RESERVE.source);
        if let Some(id) = replication_id {
            source = source.replace(TERM, &format!("local TERM = '{id}'"));
        }
        match outbox {
            Outbox::Stream => {}
            Outbox::List => source = source.replace(KIND, &KIND.replace("stream", "list")),
        }
        for (mechanism, line, without) in LEFT_OUT {
            if mechanism.is_off() {
                source = source.replace(line, without);
            }
        }
        Self { sha: sha1_hash(&source), source }
    }
}

/// The line of the reserve script that says which kind of outbox it writes to.
const KIND: &str = "local OUTBOX = 'stream'";

/// The line of the reserve script that says under which replication id it may run.
const TERM: &str = "local TERM = nil";

/// Lines of the reserve script that a test build can be told to leave out: (mechanism, line, what stands there instead).
const LEFT_OUT: [(Mechanism, &str, &str); 2] = [
    (Mechanism::ReplayCheck, "local record = known[i] or new_records[id]", "local record = nil"),
    (Mechanism::Ledger, "redis.call('HSET', ledger_key, unpack(ledger_writes))", ""),
];

macro_rules! scripts {
    ($($name:ident = $file:literal;)*) => {$(
        pub(super) static $name: Script = Script {
            source: include_str!(concat!("../../../lua/", $file)),
            sha: LazyLock::new(|| sha1_hash(include_str!(concat!("../../../lua/", $file)))),
        };
    )*};
}

scripts! {
    RESERVE = "reserve.lua";
    ACTIVATE = "activate.lua";
    ARCHIVE = "archive.lua";
    BUCKET = "bucket.lua";
    COUNT = "count.lua";
    GRANT = "grant.lua";
    SET_STATE = "set_state.lua";
    SETTLE = "settle.lua";
    RATE = "rate.lua";
    REBUILD_BEGIN = "rebuild_begin.lua";
    REBUILD_LOAD = "rebuild_load.lua";
    REBUILD_END = "rebuild_end.lua";
    RELAY_DONE = "relay_done.lua";
    RELAY_FAILED = "relay_failed.lua";
    RELAY_FORGET = "relay_forget.lua";
    RELAY_ORPHANS = "relay_orphans.lua";
    RELAY_PARK = "relay_park.lua";
    RELAY_TOUCH = "relay_touch.lua";
    OUTBOX_LIST = "outbox_list.lua";
    OUTBOX_LIST_HELD = "outbox_list_held.lua";
    LEASE_NODE = "lease_node.lua";
    ROOM_ENTER = "room_enter.lua";
    ROOM_RELEASE = "room_release.lua";
    TRANSFER_FORGET = "transfer_forget.lua";
    TRANSFER_GIVE = "transfer_give.lua";
    TRANSFER_TAKE = "transfer_take.lua";
    TRIM = "trim.lua";
    UNLOCK = "unlock.lua";
}

impl RedisStore {
    /// Calls the reserve script; NOSCRIPT is the caller's to handle.
    pub(super) async fn call_reserve(&self, keys: Vec<String>, args: Vec<Value>) -> Result<Promised, RedisFault> {
        self.routed(&Call::Reserve, KEY, call_of("", keys, args)).await
    }

    pub(super) async fn reserve_on(&self, node: &Node, mut args: Vec<Value>) -> Result<Promised, RedisFault> {
        let script = match node.reserve() {
            Some(script) => script,
            None => self.own_reserve(node, self.life_of(node).await?.replication_id),
        };
        if let Some(sha) = args.first_mut() {
            *sha = text(&*script.sha);
        }
        let answer = self.promised_on(node, "EVALSHA", args).await;
        if matches!(answer, Err(RedisFault::NoScript)) {
            // Restarted or promoted: what it may run now shows after the boot fence.
            node.set_reserve(None);
        }
        answer
    }

    /// The reserve script for a server in this life.
    fn own_reserve(&self, node: &Node, replication_id: String) -> Arc<OwnReserve> {
        let id = (!self.router.is_single()).then_some(replication_id);
        let script = Arc::new(OwnReserve::new(self.keys.prefix(), self.outbox, id.as_deref()));
        node.set_reserve(Some(script.clone()));
        script
    }

    /// Calls a script that accepts nothing; loads it first when the server does not know it.
    pub(super) async fn script(
        &self,
        script: &'static Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        Ok(self.routed(&Call::Script(script), KEY, call_of(&script.sha, keys, args)).await?.answer)
    }

    /// Calls a script and answers only when enough replicas have what it did, and what it found done before: for what another
    /// server, or the database, takes as done from then on (windows 15 and 16). A replica that is promoted without it would
    /// undo one half.
    pub(super) async fn kept(
        &self,
        script: &'static Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        self.routed(&Call::Kept(script), KEY, call_of(&script.sha, keys, args)).await?.or_too_few()
    }

    pub(super) async fn kept_on(
        &self,
        node: &Node,
        script: &'static Script,
        args: Vec<Value>,
    ) -> Result<Promised, RedisFault> {
        for _ in 0..LOAD_TRIES {
            match self.promised_on(node, "EVALSHA", args.clone()).await {
                // As in `script_on`.
                Err(RedisFault::NoScript) => load(node, script.source).await?,
                done => return done,
            }
        }
        self.promised_on(node, "EVALSHA", args).await
    }

    /// Whether the server of a shard knows the reserve script: no restart or failover since the boot fence was passed.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn fence_was_passed(&self, shard: u16) -> Result<bool, RedisFault> {
        let node = self.node_of_shard(shard)?;
        let script = OwnReserve::new(self.keys.prefix(), self.outbox, self.promotable(&node).await?.as_deref());
        let known = list(node.command("SCRIPT", vec![text("EXISTS"), text(script.sha)]).await?)?;
        Ok(known.first().is_some_and(|known| *known == Value::Integer(1)))
    }

    async fn promotable(&self, node: &Node) -> Result<Option<String>, RedisFault> {
        if self.router.is_single() {
            return Ok(None);
        }
        Ok(Some(self.life_of(node).await?.replication_id))
    }

    /// Loads the reserve script on the server of a shard, for the life it was compared in. Only to be called after every
    /// live sale passed the boot fence there.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn load_reserve_after_fence(&self, shard: u16, life: &Life) -> Result<(), RedisFault> {
        let node = self.node_of_shard(shard)?;
        let script = self.own_reserve(&node, life.replication_id.clone());
        load(&node, &script.source).await
    }

    /// Empties the servers' script caches, as a restart does. For tests of the fence.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn flush_scripts(&self) -> Result<(), RedisFault> {
        for node in self.router.primaries() {
            node.command("SCRIPT", vec![text("FLUSH")]).await?;
        }
        Ok(())
    }
}

/// Calls a script that accepts nothing on one server; loads it first when it does not know it.
pub(super) async fn script_on(node: &Node, script: &Script, args: Vec<Value>) -> Result<Value, RedisFault> {
    for _ in 0..LOAD_TRIES {
        match node.command("EVALSHA", args.clone()).await {
            // It did not run, so loading and calling again is not a repeat.
            Err(RedisFault::NoScript) => load(node, script.source).await?,
            done => return done,
        }
    }
    node.command("EVALSHA", args).await
}

async fn load(node: &Node, source: &str) -> Result<(), RedisFault> {
    node.command("SCRIPT", vec![text("LOAD"), text(source)]).await.map(|_sha| ())
}

/// Where the first key stands in the arguments of EVALSHA.
const KEY: usize = 2;

/// The arguments of EVALSHA.
fn call_of(sha: &str, keys: Vec<String>, args: Vec<Value>) -> Vec<Value> {
    let mut all = Vec::with_capacity(2 + keys.len() + args.len());
    all.push(text(sha));
    all.push(Value::Integer(i64::try_from(keys.len()).unwrap_or(0)));
    all.extend(keys.into_iter().map(text));
    all.extend(args);
    all
}

#[cfg(test)]
mod tests {
    use super::{KIND, LEFT_OUT, OwnReserve, RESERVE};
    use crate::config::Outbox;

    #[test]
    fn what_can_be_left_out_is_in_the_script_once() {
        for (mechanism, line, _) in LEFT_OUT {
            assert_eq!(RESERVE.source.matches(line).count(), 1, "{mechanism:?}");
        }
    }

    #[test]
    fn the_kind_of_outbox_is_one_line_and_another_script() {
        assert_eq!(RESERVE.source.matches(KIND).count(), 1);
        let [stream, list] = [Outbox::Stream, Outbox::List].map(|kind| OwnReserve::new("p", kind, None));
        assert!(list.source.contains("local OUTBOX = 'list'") && stream.sha != list.sha);
    }
}
