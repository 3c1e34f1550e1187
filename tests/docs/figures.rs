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
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            // Records of tests' runs: `compat`, `hosts`, `orders`.
            for record in fs::read_dir(&path).unwrap() {
                let record = record.unwrap().file_name().into_string().unwrap();
                assert!(
                    linked.contains(&format!("data/{name}/{record}")),
                    "no page links to docs/data/{name}/{record}"
                );
            }
            continue;
        }
        assert!(has_date(name.get(..10).unwrap_or_default()), "{name} begins with its date");
        assert!(linked.contains(&format!("data/{name}")), "no page links to docs/data/{name}");
        let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for key in ["machine", "durable", "bars", "consistent"] {
            assert!(!json[key].is_null(), "{name} has no {key}: it is what `seckill bench --json` prints");
        }
    }
}
