//! What P4 may touch.

use crate::events::rows::OutcomeEventRows;
use crate::orders::persist::Persister;
use crate::orders::rows::RequestRows;

/// What P4 may touch in the database.
#[derive(Clone)]
pub struct PersistRows {
    /// Writes the orders.
    pub persister: Persister,
    /// Asked whether the database answers.
    pub requests: RequestRows,
    /// Keeps the events that the broker does not take.
    pub outcome_events: OutcomeEventRows,
}
