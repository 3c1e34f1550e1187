//! Forward-only repair: what the ledger has and the database has not is persisted with P4's own transactions, and what the database
//! decided is marked in Redis. Stock is never given back to Redis here.
//!
//! Safe at any moment, whatever is still on its way: the first to write `request_outcome` decides, and all others read it.

mod cleanup;
mod persist;
mod transfers;
mod void;

pub(super) use cleanup::trim;
pub use cleanup::{mark_outcomes, trim_all};
pub use persist::compensate;
pub(super) use persist::compensate_before_rebuild;
pub use transfers::finish_transfers;
pub(super) use transfers::freeze_when_sold_twice;
