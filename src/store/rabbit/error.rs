//! What can go wrong with the broker, in words that say what to do next. No message ever shows the password.

use crate::domain::fault::MayBeOutage;

/// What calls of this store return.
pub(super) type RabbitResult<T> = Result<T, RabbitError>;

/// Trouble with RabbitMQ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RabbitError {
    /// A setting that cannot work; names the key.
    #[error("{key} {problem}")]
    Config {
        /// The configuration key, e.g. `rabbitmq.url`.
        key: &'static str,
        /// What is wrong with its value, and what would be accepted.
        problem: String,
    },
    /// No connection; holds host and port only.
    #[error(
        "cannot connect to rabbitmq at {address}: {reason}; check that it runs, and user, password and vhost in rabbitmq.url"
    )]
    Connect {
        /// Host and port.
        address: String,
        /// The library's or the broker's words.
        reason: String,
    },
    /// The broker did not answer in time: it may be frozen, under a resource alarm or unreachable.
    #[error("rabbitmq did not answer within {limit_ms} ms: {what}")]
    Timeout {
        /// The call that was made.
        what: &'static str,
        /// How long it was waited for, in milliseconds.
        limit_ms: u64,
    },
    /// A queue or an exchange exists already, but made in another way than this build needs.
    #[error(
        "{kind} {name} exists in rabbitmq with other settings than this build needs ({reason}); \
         let it drain, delete it and start again, or choose another rabbitmq.prefix"
    )]
    Mismatch {
        /// `queue` or `exchange`.
        kind: &'static str,
        /// The name of the queue or exchange.
        name: String,
        /// The broker's words.
        reason: String,
    },
    /// A queue, or an exchange, of the topology is not there.
    #[error(
        "{queue} does not exist in rabbitmq; `seckill topology` makes it, and so does a relay or a consumer with rabbitmq.declare"
    )]
    NoQueue {
        /// The name of the queue.
        queue: String,
    },
    /// The broker refused a call.
    #[error("rabbitmq refused: {what}: {reason}")]
    Refused {
        /// The call that was made, with the name it was about.
        what: String,
        /// The broker's words.
        reason: String,
    },
    /// The connection, the channel or the consumer is gone for good: drop it and connect again.
    #[error("the connection to rabbitmq is gone: {0}")]
    Closed(String),
    /// A queue does not know its consumer any more, and the broker did not report that: drop the consumer and connect again.
    #[error("{queue} {reason}: perhaps it was deleted and declared again; consuming again over a new connection")]
    Starved {
        /// The name of the missing queue.
        queue: String,
        /// How that showed.
        reason: &'static str,
    },
    /// A delivery of an earlier connection, or one settled before. Acknowledging it could acknowledge another message.
    #[error("delivery {tag} does not belong to this connection or was settled before")]
    Stale {
        /// Its number on its own channel.
        tag: u64,
    },
    /// A message that the protocol cannot carry.
    #[error("message not sent: {field} has {bytes} bytes, at most {bytes_max} are possible")]
    TooLong {
        /// The field that is too long.
        field: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The limit in bytes.
        bytes_max: usize,
    },
}

impl MayBeOutage for RabbitError {
    fn is_outage(&self) -> bool {
        match self {
            Self::Connect { .. } | Self::Timeout { .. } | Self::Closed(_) | Self::NoQueue { .. } => true,
            Self::Config { .. }
            | Self::Mismatch { .. }
            | Self::Refused { .. }
            | Self::Starved { .. }
            | Self::Stale { .. }
            | Self::TooLong { .. } => false,
        }
    }
}

/// The broker's words, and the number before them, out of the library's dump of a refusal at the opening of a connection; the text
/// as it stands when there are none in it.
pub(super) fn broker_words(text: &str) -> String {
    let behind = |mark: &str| text.split_once(mark).map(|(_, rest)| rest);
    let code: String = behind("reply_code: ").unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    // A short string is dumped as `ShortStr(length, "text")`, in some builds as `"text"`.
    let quoted =
        behind("reply_text: ").and_then(|rest| rest.split_once('"')).and_then(|(_, rest)| rest.split_once('"'));
    match quoted {
        Some((words, _)) if !words.is_empty() => format!("the broker refused: {words} ({code})"),
        Some(_) | None => text.to_owned(),
    }
}

impl RabbitError {
    /// A task of ours in which the client library panicked, or which the runtime's end took away.
    pub(crate) fn library_failed(join: &tokio::task::JoinError) -> Self {
        Self::Closed(format!("the client library failed: {join}"))
    }
}

#[cfg(test)]
mod tests {
    use super::broker_words;

    #[test]
    fn a_refusal_at_the_opening_is_read_out_of_the_librarys_dump() {
        let dump = "AMQP connection open error: failed to open connection, reason: Close(MethodHeader { class_id: 10, method_id: 50 }, \
                    Close { reply_code: 530, reply_text: ShortStr(70, \"NOT_ALLOWED - access to vhost 'x' refused for user 'guest': \
                    connection limit (2) is reached\"), class_id: 10, method_id: 40 })";
        assert_eq!(
            broker_words(dump),
            "the broker refused: NOT_ALLOWED - access to vhost 'x' refused for user 'guest': connection limit (2) is reached (530)"
        );
        for other in ["connection refused", "reply_code: 1, reply_text: none"] {
            assert_eq!(broker_words(other), other);
        }
    }
}
