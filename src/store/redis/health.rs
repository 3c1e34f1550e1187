//! Settings of the server that a guarantee depends on.

use super::client::{RedisFault, RedisStore, list, optional_text, text};
use serde::Serialize;

/// One setting and whether the guarantees hold with it.
#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    /// Its name on the server.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it should be.
    pub expected: &'static str,
    /// Why.
    pub why: &'static str,
    /// Whether it is so.
    pub ok: bool,
    /// Whether the system must not serve without it (otherwise it warns loudly).
    pub required: bool,
}

const WANTED: [(&str, &str, &str, bool); 4] = [
    ("maxmemory-policy", "noeviction", "an evicted ledger or stock key is lost data", true),
    ("appendonly", "yes", "an accept must survive a restart", false),
    ("appendfsync", "always", "an accept must be on disk before the buyer hears of it", false),
    ("no-appendfsync-on-rewrite", "no", "a rewrite would silently stop the fsyncs", false),
];

impl RedisStore {
    /// Reads the settings the guarantees depend on.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away, or CONFIG is not permitted.
    pub async fn settings(&self) -> Result<Vec<Setting>, RedisFault> {
        let mut found = Vec::new();
        for (name, expected, why, required) in WANTED {
            let reply = list(self.command("CONFIG", 0, vec![text("GET"), text(name)]).await?)?;
            let value = reply.get(1).and_then(optional_text).unwrap_or_default();
            found.push(Setting { name, ok: value == expected, value, expected, why, required });
        }
        Ok(found)
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
