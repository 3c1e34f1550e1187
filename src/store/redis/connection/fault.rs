//! What an error of Redis says about whether the command ran.

use fred::error::{Error, ErrorKind};

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
    /// The server answered with an error; nothing was written.
    #[error("redis refused: {0}")]
    Refused(String),
    /// The answer has another shape than this build expects.
    #[error("redis answered in an unexpected shape: {0}")]
    Contract(String),
}

impl From<Error> for RedisFault {
    fn from(error: Error) -> Self {
        let text = error.details().to_owned();
        match error.kind() {
            ErrorKind::Timeout | ErrorKind::Canceled | ErrorKind::IO => Self::Unknown(text),
            ErrorKind::Backpressure | ErrorKind::Tls => Self::NotSent(text),
            ErrorKind::Parse | ErrorKind::Protocol => Self::Contract(text),
            ErrorKind::Unknown | ErrorKind::NotFound if text.starts_with("NOSCRIPT") => Self::NoScript,
            ErrorKind::Config
            | ErrorKind::Auth
            | ErrorKind::Routing
            | ErrorKind::InvalidCommand
            | ErrorKind::InvalidArgument
            | ErrorKind::Url
            | ErrorKind::Unknown
            | ErrorKind::Cluster
            | ErrorKind::Sentinel
            | ErrorKind::NotFound => Self::Refused(text),
        }
    }
}

impl RedisFault {
    /// Whether the server says that another server has the data: nothing ran. (Slots on the move, ASK and TRYAGAIN, are not
    /// followed: there is no resharding while a sale runs, window 20.)
    pub(in crate::store::redis) fn is_elsewhere(&self) -> bool {
        match self {
            Self::Refused(text) => text.starts_with("MOVED ") || text.starts_with("READONLY "),
            Self::NotSent(_) | Self::Unknown(_) | Self::NoScript | Self::Contract(_) => false,
        }
    }
}
