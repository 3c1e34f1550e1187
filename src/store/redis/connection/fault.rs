//! What an error of Redis says about whether the command ran.

use crate::config::RedisMode;
use crate::domain::fault::MayBeOutage;
use fred::error::{Error, ErrorKind};

/// Codes of errors with which fred ends a connection. Every command under way gets the same error then, whether it ran or not.
const ENDS_ANY: [&str; 3] = ["CLUSTERDOWN", "NOAUTH", "WRONGPASS"];
/// The same where the address may belong to another server by now: there also [`RECONNECT_CODES`] end a connection.
const ENDS_SINGLE: [&str; 6] = ["CLUSTERDOWN", "NOAUTH", "WRONGPASS", "MASTERDOWN", "READONLY", "LOADING"];
/// After these the connection is made anew where it would not be by itself.
pub(super) const RECONNECT_CODES: [&str; 3] = ["MASTERDOWN", "READONLY", "LOADING"];
/// Codes of a server that refuses more than this command: it takes no writes now, or is busy, full, or another one by now.
const REFUSES_ALL: [&str; 11] = [
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOAUTH",
    "NOREPLICAS",
    "OOM",
    "READONLY",
    "WRONGPASS",
];
/// fred's words for a command that was not written, because there was no connection to write it to.
const NOT_ROUTED: &str = "Failed to route command.";

/// Why a command has no answer. The variants differ in what they mean for the data.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RedisFault {
    /// The command never left this process.
    #[error("redis is not connected ({0}); check redis.url and that the server runs")]
    NotSent(String),
    /// It may or may not have run: read the data, do not guess.
    #[error("redis did not answer, the outcome is unknown ({0})")]
    Unknown(String),
    /// The script is not in the server's cache; it did not run.
    #[error("redis does not know the script (it restarted or failed over)")]
    NoScript,
    /// The server answered this command with an error; nothing was written.
    #[error("redis refused: {0}")]
    Refused(String),
    /// The answer has another shape than this build expects.
    #[error("redis answered in an unexpected shape: {0}")]
    Contract(String),
}

/// Codes of errors that, in this mode, may be another command's: what they say is not known of the one that got them.
pub(super) const fn given_to_all(mode: RedisMode) -> &'static [&'static str] {
    match mode {
        RedisMode::Single => &ENDS_SINGLE,
        RedisMode::Sentinel | RedisMode::Cluster => &ENDS_ANY,
    }
}

/// The code that an error of a server begins with; `None` for words of this process. Servers write it in capitals.
fn code(text: &str) -> Option<&str> {
    let code = text.split_once(' ').map_or(text, |(code, _words)| code);
    (code.len() > 1 && code.bytes().all(|byte| byte.is_ascii_uppercase())).then_some(code)
}

impl MayBeOutage for RedisFault {
    fn is_outage(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::Unknown(_) | Self::NoScript => true,
            Self::Refused(text) => code(text).is_some_and(|code| REFUSES_ALL.contains(&code)),
            Self::Contract(_) => false,
        }
    }
}

impl RedisFault {
    /// What `error` says about the command that got it; `given_to_all`: codes that may be another command's.
    pub(super) fn of(error: &Error, given_to_all: &[&str]) -> Self {
        let text = error.details().to_owned();
        match error.kind() {
            ErrorKind::Timeout | ErrorKind::Canceled | ErrorKind::IO => Self::Unknown(text),
            ErrorKind::Backpressure | ErrorKind::Tls => Self::NotSent(text),
            ErrorKind::Parse | ErrorKind::Protocol => Self::Contract(text),
            ErrorKind::Config
            | ErrorKind::Auth
            | ErrorKind::Routing
            | ErrorKind::InvalidCommand
            | ErrorKind::InvalidArgument
            | ErrorKind::Url
            | ErrorKind::Unknown
            | ErrorKind::Cluster
            | ErrorKind::Sentinel
            | ErrorKind::NotFound => match code(&text) {
                Some("NOSCRIPT") => Self::NoScript,
                Some(code) if !given_to_all.contains(&code) => Self::Refused(text),
                None if text == NOT_ROUTED => Self::NotSent(text),
                // fred's own words too: "channel closed", "Too many failed write attempts." A command under way gets them.
                Some(_) | None => Self::Unknown(text),
            },
        }
    }

