//! What can go wrong with the private servers, worded for the person at the terminal.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use super::kind::ServerKind;

/// Failure of a private server, of a child process, or of the folder they live in.
#[derive(Debug, thiserror::Error)]
pub enum DevError {
    /// The program is not installed.
    #[error(
        "{program} not found: install the Debian package {package} (`make run` and `make test` do), or point {variable} at an existing server"
    )]
    MissingBinary {
        /// Program that is missing.
        program: &'static str,
        /// Debian package that brings it.
        package: &'static str,
        /// Environment variable that makes it unnecessary.
        variable: &'static str,
    },
    /// The system refused to start the child.
    #[error("cannot start {name}: {source}")]
    Spawn {
        /// Name of the child.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The child ended when it should have stayed.
    #[error("{name} ended with {status}; the last lines of {log}:\n{tail}", log = log.display())]
    Died {
        /// Name of the child.
        name: String,
        /// How it ended.
        status: ExitStatus,
        /// Its log file.
        log: PathBuf,
        /// Last lines of that file.
        tail: String,
    },
    /// The child runs but did not answer in its protocol in time.
    #[error("{name} did not answer within {waited_s} s; the last lines of {log}:\n{tail}", log = log.display())]
    NotReady {
        /// Name of the child.
        name: String,
        /// How long was waited, in seconds.
        waited_s: u64,
        /// Its log file.
        log: PathBuf,
        /// Last lines of that file.
        tail: String,
    },
    /// Sending a signal or reaping failed.
    #[error("cannot stop {name}: {source}")]
    Stop {
        /// Name of the child.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process owns the folder.
    #[error("{dir} is in use by another seckill process: stop it, or choose another folder with --data-dir", dir = dir.display())]
    Busy {
        /// The data folder.
        dir: PathBuf,
    },
    /// Reading or writing in the folder failed.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file of the folder has contents that are not ours.
    #[error("cannot understand {path}: {source}", path = path.display())]
    BadState {
        /// The path of `dev.json`.
        path: PathBuf,
        /// Why it cannot be read.
        source: serde_json::Error,
    },
    /// Files for encrypted servers that cannot be used.
    #[error("{0}")]
    Certificates(String),
    /// No free port was found.
    #[error("no free loopback port found after {tried} tries")]
    NoPort {
        /// Number of ports tried.
        tried: u32,
    },
    /// The server was not started by this process, so it cannot be killed, restarted or controlled.
    #[error("{0} is an existing server from the environment, not a private one")]
    NotPrivate(ServerKind),
    /// The broker refused an administrative call.
    #[error("the broker refused to {action}: {answer}")]
    Broker {
        /// The expression that the node was to evaluate.
        action: String,
        /// What it said.
        answer: String,
    },
}

impl DevError {
    /// For `map_err`: an [`DevError::Io`] with the verb and the place filled in.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}
