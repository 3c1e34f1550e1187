//! Raw dumps of the three servers, for the checker: taken past the product's own code, after the roles are quiet.
//!
//! Output: one JSON lines file per table and per kind of key, one for the queues, and one for what downstream systems got.
//! Nothing of the product is changed: what is read from its queues goes back. A server that is down fails the dump, because half a dump would prove nothing.

mod list;
mod mysql;
pub mod order_lines;
pub mod published;
mod rabbit;
mod redis;

pub use crate::support::basics::resp;
#[allow(unused_imports, reason = "each binary uses a part of it")]
pub use rabbit::readable;
use serde_json::Value;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Where the servers are.
#[derive(Debug, Clone)]
pub struct DumpUrls {
    /// `redis://host:port`; of a cluster its primaries, separated by commas.
    pub redis: String,
    /// `amqp://user:password@host:port/vhost`
    pub amqp: String,
    /// `mysql://user@host:port/database`
    pub mysql: String,
    /// Of the keys in Redis, and of the queues.
    pub prefix: String,
    /// Whether a file of Redis was damaged: then a key may have any name.
    pub damaged: bool,
}

/// Dumps everything into `dir`.
pub async fn dump(urls: &DumpUrls, dir: &Path) {
    dump_stores(urls, dir).await;
    rabbit::dump(&urls.amqp, &urls.prefix, dir).await;
}

/// The same, and what downstream systems got; for a run that [`published::listen`]s since before its first purchase.
pub async fn dump_with_published(urls: &DumpUrls, dir: &Path) {
    dump(urls, dir).await;
    published::dump(&urls.amqp, &urls.prefix, dir).await;
}

/// Dumps what the database and Redis have into `dir`; of the queues, nothing.
pub async fn dump_stores(urls: &DumpUrls, dir: &Path) {
    mysql::dump(&urls.mysql, dir).await;
    redis::dump(urls, dir).await;
}

/// One JSON lines file.
struct Lines(BufWriter<File>);

impl Lines {
    fn create(dir: &Path, name: &str) -> Self {
        Self(BufWriter::new(File::create(dir.join(format!("{name}.jsonl"))).expect("a dump's file")))
    }

    fn put(&mut self, line: &Value) {
        self.put_text(&line.to_string());
    }

    fn put_text(&mut self, line: &str) {
        writeln!(self.0, "{line}").expect("a dump's file");
    }

    fn close(mut self) {
        self.0.flush().expect("a dump's file");
    }
}
