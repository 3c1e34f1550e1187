//! `docs/constants.md` names constants as they are, and tests that exist.

use crate::markdown::{Page, no_complaints, root};
use std::fs;

const PAGE: &str = "docs/constants.md";

/// A row of the table.
struct ConstantRow {
    name: String,
    file: String,
    value: String,
    crossed_by: String,
}

fn rows() -> Vec<ConstantRow> {
    let text = Page::read(PAGE).text;
    let cells = |line: &str| line.split(" | ").map(|cell| cell.trim_matches(['|', ' ']).to_owned()).collect::<Vec<_>>();
    let plain = |cell: &str| cell.trim_matches('`').to_owned();
    let mut rows = Vec::new();
    for cells in text.lines().filter(|line| line.starts_with("| `")).map(cells) {
        let [name, place, value, _changes, crossed_by] = &cells[..] else { panic!("five cells: {cells:?}") };
        let (_, target) = place.split_once("](../").expect("a link to the file");
        rows.push(ConstantRow {
            name: plain(name),
            file: target.trim_end_matches(')').to_owned(),
            value: plain(value),
            crossed_by: crossed_by.clone(),
        });
    }
    rows
}

#[test]
fn every_constant_has_this_value_in_this_file() {
    let rows = rows();
    assert!(rows.len() >= 25, "{}", rows.len());
    let mut complaints = Vec::new();
    for ConstantRow { name, file, value, .. } in rows {
        let text = fs::read_to_string(root().join(&file)).unwrap_or_default();
        let declared = text.lines().map(str::trim).find(|line| line.contains(&format!("const {name}:")));
        match declared {
            None => complaints.push(format!("{PAGE}: {name} is not in {file}")),
            Some(line) if !line.ends_with(&format!("= {value};")) => {
                complaints.push(format!("{PAGE}: {name} is not {value}: {line}"));
            }
            Some(_) => {}
        }
    }
    no_complaints(&complaints);
}

#[test]
fn every_constant_is_crossed_by_a_test_that_exists_or_says_why_not() {
    let mut complaints = Vec::new();
    let (mut crossed, all) = (0, rows());
    for ConstantRow { name, crossed_by, .. } in &all {
        if let Some(reason) = crossed_by.strip_prefix("not crossed: ") {
            if reason.len() < 20 {
                complaints.push(format!("{PAGE}: {name} has no reason"));
            }
            continue;
        }
        crossed += 1;
        for test in crossed_by.split(", ").map(|test| test.trim_matches('`')) {
            let (file, function) = test.split_once("::").unwrap_or((test, ""));
            let text = fs::read_to_string(root().join(file)).unwrap_or_default();
            let attribute = text.split(&format!("fn {function}()")).next().unwrap_or_default();
            if function.is_empty() || attribute.len() == text.len() || !attribute.contains("#[test]") {
                complaints.push(format!("{PAGE}: {name}: there is no test {test}"));
            }
        }
    }
    assert!(crossed * 2 > all.len(), "{crossed} of {} are crossed", all.len());
    no_complaints(&complaints);
}
