//! What a benchmark comes to, for people and for programs.

use super::bar::{Bar, Rule, short};
use super::strategies::table;
use seckill::cli::output;
use seckill::p5_reconcile::SaleAudit;
use serde_json::{Value, json};

/// A scenario that was not measured, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(super) struct LeftOut {
    pub name: &'static str,
    pub why: &'static str,
}

/// The whole result.
pub(super) struct BenchReport {
    pub machine: Value,
    pub durable: bool,
    pub bars: Vec<Bar>,
    pub left_out: Vec<LeftOut>,
    pub audits: Vec<SaleAudit>,
}

impl BenchReport {
    /// Whether nothing was lost, doubled or oversold.
    pub fn correct(&self) -> bool {
        let exact = self.bars.iter().filter(|bar| bar.counts_violations()).all(|bar| bar.holds == Some(true));
        exact && self.audits.iter().all(SaleAudit::consistent)
    }

    pub fn value(&self) -> Value {
        let audits: Vec<Value> = self.audits.iter().map(audit).collect();
        json!({
            "machine": self.machine, "durable": self.durable, "bars": self.bars, "left_out": self.left_out,
            "consistent": self.correct(), "audits": audits,
        })
    }

    pub fn print(&self) {
        output::line(&machine_line(&self.machine));
        if !self.durable {
            output::line(
                "NOT DURABLE: a server's settings would let accepted requests vanish (seckill doctor says which)",
            );
        }
        let rows = self.bars.iter().filter(|bar| !table::is_strategy(bar)).map(row);
        output::table(["name", "value", "baseline", "ratio", "bar", "holds", "note"], rows);
        table::print(&self.bars);
        let left_out: Vec<String> = self.left_out.iter().map(|left| format!("{} ({})", left.name, left.why)).collect();
        if !left_out.is_empty() {
            output::line(&format!("left out: {}", left_out.join(", ")));
        }
        for audit in &self.audits {
            for finding in &audit.findings {
                output::line(&format!("{} {}: {}", audit.sale_id, finding.kind.code(), finding.detail));
            }
        }
        output::line(&self.verdict());
    }

    pub fn verdict(&self) -> String {
        let sales = self.audits.len();
        if self.correct() {
            format!("consistent: nothing lost, doubled or oversold in {sales} sales")
        } else {
            format!("INCONSISTENT: see the {sales} sales above")
        }
    }
}

fn audit(audit: &SaleAudit) -> Value {
    json!({ "sale_id": audit.sale_id, "consistent": audit.consistent(), "counted": audit.counted, "findings": audit.findings })
}

fn row(bar: &Bar) -> [String; 7] {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
    [
        bar.name.to_owned(),
        value(bar),
        number(bar.baseline),
        number(bar.ratio),
        limit(bar),
        bar.holds.map_or("-", |holds| if holds { "yes" } else { "NO" }).to_owned(),
        bar.note.clone(),
    ]
}

/// The value with its unit, and the range of several runs.
pub(super) fn value(bar: &Bar) -> String {
    let (low, high) = bar.range();
    let range = if bar.runs.len() > 1 { format!(" ({}..{})", short(low), short(high)) } else { String::new() };
    format!("{} {}{range}", short(bar.value), bar.unit)
}

/// The bar, and on which side of it the result must be.
pub(super) fn limit(bar: &Bar) -> String {
    match (bar.bar, bar.rule) {
        (Some(limit), Rule::AtLeast) => format!("≥ {}×", short(limit)),
        (Some(limit), Rule::RatioAtMost) => format!("≤ {}×", short(limit)),
        (Some(limit), Rule::AtMost) => format!("≤ {}", short(limit)),
        (Some(_), Rule::None) | (None, _) => "-".to_owned(),
    }
}

/// The machine in one line.
pub(super) fn machine_line(machine: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let Value::Object(machine) = machine else { return String::new() };
    let words = machine.iter().map(|(name, value)| format!("{name} {}", text(value)));
    words.collect::<Vec<_>>().join(" · ")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The first value of this name in a file of the kernel's; empty without one.
pub(super) fn field(path: &str, name: &str) -> String {
    let text = read(path);
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split(':').nth(1)).map(|value| value.trim().to_owned()).unwrap_or_default()
}

/// What the figures were measured on.
pub(super) fn machine(versions: &[(&str, String)]) -> Value {
    let mut machine = json!({
        "cpu": field("/proc/cpuinfo", "model name"),
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "memory": field("/proc/meminfo", "MemTotal"),
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
    fn figures_have_the_digits_that_mean_something() {
        assert_eq!([short(91_234.6), short(1.304), short(0.0)], ["91235", "1.30", "0"]);
        let bar = Bar { runs: vec![90.0, 110.0], ..Bar::rate("relay", 100.0).against(Some(200.0), 0.8) };
        assert_eq!(row(&bar)[1..6], ["100 1/s (90.00..110)", "200", "0.50", "≥ 0.80×", "NO"]);
        assert_eq!(limit(&Bar::of("latency", 1.0, "ms").at_most(5.0)), "≤ 5.00");
    }

    #[test]
    fn one_violation_makes_the_whole_result_incorrect() {
        let report = |count| BenchReport {
            machine: json!({ "cores": 2 }),
            durable: true,
            bars: vec![Bar::rate("accept", 1.0), Bar::violations("crowd", count)],
            left_out: vec![LeftOut { name: "recovery", why: "not with --quick" }],
            audits: vec![],
        };
        assert!(report(0).correct() && !report(1).correct());
        assert!(report(1).verdict().starts_with("INCONSISTENT"));
        let value = report(0).value();
        assert_eq!((&value["bars"][0]["name"], &value["left_out"][0]["name"]), (&json!("accept"), &json!("recovery")));
    }
}
