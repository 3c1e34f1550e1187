//! What is counted of the risk service.

use metrics::{Counter, Gauge, Histogram};
use std::time::Duration;

/// Counters of one process, there from its start.
pub(super) struct RiskFigures {
    pub(super) allowed: Counter,
    pub(super) refused: Counter,
    pub(super) failed: Counter,
    /// Not asked: the breaker is open.
    pub(super) breaker: Counter,
    /// Not asked: too many calls are under way.
    pub(super) busy: Counter,
    seconds: Histogram,
    open: Gauge,
}

impl RiskFigures {
    pub(super) fn new() -> Self {
        let call = |result: &'static str| metrics::counter!("seckill_p1_entry_risk_calls_total", "result" => result);
        let unasked = |why: &'static str| metrics::counter!("seckill_p1_entry_risk_unasked_total", "why" => why);
        let figures = Self {
            allowed: call("allowed"),
            refused: call("refused"),
            failed: call("failed"),
            breaker: unasked("breaker"),
            busy: unasked("busy"),
            seconds: metrics::histogram!("seckill_p1_entry_risk_seconds"),
            open: metrics::gauge!("seckill_p1_entry_risk_breaker_open"),
        };
        for counter in [&figures.allowed, &figures.refused, &figures.failed, &figures.breaker, &figures.busy] {
            counter.increment(0);
        }
        figures.is_open(false);
        figures
    }

    /// Counts a call by its verdict; none: it failed.
    pub(super) fn count(&self, verdict: Option<bool>, took: Duration) {
        let counter = match verdict {
            Some(true) => &self.allowed,
            Some(false) => &self.refused,
            None => &self.failed,
        };
        counter.increment(1);
        self.seconds.record(took);
    }

    /// Exports whether the breaker is open: 1 or 0.
    pub(super) fn is_open(&self, open: bool) {
        self.open.set(if open { 1.0 } else { 0.0 });
    }
}
