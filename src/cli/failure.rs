//! Why a command failed, and the exit code of that.

use crate::config::ConfigError;
use crate::http::bad_form::BadForm;
use crate::roles::RoleError;
use std::io::ErrorKind;

/// Exit code of a command that failed.
pub(super) const FAILED: u8 = 1;
/// Exit code of a usage or configuration error (`EX_USAGE`).
pub(super) const USAGE: u8 = 64;
/// Exit code of an inconsistent system.
pub const INCONSISTENT: u8 = 2;

/// Why a command failed, by exit code.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Exit code 64.
    #[error("{0}")]
    Usage(String),
    /// Exit code 1.
    #[error("{0}")]
    Failed(String),
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Usage(error.to_string())
    }
}

/// In the words of the command line: a field is a flag.
impl From<BadForm> for Failure {
    fn from(bad: BadForm) -> Self {
        Self::Usage(format!("--{}: expected {}", bad.field.replace('_', "-"), bad.expected))
    }
}

impl From<RoleError> for Failure {
    fn from(error: RoleError) -> Self {
        match error {
            // Another process may leave the address, or the interface come up: starting again can help.
            RoleError::Listen { ref source, .. }
                if matches!(source.kind(), ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable) =>
            {
                Self::Failed(error.to_string())
            }
            RoleError::Config(_) | RoleError::Listen { .. } => Self::Usage(error.to_string()),
            RoleError::Ended(_) => Self::Failed(error.to_string()),
        }
    }
}

macro_rules! failed {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::Failed(error.to_string())
            }
        }
    )*};
}
failed!(
    crate::store::mysql::DbError,
    crate::buyers::forget::ForgetError,
    crate::sales::rows::error::SaleError,
    crate::store::redis::RedisFault,
    crate::dev::DevError,
    crate::sales::SaleControlError,
    crate::p5_reconcile::ReconcileError,
    crate::p5_reconcile::dlq::DlqError,
    crate::p6_fulfil::CancelError,
    crate::p6_fulfil::PaymentError,
    crate::token_issuer::IssueError,
    crate::domain::fault::Fault,
    crate::store::rabbit::RabbitError,
    std::io::Error
);
