//! One measured thing, once or as the median of several runs, and whether it meets its bar.

use serde::Serialize;
use serde_json::Value;

/// What makes a bar hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Rule {
    /// The ratio to the baseline is at least the bar.
    AtLeast,
    /// The ratio to the baseline is at most the bar.
    RatioAtMost,
    /// The value is at most the bar.
    AtMost,
    /// Nothing to hold.
    None,
}

/// One measured thing.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Bar {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    /// What it is compared with, in the same unit.
    pub baseline: Option<f64>,
    /// Value by baseline; with several runs the median of the ratios, each from one run.
    pub ratio: Option<f64>,
    /// The least or highest ratio, or the most the value may be; `rule` says which.
    pub bar: Option<f64>,
    pub rule: Rule,
    /// Whether the bar is met; `None` where there is no bar or no baseline.
    pub holds: Option<bool>,
    /// What each run measured, in their order; the value is their median.
    pub runs: Vec<f64>,
    pub note: String,
    /// More figures, by name.
    pub more: Value,
}

impl Bar {
    /// A value without a bar.
    pub fn of(name: &'static str, value: f64, unit: &'static str) -> Self {
        Self {
            name,
            value,
            unit,
            baseline: None,
            ratio: None,
            bar: None,
            rule: Rule::None,
            holds: None,
            runs: vec![value],
            note: String::new(),
            more: Value::Object(serde_json::Map::new()),
        }
    }

    pub fn rate(name: &'static str, value: f64) -> Self {
        Self::of(name, value, "1/s")
    }

    /// Violations of what must never happen; none are allowed.
    pub fn violations(name: &'static str, count: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let value = count as f64;
        Self::of(name, value, "violations").at_most(0.0)
    }

    /// The value must not be above `bar`.
    pub fn at_most(mut self, bar: f64) -> Self {
        (self.bar, self.rule) = (Some(bar), Rule::AtMost);
        self.judged()
    }

    /// Compares with a baseline, which may be missing; `bar` is the least ratio.
    pub fn against(self, baseline: Option<f64>, bar: f64) -> Self {
        self.compared(baseline, (bar, Rule::AtLeast))
    }

    /// Compares a cost with that of a baseline, which may be missing; `bar` is the highest ratio.
    pub fn cost_against(self, baseline: Option<f64>, bar: f64) -> Self {
        self.compared(baseline, (bar, Rule::RatioAtMost))
    }

    /// Reported beside a baseline, which may be missing; there is nothing to hold.
    pub fn beside(mut self, baseline: Option<f64>) -> Self {
        self.baseline = baseline;
        self.ratio = self.ratio_to(baseline);
        self
    }

    fn ratio_to(&self, baseline: Option<f64>) -> Option<f64> {
        baseline.filter(|baseline| *baseline > 0.0).map(|baseline| self.value / baseline)
    }

    fn compared(mut self, baseline: Option<f64>, (bar, rule): (f64, Rule)) -> Self {
        (self.bar, self.rule) = (Some(bar), rule);
        self.beside(baseline).judged()
    }

    fn judged(mut self) -> Self {
        self.holds = match (self.rule, self.bar) {
            (Rule::AtLeast, Some(bar)) => self.ratio.map(|ratio| ratio >= bar),
            (Rule::RatioAtMost, Some(bar)) => self.ratio.map(|ratio| ratio <= bar),
            (Rule::AtMost, Some(bar)) => Some(self.value <= bar),
            (Rule::None, _) | (_, None) => None,
        };
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

    /// Lowest and highest run.
    pub fn range(&self) -> (f64, f64) {
        let low = self.runs.iter().copied().fold(self.value, f64::min);
        (low, self.runs.iter().copied().fold(self.value, f64::max))
    }

    /// Whether it counts what must never happen.
    pub fn counts_violations(&self) -> bool {
        self.unit == "violations"
    }
}

/// Runs of the same measurements, made one: medians, and for violations the worst. Each list is one run.
pub(super) fn merged(runs: Vec<Vec<Bar>>) -> Vec<Bar> {
    let mut by_name: Vec<Vec<Bar>> = Vec::new();
    for bar in runs.into_iter().flatten() {
        match by_name.iter_mut().find(|same| same.first().is_some_and(|first| first.name == bar.name)) {
            Some(same) => same.push(bar),
            None => by_name.push(vec![bar]),
        }
    }
    by_name.into_iter().filter_map(one).collect()
}

fn one(same: Vec<Bar>) -> Option<Bar> {
    let runs: Vec<f64> = same.iter().map(|bar| bar.value).collect();
    let worst = same.first()?.counts_violations();
    let value = if worst { runs.iter().copied().fold(0.0, f64::max) } else { median(&runs)? };
    let baseline = median(&same.iter().filter_map(|bar| bar.baseline).collect::<Vec<_>>());
    let ratio = median(&same.iter().filter_map(|bar| bar.ratio).collect::<Vec<_>>());
    // Words and further figures are of the run that is nearest to the median.
    let near = |bar: &Bar| (bar.value - value).abs();
    let bar = same.into_iter().min_by(|one, other| near(one).total_cmp(&near(other)))?;
    Some(Bar { value, baseline, ratio, runs, ..bar }.judged())
}

/// The middle value, of two middle ones their mean; `None` of nothing.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted.get(middle - 1)? + upper) / 2.0) }
}

/// A figure with as many digits as mean something.
pub(super) fn short(value: f64) -> String {
    if value.abs() >= 100.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
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
        let costs = |baseline| Bar::of("cost", 8.0, "µs").cost_against(baseline, 1.6).holds;
        assert_eq!([costs(Some(5.0)), costs(Some(4.9)), costs(None)], [Some(true), Some(false), None]);
        assert_eq!(Bar::violations("sale", 0).holds, Some(true));
        assert_eq!(Bar::violations("sale", 1).holds, Some(false));
        assert_eq!(
            [4.9, 5.0, 5.1].map(|ms| Bar::of("latency", ms, "ms").at_most(5.0).holds),
            [true, true, false].map(Some)
        );
    }

    #[test]
    fn several_runs_become_their_medians() {
        let run = |value: f64, baseline: f64| {
            vec![Bar::rate("a", value).against(Some(baseline), 2.0).note(format!("{value}")), Bar::violations("v", 0)]
        };
        let mut runs = vec![run(10.0, 10.0), run(30.0, 10.0), run(20.0, 5.0)];
        runs[1][1] = Bar::violations("v", 3);
        let bars = merged(runs);
        let [a, v] = bars.as_slice() else { panic!("{bars:?}") };
        assert_eq!((a.value, a.baseline, a.ratio, a.holds), (20.0, Some(10.0), Some(3.0), Some(true)));
        assert_eq!((a.range(), a.note.as_str(), a.runs.len()), ((10.0, 30.0), "20", 3));
        assert_eq!((v.value, v.holds), (3.0, Some(false)), "one bad run is a bad result");
        assert_eq!([median(&[]), median(&[3.0]), median(&[4.0, 1.0])], [None, Some(3.0), Some(2.5)]);
        assert!(merged(vec![]).is_empty());
    }
}
