//! May this account do all that the system does? For `seckill doctor`: every call changes nothing.
//!
//! Input: nothing. Output: the commands that Redis refuses to the account. What would have to write to be tried (HSET, INCRBY
//! and their like) is not tried; it belongs to the same category (`+@write`) as what is.

use super::connection::{Node, RedisFault, text};
use super::health::RedisHealth;
use fred::types::Value;
use std::sync::Arc;

/// Begin of Redis' answer when an account may not.
pub(super) const DENIED: &str = "NOPERM";

impl RedisHealth {
    /// Commands that the account may not use, on any of the servers.
    pub(crate) async fn refused_rights(&self) -> Result<Vec<String>, RedisFault> {
        let mut refused = Vec::new();
        for node in self.redis.connection.primaries() {
            self.try_on(&node, &mut refused).await?;
        }
        refused.sort();
        refused.dedup();
        Ok(refused)
    }

    async fn try_on(&self, node: &Arc<Node>, refused: &mut Vec<String>) -> Result<(), RedisFault> {
        let Some(key) = self.key_on(node) else { return Ok(()) };
        let key = key.as_str();
        let no_script = "0".repeat(40);
        let mut calls: Vec<(&'static str, Vec<&str>)> = vec![
            ("PING", vec![]),
            ("TIME", vec![]),
            ("INFO", vec!["server"]),
            ("CONFIG", vec!["GET", "appendonly"]),
            ("CLIENT", vec!["ID"]),
            ("HGETALL", vec![key]),
            ("XLEN", vec![key]),
            ("TYPE", vec![key]),
            ("UNLINK", vec![key]),
            ("HDEL", vec![key, "field"]),
            ("SET", vec![key, "value", "XX"]),
            ("XDEL", vec![key, "0-1"]),
            ("XADD", vec![key, "NOMKSTREAM", "*", "field", "value"]),
            ("XGROUP", vec!["DESTROY", key, "group"]),
            ("EVALSHA", vec![&no_script, "1", key]),
            ("SCRIPT", vec!["EXISTS", &no_script]),
        ];
        if self.redis.connection.wait_replicas() > 0 {
            calls.extend([("WAIT", vec!["0", "1"]), ("CLIENT", vec!["GETNAME"]), ("PEXPIRE", vec![key, "1"])]);
        }
        if !self.redis.connection.is_single() {
            calls.push(("CLUSTER", vec!["INFO"]));
        }
        for (name, args) in calls {
            let args: Vec<Value> = args.into_iter().map(text).collect();
            match node.command(name, args).await {
                Err(RedisFault::Refused(words)) if words.starts_with(DENIED) => refused.push(denied(name, &words)),
                // Refused for another reason: there is no such group, key or script. It was permitted.
                Ok(_) | Err(RedisFault::Refused(_) | RedisFault::NoScript | RedisFault::Contract(_)) => {}
                Err(away @ (RedisFault::NotSent(_) | RedisFault::Unknown(_))) => return Err(away),
            }
        }
        Ok(())
    }
}

/// The command as Redis names it in quotes; else all its words: it may be about a key.
fn denied(name: &str, words: &str) -> String {
    words.split('\'').nth(1).map_or_else(|| format!("{name} ({words})"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_denied_is_named_as_redis_names_it() {
        let command = "NOPERM this user has no permissions to run the 'config|get' command";
        assert_eq!(denied("CONFIG", command), "config|get");
        let key = "NOPERM this user has no permissions to access one of the keys used as arguments";
        assert_eq!(denied("UNLINK", key), format!("UNLINK ({key})"));
    }
}
