//! How much memory the server uses, for the benchmark.

use super::client::{RedisStore, text};
use super::fault::RedisFault;

impl RedisStore {
    /// `used_memory` of the servers, bytes: everything they have allocated, buffers of their connections included.
    ///
    /// # Errors
    /// [`RedisFault`] when one is away, `Contract` when the field is missing.
    pub async fn used_memory_bytes(&self) -> Result<u64, RedisFault> {
        let mut bytes = 0;
        for node in self.router.primaries() {
            let info = node.command("INFO", vec![text("memory")]).await?.as_string().unwrap_or_default();
            bytes +=
                used_memory(&info).ok_or_else(|| RedisFault::Contract("INFO memory has no used_memory".to_owned()))?;
        }
        Ok(bytes)
    }
}

fn used_memory(info: &str) -> Option<u64> {
    info.lines().find_map(|line| line.strip_prefix("used_memory:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_found_by_its_whole_name() {
        assert_eq!(
            used_memory("# Memory\r\nused_memory_peak:9\r\nused_memory:1234\r\nused_memory_rss:7\r\n"),
            Some(1234)
        );
        assert_eq!(used_memory("used_memory_peak:9\r\n"), None);
    }
}
