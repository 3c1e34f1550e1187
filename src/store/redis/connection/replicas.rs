//! Answers that count only when enough replicas have the data (`redis.wait_replicas`, windows 15 and 16).
//!
//! `WAIT` counts for the connection it is sent on: it says how many replicas have what that connection has written. So the
//! command and its WAIT are sent together. The connection gets a name before and its name is read after: another name means
//! that it was rebuilt in between, perhaps to another server, and then the count says nothing. This connection is separate,
//! because WAIT blocks it.
//!
//! A command that only reads gets a write to wait for: since Redis 7.2 WAIT counts the connection's own writes only, and in a
//! Cluster PUBLISH is none. PEXPIRE of an own key is always one, and a Redis without memory takes it; SET makes the key when it
//! is missing. Not written means not replicated.

use super::fault::RedisFault;
use super::link::RedisLink;
use super::values::{integer, text};
use crate::config::Redis;
use crate::store::redis::keys::Keys;
use fred::types::Value;

/// A replica that was silent for longer does not count as connected, seconds; Redis' own `min-replicas-max-lag`.
const LAG_MAX_S: u64 = 10;
/// An unused barrier key leaves after a week, milliseconds; longer than an outage in which Redis has no memory for a new one.
const KEY_TTL_MS: u64 = 604_800_000;

/// The connection for commands that have to be on replicas, and the number of replicas.
pub(super) struct ReplicationBarrier {
    pub(super) link: RedisLink,
    replicas: u16,
    timeout_ms: u64,
    keys: Keys,
}

/// An answer, and whether enough replicas have everything that it says.
pub(in crate::store::redis) struct Replicated {
    pub(in crate::store::redis) answer: Value,
    pub(in crate::store::redis) replicated: bool,
}

impl Replicated {
    /// The answer; a fault when too few replicas have it: nothing may be built on it.
    pub(in crate::store::redis) fn or_too_few(self) -> Result<Value, RedisFault> {
        if self.replicated {
            return Ok(self.answer);
        }
        Err(RedisFault::Unknown("it is on too few replicas to go on with".to_owned()))
    }
}

impl ReplicationBarrier {
    pub(super) fn new(link: RedisLink, settings: &Redis) -> Self {
        Self {
            link,
            replicas: settings.wait_replicas,
            timeout_ms: settings.wait_timeout_ms,
            keys: Keys::new(settings.prefix.clone()),
        }
    }

    /// Sends one command; `key_at` is the position of its key among the arguments.
    pub(super) async fn send(
        &self,
        name: &'static str,
        key_at: usize,
        args: Vec<Value>,
    ) -> Result<Replicated, RedisFault> {
        if !self.link.is_connected() {
            return Err(RedisFault::NotSent("no connection".to_owned()));
        }
        let connection = format!("seckill-{:016x}", rand::random::<u64>());
        let wait = [self.replicas.to_string(), self.timeout_ms.to_string()].map(text).to_vec();
        let key = self.keys.barrier(&args.get(key_at).and_then(Value::as_string).unwrap_or_default());
        let steps = [
            ("CLIENT", vec![text("SETNAME"), text(connection.as_str())]),
            (name, args),
            ("SET", vec![text(key.as_str()), text(""), text("NX")]),
            ("PEXPIRE", vec![text(key), text(KEY_TTL_MS.to_string())]),
            ("WAIT", wait),
            ("CLIENT", vec![text("GETNAME")]),
        ];
        let answers: [_; 6] = match self.link.pipeline(steps).await?.try_into() {
            Ok(answers) => answers,
            // One error for all of them.
            Err(few) => {
                let error = few.into_iter().find_map(Result::err);
                return Err(error.unwrap_or_else(|| RedisFault::Unknown("fewer answers than commands".to_owned())));
            }
        };
        let [_named, answer, _made, written, waited, name_now] = answers;
        let written = written.ok().and_then(|count| integer(&count).ok()) == Some(1);
        let count = waited.ok().and_then(|count| integer(&count).ok()).unwrap_or(0);
        let same = name_now.is_ok_and(|name| name.as_string().as_deref() == Some(connection.as_str()));
        Ok(Replicated { answer: answer?, replicated: same && written && count >= i64::from(self.replicas) })
    }
}

/// Replicas that are connected and have answered lately, of an answer of `INFO replication`.
pub(in crate::store::redis) fn good_replicas(info: &str) -> u16 {
    u16::try_from(info.lines().filter(|line| is_good_replica(line)).count()).unwrap_or(u16::MAX)
}

/// Reads a line such as `slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1`.
fn is_good_replica(line: &str) -> bool {
    let Some((name, fields)) = line.trim().split_once(':') else { return false };
    let field = |wanted: &str| fields.split(',').find_map(|field| field.strip_prefix(wanted)?.strip_prefix('='));
    let number = name.strip_prefix("slave").unwrap_or("");
    !number.is_empty()
        && number.bytes().all(|b| b.is_ascii_digit())
        && field("state") == Some("online")
        && field("lag").and_then(|lag| lag.parse::<u64>().ok()).is_some_and(|lag| lag <= LAG_MAX_S)
}

#[cfg(test)]
mod tests {
    use super::is_good_replica;

    #[test]
    fn only_replicas_that_keep_up_count() {
        assert!(is_good_replica("slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1\r"));
        assert!(!is_good_replica("slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=11"));
        assert!(!is_good_replica("slave1:ip=127.0.0.1,port=6380,state=wait_bgsave,offset=0,lag=0"));
        assert!(!is_good_replica("slave_read_only:1") && !is_good_replica("connected_slaves:1"));
    }
}
