//! How long Redis waited for its disk while something was measured: a latency that has such waits in it says more about the disk
//! than about the program.
//!
//! Input: an environment of ours. Output: in how many seconds Redis waited longer than it should for an fsync, and the longest
//! wait. Redis' latency monitor counts, and is off again afterwards. A crash leaves it on in a server that goes away.

use super::environment::Environment;
use fred::types::Value;
use seckill::cli::Failure;
use serde::Serialize;

/// Shorter waits are not counted, milliseconds.
const THRESHOLD_MS: i64 = 2;
/// What Redis calls an fsync before its answers.
const EVENT: &str = "aof-fsync-always";

/// The seconds with a long wait, and their longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct DiskWaits {
    seconds: usize,
    longest_ms: i64,
}

/// Starts counting. Servers that were given are left alone.
pub(super) async fn begin(environment: &Environment) -> Result<(), Failure> {
    if environment.pids().contains_key("redis") {
        set_threshold(environment, THRESHOLD_MS).await?;
        command(environment, "LATENCY", &["RESET", EVENT]).await?;
    }
    Ok(())
}

/// What was counted since; stops counting. `None` where nobody counted.
pub(super) async fn end(environment: &Environment) -> Result<Option<DiskWaits>, Failure> {
    if !environment.pids().contains_key("redis") {
        return Ok(None);
    }
    let history = command(environment, "LATENCY", &["HISTORY", EVENT]).await?;
    set_threshold(environment, 0).await?;
    Ok(Some(DiskWaits::of(&history)))
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
    pub(super) fn note(self) -> String {
        let Self { seconds, longest_ms } = self;
        if seconds == 0 {
            return String::new();
        }
        format!("; Redis waited {THRESHOLD_MS} ms or more for its disk in {seconds} seconds, at most {longest_ms} ms")
    }
}

async fn set_threshold(environment: &Environment, ms: i64) -> Result<(), Failure> {
    command(environment, "CONFIG", &["SET", "latency-monitor-threshold", &ms.to_string()]).await.map(drop)
}

async fn command(environment: &Environment, name: &'static str, args: &[&str]) -> Result<Vec<Value>, Failure> {
    let args: Vec<Value> = args.iter().map(|arg| Value::String((*arg).into())).collect();
    Ok(environment.servers.redis.command_on_every_server(name, &args).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_wait_of_all_servers_is_told() {
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
