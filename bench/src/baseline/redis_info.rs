//! How much memory and how big a file the servers have, and how much they did, for the benchmark.

use fred::types::Value;
use seckill::store::redis::{RedisFault, RedisStore};

/// `used_memory` of the servers, bytes: everything they have allocated, buffers of their connections included.
///
/// # Errors
/// [`RedisFault`] when one is unavailable, `Contract` when the field is missing.
pub async fn used_memory_bytes(store: &RedisStore) -> Result<u64, RedisFault> {
    sum(store, "memory", &["used_memory"]).await
}

/// Keys that the servers have removed and whose memory they are still giving back, beside their other work: a hash of a
/// million fields takes them a second.
///
/// # Errors
/// As [`used_memory_bytes`].
pub async fn lazyfree_pending_count(store: &RedisStore) -> Result<u64, RedisFault> {
    sum(store, "memory", &["lazyfree_pending_objects"]).await
}

/// Commands that the servers have carried out since they started, those of scripts included.
///
/// # Errors
/// As [`used_memory_bytes`].
pub async fn commands_count(store: &RedisStore) -> Result<u64, RedisFault> {
    sum(store, "stats", &["total_commands_processed"]).await
}

/// Size of the servers' append-only files, bytes.
///
/// # Errors
/// As [`used_memory_bytes`]; a server without such a file has no such field.
pub async fn file_bytes(store: &RedisStore) -> Result<u64, RedisFault> {
    sum(store, "persistence", &["aof_current_size"]).await
}

/// Starts a rewrite of every server's append-only file; does not wait for its end.
///
/// # Errors
/// [`RedisFault`] when one is unavailable or refuses, as during a rewrite.
pub async fn rewrite_file(store: &RedisStore) -> Result<(), RedisFault> {
    store.command_on_every_server("BGREWRITEAOF", &[]).await?;
    Ok(())
}

/// Servers whose rewrite is running or scheduled.
///
/// # Errors
/// As [`used_memory_bytes`].
pub async fn file_rewrites_count(store: &RedisStore) -> Result<u64, RedisFault> {
    sum(store, "persistence", &["aof_rewrite_in_progress", "aof_rewrite_scheduled"]).await
}

/// The sum of fields of a section of `INFO` over the servers.
async fn sum(store: &RedisStore, section: &'static str, names: &[&str]) -> Result<u64, RedisFault> {
    let mut sum = 0;
    for info in store.command_on_every_server("INFO", &[Value::String(section.into())]).await? {
        let info = info.as_string().unwrap_or_default();
        for name in names {
            let missing = || RedisFault::Contract(format!("INFO {section} has no {name}"));
            sum += field(&info, name).ok_or_else(missing)?;
        }
    }
    Ok(sum)
}

fn field(info: &str, name: &str) -> Option<u64> {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().parse().ok()
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
