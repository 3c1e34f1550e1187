//! The scripts of `lua/`, called by their SHA-1 only.
//!
//! `EVAL` is never used: a server that restarted or was promoted has an empty script cache and answers NOSCRIPT, and that
//! answer is the boot fence (DESIGN 1, idea 2). Whoever gets it for `reserve` compares acceptance numbers before loading;
//! the other scripts cannot accept anything and are loaded on the spot.

use super::client::{RedisFault, RedisStore, text};
use fred::types::Value;
use fred::util::sha1_hash;
use std::sync::LazyLock;

/// One script of `lua/`.
pub(super) struct Script {
    source: &'static str,
    sha: LazyLock<String>,
}

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
    GRANT = "grant.lua";
    COUNT = "count.lua";
    SET_STATE = "set_state.lua";
    SETTLE = "settle.lua";
    RELAY_DONE = "relay_done.lua";
    RELAY_PARK = "relay_park.lua";
    RELAY_TOUCH = "relay_touch.lua";
    LEASE_NODE = "lease_node.lua";
    UNLOCK = "unlock.lua";
}

impl RedisStore {
    /// Calls a script; NOSCRIPT is the caller's to handle.
    pub(super) async fn evalsha(
        &self,
        script: &'static Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        let mut all = Vec::with_capacity(2 + keys.len() + args.len());
        all.push(text(script.sha.as_str()));
        all.push(Value::Integer(i64::try_from(keys.len()).unwrap_or(0)));
        all.extend(keys.into_iter().map(text));
        all.extend(args);
        self.command("EVALSHA", 2, all).await
    }

    /// Calls a script that accepts nothing; loads it first when the server does not know it.
    pub(super) async fn script(
        &self,
        script: &'static Script,
        keys: Vec<String>,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        match self.evalsha(script, keys.clone(), args.clone()).await {
            // It did not run, so loading and calling again is not a repeat.
            Err(RedisFault::NoScript) => {
                self.load(script).await?;
                self.evalsha(script, keys, args).await
            }
            done => done,
        }
    }

    async fn load(&self, script: &'static Script) -> Result<(), RedisFault> {
        self.command("SCRIPT", 0, vec![text("LOAD"), text(script.source)]).await.map(|_sha| ())
    }

    /// Loads the reserve script. Only to be called after every live sale passed the boot fence.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn load_reserve_after_fence(&self) -> Result<(), RedisFault> {
        self.load(&RESERVE).await
    }

    /// Empties the server's script cache, as a restart does. For tests of the fence.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away or refuses.
    pub async fn flush_scripts(&self) -> Result<(), RedisFault> {
        self.command("SCRIPT", 0, vec![text("FLUSH")]).await.map(|_ok| ())
    }
}
