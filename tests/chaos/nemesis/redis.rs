//! Faults inside Redis: what an operator, a full memory or a broken script cache does to it.

use super::{Field, Outcome};
use crate::deployment::PREFIX;
use crate::raw_commands::try_redis;
use crate::time::{pause, time_passes};
use seckill::dev::ServerKind;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// One command; a frozen server does not answer at all.
const ANSWER: Duration = Duration::from_secs(3);
const GROUP: &str = "relay";

impl Field {
    /// One command, past the proxies.
    pub(super) async fn redis(&self, command: &[&str]) -> Result<Value, String> {
        let asked = timeout(ANSWER, try_redis(&self.deployment.urls().redis, command)).await;
        asked.map_err(|_late| "no answer".to_owned())?.map_err(|error| error.to_string())
    }

    /// Writes are refused for a while (noeviction).
    pub(super) async fn redis_full(&self, length_ms: u64) -> Outcome {
        let done = self.redis(&["CONFIG", "SET", "maxmemory", "1000"]).await;
        time_passes(length_ms).await;
        self.enough_memory().await;
        done.into()
    }

    /// A consumer is forgotten with what it holds: in the stream, in no pending list (window 30).
    pub(super) async fn forget_consumer(&self, length_ms: u64) -> Outcome {
        let of_stream = |key: &str, _: &str, consumer: &str| ["XGROUP DELCONSUMER", key, GROUP, consumer].join(" ");
        self.when_pending(length_ms, of_stream, |shard, relay| format!("HDEL {shard}:hands {relay}")).await
    }

    /// An entry goes while a relay holds it (window 31).
    pub(super) async fn delete_entry(&self, length_ms: u64) -> Outcome {
        let of_stream = |key: &str, id: &str, _: &str| ["XDEL", key, id].join(" ");
        self.when_pending(length_ms, of_stream, |shard, relay| format!("LPOP {shard}:processing:{relay}")).await
    }

    pub(super) async fn enough_memory(&self) {
        // A killed server comes back with its own setting.
        self.undo(ServerKind::Redis, || self.redis(&["CONFIG", "SET", "maxmemory", "0"])).await;
    }

    /// Sends a command made from an entry's key, id and holder, or, with a list outbox, from a holder; an entry, or a number
    /// above 0, says that it hit something.
    async fn when_pending(
        &self,
        length_ms: u64,
        of_stream: fn(&str, &str, &str) -> String,
        of_list: fn(&str, &str) -> String,
    ) -> Outcome {
        let (shard, begun) = (format!("{PREFIX}:{{0}}"), Instant::now());
        let (key, hands) = (format!("{shard}:outbox"), format!("{shard}:hands"));
        while begun.elapsed() < Duration::from_millis(length_ms) {
            let pending = self.redis(&["XPENDING", &key, GROUP, "-", "+", "1"]).await.unwrap_or_default();
            let relays = self.redis(&["HKEYS", &hands]).await.unwrap_or_default();
            let command = match (pending[0][0].as_str(), pending[0][1].as_str(), relays[0].as_str()) {
                (Some(id), Some(consumer), _) => Some(of_stream(&key, id, consumer)),
                (_, _, relay) => relay.map(|relay| of_list(&shard, relay)),
            };
            if let Some(command) = command {
                match self.redis(&command.split(' ').collect::<Vec<_>>()).await {
                    Ok(hit) if hit.is_string() || hit.as_i64().is_some_and(|count| count > 0) => {
                        return Outcome::of(true);
                    }
                    Ok(_) => {}
                    Err(error) => return Outcome { injected: false, note: Some(error) },
                }
            }
            pause().await;
        }
        Outcome { injected: false, note: Some("nothing was pending".to_owned()) }
    }
}
