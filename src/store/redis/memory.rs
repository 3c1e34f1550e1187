//! How much memory the server uses, for the benchmark.

use super::client::{RedisStore, text};
use super::fault::RedisFault;

impl RedisStore {
    /// `used_memory` of the servers, bytes: everything they have allocated, buffers of their connections included.
    ///
    /// # Errors
    /// [`RedisFault`] when one is away, `Contract` when the field is missing.
    pub async fn used_memory_bytes(&self) -> Result<u64, RedisFault> {
        self.memory("used_memory").await
    }

    /// Keys that the servers have removed and whose memory they are still giving back, beside their other work: a hash of a
    /// million fields takes them a second.
    ///
    /// # Errors
    /// As [`RedisStore::used_memory_bytes`].
    pub async fn lazyfree_pending_count(&self) -> Result<u64, RedisFault> {
        self.memory("lazyfree_pending_objects").await
    }

    /// The sum of a field of `INFO memory` over the servers.
    async fn memory(&self, name: &str) -> Result<u64, RedisFault> {
        let mut sum = 0;
        for node in self.router.primaries() {
            let info = node.command("INFO", vec![text("memory")]).await?.as_string().unwrap_or_default();
            sum += field(&info, name).ok_or_else(|| RedisFault::Contract(format!("INFO memory has no {name}")))?;
        }
        Ok(sum)
    }
}

fn field(info: &str, name: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?.trim().parse().ok()
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
