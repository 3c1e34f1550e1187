//! How to reach the broker and how to lay out the topology. Plain values; read from files elsewhere, checked here.

use super::error::RabbitError;
use crate::config::QueueType;
use crate::store::address_in_use::AddressInUse;
use crate::store::tls::Trust;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::sync::Arc;
use url::Url;

/// Everything this store needs to know.
#[derive(Clone)]
pub struct RabbitConfig {
    /// `amqp://user:password@host:port/vhost`; the vhost is percent-encoded, none means `/`. With `amqps://` there is `trust`.
    /// Several are the nodes of one cluster.
    pub urls: Vec<String>,
    /// Which of them is in use; clones share it.
    pub in_use: AddressInUse,
    /// Certificates, for `amqps://`.
    pub trust: Option<Arc<Trust>>,
    /// First part of every name in the broker, 1 to 64 of `[A-Za-z0-9._-]`.
    pub prefix: String,
    /// Kind of the queues.
    pub queue_type: QueueType,
    /// Number of order queues, 1 to 256. Lowering it leaves the upper ones without a consumer: drain them first.
    pub queues: u16,
    /// Whether connections declare missing queues and exchanges; else they only check that these exist.
    pub declare: bool,
    /// Heartbeat in seconds, 2 to 60. A dead peer is noticed after twice this time.
    pub heartbeat_s: u16,
    /// Longest wait for a connection, and for each declaration on it, in milliseconds.
    pub connect_timeout_ms: u64,
    /// Longest wait for any other single call, in milliseconds.
    pub op_timeout_ms: u64,
    /// Wait before the second attempt, in milliseconds; it doubles with every further attempt.
    pub retry_delay_ms: u64,
    /// Longest wait between two attempts, in milliseconds, at most a day.
    pub retry_delay_max_ms: u64,
}

/// Most retry queues: one for each doubling of the delay.
pub(super) const RETRY_QUEUES_MAX: usize = 16;
const DAY_MS: u64 = 86_400_000;

impl RabbitConfig {
    /// The waits between attempts: the first wait, doubled until the longest.
    pub(super) fn retry_delays_ms(&self) -> Vec<u64> {
        let longest = self.retry_delay_max_ms;
        let mut delays: Vec<u64> = std::iter::successors(Some(self.retry_delay_ms.max(1)), |ms| ms.checked_mul(2))
            .take_while(|ms| *ms < longest)
            .collect();
        delays.push(longest);
        delays
    }

    /// The usual settings for the broker at `url`.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self::of_nodes(vec![url.into()])
    }

    /// The usual settings for a cluster with nodes at `urls`.
    #[must_use]
    pub fn of_nodes(urls: Vec<String>) -> Self {
        Self {
            in_use: AddressInUse::first_of(urls.len()),
            urls,
            trust: None,
            prefix: "seckill".to_owned(),
            queue_type: QueueType::Quorum,
            queues: 1,
            declare: true,
            heartbeat_s: 4,
            connect_timeout_ms: 5_000,
            op_timeout_ms: 2_000,
            retry_delay_ms: 5_000,
            retry_delay_max_ms: 300_000,
        }
    }

    /// Host and port of each node, without passwords.
    pub(super) fn addresses(&self) -> String {
        let shown =
            |url: &String| BrokerAddress::parse(url).map_or_else(|_| "unreadable".to_owned(), |a| a.host_and_port());
        self.urls.iter().map(shown).collect::<Vec<_>>().join(", ")
    }

    /// Checks every value against its bounds; [`super::declare()`] and the `connect` functions do it first.
    pub(crate) fn check(&self) -> Result<(), RabbitError> {
        for url in &self.urls {
            if BrokerAddress::parse(url)?.encrypted != self.trust.is_some() {
                let problem = "needs certificates with amqps://, and only then".to_owned();
                return Err(RabbitError::Config { key: "rabbitmq.url", problem });
            }
        }
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let delays = self.retry_delays_ms();
        let rules: [(&'static str, bool, String); 7] = [
            (
                "rabbitmq.prefix",
                (1..=64).contains(&self.prefix.len()) && self.prefix.bytes().all(plain),
                "must be 1 to 64 of A-Z a-z 0-9 . _ -".to_owned(),
            ),
            ("rabbitmq.queues", (1..=256).contains(&self.queues), "must be 1 to 256".to_owned()),
            ("rabbitmq.heartbeat_s", (2..=60).contains(&self.heartbeat_s), "must be 2 to 60".to_owned()),
            ("rabbitmq.connect_timeout_ms", (100..=60_000).contains(&self.connect_timeout_ms), between(100, 60_000)),
            ("rabbitmq.op_timeout_ms", (100..=60_000).contains(&self.op_timeout_ms), between(100, 60_000)),
            ("p4_persist.retry_delay_ms", (10..=DAY_MS).contains(&self.retry_delay_ms), between(10, DAY_MS)),
            (
                "p4_persist.retry_delay_max_ms",
                (self.retry_delay_ms..=DAY_MS).contains(&self.retry_delay_max_ms) && delays.len() <= RETRY_QUEUES_MAX,
                format!("must be retry_delay_ms to {DAY_MS}, and at most {RETRY_QUEUES_MAX} doublings away from it"),
            ),
        ];
        match rules.into_iter().find(|(_, holds, _)| !holds) {
            Some((key, _, problem)) => Err(RabbitError::Config { key, problem }),
            None => Ok(()),
        }
    }
}

