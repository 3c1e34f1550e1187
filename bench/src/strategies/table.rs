//! The strategies' own table: one row each, what was measured and what a kill -9 left. A dash is what a strategy does not
//! have: no retries, no events.

use crate::bar::{Bar, short};
use seckill::cli::output;
use serde_json::Value;

const HEADER: [&str; 13] = [
    "strategy",
    "tries/s",
    "p50 ms",
    "p99 ms",
    "retries a try",
    "oversold",
    "undersold",
    "told yes",
    "lost",
    "doubled",
    "events twice",
    "orders without unit",
    "units stranded",
];
/// Where each column behind the second is in a bar's further figures.
const FIGURES: [&str; 11] = [
    "/p50_ms",
    "/p99_ms",
    "/retry_rate",
    "/oversold",
    "/undersold",
    "/kill/told",
    "/kill/lost",
    "/kill/doubled",
    "/kill/events/twice",
    "/kill/oversold",
    "/kill/stranded",
];

/// Whether this bar is a strategy's, and so in the table here.
pub(crate) fn is_strategy(bar: &Bar) -> bool {
    bar.more.get("kill").is_some()
}

/// Prints the table; nothing without strategies.
pub(crate) fn print(bars: &[Bar]) {
    let rows: Vec<_> = bars.iter().filter(|bar| is_strategy(bar)).map(row).collect();
    if !rows.is_empty() {
        output::line("strategies; from `told yes` on: after a kill -9 of the application, counted in the servers");
        output::table(HEADER, rows);
    }
}

fn row(bar: &Bar) -> [String; 13] {
    let mut cells = FIGURES.iter().map(|figure| cell(bar.more.pointer(figure)));
    std::array::from_fn(|column| match column {
        0 => bar.name.trim_start_matches("strategy_").to_owned(),
        1 => short(bar.value),
        _ => cells.next().unwrap_or_default(),
    })
}

fn cell(figure: Option<&Value>) -> String {
    match figure {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::Number(number)) if number.is_f64() => number.as_f64().map_or_else(String::new, short),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_figure_is_in_its_column_and_what_there_is_not_is_a_dash() {
        let kill = json!({ "told": 300, "lost": 0, "doubled": 0, "oversold": 0, "stranded": 2, "events": null });
        let more =
            json!({ "p50_ms": 0.5, "p99_ms": 1.0, "retry_rate": null, "oversold": 3, "undersold": 4, "kill": kill });
        let bar = Bar::rate("strategy_script", 1_000.0).more(more);
        let expected = ["script", "1000", "0.50", "1.00", "-", "3", "4", "300", "0", "0", "-", "0", "2"];
        assert!(is_strategy(&bar));
        assert_eq!(row(&bar), expected);
        assert!(!is_strategy(&Bar::rate("accept", 1.0)));
    }
}
