//! What every background task of a process is made of: its loop (`worker`), its pauses (`backoff`), its end (`stopper`), the
//! wall clock, groups of work that many callers share (`batcher`), and one piece of work that all of them need (`single_flight`).

mod backoff;
pub mod batcher;
mod single_flight;
mod stopper;
mod worker;

pub(crate) use backoff::{exponential_backoff, jittered, lengthened};
pub(crate) use single_flight::{Flight, SingleFlight};
pub use stopper::Stopper;
pub use worker::Worker;
pub(crate) use worker::{PollInterval, run_worker};

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, Unix milliseconds. The only place that reads it for business; `domain` is passed the value.
#[must_use]
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
