//! How much memory the server uses, for the benchmark.

use super::client::{RedisFault, RedisStore, text};

impl RedisStore {
    /// `used_memory` of the server, bytes: everything it has allocated, buffers of its connections included.
    ///
    /// # Errors
    /// [`RedisFault`] when Redis is away, `Contract` when the field is missing.
    pub async fn used_memory_bytes(&self) -> Result<u64, RedisFault> {
        let info = self.command("INFO", 0, vec![text("memory")]).await?.as_string().unwrap_or_default();
        used_memory(&info).ok_or_else(|| RedisFault::Contract("INFO memory has no used_memory".to_owned()))
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
