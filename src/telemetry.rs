//! Logs and metrics of the process: one log set-up, one metrics recorder, and the counter of every state.
//!
//! Log lines carry `request_id` through all phases. Never logged: tokens, secrets, message bodies.

use crate::config::{Log, LogFormat};
use crate::domain::states::{self, State};
use metrics::Counter;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};
use tracing_subscriber::EnvFilter;

static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();

/// Sets up logging to standard error. A second call changes nothing (tests share a process).
///
/// # Errors
/// The filter's own complaint when `log.level` is not a filter.
pub fn init_logs(log: &Log) -> Result<(), String> {
    let filter = EnvFilter::try_new(&log.level).map_err(|error| format!("log.level: {error}"))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let done = match log.format {
        LogFormat::Text => lines.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).try_init(),
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
    };
    // Already set up by an earlier call in this process: keep that one.
    drop(done);
    Ok(())
}

/// Installs the metrics recorder once and exports every state with 0.
pub fn init_metrics() {
    HANDLE.get_or_init(|| {
        let recorder = PrometheusBuilder::new()
            .set_buckets(&[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0])
            .unwrap_or_else(|_| PrometheusBuilder::new())
            .build_recorder();
        let handle = recorder.handle();
        // Someone else's recorder (a test's) is already there: ours is then only rendered empty.
        drop(metrics::set_global_recorder(recorder));
        handle
    });
    metrics::describe_counter!("seckill_state_total", "state transitions by phase and code");
    LazyLock::force(&STATES);
}

/// The metrics in Prometheus' text format.
#[must_use]
pub fn render() -> String {
    HANDLE
        .get()
        .map(|handle| {
            handle.run_upkeep();
            handle.render()
        })
        .unwrap_or_default()
}

/// One value of this process' metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The metric.
    pub name: String,
    /// Its labels as they stand, `phase="p1_entry",code="P1-S1"`.
    pub labels: String,
    /// Its value.
    pub value: f64,
}

impl Sample {
    /// The value of a label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let pairs = self.labels.split(',').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"'))
    }
}

/// Counters and gauges of this process, read back from its own text.
#[must_use]
pub fn samples() -> Vec<Sample> {
    render().lines().filter_map(read_sample).collect()
}

/// Reads `name{labels} value` or `name value`.
fn read_sample(line: &str) -> Option<Sample> {
    if line.starts_with('#') {
        return None;
    }
    let (metric, value) = line.rsplit_once(' ')?;
    let (name, labels) = metric.split_once('{').map_or((metric, ""), |(name, rest)| (name, rest.trim_end_matches('}')));
    Some(Sample { name: name.to_owned(), labels: labels.to_owned(), value: value.parse().ok()? })
}

static STATES: LazyLock<HashMap<State, Counter>> = LazyLock::new(|| {
    states::all()
        .map(|state| {
            let counter =
                metrics::counter!("seckill_state_total", "phase" => state.phase().name(), "code" => state.code());
            counter.increment(0);
            (state, counter)
        })
        .collect()
});

/// Counts `count` requests that reached a state.
pub fn count(state: State, count: usize) {
    if let Some(counter) = STATES.get(&state) {
        counter.increment(count as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_can_be_read_back() {
        let sample = read_sample(r#"seckill_state_total{phase="p1_entry",code="P1-S1"} 42"#).unwrap();
        assert_eq!(
            (sample.name.as_str(), sample.label("code"), sample.value),
            ("seckill_state_total", Some("P1-S1"), 42.0)
        );
        assert_eq!(sample.label("sale"), None);
        assert_eq!(read_sample("up 0.5").unwrap().value, 0.5);
        assert_eq!(read_sample("# HELP up what"), None);
        assert_eq!(read_sample(""), None);
    }
}
