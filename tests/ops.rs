//! What operators are given says the same as the code: the table of metrics, the alert rules, the dashboard. Needs promtool
//! (Debian's package `prometheus`; `scripts/install-deps.sh` gets it) and no server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use seckill::domain::states;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

const ALERTS: &str = "deploy/prometheus/alerts.yml";
const ALERT_TESTS: &str = "deploy/prometheus/alerts.test.yml";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Every `seckill_…` word of a text.
fn words(text: &str) -> BTreeSet<String> {
    let found = text.match_indices("seckill_").map(|(at, _)| {
        let end = text[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len() - at);
        text[at..at + end].to_owned()
    });
    found.collect()
}

fn documented() -> BTreeSet<String> {
    let text = read("docs/operations.md");
    let section = text.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let cells = section.lines().filter(|line| line.starts_with("| `")).map(|row| row.split(" | ").next().unwrap());
    cells.flat_map(words).collect()
}

/// Names that the sources register, with the kind of each; in tests of the sources nothing is registered.
fn registered(folder: &Path, found: &mut BTreeSet<(String, &'static str)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            registered(&path, found);
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for kind in ["counter", "gauge", "histogram"] {
            let opening = format!("metrics::{kind}!(");
            let calls = text.match_indices(&opening).map(|(at, _)| text[at + opening.len()..].trim_start());
            let literals = calls.filter_map(|rest| rest.strip_prefix('"')?.split('"').next());
            found.extend(literals.map(|name| (name.to_owned(), kind)));
        }
    }
}

fn in_the_sources() -> BTreeSet<(String, &'static str)> {
    let mut found = BTreeSet::new();
    registered(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found
}

#[test]
fn every_metric_is_in_the_table_and_every_row_is_a_metric() {
    let registered: BTreeSet<String> = in_the_sources().into_iter().map(|(name, _)| name).collect();
    assert!(registered.len() > 40, "{registered:?}");
    assert_eq!(documented(), registered);
}

/// Complains about what an expression names and the code does not have.
fn check_expression(expression: &str, known: &BTreeSet<(String, &'static str)>) {
    for word in words(expression) {
        let plain = known.iter().any(|(name, kind)| *name == word && *kind != "histogram");
        let parts = ["_bucket", "_sum", "_count"].iter().filter_map(|part| word.strip_suffix(part));
        let part = parts.into_iter().any(|base| known.contains(&(base.to_owned(), "histogram")));
        assert!(plain || part, "{word} is not a series of this program: {expression}");
    }
    let codes: BTreeSet<&str> = states::all().map(states::State::code).collect();
    for code in expression.split("code=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(codes.contains(code), "there is no state {code}: {expression}");
    }
    let phases: BTreeSet<&str> = states::all().map(|state| state.phase().name()).collect();
    let named = ["phase=\"", "phase=~\""].into_iter().flat_map(|opening| expression.split(opening).skip(1));
    for phase in named.flat_map(|rest| rest.split('"').next().unwrap().split('|')) {
        assert!(phases.contains(phase), "there is no phase {phase}: {expression}");
    }
}

/// The anchors that headings of a Markdown text have.
fn anchors(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter_map(|line| line.strip_prefix("## "));
    titles.map(|title| title.to_lowercase().replace(' ', "-").replace([',', '.', '`'], "")).collect()
}

#[test]
fn every_alert_says_how_bad_it_is_and_what_to_do_and_has_its_test() {
    let (rules, tests, known) = (read(ALERTS), read(ALERT_TESTS), in_the_sources());
    let anchors = anchors(&read("docs/operations.md"));
    let alerts: Vec<&str> = rules.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 20);
    for alert in alerts {
        let name = alert.lines().next().unwrap();
        let value = |key: &str| -> &str {
            let line = alert.lines().find_map(|line| line.trim().strip_prefix(key));
            line.unwrap_or_else(|| panic!("{name} has no {key}")).trim()
        };
        assert!(["{ severity: page }", "{ severity: ticket }"].contains(&value("labels:")), "{name}");
        assert!(!value("summary:").is_empty(), "{name}");
        let link = value("runbook_url:").strip_prefix("docs/operations.md#").unwrap_or_else(|| panic!("{name}"));
        assert!(anchors.contains(link), "{name} links to #{link}, which is no section");
        check_expression(value("expr:"), &known);
        for case in ["fires", "is silent"] {
            assert!(tests.contains(&format!("- name: {name} {case}\n")), "no test that {name} {case}");
        }
    }
}

#[test]
fn every_panel_of_the_dashboard_shows_series_that_exist() {
    let dashboard: Value = serde_json::from_str(&read("deploy/grafana/seckill.json")).unwrap();
    let known = in_the_sources();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter(|panel| panel["type"] != "row").flat_map(|panel| {
        assert!(panel["title"].as_str().is_some_and(|title| !title.is_empty()), "{panel}");
        panel["targets"].as_array().unwrap()
    });
    let expressions: Vec<&str> = targets.map(|target| target["expr"].as_str().unwrap()).collect();
    assert!(expressions.len() > 30);
    expressions.iter().for_each(|expression| check_expression(expression, &known));
    let ids: BTreeSet<i64> = panels.iter().map(|panel| panel["id"].as_i64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
}

#[test]
fn the_rules_are_valid_and_every_alert_fires_when_it_should() {
    for arguments in [["check", "rules", ALERTS], ["test", "rules", ALERT_TESTS]] {
        let done = Command::new("promtool")
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("promtool is not installed: run scripts/install-deps.sh");
        let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        assert!(done.status.success(), "promtool {arguments:?}: {said}");
    }
}
