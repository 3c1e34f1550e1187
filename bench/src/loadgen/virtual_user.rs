//! A virtual user: one connection, which the buyers of a run use one after the other.

use super::http::Connection;
use super::latencies::LatencyBatch;
use super::report::LoadReport;
use super::run_state::RunState;
use std::sync::Arc;
use std::time::Duration;

/// First wait before a repeat that was given no `Retry-After`, milliseconds; doubles each time up to the plan's bound.
const BACKOFF_MS: u64 = 20;

/// One connection with its counts.
pub(super) struct VirtualUser {
    pub(super) shared: Arc<RunState>,
    pub(super) connection: Connection,
    pub(super) outbox: String,
    pub(super) key: String,
    /// The buyer's ticket of the waiting room; empty without one.
    pub(super) place: String,
    pub(super) seen: LoadReport,
    pub(super) latencies: LatencyBatch,
    /// Whether the purchase under way is one that is measured.
    pub(super) measured: bool,
}

impl VirtualUser {
    pub fn new(shared: Arc<RunState>, connection: Connection, seen: LoadReport) -> Self {
        let (key, place) = (String::new(), String::new());
        let (outbox, latencies) = (String::with_capacity(1024), LatencyBatch::new());
        Self { shared, connection, outbox, key, place, seen, latencies, measured: true }
    }

    /// Waits before repeat number `attempt`; `false` when the run is stopped.
    pub(super) async fn pause(&self, attempt: u32, wait_s: Option<u64>) -> bool {
        let plan = &self.shared.plan;
        let backoff_ms = BACKOFF_MS.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let wait_ms = wait_s.map_or(backoff_ms, |seconds| seconds.saturating_mul(1000)).min(plan.retry_wait_max_ms);
        plan.stop.sleep(Duration::from_millis(wait_ms)).await;
        !plan.stop.is_stopped()
    }
}
