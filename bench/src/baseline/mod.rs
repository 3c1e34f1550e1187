//! What is compared with: the same servers, used in the field's plain ways. And what fills and reads them for a measurement.

pub mod http;
pub mod http_script;
pub mod mysql;
pub mod mysql_bulk;
pub mod mysql_indexes;
pub mod mysql_messages;
pub mod mysql_status;
pub mod mysql_units;
pub mod mysql_unpaid;
pub mod rabbit;
pub mod rabbit_queues;
pub mod redis;
pub mod redis_disk;
pub mod redis_info;
pub mod redis_script;

/// What one try to take a unit came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockAttempt {
    /// Whether a unit was taken.
    pub is_taken: bool,
    /// How often a conflict with another buyer made it begin again.
    pub retries: u64,
}
