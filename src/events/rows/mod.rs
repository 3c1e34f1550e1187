//! The tables of events: `outcome_event`, one row for an outcome that no message carries, and `order_events`, one row for a change of
//! an order or for those of a whole batch. A row is removed when the broker has confirmed its event.

pub mod order;
pub mod outcome;
pub mod shared;
pub mod waiting_page;

use crate::store::mysql::mysql_handle;

mysql_handle! {
    /// Events of orders that wait for the broker.
    OrderEventRows
}
mysql_handle! {
    /// Events of outcomes that wait for the broker.
    OutcomeEventRows
}
