//! What a deployment runs, and with which settings.

use crate::process::RoleEnv;
use seckill::roles::Role;

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
}
