//! Answers that may be told only when replicas have what they are about (`redis.wait_replicas`, windows 15 and 16).
//!
//! `WAIT` counts for the connection it is sent on: it asks whether the replicas have what that connection has written. So the
//! command and its WAIT go out together, and the connection is named before and asked for its name after; another name means
//! that it was rebuilt in between, perhaps to another server, and then the count says nothing. The PUBLISH gives a command
//! that only read something to wait for. The connection is one of its own, because WAIT blocks it.

use super::client::{Call, RedisStore, integer, text};
use super::fault::RedisFault;
use super::node::Node;
use crate::config::Redis;
use fred::clients::Client;
use fred::interfaces::ClientLike;
use fred::types::{ClusterHash, CustomCommand, Value};

/// A replica that has said nothing for longer does not count as connected, seconds; Redis' own `min-replicas-max-lag`.
const LAG_MAX_S: u64 = 10;

/// The connection for what has to be on replicas, and how many.
#[derive(Clone)]
pub(super) struct Barrier {
    pub(super) client: Client,
    replicas: u16,
    timeout_ms: u64,
    channel: String,
}

/// An answer, and whether enough replicas have everything that it says.
pub(super) struct Promised {
    pub(super) answer: Value,
    pub(super) replicated: bool,
}

impl Promised {
    /// The answer, or that it cannot be built on.
    pub(super) fn or_too_few(self) -> Result<Value, RedisFault> {
        if self.replicated {
            return Ok(self.answer);
        }
        Err(RedisFault::Unknown("it is on too few replicas to go on with".to_owned()))
    }
}

impl Barrier {
    pub(super) fn new(client: Client, settings: &Redis) -> Self {
        Self {
            client,
            replicas: settings.wait_replicas,
            timeout_ms: settings.wait_timeout_ms,
            channel: format!("{}:barrier", settings.prefix),
        }
    }

    async fn run(&self, name: &'static str, args: Vec<Value>) -> Result<Promised, RedisFault> {
        if !self.client.is_connected() {
            return Err(RedisFault::NotSent("no connection".to_owned()));
        }
        let connection = format!("seckill-{:016x}", rand::random::<u64>());
        let wait = [self.replicas.to_string(), self.timeout_ms.to_string()].map(text).to_vec();
        let steps = [
            ("CLIENT", vec![text("SETNAME"), text(connection.as_str())]),
            (name, args),
            ("PUBLISH", vec![text(self.channel.as_str()), text("")]),
            ("WAIT", wait),
            ("CLIENT", vec![text("GETNAME")]),
        ];
        let pipeline = self.client.pipeline();
        for (name, args) in steps {
            let command = CustomCommand::new_static(name, ClusterHash::Custom(0), false);
            ClientLike::custom::<Value, Value>(&pipeline, command, args).await?;
        }
        let answers: [_; 5] = match pipeline.try_all::<Value>().await.try_into() {
            Ok(answers) => answers,
            // One error for all of them.
            Err(few) => {
                let error = few.into_iter().find_map(Result::err).map(RedisFault::from);
                return Err(error.unwrap_or_else(|| RedisFault::Unknown("fewer answers than commands".to_owned())));
            }
        };
        let [_named, answer, _published, waited, name_now] = answers;
        let count = waited.ok().and_then(|count| integer(&count).ok()).unwrap_or(0);
        let same = name_now.is_ok_and(|name| name.as_string().as_deref() == Some(connection.as_str()));
        Ok(Promised { answer: answer?, replicated: same && count >= i64::from(self.replicas) })
    }
}

impl RedisStore {
    /// Sends one command whose answer may be told only when enough replicas have what it wrote and what it saw. `key` is the
    /// position of the key among the arguments.
    pub(super) async fn promised(
        &self,
        name: &'static str,
        key: usize,
        args: Vec<Value>,
    ) -> Result<Promised, RedisFault> {
        self.routed(&Call::Promised(name), key, args).await
    }

    pub(super) async fn promised_on(
        &self,
        node: &Node,
        name: &'static str,
        args: Vec<Value>,
    ) -> Result<Promised, RedisFault> {
        if self.waits_for_replicas() {
            return node.barrier()?.run(name, args).await;
        }
        Ok(Promised { answer: node.command(name, args).await?, replicated: true })
    }

    /// Sends one command that hands out what was accepted. What too few replicas have stays where it is (window 15): were it
    /// an order already, a promoted replica would sell its units once more.
    pub(super) async fn handed_out(
        &self,
        name: &'static str,
        key: usize,
        args: Vec<Value>,
    ) -> Result<Value, RedisFault> {
        self.promised(name, key, args).await?.or_too_few()
    }

    /// Whether what `node` has handed out before may be sent on.
    pub(super) async fn sendable(&self, node: &Node) -> Result<(), RedisFault> {
        if !self.waits_for_replicas() {
            return Ok(());
        }
        node.barrier()?.run("PING", Vec::new()).await?.or_too_few().map(|_pong| ())
    }

    /// Whether an accept must be on replicas before it is told.
    #[must_use]
    pub fn waits_for_replicas(&self) -> bool {
        self.wait_replicas > 0
    }

    /// Replicas that are connected and have answered lately.
    pub(super) async fn replicas_of(&self, node: &Node) -> Result<u16, RedisFault> {
        let info = node.command("INFO", vec![text("replication")]).await?.as_string().unwrap_or_default();
        let count = info.lines().filter(|line| is_good_replica(line)).count();
        Ok(u16::try_from(count).unwrap_or(u16::MAX))
    }
}

/// `slave0:ip=127.0.0.1,port=6380,state=online,offset=14,lag=1`
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
