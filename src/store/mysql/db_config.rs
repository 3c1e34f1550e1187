//! How the pool reaches the database, and its time limits. Values only.

use super::address::DatabaseAddress;

/// How to reach the database and how long to wait for it.
#[derive(Clone)]
pub struct DbConfig {
    /// Where it is.
    pub address: DatabaseAddress,
    /// Most connections open at once, 1 ….
    pub pool_max: usize,
    /// Longest wait for a free connection.
    pub wait_timeout_ms: u64,
    /// Longest wait for a new connection.
    pub connect_timeout_ms: u64,
    /// Longest run of one statement, enforced by the server; a whole [`Db::run`] may take twice as long, enforced here.
    pub statement_timeout_ms: u64,
}

/// Without the address, which holds a password.
impl std::fmt::Debug for DbConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DbConfig").field("pool_max", &self.pool_max).finish_non_exhaustive()
    }
}
