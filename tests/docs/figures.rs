//! Figures say where they come from: which command, when, on what machine, and where its raw output is.

use crate::markdown::{Kind, Page, no_complaints, pages, root};
use std::fs;

/// Opens the line above a table of figures:
/// `Source: `command`, 2026-11-22, machine, [raw](data/name.json)`, or `raw data not kept` in place of the link.
const SOURCE: &str = "Source: ";

/// A table of `docs/performance.md` that has no figures of a run says so in its first column's title.
const WITHOUT_FIGURES: [&str; 4] = ["| name |", "| command |", "| part |", "| arithmetic |"];

fn has_date(text: &str) -> bool {
    let shape = |word: &str| {
        let digits = word.chars().filter(char::is_ascii_digit).count();
        word.len() == 10 && digits == 8 && word.as_bytes()[4] == b'-' && word.as_bytes()[7] == b'-'
    };
    text.split([' ', ',', ';', '(', ')', '.']).any(shape)
}

/// The paragraph that opens with `Source: ` and stands directly above line `at` of the page, in one piece.
fn source_above(lines: &[(usize, Kind, &str)], at: usize) -> Option<String> {
    let above = lines[..at]
        .iter()
        .rev()
        .map(|(_, _, line)| line.trim())
        .skip_while(|line| line.is_empty() || line.starts_with("<!--"));
    let mut paragraph: Vec<&str> = above.take_while(|line| !line.is_empty() && !line.starts_with('|')).collect();
    paragraph.reverse();
    let text = paragraph.join(" ");
    text.starts_with(SOURCE).then_some(text)
}

#[test]
fn every_table_of_figures_names_its_command_its_date_its_machine_and_its_raw_data() {
    let mut complaints = Vec::new();
    let name = "docs/performance.md";
    let page = Page::read(name);
    let lines = page.lines();
    for (at, (line, kind, text)) in lines.iter().enumerate() {
        let first = at == 0 || !matches!(lines[at - 1].1, Kind::Table);
        if !matches!(kind, Kind::Table) || !first || WITHOUT_FIGURES.iter().any(|title| text.starts_with(title)) {
            continue;
        }
        let Some(source) = source_above(&lines, at) else {
            complaints.push(format!("{name}:{line}: no paragraph “{SOURCE}…” directly above the table"));
            continue;
        };
        let raw = source.contains("](data/") || source.contains("raw data not kept");
        for (there, what) in [
            (source.matches('`').count() >= 2, "command"),
            (has_date(&source), "date"),
            (source.contains("cores"), "machine (its cores)"),
            (raw, "raw data"),
        ] {
            if !there {
                complaints.push(format!("{name}:{line}: the source names no {what}"));
            }
        }
    }
    no_complaints(&complaints);
}

#[test]
fn raw_data_is_the_output_of_the_benchmark_and_some_page_uses_it() {
    let linked: String = pages().into_iter().map(|page| page.text).collect();
    for entry in fs::read_dir(root().join("docs/data")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // `compat`: records of the tests' own runs (compatibility.rs).
            continue;
        }
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(has_date(name.get(..10).unwrap_or_default()), "{name} begins with its date");
        assert!(linked.contains(&format!("data/{name}")), "no page links to docs/data/{name}");
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for key in ["machine", "durable", "bars", "consistent"] {
            assert!(!json[key].is_null(), "{name} has no {key}: it is what `seckill bench --json` prints");
        }
    }
}

/// The JSON whose figures the page's table of bars and the readmes' tables show.
const BARS: &str = "docs/data/2026-11-27-bars.json";

/// As `scripts/bars-table.py` prints a number.
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

fn with_unit(value: &serde_json::Value, unit: &str) -> String {
    match value.as_f64() {
        None => "–".to_owned(),
        Some(value) if unit == "1/s" => format!("{}/s", number(value)),
        Some(value) => format!("{} {unit}", number(value)),
    }
}

/// The raw data of the page's table of bars.
pub fn bars() -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(root().join(BARS)).unwrap()).unwrap()
}

/// Median, baseline and ratio of each bar in the raw data.
fn raw_bars() -> Vec<(String, [String; 3])> {
    let json = bars();
    let bars = json["bars"].as_array().unwrap().iter().map(|bar| {
        let unit = bar["unit"].as_str().unwrap();
        let ratio = bar["ratio"].as_f64().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let cells = [with_unit(&bar["value"], unit), with_unit(&bar["baseline"], unit), ratio];
        (bar["name"].as_str().unwrap().to_owned(), cells)
    });
    bars.collect()
}

#[test]
fn the_table_of_bars_is_that_of_its_raw_data() {
    let page = Page::read("docs/performance.md");
    let mut complaints = Vec::new();
    for (name, [value, baseline, ratio]) in raw_bars() {
        let row = page.text.lines().find(|line| line.starts_with(&format!("| `{name}` |")) && line.ends_with(" |"));
        let Some(row) = row else {
            if !name.starts_with("sale_") {
                complaints.push(format!("{name} has no row"));
            }
            continue;
        };
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let shown = cells[1].split(" (").next().unwrap_or_default();
        if [shown, cells[2], cells[3]] != [value.as_str(), baseline.as_str(), ratio.as_str()] {
            complaints.push(format!("{name}: the raw data say {value}, {baseline}, {ratio}; the page {row}"));
        }
    }
    no_complaints(&complaints);
}

/// The bars of the readmes' tables, in the order of their rows.
const IN_THE_README: [&str; 6] = ["accept", "sold_out", "landing", "end_to_end_plain", "latency_landed", "crowd"];

#[test]
fn the_readmes_show_the_figures_of_the_raw_data() {
    let bars = raw_bars();
    let mut complaints = Vec::new();
    for name in ["README.md", "README.zh-CN.md"] {
        let page = Page::read(name);
        assert!(page.text.contains(BARS), "{name} links to {BARS}");
        let heading = page.text.find("/s | ").expect("a table of figures");
        let table = page.text[..heading].rfind("|---|").expect("its head");
        let rows: Vec<&str> = page.text[table..].lines().skip(1).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), IN_THE_README.len(), "{name}: {rows:#?}");
        for (row, bar) in rows.iter().zip(IN_THE_README) {
            let (_, [value, baseline, _]) = bars.iter().find(|(name, _)| name == bar).expect("the bar was measured");
            let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
            let with_baseline = baseline == "–" || cells[2].ends_with(baseline.as_str());
            if !(cells[1] == value
                || cells[1].starts_with(&format!("{value},"))
                || cells[1].starts_with(&format!("{value}，")))
                || !with_baseline
            {
                complaints.push(format!("{name}, {bar}: the raw data say {value} beside {baseline}; the page {row}"));
            }
        }
    }
    no_complaints(&complaints);
}
