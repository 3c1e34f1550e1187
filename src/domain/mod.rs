//! The rules of a flash sale, pure: no I/O crate, no clock, no randomness.
//!
//! Everything here is a value or a function of values, so every rule can be property-tested without a server. The stores
//! translate between these types and the servers' bytes; the phases decide what to do next by asking the functions here.

pub mod announcement;
pub mod balance;
pub(crate) mod buyer;
pub mod challenge;
pub(crate) mod currency;
pub(crate) mod decimal;
pub mod draw;
pub mod drops;
pub(crate) mod facts;
pub mod fault;
pub(crate) mod grant_names;
pub mod ids;
pub(crate) mod instant;
pub mod ledger;
pub mod line;
pub mod message;
pub mod needs;
mod operation;
pub mod operator;
pub mod order_life;
pub mod outcome;
pub mod payment;
pub mod policy;
pub mod request;
pub mod reserve;
pub mod room;
pub mod sale;
pub mod sale_door;
pub mod shard;
pub mod snowflake;
pub mod states;
pub mod states_page;
pub mod timetable;
pub mod trace;
pub mod transfer_marks;
pub mod webhook;
