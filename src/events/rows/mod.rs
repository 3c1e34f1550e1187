//! The tables of events: `outcome_event`, one row for an outcome that no message carries, and `order_events`, one row for a change of
//! an order or for those of a whole batch, or for an event of a sale or a line. A row is removed when the broker has confirmed its event.

mod bundle;
pub mod order;
pub mod outcome;
pub mod sale;
pub(crate) mod single;
pub mod waiting_page;

pub use order::OrderEventRows;
pub use outcome::OutcomeEventRows;
pub use sale::AnnouncementRows;