    /// `redis.url` cannot be used at all: nothing was sent, and nothing will be.
    pub(super) fn unusable(error: &Error) -> Self {
        Self::Refused(error.details().to_owned())
    }

    /// Whether the server says that another server has the data: nothing ran. (Slots on the move, ASK and TRYAGAIN, are not
    /// followed: there is no resharding while a sale runs, window 20.)
    pub(in crate::store::redis) fn is_elsewhere(&self) -> bool {
        match self {
            Self::Refused(text) => text.starts_with("MOVED ") || text.starts_with("READONLY "),
            Self::NotSent(_) | Self::Unknown(_) | Self::NoScript | Self::Contract(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: ErrorKind, text: &'static str, mode: RedisMode) -> &'static str {
        match RedisFault::of(&Error::new(kind, text), given_to_all(mode)) {
            RedisFault::NotSent(_) => "not sent",
            RedisFault::Unknown(_) => "unknown",
            RedisFault::NoScript => "no script",
            RedisFault::Refused(_) => "refused",
            RedisFault::Contract(_) => "contract",
        }
    }

    #[test]
    fn only_an_answer_of_the_server_to_this_command_is_a_refusal() {
        let single = |kind, text| fault(kind, text, RedisMode::Single);
        for text in
            ["OOM command not allowed", "ERR unknown command", "WRONGTYPE Operation", "NOPERM this user", "MISCONF x"]
        {
            assert_eq!(single(ErrorKind::Unknown, text), "refused", "{text}");
        }
        assert_eq!(single(ErrorKind::InvalidArgument, "WRONGTYPE Operation against a key"), "refused");
        assert_eq!(single(ErrorKind::Cluster, "MOVED 1 127.0.0.1:1"), "refused");
        assert_eq!(single(ErrorKind::Unknown, "NOSCRIPT No matching script."), "no script");
        // fred's own, given to commands that were written, or may have been.
        for text in
            ["channel closed", "Too many failed write attempts.", "Connection Closed", "Unknown frame error.", ""]
        {
            assert_eq!(single(ErrorKind::Unknown, text), "unknown", "{text}");
        }
        assert_eq!(single(ErrorKind::Routing, "Too many redirections."), "unknown");
        assert_eq!(single(ErrorKind::Unknown, "Failed to route command."), "not sent");
        assert_eq!(single(ErrorKind::Routing, "Failed to route command."), "not sent");
    }

    #[test]
    fn an_error_that_ends_the_connection_may_be_another_commands() {
        let ends = |text, mode| fault(ErrorKind::Unknown, text, mode);
        for text in ["READONLY You can't write", "LOADING Redis is loading", "MASTERDOWN Link with MASTER is down"] {
            assert_eq!(ends(text, RedisMode::Single), "unknown", "{text}");
            // The connection stays there, and a command that was refused so is sent to the server that has the data.
            assert_eq!(ends(text, RedisMode::Cluster), "refused", "{text}");
        }
        for mode in [RedisMode::Single, RedisMode::Sentinel, RedisMode::Cluster] {
            assert_eq!(fault(ErrorKind::Cluster, "CLUSTERDOWN The cluster is down", mode), "unknown");
            assert_eq!(fault(ErrorKind::Auth, "NOAUTH Authentication required.", mode), "unknown");
        }
    }

    #[test]
    fn each_code_that_ends_a_connection_is_known_to_be_given_to_all() {
        let known = |codes: &[&str]| codes.iter().all(|code| ENDS_SINGLE.contains(code));
        assert!(known(&RECONNECT_CODES) && known(&ENDS_ANY));
    }
}
