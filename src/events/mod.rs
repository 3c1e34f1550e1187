//! What the world is notified of: the rows of events, which are written in the transaction of what happened, their publishers for the
//! broker, and the webhooks.
//!
//! Input: changes of orders and of sales, and outcomes of requests. Output: messages of the event exchange and signed HTTP calls, each at least once.
//! A crash leaves a row whose event is sent again.

mod announced;
pub mod bundles;
pub(crate) mod line;
pub mod published;
pub mod publisher;
pub mod rows;
mod unreadable;
pub mod webhooks;
