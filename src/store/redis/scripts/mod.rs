//! Calls of the scripts of `lua/`, by their SHA-1 only. Knows which script a server lacks, and not which server has a key.
//!
//! `EVAL` is never used: a server that restarted or was promoted has an empty script cache and answers NOSCRIPT. Scripts that
//! accept nothing are loaded then and called again. The reserve script is not (`reserve.rs`).

mod arguments;
mod registry;
mod reserve;
mod slots;

pub(super) use arguments::Arguments;
pub(super) use registry::*;
pub(super) use reserve::ReserveScripts;

use super::connection::{DoneWhen, Node, RedisConnection, RedisFault, Replicated, text};
use fred::types::Value;

/// Times a script is loaded and called again. Only another restart between the two takes a second round.
const LOAD_TRIES: u32 = 3;
/// Position of the first key in the arguments of EVALSHA.
const KEY_AT: usize = 2;

/// Calls a script on the server of its first key; loads it there first when the server does not know it.
pub(super) async fn call(
    connection: &RedisConnection,
    done_when: DoneWhen,
    script: &'static Script,
    keys: Vec<String>,
    args: Vec<Value>,
) -> Result<Replicated, RedisFault> {
    let key = keys.first().cloned().unwrap_or_default();
    let (source, sha) = script.here();
    let call = evalsha(&sha, keys, args);
    for _ in 0..LOAD_TRIES {
        match connection.send(done_when, "EVALSHA", KEY_AT, call.clone()).await {
            // It did not run, so loading and calling again is not a repeat.
            Err(RedisFault::NoScript) => load(&*connection.node_of(&key)?, &source).await?,
            done => return done,
        }
    }
    connection.send(done_when, "EVALSHA", KEY_AT, call).await
}

async fn load(node: &Node, source: &str) -> Result<(), RedisFault> {
    node.command("SCRIPT", vec![text("LOAD"), text(source)]).await.map(|_sha| ())
}

/// The arguments of EVALSHA.
fn evalsha(sha: &str, keys: Vec<String>, args: Vec<Value>) -> Vec<Value> {
    let mut all = Vec::with_capacity(2 + keys.len() + args.len());
    all.push(text(sha));
    all.push(Value::Integer(i64::try_from(keys.len()).unwrap_or(0)));
    all.extend(keys.into_iter().map(text));
    all.extend(args);
    all
}
