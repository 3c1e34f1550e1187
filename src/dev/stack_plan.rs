//! What a local stack is to be, and why it cannot start.

use super::DevError;
use crate::config::{ConfigError, Layers, Settings};
use crate::http::BoundPort;
use crate::roles::RoleError;
use crate::sales::SaleControlError;
use crate::sales::rows::error::SaleError;
use crate::store::mysql::DbError;
use std::net::TcpListener;
use std::path::PathBuf;

/// Why a local stack cannot start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StackError {
    /// Servers, children or the folder.
    #[error(transparent)]
    Dev(#[from] DevError),
    /// A setting that cannot work.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A role that did not start, or ended with an error.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The database did not answer, or a migration failed.
    #[error(transparent)]
    Database(#[from] DbError),
    /// The demo sale.
    #[error("demo sale: {0}")]
    Sale(#[from] SaleError),
    /// The demo sale's warm-up.
    #[error("demo sale: {0}")]
    Warm(#[from] SaleControlError),
    /// Something did not become ready.
    #[error("{0}")]
    NotReady(String),
}

/// What to start.
#[derive(Debug, Clone)]
pub(crate) struct StackPlan {
    /// Folder of data and `dev.json`.
    pub dir: PathBuf,
    /// Configuration on top of the defaults.
    pub layers: Layers,
    /// Every role its own process.
    pub split: bool,
    /// Create the demo sale and the demo drop.
    pub demo: bool,
}

impl StackPlan {
    /// The same, where the demo's members are known by their access tokens, unless the settings say which facts these have.
    pub(super) fn with_members(&self, given: &Settings) -> Self {
        let mut plan = self.clone();
        if plan.demo && given.auth.facts.is_empty() {
            plan.layers.set.push("auth.facts=tier=tier".to_owned());
        }
        plan
    }
}

/// The listeners of a local stack, bound before anything else.
pub(super) struct StackListeners {
    /// Port of the public API.
    pub public: BoundPort,
    /// Listener of the operators' API.
    pub admin: TcpListener,
}

/// Whether this stack has a demo shop: on a loopback address only, because the shop signs its visitors' tokens.
pub(super) fn has_shop(settings: &Settings) -> bool {
    let listen = settings.http.listen.parse::<std::net::SocketAddr>();
    settings.auth.uses_secrets() && listen.is_ok_and(|address| address.ip().is_loopback())
}
