//! How long Redis waited for its disk while something was measured: a latency that has such waits in it says more about the disk
//! than about the program.
//!
//! Input: a server of ours. Output: in how many seconds Redis waited longer than it should for an fsync, and the longest
//! wait. Redis' latency monitor counts, and is off again afterwards. A crash leaves it on in a server that goes away.

use fred::types::Value;
use seckill::store::redis::{RedisFault, RedisStore};
use serde::Serialize;

/// Shorter waits are not counted, milliseconds.
const THRESHOLD_MS: i64 = 2;
/// What Redis calls an fsync before its answers.
const EVENT: &str = "aof-fsync-always";

/// The seconds with a long wait, and their longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DiskWaits {
    seconds: usize,
    longest_ms: i64,
}

/// Starts counting.
///
/// # Errors
/// [`RedisFault`] when a server is unavailable.
pub async fn begin(store: &RedisStore) -> Result<(), RedisFault> {
    set_threshold(store, THRESHOLD_MS).await?;
    command(store, "LATENCY", &["RESET", EVENT]).await.map(drop)
}

/// What was counted since; stops counting.
///
/// # Errors
/// As [`begin`].
pub async fn end(store: &RedisStore) -> Result<DiskWaits, RedisFault> {
    let history = command(store, "LATENCY", &["HISTORY", EVENT]).await?;
    set_threshold(store, 0).await?;
    Ok(DiskWaits::of(&history))
}

impl DiskWaits {
    /// Of the histories of several servers: pairs of a second and its longest wait, milliseconds.
    fn of(histories: &[Value]) -> Self {
        let samples = |history: &Value| history.clone().into_array();
        let waits: Vec<i64> =
            histories.iter().flat_map(samples).filter_map(|sample| sample.into_array().get(1)?.as_i64()).collect();
        Self { seconds: waits.len(), longest_ms: waits.into_iter().max().unwrap_or(0) }
    }

    /// For people; empty without a long wait.
    #[must_use]
    pub fn note(self) -> String {
        let Self { seconds, longest_ms } = self;
        if seconds == 0 {
            return String::new();
        }
        format!("; Redis waited {THRESHOLD_MS} ms or more for its disk in {seconds} seconds, at most {longest_ms} ms")
    }
}

async fn set_threshold(store: &RedisStore, ms: i64) -> Result<(), RedisFault> {
    command(store, "CONFIG", &["SET", "latency-monitor-threshold", &ms.to_string()]).await.map(drop)
}

async fn command(store: &RedisStore, name: &'static str, args: &[&str]) -> Result<Vec<Value>, RedisFault> {
    let args: Vec<Value> = args.iter().map(|arg| Value::String((*arg).into())).collect();
    store.command_on_every_server(name, &args).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_of_all_servers_is_reported() {
        let sample = |second: i64, ms: i64| Value::Array(vec![Value::Integer(second), Value::Integer(ms)]);
        let waits = DiskWaits::of(&[
            Value::Array(vec![sample(1, 3), sample(2, 41)]),
            Value::Array(vec![]),
            Value::Array(vec![sample(2, 7)]),
        ]);
        assert_eq!(waits, DiskWaits { seconds: 3, longest_ms: 41 });
        assert!(waits.note().contains("in 3 seconds, at most 41 ms"));
        assert_eq!(DiskWaits::of(&[Value::Array(vec![])]).note(), "");
    }
}
