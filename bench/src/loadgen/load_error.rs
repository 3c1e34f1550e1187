//! Why a run of the load generator did not take place.

use super::http::HttpError;
use seckill::token_issuer::IssueError;

/// Why a run did not take place.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// No access tokens.
    #[error(transparent)]
    Mint(#[from] IssueError),
    /// The same, of a public-key algorithm.
    #[error("cannot sign an access token: {0}")]
    Sign(String),
    /// The server is not there.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The histogram's settings, which are fixed, are not accepted.
    #[error("cannot measure: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
    /// A connection's task is gone, its buyers' answers with it.
    #[error("a connection's task crashed, run it again")]
    Crashed,
}
