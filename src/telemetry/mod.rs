//! Logs and metrics of the process: one log set-up, one metrics recorder, and the counter of every state.
//!
//! Log lines carry `request_id` through all phases, and `x_request_id` where a call of the API is handled. Never logged: tokens, secrets, message bodies.

pub mod http_request_id;
mod log_writer;
mod logs;
mod reading;
pub(crate) mod sale_series;
pub mod traces;

pub(crate) use logs::log_panics;
pub use logs::{init_logs, last_words};
pub(crate) use reading::{ENTRY_LAG_S, ENTRY_OPEN, PERSIST_BREAKER_OPEN, RELAY_BREAKER_OPEN, Reading};

use crate::domain::states::{self, State};
use crate::runtime::Stopper;
use metrics::Counter;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// Bounds of histograms of durations, seconds.
const SECONDS: [f64; 15] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0];
/// Bounds of the time from accept to landing, seconds: an outage makes it minutes, and P5 persists after its window.
const LANDING_SECONDS: [f64; 13] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 60.0, 300.0, 1800.0];
/// Bounds of histograms of group sizes.
const GROUP_COUNTS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];
/// A histogram keeps each value (some 20 bytes) until it is sorted into its buckets. Without a scraper only this does it.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);

/// Counters that are exported from the start with 0. One that first appears with 1 seems to Prometheus as if it had always
/// been 1: an alert on its increase would miss the first time, which for most of these matters most.
const FROM_ZERO: [&str; 22] = [
    "seckill_log_lines_dropped_total",
    "seckill_p1_entry_closed_total",
    "seckill_p1_entry_room_released_total",
    "seckill_p1_entry_room_full_total",
    "seckill_p1_entry_signature_checks_total",
    "seckill_p2_reserve_frozen_total",
    "seckill_p2_reserve_transfers_total",
    "seckill_p2_reserve_transferred_units_total",
    "seckill_p2_reserve_unreplicated_total",
    "seckill_p3_relay_reconnects_total",
    "seckill_p3_relay_returned_total",
    "seckill_p3_relay_nacks_total",
    "seckill_p3_relay_orphans_total",
    "seckill_p3_relay_deleted_total",
    "seckill_p4_persist_breaker_opened_total",
    "seckill_p4_persist_events_deferred_total",
    "seckill_p5_reconcile_dlq_removed_total",
    "seckill_p5_reconcile_rebuilds_total",
    "seckill_p5_reconcile_transfers_finished_total",
    "seckill_traces_exported_total",
    "seckill_traces_dropped_total",
    "seckill_traces_failed_total",
];

/// What else brings counters up to date before they are read.
static EXPORTS: Mutex<Vec<fn()>> = Mutex::new(Vec::new());

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

fn buckets() -> Result<PrometheusBuilder, BuildError> {
    PrometheusBuilder::new()
        .set_buckets(&SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_group_count".to_owned()), &GROUP_COUNTS)?
        .set_buckets_for_metric(Matcher::Suffix("_accept_to_landed_seconds".to_owned()), &LANDING_SECONDS)
}

/// Installs the metrics recorder once and exports every state and every counter without labels with 0.
pub fn init_metrics() {
    HANDLE.get_or_init(|| {
        let recorder = buckets().unwrap_or_else(|_| PrometheusBuilder::new()).build_recorder();
        let handle = recorder.handle();
        // Someone else's recorder (a test's) is already there: ours is then only rendered empty.
        drop(metrics::set_global_recorder(recorder));
        handle
    });
    metrics::describe_counter!("seckill_state_total", "state transitions by phase and code");
    LazyLock::force(&STATES);
    for name in FROM_ZERO {
        metrics::counter!(name).increment(0);
    }
}

/// Has `export` bring counters up to date whenever the metrics are read.
pub(crate) fn export_with(export: fn()) {
    EXPORTS.lock().unwrap_or_else(PoisonError::into_inner).push(export);
}

/// Keeps histograms small until `stopper` is pulled, with or without a scraper.
pub(crate) async fn keep_small(stopper: Stopper) {
    while !stopper.is_stopped() {
        if let Some(handle) = HANDLE.get() {
            handle.run_upkeep();
        }
        stopper.sleep(UPKEEP_EVERY).await;
    }
}

/// The metrics in Prometheus' text format.
#[must_use]
pub fn render() -> String {
    HANDLE
        .get()
        .map(|handle| {
            handle.run_upkeep();
            export_states();
            let exports = EXPORTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
            exports.iter().for_each(|export| export());
            metrics::counter!("seckill_log_lines_dropped_total").absolute(logs::lines_dropped());
            handle.render() + &sale_series::render()
        })
        .unwrap_or_default()
}

/// A state, its count in this process, and the exported counter, which gets the count when the metrics are read.
struct CountedState {
    state: State,
    count: AtomicU64,
    exported: Counter,
}

/// In the order of `states::all`.
static STATES: LazyLock<Vec<CountedState>> = LazyLock::new(|| {
    states::all()
        .map(|state| {
            let exported =
                metrics::counter!("seckill_state_total", "phase" => state.phase().name(), "code" => state.code());
            exported.increment(0);
            CountedState { state, count: AtomicU64::new(0), exported }
        })
        .collect()
});

/// Counts `count` requests that reached a state. Every purchase does, so it is one addition.
pub(crate) fn count(state: State, count: usize) {
    if let Some(counted) = STATES.get(states::place(state)) {
        counted.count.fetch_add(count as u64, Ordering::Relaxed);
    }
}

/// How many requests reached each state in this process.
pub(crate) fn state_counts() -> impl Iterator<Item = (State, u64)> {
    STATES.iter().map(|counted| (counted.state, counted.count.load(Ordering::Relaxed)))
}

/// Brings the exported counters of the states up to date.
fn export_states() {
    for counted in STATES.iter() {
        counted.exported.absolute(counted.count.load(Ordering::Relaxed));
    }
}
