//! What a purchase or an order costs in processor time. Rates depend on what else the machine does; processor time for each
//! does much less.

use super::cpu::{CpuUsage, LOAD};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Of these seconds for each of `count` things, µs; `None` when there were none.
#[expect(clippy::cast_precision_loss, reason = "a figure for people; 53 bits are enough")]
pub(super) fn us_of(seconds: f64, count: u64) -> Option<f64> {
    (count > 0).then(|| seconds * 1e6 / count as f64)
}

/// Processor time of a process for each of `count` things, µs; `None` when it was not measured.
pub(super) fn us_each(usage: &CpuUsage, process: &str, count: u64) -> Option<f64> {
    usage.seconds.get(process).and_then(|seconds| us_of(*seconds, count))
}

/// Processor time of an order, in all processes but the load generator.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EndToEndCost {
    /// µs by process.
    by_process: BTreeMap<String, f64>,
}

impl EndToEndCost {
    /// For each of `count` orders; `None` when nothing was measured.
    pub fn of(usage: &CpuUsage, count: u64) -> Option<Self> {
        let by_process = usage.seconds.iter().filter(|(name, _)| name.as_str() != LOAD);
        let by_process =
            by_process.filter_map(|(name, seconds)| Some((name.clone(), us_of(*seconds, count)?))).collect();
        let cost = Self { by_process };
        (cost.us() > 0.0).then_some(cost)
    }

    /// µs of all processes.
    pub fn us(&self) -> f64 {
        self.by_process.values().sum()
    }

    pub fn json(&self) -> Value {
        json!(self.by_process)
    }

    /// For people: the dearest first.
    pub fn note(&self) -> String {
        let mut parts: Vec<_> = self.by_process.iter().filter(|(_, us)| **us >= 0.05).collect();
        parts.sort_by(|one, other| other.1.total_cmp(one.1));
        parts.iter().map(|(name, us)| format!("{name} {us:.1}")).collect::<Vec<_>>().join(", ")
    }
}
