//! The harness' one monotonic clock: all times in histories, samples and fault logs count from the same instant.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Milliseconds since the harness read its clock for the first time.
pub fn now_ms() -> u64 {
    u64::try_from(BEGIN.elapsed().as_millis()).expect("a short run")
}

/// A client's patience between two attempts; it is part of the load, never a wait for something to come true.
pub async fn patience(ms: u64) {
    tokio::time::sleep_until(tokio::time::Instant::now() + Duration::from_millis(ms)).await;
}
