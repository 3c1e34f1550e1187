//! Time in tests: one runtime, quick settings, and waiting for something to come true. Shared by the test binaries.

use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// One runtime for all tests: the shared servers and their clients must outlive the test that started them.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"));

/// Accepted requests must have their fate within this time at the end of a test.
pub const SETTLE: Duration = Duration::from_secs(60);

/// Settings that let faults show within seconds.
pub const QUICK: [&str; 11] = [
    "http.listen=127.0.0.1:0",
    "auth.secret=test-access-secret-of-32-bytes-or-more",
    "p1_entry.token_secret=test-purchase-secret-of-32-bytes-or-more",
    // A test may leave its consumers off for as long as a slow machine takes.
    "p1_entry.lag_max_ms=3600000",
    "rabbitmq.heartbeat_s=2",
    "p3_relay.confirm_timeout_ms=2000",
    "p3_relay.claim_idle_ms=4000",
    "p3_relay.backoff_ms=100",
    "p4_persist.retry_delay_ms=200",
    "p5_reconcile.window_ms=5000",
    "p5_reconcile.interval_ms=1000",
];

/// Runs a test on the shared runtime.
pub fn run<F: Future<Output = ()>>(test: F) {
    RUNTIME.block_on(test);
}

/// Between two looks at something that comes true by itself; never in place of a look.
pub async fn pause() {
    tokio::time::sleep(Duration::from_millis(20)).await;
}

/// Only where time itself is the subject: an expiry, the pace of a fault, a server that stands still.
pub async fn time_passes(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

/// Looks until something is true; a failing test says what was waited for.
pub async fn eventually<F: AsyncFnMut() -> bool>(what: &str, mut look: F) {
    let deadline = Instant::now() + SETTLE;
    while !look().await {
        assert!(Instant::now() < deadline, "never came true: {what}");
        pause().await;
    }
}
