//! Series of single sales, as P5 found them last. A sale that is over has none: the metrics crate takes no series back, and a
//! shop makes sales for years.
//!
//! Input: the figures of one audit. Output: lines of the metrics page, for [`SALES_MAX`] sales at most. A crash loses them; the
//! next audit of each sale brings its own again.

use crate::domain::ids::SaleId;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Sales with series in one process, some thirty series each. Beyond it a sale without findings has none.
const SALES_MAX: usize = 1_000;

/// What one audit of a sale found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SaleFigures {
    /// Each term of the sheet, units.
    pub(crate) units: Vec<(&'static str, i64)>,
    /// Open findings of each kind.
    pub(crate) findings: Vec<(&'static str, i64)>,
}

impl SaleFigures {
    fn has_findings(&self) -> bool {
        self.findings.iter().any(|(_, count)| *count > 0)
    }
}

#[derive(Default)]
struct Shown {
    figures: Option<SaleFigures>,
    false_alarms: u64,
}

/// The sales that are shown.
#[derive(Default)]
struct ShownSales(BTreeMap<SaleId, Shown>);

static SERIES: Mutex<ShownSales> = Mutex::new(ShownSales(BTreeMap::new()));

fn series() -> MutexGuard<'static, ShownSales> {
    SERIES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows what an audit found.
pub(crate) fn show_sale(sale: &SaleId, figures: SaleFigures) {
    series().show(sale, figures);
}

/// Shows nothing of a sale any more.
pub(crate) fn hide_sale(sale: &SaleId) {
    series().0.remove(sale);
}

/// Counts findings of a sale that were nothing.
pub(crate) fn count_false_alarms(sale: &SaleId, count: u64) {
    series().count_false_alarms(sale, count);
}

/// The lines of the metrics page.
pub(super) fn render() -> String {
    series().render()
}

impl ShownSales {
    /// The place of a sale; `None` when all are taken and this sale's findings are not worth one.
    fn place(&mut self, sale: &SaleId, has_findings: bool) -> Option<&mut Shown> {
        if self.0.len() >= SALES_MAX && !self.0.contains_key(sale) {
            let sound = |shown: &Shown| shown.figures.as_ref().is_none_or(|figures| !figures.has_findings());
            let gives_way = self.0.iter().find(|(_, shown)| sound(shown)).map(|(sale, _)| sale.clone());
            self.0.remove(&gives_way.filter(|_| has_findings)?);
        }
        Some(self.0.entry(sale.clone()).or_default())
    }

    fn show(&mut self, sale: &SaleId, figures: SaleFigures) {
        if let Some(shown) = self.place(sale, figures.has_findings()) {
            shown.figures = Some(figures);
        }
    }

    fn count_false_alarms(&mut self, sale: &SaleId, count: u64) {
        if count > 0
            && let Some(shown) = self.place(sale, true)
        {
            shown.false_alarms += count;
        }
    }

    fn render(&self) -> String {
        let (units, findings) = ("seckill_p5_reconcile_units", "seckill_p5_reconcile_findings_count");
        let false_alarms = "seckill_p5_reconcile_false_alarms_total";
        let counted = |(sale, shown): (&SaleId, &Shown)| line(false_alarms, sale, None, shown.false_alarms);
        [
            family(units, "gauge", self.labelled(units, "what", |figures| &figures.units)),
            family(findings, "gauge", self.labelled(findings, "finding", |figures| &figures.findings)),
            family(false_alarms, "counter", self.0.iter().map(counted).collect()),
        ]
        .concat()
    }

    /// The lines of a family with a label beside the sale.
    fn labelled(&self, name: &str, label: &str, pick: fn(&SaleFigures) -> &Vec<(&'static str, i64)>) -> String {
        let figures = self.0.iter().filter_map(|(sale, shown)| Some((sale, pick(shown.figures.as_ref()?))));
        figures
            .flat_map(|(sale, values)| values.iter().map(move |(value, number)| (sale, *value, *number)))
            .map(|(sale, value, number)| line(name, sale, Some((label, value)), number))
            .collect()
    }
}

/// One series. An id of a sale has no character that would have to be escaped.
fn line(name: &str, sale: &SaleId, label: Option<(&str, &str)>, number: impl Display) -> String {
    let label = label.map(|(label, value)| format!(",{label}=\"{value}\"")).unwrap_or_default();
    format!("{name}{{sale=\"{sale}\"{label}}} {number}\n")
}

/// The lines of one metric with its type; nothing without lines.
fn family(name: &str, kind: &str, lines: String) -> String {
    if lines.is_empty() { lines } else { format!("# TYPE {name} {kind}\n{lines}\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sale(n: usize) -> SaleId {
        SaleId::parse(&format!("sale-{n:05}")).unwrap()
    }

    fn figures(leaks: i64) -> SaleFigures {
        SaleFigures { units: vec![("granted", 5)], findings: vec![("P5-RC1", leaks)] }
    }

    #[test]
    fn a_hidden_sale_leaves_no_line() {
        let mut series = ShownSales::default();
        series.show(&sale(1), figures(2));
        series.count_false_alarms(&sale(1), 0);
        let text = series.render();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        assert_eq!(
            lines,
            [
                "# TYPE seckill_p5_reconcile_units gauge",
                "seckill_p5_reconcile_units{sale=\"sale-00001\",what=\"granted\"} 5",
                "# TYPE seckill_p5_reconcile_findings_count gauge",
                "seckill_p5_reconcile_findings_count{sale=\"sale-00001\",finding=\"P5-RC1\"} 2",
                "# TYPE seckill_p5_reconcile_false_alarms_total counter",
                "seckill_p5_reconcile_false_alarms_total{sale=\"sale-00001\"} 0",
            ]
        );
        series.0.remove(&sale(1));
        assert_eq!(series.render(), "");
    }

    #[test]
    fn series_are_bounded_and_a_sale_with_findings_has_a_place_before_a_sound_one() {
        let mut series = ShownSales::default();
        for n in 0..SALES_MAX + 50 {
            series.show(&sale(n), figures(0));
        }
        assert_eq!(series.0.len(), SALES_MAX);
        let late = sale(SALES_MAX + 100);
        series.show(&late, figures(0));
        assert!(!series.0.contains_key(&late), "no place");
        series.show(&late, figures(1));
        assert!(series.0.contains_key(&late));
        assert_eq!(series.0.len(), SALES_MAX);
    }
}
