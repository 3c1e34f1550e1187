//! The bars: `docs/performance.md` has all of them and the readmes have six, from one raw file, the output of `seckill bench`.

use crate::markdown::{Page, root};
use serde_json::Value;
use std::fs;

/// Another measurement is a new file here, and `UPDATE_DOCS=1 cargo test --test docs`; the words around the tables are by hand.
const RAW: &str = "docs/data/2026-11-29-bars.json";

/// The order of the table. Bars that are not in it are not shown: whole sales, of which each violation is a fault.
const ORDER: [&str; 34] = [
    "accept",
    "accept_rs256",
    "cost_api",
    "cost_redis",
    "cost_redis_set",
    "cost_redis_repeats",
    "sold_out",
    "replay",
    "poll",
    "cost_poll",
    "latency",
    "latency_bare",
    "latency_landed",
    "relay",
    "landing",
    "landing_rows",
    "end_to_end",
    "end_to_end_plain",
    "cost_end_to_end",
    "cost_landing",
    "memory",
    "memory_settled",
    "memory_role",
    "waiters",
    "waiters_replicated",
    "cost_waiters",
    "rush",
    "rush_within_1s",
    "rush_p99",
    "crowd",
    "crowd_exact",
    "recovery",
    "recovery_server",
    "recovery_host",
];

/// Bars that came after the raw data. The next measurement has them, and then none may stand here.
const NEWER: [&str; 0] = [];

/// The bars of the readmes' tables, in the order of their rows.
const IN_THE_README: [&str; 6] = ["accept", "sold_out", "landing", "end_to_end_plain", "latency_landed", "crowd"];

/// Whole from 1,000 and where nothing stands behind the point; else three digits.
pub fn number(value: f64) -> String {
    let digits = |count: usize| format!("{value:.count$}");
    match value.abs() {
        1000.0.. => {
            let whole = digits(0);
            let places = whole.len();
            let grouped = whole.char_indices().flat_map(|(at, digit)| {
                let comma = (at > 0 && (places - at).is_multiple_of(3)).then_some(',');
                comma.into_iter().chain([digit])
            });
            grouped.collect()
        }
        size if value.fract() == 0.0 || size >= 100.0 => digits(0),
        10.0.. => digits(1),
        _ => digits(2),
    }
}

fn with_unit(value: &Value, unit: &str) -> String {
    match value.as_f64() {
        None => "–".to_owned(),
        Some(value) if unit == "1/s" => format!("{}/s", number(value)),
        Some(value) => format!("{} {unit}", number(value)),
    }
}

/// The raw data of the table.
pub fn raw() -> Value {
    serde_json::from_str(&fs::read_to_string(root().join(RAW)).unwrap()).unwrap()
}

/// One bar of them.
pub fn bar<'a>(json: &'a Value, name: &str) -> &'a Value {
    json["bars"].as_array().unwrap().iter().find(|bar| bar["name"] == name).unwrap_or_else(|| panic!("no bar {name}"))
}

fn row(bar: &Value) -> String {
    let text = |key: &str| bar[key].as_str().unwrap().to_owned();
    let (unit, rule) = (text("unit"), text("rule"));
    let runs: Vec<f64> = bar["runs"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    let (least, most) = runs.iter().fold((f64::MAX, f64::MIN), |(least, most), run| (least.min(*run), most.max(*run)));
    let spread = if least < most { format!(" ({} to {})", number(least), number(most)) } else { String::new() };
    let ratio = bar["ratio"].as_f64().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
    let limit = match (bar["bar"].as_f64(), rule.as_str()) {
        (None, _) => "–".to_owned(),
        (Some(limit), "at_least") => format!("≥ {} ×", number(limit)),
        (Some(limit), "ratio_at_most") => format!("≤ {} ×", number(limit)),
        (Some(limit), _) => format!("≤ {}", number(limit)),
    };
    let holds = bar["holds"].as_bool().map_or("–", |holds| if holds { "yes" } else { "**no**" });
    let (value, baseline) = (with_unit(&bar["value"], &unit), with_unit(&bar["baseline"], &unit));
    format!("| `{}` | {value}{spread} | {baseline} | {ratio} | {limit} | {holds} |\n", text("name"))
}

/// All bars as Markdown.
pub fn table(json: &Value) -> String {
    let known = |name: &str| ORDER.contains(&name) || name.starts_with("sale_");
    let names = json["bars"].as_array().unwrap().iter().map(|bar| bar["name"].as_str().unwrap());
    let unknown: Vec<&str> = names.clone().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "where in the table do they stand? {unknown:?}");
    let measured: Vec<&str> = names.filter(|name| NEWER.contains(name)).collect();
    assert!(measured.is_empty(), "the raw data has them, they are not newer: {measured:?}");
    let head = "| measured | median (lowest to highest) | baseline of the same run | ratio | bar | holds |\n\
                |---|---|---|---|---|---|\n";
    let rows = ORDER.iter().filter(|name| !NEWER.contains(name)).map(|name| row(bar(json, name)));
    head.to_owned() + &rows.collect::<String>()
}

/// The row of a readme with the figures of its bar: what stands before a comma in the second cell, and behind the colon in the
/// third.
fn with_figures(row: &str, bar: &Value) -> String {
    let unit = bar["unit"].as_str().unwrap();
    let (value, baseline) = (with_unit(&bar["value"], unit), with_unit(&bar["baseline"], unit));
    let mut cells: Vec<String> = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let rest =
        cells[1].match_indices([',', '，']).find(|(at, _)| !cells[1][..*at].ends_with(|c: char| c.is_ascii_digit()));
    cells[1] = rest.map_or(value.clone(), |(at, _)| format!("{value}{}", &cells[1][at..]));
    if let Some(at) = cells[2].rfind([':', '：']).filter(|_| baseline != "–") {
        let colon = cells[2][at..].chars().next().unwrap();
        let blank = if colon == ':' { " " } else { "" };
        cells[2] = format!("{}{colon}{blank}{baseline}", &cells[2][..at]);
    }
    format!("| {} |", cells.join(" | ")).replace("|  |", "| |")
}

#[test]
fn the_readmes_show_the_figures_of_the_raw_data() {
    let json = raw();
    for name in ["README.md", "README.zh-CN.md"] {
        let text = Page::read(name).text;
        assert!(text.contains(RAW), "{name} links to {RAW}");
        let heading = text.find("/s | ").expect("a table of figures");
        let table = text[..heading].rfind("|---|").expect("its head");
        let rows: Vec<&str> = text[table..].lines().skip(1).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), IN_THE_README.len(), "{name}: {rows:#?}");
        let with = |(row, name): (&&str, &str)| with_figures(row, bar(&json, name));
        let printed: Vec<String> = rows.iter().zip(IN_THE_README).map(with).collect();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            // In one piece: other tests read the page meanwhile.
            let whole = root().join(format!("{name}.new"));
            fs::write(&whole, text.replace(&rows.join("\n"), &printed.join("\n"))).unwrap();
            fs::rename(whole, root().join(name)).unwrap();
        } else {
            assert_eq!(rows, printed, "UPDATE_DOCS=1 cargo test --test docs writes the figures of {name}");
        }
    }
}