fn between(low: u64, high: u64) -> String {
    format!("must be {low} to {high}")
}

impl fmt::Debug for RabbitConfig {
    /// Without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RabbitConfig")
            .field("addresses", &self.addresses())
            .field("prefix", &self.prefix)
            .field("queue_type", &self.queue_type)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

/// An AMQP URL taken apart. Deliberately without `Debug`: it holds the password.
pub(super) struct BrokerAddress {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) password: String,
    pub(super) vhost: String,
    pub(super) encrypted: bool,
}

impl BrokerAddress {
    pub(super) fn parse(url: &str) -> Result<Self, RabbitError> {
        let wrong = |problem: &str| RabbitError::Config { key: "rabbitmq.url", problem: problem.to_owned() };
        if !(url.starts_with("amqp://") || url.starts_with("amqps://")) {
            return Err(wrong("must start with amqp:// or amqps://"));
        }
        let parsed = Url::parse(url).map_err(|error| wrong(&format!("cannot be read: {error}")))?;
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(wrong("must not have a part after ?: use the keys of [rabbitmq] instead"));
        }
        let encrypted = parsed.scheme() == "amqps";
        let host = parsed.host_str().filter(|host| !host.is_empty()).ok_or_else(|| wrong("has no host"))?;
        let (user, password) = match (parsed.username(), parsed.password()) {
            ("", None) => ("guest", "guest"),
            (user, password) => (user, password.unwrap_or_default()),
        };
        let vhost = parsed.path().strip_prefix('/').unwrap_or_default();
        let decode = |part: &str, what: &str| match percent_decode_str(part).decode_utf8() {
            // Short strings of the protocol end at 255 bytes, and the library panics on longer ones.
            Ok(text) if text.len() <= 255 => Ok(text.into_owned()),
            Ok(_) | Err(_) => Err(wrong(&format!("has a {what} that is not UTF-8 of at most 255 bytes"))),
        };
        Ok(Self {
            host: host.to_owned(),
            port: parsed.port().unwrap_or(if encrypted { 5671 } else { 5672 }),
            user: decode(user, "user")?,
            password: decode(password, "password")?,
            vhost: if vhost.is_empty() { "/".to_owned() } else { decode(vhost, "vhost")? },
            encrypted,
        })
    }

    /// Where the broker is, fit for an error message.
    pub(super) fn host_and_port(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart_and_decoded() {
        let a = BrokerAddress::parse("amqp://me:p%40ss@broker.example:5673/%2Fshop").unwrap();
        assert_eq!((a.host.as_str(), a.port), ("broker.example", 5673));
        assert_eq!((a.user.as_str(), a.password.as_str(), a.vhost.as_str()), ("me", "p@ss", "/shop"));
        let a = BrokerAddress::parse("amqp://[::1]").unwrap();
        assert_eq!((a.host_and_port().as_str(), a.user.as_str(), a.vhost.as_str()), ("[::1]:5672", "guest", "/"));
        assert_eq!(BrokerAddress::parse("amqp://h/").unwrap().vhost, "/");
        let a = BrokerAddress::parse("amqps://h").unwrap();
        assert!(a.encrypted && a.port == 5671);
        for bad in ["", "http://h", "amqpss://h", "amqp://:1", "amqp://h:x", "amqp://h?heartbeat=1", "amqp://h/%ff"] {
            assert!(matches!(BrokerAddress::parse(bad), Err(RabbitError::Config { key: "rabbitmq.url", .. })), "{bad}");
        }
    }

    #[test]
    fn settings_that_cannot_work_are_named() {
        let good = RabbitConfig::new("amqp://h");
        assert_eq!(good.check(), Ok(()));
        assert!(RabbitConfig::new("amqps://h").check().is_err(), "not without certificates");
        let key = |config: RabbitConfig| match config.check() {
            Err(RabbitError::Config { key, .. }) => key,
            other => panic!("expected a config error, got {other:?}"),
        };
        assert_eq!(key(RabbitConfig { heartbeat_s: 1, ..good.clone() }), "rabbitmq.heartbeat_s");
        assert_eq!(key(RabbitConfig { queues: 0, ..good.clone() }), "rabbitmq.queues");
        assert_eq!(key(RabbitConfig { prefix: "a b".to_owned(), ..good.clone() }), "rabbitmq.prefix");
        assert_eq!(key(RabbitConfig { retry_delay_max_ms: 1, ..good.clone() }), "p4_persist.retry_delay_max_ms");
        let steps = RabbitConfig { retry_delay_ms: 10, retry_delay_max_ms: DAY_MS, ..good };
        assert_eq!(key(steps), "p4_persist.retry_delay_max_ms");
    }

    #[test]
    fn neither_debug_nor_an_error_shows_the_password() {
        let config = RabbitConfig::new("amqp://me:hunter2@h:99999/v");
        let shown = format!("{config:?} {}", config.check().unwrap_err());
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
