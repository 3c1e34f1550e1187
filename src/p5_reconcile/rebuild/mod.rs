//! Rebuild of a sale in Redis from the database, after Redis lost data (E7).
//!
//! Input: a sale that is frozen (Redis went back) or whose keys are missing. Output: the sale under its next epoch, with buyers,
//! limits and replays, and with as much stock as the database can vouch for.
//!
//! Only when the sale is quiescent: outboxes and retry queues without entries of the sale, its order queue empty, every record that
//! is left in the ledger decided, and all of that unchanged for a while. The units of numbers without an outcome by then are kept
//! back, so a request that is persisted later still finds its unit. A crash at any line leaves a frozen sale; the next round begins
//! again, under an epoch of its own.

mod ends;
mod in_flight;
mod load;
mod quiescence;
mod steps;
mod terms;

pub(super) use quiescence::QuiescenceTimer;
pub(super) use steps::{RebuildOptions, broken_epoch, rebuild};
