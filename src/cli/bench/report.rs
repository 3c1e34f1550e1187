//! What a benchmark comes to, for people and for programs.

use super::super::output;
use crate::p5_reconcile::SaleAudit;
use serde::Serialize;
use serde_json::{Value, json};

/// Scenarios of the plan that are not measured yet. Nothing is printed for them but this.
pub(super) const NOT_YET: [&str; 5] = ["relay", "landing", "latency", "recovery", "memory"];

/// One measured thing.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Bar {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    /// What it is compared with, in the same unit.
    pub baseline: Option<f64>,
    /// Value by baseline.
    pub ratio: Option<f64>,
    /// The least ratio; for violations the most that are allowed.
    pub bar: Option<f64>,
    /// Whether the bar is met; `None` where there is no bar or no baseline.
    pub holds: Option<bool>,
    pub note: String,
    /// More figures, by name.
    pub more: Value,
}

impl Bar {
    pub fn rate(name: &'static str, value: f64) -> Self {
        let none = Value::Object(serde_json::Map::new());
        Self {
            name,
            value,
            unit: "1/s",
            baseline: None,
            ratio: None,
            bar: None,
            holds: None,
            note: String::new(),
            more: none,
        }
    }

    /// Violations of what must never happen; none are allowed.
    pub fn violations(name: &'static str, count: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let value = count as f64;
        Self { unit: "violations", bar: Some(0.0), holds: Some(count == 0), ..Self::rate(name, value) }
    }

    /// Compares with a baseline, which may be missing; `bar` is the least ratio.
    pub fn against(mut self, baseline: Option<f64>, bar: f64) -> Self {
        self.baseline = baseline;
        self.bar = Some(bar);
        self.ratio = baseline.filter(|baseline| *baseline > 0.0).map(|baseline| self.value / baseline);
        self.holds = self.ratio.map(|ratio| ratio >= bar);
        self
    }

    pub fn note(mut self, note: String) -> Self {
        self.note = note;
        self
    }

    pub fn more(mut self, more: Value) -> Self {
        self.more = more;
        self
    }
}

/// The whole result.
pub(super) struct Report {
    pub machine: Value,
    pub durable: bool,
    pub bars: Vec<Bar>,
    pub audits: Vec<SaleAudit>,
}

impl Report {
    /// Whether nothing was lost, doubled or oversold.
    pub fn correct(&self) -> bool {
        let exact = self.bars.iter().filter(|bar| bar.unit == "violations").all(|bar| bar.holds == Some(true));
        exact && self.audits.iter().all(SaleAudit::consistent)
    }

    pub fn json(&self) {
        let audits = self.audits.iter().map(|audit| {
            json!({ "sale_id": audit.sale_id, "consistent": audit.consistent(), "counted": audit.counted, "findings": audit.findings })
        });
        output::json(&json!({
            "machine": self.machine, "durable": self.durable, "bars": self.bars, "not_yet": NOT_YET,
            "consistent": self.correct(), "audits": audits.collect::<Vec<_>>(),
        }));
    }

    pub fn print(&self) {
        if let Value::Object(machine) = &self.machine {
            let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let words = machine.iter().map(|(name, value)| format!("{name} {}", text(value)));
            output::line(&words.collect::<Vec<_>>().join(" · "));
        }
        if !self.durable {
            output::line(
                "NOT DURABLE: a server's settings would let accepted requests vanish (seckill doctor tells which)",
            );
        }
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let measured = self.bars.iter().map(|bar| {
            [
                bar.name.to_owned(),
                format!("{} {}", short(bar.value), bar.unit),
                number(bar.baseline),
                number(bar.ratio),
                number(bar.bar),
                bar.holds.map_or("-", |holds| if holds { "yes" } else { "NO" }).to_owned(),
                bar.note.clone(),
            ]
        });
        let dash = || "-".to_owned();
        let missing = NOT_YET.map(|name| {
            [name.to_owned(), "not measured yet".to_owned(), dash(), dash(), dash(), dash(), String::new()]
        });
        output::table(["name", "value", "baseline", "ratio", "bar", "holds", "note"], measured.chain(missing));
        for audit in &self.audits {
            for finding in &audit.findings {
                output::line(&format!("{} {}: {}", audit.sale_id, finding.kind.code(), finding.detail));
            }
        }
        let sales = self.audits.len();
        output::line(&if self.correct() {
            format!("consistent: nothing lost, doubled or oversold in {sales} sales")
        } else {
            format!("INCONSISTENT: see the {sales} sales above")
        });
    }
}

/// A figure with as many digits as mean something.
fn short(value: f64) -> String {
    if value.abs() >= 100.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// What the figures were measured on.
pub(super) fn machine(versions: &[(&str, String)]) -> Value {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let after = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split(':').nth(1)).map(|value| value.trim().to_owned()).unwrap_or_default()
    };
    let mut machine = json!({
        "cpu": after(&read("/proc/cpuinfo"), "model name"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": after(&read("/proc/meminfo"), "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load_before": read("/proc/loadavg").split(' ').next().unwrap_or_default(),
        "build": if cfg!(debug_assertions) { "debug (its figures mean nothing)" } else { "release" },
        "version": env!("CARGO_PKG_VERSION"),
    });
    if let Value::Object(fields) = &mut machine {
        fields.extend(versions.iter().map(|(name, version)| ((*name).to_owned(), Value::from(version.as_str()))));
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_holds_only_against_a_baseline_that_was_measured() {
        let holds = |baseline| Bar::rate("accept", 130.0).against(baseline, 1.3).holds;
        assert_eq!(
            [holds(Some(100.0)), holds(Some(101.0)), holds(None), holds(Some(0.0))],
            [Some(true), Some(false), None, None]
        );
        assert_eq!(Bar::violations("sale", 0).holds, Some(true));
        assert_eq!(Bar::violations("sale", 1).holds, Some(false));
    }

    #[test]
    fn figures_have_the_digits_that_mean_something() {
        assert_eq!([short(91_234.6), short(1.304), short(0.0)], ["91235", "1.30", "0"]);
    }
}
