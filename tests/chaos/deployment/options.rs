//! What a deployment runs, and with which settings.

use crate::process::RoleEnv;
use seckill::roles::Role;
use std::path::{Path, PathBuf};

/// Every event of an order's life.
const EVENTS: [&str; 6] =
    ["order.confirmed", "order.failed", "order.paid", "order.expired", "order.cancelled", "order.refund_needed"];
/// Signs what the webhooks send.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// On top of the quick settings: attempts that outlast the faults, and retries that come soon after them.
pub const LASTING: [&str; 6] = [
    "p3_relay.attempts_max=30",
    "p3_relay.backoff_max_ms=1000",
    "p4_persist.attempts_max=30",
    "p4_persist.retry_delay_max_ms=1000",
    "runtime.drain_ms=3000",
    "http.workers_count=2",
];

/// What runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Processes of the api role.
    pub apis: usize,
    /// Processes of the relay role.
    pub relays: usize,
    /// Processes of the consumer role.
    pub consumers: usize,
    /// Processes of the reconcile role.
    pub reconcilers: usize,
    /// `section.key=value`, on top of the quick ones.
    pub set: Vec<String>,
    /// Environment by role, e.g. `FAILPOINTS`.
    pub env: Vec<RoleEnv>,
    /// Every process writes what it does, for the checker of `tests/traces`.
    pub traced: bool,
    /// Where the shop gets its webhooks, if it does.
    pub webhook: Option<String>,
    /// Roles whose processes are not started again after an end.
    pub unsupervised: Vec<Role>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            apis: 2,
            relays: 2,
            consumers: 2,
            reconcilers: 1,
            set: Vec::new(),
            env: Vec::new(),
            traced: false,
            webhook: None,
            unsupervised: Vec::new(),
        }
    }
}

impl Options {
    /// How many processes of a role.
    pub fn count(&self, role: Role) -> usize {
        match role {
            Role::Api => self.apis,
            Role::Relay => self.relays,
            Role::Consumer => self.consumers,
            Role::Reconcile => self.reconcilers,
        }
    }

    /// The configuration file of the processes, which holds what only a file can; nothing without a webhook.
    pub(super) fn file(&self, dir: &Path) -> Option<PathBuf> {
        let url = self.webhook.as_ref()?;
        let (path, events) = (dir.join("webhooks.toml"), EVENTS);
        let text =
            format!("[[webhooks]]\nname = \"shop\"\nurl = \"{url}\"\nsecrets = [\"{SECRET}\"]\nevents = {events:?}\n");
        std::fs::write(&path, text).expect("written");
        Some(path)
    }
}
