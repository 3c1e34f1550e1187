//! Settings of the server that a guarantee depends on.

use super::client::{RedisFault, RedisStore, list, optional_text, text};
use crate::config::Durability;
use serde::Serialize;

/// One setting and whether the guarantees hold with it.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// Its name on the server.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it should be.
    pub expected: String,
    /// Why.
    pub why: &'static str,
    /// Whether it is so.
    pub ok: bool,
    /// What it is for.
    pub weight: Weight,
    /// Whether nothing may be sold without it, as `redis.durability` has it (otherwise it is told loudly).
    pub required: bool,
}

/// What a setting that is not as expected means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The system cannot work, or loses data at once.
    Must,
    /// An accepted request can be lost.
    Promise,
    /// The promises hold, but at a price that need not be paid.
    Advice,
}

const WANTED: [(&str, &str, &str, Weight); 4] = [
    ("maxmemory-policy", "noeviction", "an evicted ledger or stock key is lost data", Weight::Must),
    ("appendonly", "yes", "an accept must survive a restart", Weight::Promise),
    ("appendfsync", "always", "an accept must be on disk before the buyer hears of it", Weight::Promise),
    ("no-appendfsync-on-rewrite", "no", "a rewrite would silently stop the fsyncs", Weight::Promise),
];
/// Asked only with `redis.wait_replicas`.
const MIN_REPLICAS: &str = "min-replicas-to-write";

impl Setting {
    /// Name, value and what was expected, for people.
    #[must_use]
    pub fn headline(&self) -> String {
        format!("{} is {}, expected {}", self.name, self.value, self.expected)
    }
}

impl RedisStore {
    /// Reads the settings the guarantees depend on; with `redis.wait_replicas` also the replicas.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away, or CONFIG is not permitted.
    pub async fn settings(&self) -> Result<Vec<Setting>, RedisFault> {
        let mut found = Vec::new();
        for (name, expected, why, weight) in WANTED {
            let value = self.config_value(name).await?;
            let required = match weight {
                Weight::Must => true,
                Weight::Promise => self.is_strict(),
                Weight::Advice => false,
            };
            found.push(Setting {
                name,
                ok: value == expected,
                value,
                expected: expected.into(),
                why,
                weight,
                required,
            });
        }
        if let Some(barrier) = &self.barrier {
            let wanted = barrier.replicas;
            let least = self.config_value(MIN_REPLICAS).await?;
            found.push(Setting {
                name: MIN_REPLICAS,
                ok: least.parse::<u16>().is_ok_and(|least| least >= wanted),
                value: least,
                expected: format!("{wanted} or more"),
                why: "without it an accept is made first and found to be on too few replicas then, and its buyer hears 504",
                weight: Weight::Advice,
                required: false,
            });
            let connected = self.replicas().await?;
            found.push(Setting {
                name: "connected replicas",
                ok: connected >= wanted,
                value: connected.to_string(),
                expected: format!("{wanted} or more"),
                why: "no accept can be told as safe before redis.wait_replicas of them have it",
                weight: Weight::Must,
                required: true,
            });
        }
        Ok(found)
    }

    async fn config_value(&self, name: &'static str) -> Result<String, RedisFault> {
        let reply = list(self.command("CONFIG", 0, vec![text("GET"), text(name)]).await?)?;
        Ok(reply.get(1).and_then(optional_text).unwrap_or_default())
    }

    /// Whether nothing may be sold while an accepted request could be lost (`redis.durability = "strict"`).
    #[must_use]
    pub fn is_strict(&self) -> bool {
        match self.durability {
            Durability::Strict => true,
            Durability::Warn => false,
        }
    }

    /// Identity of the running server process; another one means it restarted.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away.
    pub async fn run_id(&self) -> Result<String, RedisFault> {
        self.server_info("run_id").await
    }

    /// Version of the server. Compatible servers of other names tell which Redis they stand for.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away.
    pub async fn version(&self) -> Result<String, RedisFault> {
        self.server_info("redis_version").await
    }

    async fn server_info(&self, field: &str) -> Result<String, RedisFault> {
        let info = self.command("INFO", 0, vec![text("server")]).await?.as_string().unwrap_or_default();
        info.lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .map(|value| value.trim().to_owned())
            .ok_or_else(|| RedisFault::Contract(format!("INFO server has no {field}")))
    }

    /// Whether Redis answers at all.
    ///
    /// # Errors
    /// [`RedisFault`] when it does not.
    pub async fn ping(&self) -> Result<(), RedisFault> {
        self.command("PING", 0, vec![]).await.map(|_pong| ())
    }
}
