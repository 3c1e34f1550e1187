//! How a private environment is made: its program, its settings and its servers.

use super::database::DatabaseSize;
use super::hosts::Hosts;
use seckill::cli::Failure;
use seckill::config::{Layers, Settings};
use seckill::dev::{PrivateServers, ServerUrls};
use seckill::runtime::Stopper;
use std::path::{Path, PathBuf};

/// Where the api runs alone nothing is meant to land: neither the age of what waits there nor its number is an overload.
const SETTINGS: [&str; 3] = ["log.level=error", "p1_entry.lag_max_ms=0", "p1_entry.backlog_max=10000000"];

/// How a private one is made.
pub(super) struct Making<'a> {
    pub program: PathBuf,
    /// What the command line said.
    pub layers: &'a Layers,
    pub database: DatabaseSize,
    pub stop: &'a Stopper,
    /// Whether there are hosts between roles and servers that can vanish.
    pub hosts: bool,
    /// File with the key that RS256 access tokens are checked with; else they are HS256.
    pub public_key: Option<&'a Path>,
    /// Makes its secrets.
    pub secret: u128,
}

impl Making<'_> {
    /// All settings on these servers.
    pub fn layers_on(&self, urls: &ServerUrls) -> Layers {
        let secret = |name: &str| format!("bench-{name}-{:032x}", self.secret);
        let mut set = SETTINGS.map(str::to_owned).to_vec();
        set.extend(self.layers.set.iter().cloned());
        set.extend([
            format!("redis.url={}", urls.redis_url),
            format!("rabbitmq.url={}", urls.amqp_url),
            format!("mysql.url={}", urls.mysql_url),
            format!("p1_entry.token_secret={}", secret("purchase")),
        ]);
        set.extend(match self.public_key {
            Some(file) => vec!["auth.algorithm=RS256".to_owned(), format!("auth.key_file={}", file.display())],
            None => vec!["auth.algorithm=HS256".to_owned(), format!("auth.secret={}", secret("jwt"))],
        });
        let mut layers = Layers { files: self.layers.files.clone(), set };
        // Only where a file or the environment names several servers, which one more address contradicts: an older build, which is
        // measured beside this one, knows no such setting.
        if Settings::load(&layers).is_err() {
            layers.set.extend(["rabbitmq.urls=".to_owned(), "mysql.urls=".to_owned()]);
        }
        layers
    }

    pub async fn hosts_of(&self, servers: &PrivateServers) -> Result<Option<Hosts>, Failure> {
        if self.hosts { Hosts::before(servers).await.map(Some) } else { Ok(None) }
    }
}
