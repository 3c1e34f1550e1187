//! How much memory and how big a file the servers have, for the benchmark.

use super::RedisStore;
use super::connection::{RedisFault, text, value_in};

impl RedisStore {
    /// `used_memory` of the servers, bytes: everything they have allocated, buffers of their connections included.
    ///
    /// # Errors
    /// [`RedisFault`] when one is away, `Contract` when the field is missing.
    pub async fn used_memory_bytes(&self) -> Result<u64, RedisFault> {
        self.sum("memory", &["used_memory"]).await
    }

    /// Keys that the servers have removed and whose memory they are still giving back, beside their other work: a hash of a
    /// million fields takes them a second.
    ///
    /// # Errors
    /// As [`RedisStore::used_memory_bytes`].
    pub async fn lazyfree_pending_count(&self) -> Result<u64, RedisFault> {
        self.sum("memory", &["lazyfree_pending_objects"]).await
    }

    /// Size of the servers' append-only files, bytes.
    ///
    /// # Errors
    /// As [`RedisStore::used_memory_bytes`]; a server without such a file has no such field.
    pub async fn file_bytes(&self) -> Result<u64, RedisFault> {
        self.sum("persistence", &["aof_current_size"]).await
    }

    /// Makes every server write its append-only file anew, beside its other work; not waited for.
    ///
    /// # Errors
    /// [`RedisFault`] when one is away or refuses, as while it does so already.
    pub async fn rewrite_file(&self) -> Result<(), RedisFault> {
        for node in self.keyspace.connection.primaries() {
            node.command("BGREWRITEAOF", vec![]).await?;
        }
        Ok(())
    }

    /// Servers that write their files anew, or are about to.
    ///
    /// # Errors
    /// As [`RedisStore::used_memory_bytes`].
    pub async fn file_rewrites_count(&self) -> Result<u64, RedisFault> {
        self.sum("persistence", &["aof_rewrite_in_progress", "aof_rewrite_scheduled"]).await
    }

    /// The sum of fields of a section of `INFO` over the servers.
    async fn sum(&self, section: &'static str, names: &[&str]) -> Result<u64, RedisFault> {
        let mut sum = 0;
        for node in self.keyspace.connection.primaries() {
            let info = node.command("INFO", vec![text(section)]).await?.as_string().unwrap_or_default();
            for name in names {
                let missing = || RedisFault::Contract(format!("INFO {section} has no {name}"));
                sum += field(&info, name).ok_or_else(missing)?;
            }
        }
        Ok(sum)
    }
}

fn field(info: &str, name: &str) -> Option<u64> {
    value_in(info, name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_found_by_its_whole_name() {
        let info = "# Memory\r\nused_memory_peak:9\r\nused_memory:1234\r\nlazyfree_pending_objects:0\r\n";
        assert_eq!(["used_memory", "lazyfree_pending_objects"].map(|name| field(info, name)), [Some(1234), Some(0)]);
        assert_eq!(field("used_memory_peak:9\r\n", "used_memory"), None);
    }
}
