//! What a textbook system could do on the same Redis: `redis-benchmark` driving one bare purchase script, or one plain `SET`, one
//! request a round trip. Same server, same durability; no HTTP, no access token, no ledger, no limits.

use seckill::dev::{ServerKind, server_program};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// Stock, buyer once, stream entry: the least that could be called a purchase. 1: accepted; 0: sold out; -1: this buyer has one.
pub(super) const BARE: &str = "\
local left = tonumber(redis.call('GET', KEYS[1]))
if not left or left < 1 then return 0 end
if redis.call('HSETNX', KEYS[2], ARGV[1], 1) == 0 then return -1 end
redis.call('DECR', KEYS[1])
redis.call('XADD', KEYS[3], '*', 'r', ARGV[2], 's', 'bench', 'p', ARGV[3])
return 1";
/// As long as a real message.
const PAYLOAD: &str = r#"{"v":1,"rid":"7390817262993408","sale":"bench","user":"buyer-00000001","qty":1,"shard":0,"epoch":1,"no":100000,"at":1763720000123}"#;
/// Stock, buyers, entries.
pub(super) const KEYS: [&str; 3] =
    ["seckill-bench-bare:{0}:stock", "seckill-bench-bare:{0}:buyers", "seckill-bench-bare:{0}:outbox"];
/// What `SET` writes again and again, so that memory does not grow: the message.
const SET_KEY: &str = "seckill-bench-bare:{0}:set";
/// Longest run of one tool.
const DEADLINE: Duration = Duration::from_secs(60);

/// The bare script in a Redis, with its keys; measured in several goes.
pub struct BareScript {
    host: String,
    port: String,
    sha: String,
}

impl BareScript {
    /// Puts the script and its stock there.
    ///
    /// # Errors
    /// Why it cannot be measured here, for people.
    pub async fn load(redis_url: &str) -> Result<Self, String> {
        let (host, port) =
            plain_address(redis_url).ok_or("baseline only for a redis without password, at redis://host:port")?;
        let mut script = Self { host: host.to_owned(), port: port.to_owned(), sha: String::new() };
        script.unlink().await?;
        script.cli(&["SET", KEYS[0], "1000000000"]).await?;
        script.sha = script.cli(&["SCRIPT", "LOAD", BARE]).await?.trim().to_owned();
        Ok(script)
    }

    /// Purchases a second, `count` of them. Takes its keys away when that is unknown.
    ///
    /// # Errors
    /// As of [`Self::load`].
    pub async fn purchases(&self, connections: u32, count: u64) -> Result<f64, String> {
        let script =
            ["EVALSHA", &self.sha, "3", KEYS[0], KEYS[1], KEYS[2], "buyer-__rand_int__", "__rand_int__", PAYLOAD];
        self.benchmark(connections, count, &script).await
    }

    /// `SET`s a second, `count` of them, of one key to a value as long as a message: the least that Redis does for any write.
    ///
    /// # Errors
    /// As of [`Self::load`].
    pub async fn sets(&self, connections: u32, count: u64) -> Result<f64, String> {
        self.benchmark(connections, count, &["SET", SET_KEY, PAYLOAD]).await
    }

    async fn benchmark(&self, connections: u32, count: u64, command: &[&str]) -> Result<f64, String> {
        let (connections, count) = (connections.to_string(), count.to_string());
        let load = ["-P", "1", "-c", &connections, "-n", &count, "-r", "1000000000000", "--csv"];
        let output = tool("redis-benchmark", &self.at(), &[&load[..], command].concat()).await;
        let unknown = || "redis-benchmark answered in an unknown form".to_owned();
        let measured = output.and_then(|output| rate(&output).ok_or_else(unknown));
        if measured.is_err() {
            self.unlink().await?;
        }
        measured
    }

    /// Takes its keys away.
    ///
    /// # Errors
    /// As of [`Self::load`].
    pub async fn unlink(&self) -> Result<(), String> {
        self.cli(&[&["UNLINK", SET_KEY][..], &KEYS].concat()).await.map(drop)
    }

    fn at(&self) -> [&str; 4] {
        ["-h", &self.host, "-p", &self.port]
    }

    async fn cli(&self, command: &[&str]) -> Result<String, String> {
        tool("redis-cli", &self.at(), command).await
    }
}

fn plain_address(url: &str) -> Option<(&str, &str)> {
    let authority = url.strip_prefix("redis://")?.split('/').next()?;
    if authority.contains('@') { None } else { authority.rsplit_once(':') }
}

async fn tool(name: &'static str, at: &[&str], arguments: &[&str]) -> Result<String, String> {
    let program = server_program(ServerKind::Redis, name).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.args(at).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    match tokio::time::timeout(DEADLINE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Ok(Ok(output)) => Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Ok(Err(error)) => Err(format!("{name} cannot be started ({error}); install redis-tools")),
        Err(_) => Err(format!("{name} took longer than {} s", DEADLINE.as_secs())),
    }
}

/// The second column of the last line: `"EVALSHA …","58823.53","0.9",…`. The command's text has quotes and commas of its
/// own, so it is read from the end of the text.
fn rate(csv: &str) -> Option<f64> {
    let line = csv.lines().rfind(|line| !line.trim().is_empty())?;
    let columns: Vec<&str> = line.trim().trim_matches('"').split("\",\"").collect();
    // rps, avg, min, p50, p95, p99, max
    columns.iter().rev().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_read_whatever_the_command_is() {
        let csv = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n\
                   \"EVALSHA x {\"v\":1,\"rid\":\"7\"}\",\"58823.53\",\"0.9\",\"0.1\",\"0.8\",\"1.5\",\"2.0\",\"9.1\"\n";
        assert_eq!(rate(csv), Some(58_823.53));
        assert_eq!(rate(""), None);
    }

    #[test]
    fn only_plain_addresses_are_benchmarked() {
        assert_eq!(plain_address("redis://127.0.0.1:6379"), Some(("127.0.0.1", "6379")));
        assert_eq!(plain_address("redis://127.0.0.1:6379/0"), Some(("127.0.0.1", "6379")));
        assert_eq!(plain_address("redis://:secret@127.0.0.1:6379"), None);
    }
}
