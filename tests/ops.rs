//! What operators are given says the same as the code: the table of metrics, the alert rules, the dashboard. Needs promtool
//! (Debian's package `prometheus`; `scripts/install-deps.sh` gets it) and no server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use seckill::domain::states;
use seckill::p5_reconcile::FindingKind;
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

/// What src/telemetry/sale_series.rs writes; `ops::metrics` reads them off a page.
const SALE_SERIES: [(&str, &str); 3] = [
    ("seckill_p5_reconcile_units", "gauge"),
    ("seckill_p5_reconcile_findings_count", "gauge"),
    ("seckill_p5_reconcile_false_alarms_total", "counter"),
];

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
            // Those of single sales, which the program writes itself.
            for (name, _) in SALE_SERIES.iter().filter(|(_, of)| *of == kind) {
                found.extend(text.contains(&format!("\"{name}\"")).then(|| ((*name).to_owned(), kind)));
            }
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
    let findings: BTreeSet<&str> = FindingKind::ALL.iter().map(|kind| kind.code()).collect();
    let named = ["finding=\"", "finding=~\""].into_iter().flat_map(|opening| expression.split(opening).skip(1));
    for finding in named.flat_map(|rest| rest.split('"').next().unwrap().split('|')) {
        assert!(findings.contains(finding), "there is no finding {finding}: {expression}");
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
    // Fired by a real trouble over real processes, in tests/system/alerts.
    let caused = between("tests/system/alerts", "\"Seckill", &['"']);
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
        let bare = name.strip_prefix("Seckill").unwrap();
        assert!(caused.contains(bare), "no test causes {name}");
        for case in ["fires", "is silent"] {
            assert!(tests.contains(&format!("- name: {name} {case}\n")), "no test that {name} {case}");
        }
    }
}

/// What stands in backticks in the first cells of a section's table rows, at most `cells` of them.
fn rows(title: &str, cells: usize) -> Vec<Vec<String>> {
    let text = read("docs/operations.md");
    let section = text.split(&format!("\n{title}\n")).nth(1).unwrap_or_else(|| panic!("no {title}"));
    let section = section
        .split("\n## ")
        .next()
        .unwrap()
        .split("\n\n")
        .map(str::trim_start)
        .find(|part| part.starts_with("| "))
        .unwrap();
    let rows =
        section.lines().skip(2).map(|row| row.trim_start_matches("| ").split(" | ").take(cells).collect::<String>());
    rows.map(|cells| cells.split('`').skip(1).step_by(2).map(str::to_owned).collect()).collect()
}

/// Texts that stand between two others in the sources below `folder`.
fn between(folder: &str, opening: &str, closing: &[char]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path()));
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        found.extend(text.split(opening).skip(1).map(|rest| rest.split(closing).next().unwrap().to_owned()));
    }
    assert!(!found.is_empty(), "nothing in {folder} after {opening}");
    found
}

#[test]
fn every_alert_finding_and_reason_has_its_row_in_the_runbook() {
    let flat = |rows: Vec<Vec<String>>| -> BTreeSet<String> {
        rows.into_iter().filter_map(|row| row.into_iter().next()).collect()
    };
    let rules = read(ALERTS);
    let alerts = rules.split("- alert: ").skip(1).map(|alert| alert.lines().next().unwrap().to_owned());
    assert_eq!(flat(rows("## Alerts", 1)), alerts.collect(), "alerts");
    let findings = FindingKind::ALL.iter().map(|kind| kind.code().to_owned());
    assert_eq!(flat(rows("## The audit", 1)), findings.collect(), "findings");
    let mut sent_back = between("src/p4_persist", "SendBackReason::new(\"", &['"']);
    for opening in ["(RequestEvent::PersistFailed, \"", "(RequestEvent::PersistSpent, \""] {
        sent_back.extend(between("src/p4_persist", opening, &['"']));
    }
    assert_eq!(flat(rows(MQ_REASONS, 1)), sent_back, "reasons of the MQ DLQ");
    let relay = flat(rows(RELAY_REASONS, 1));
    let mut given = between("src/p3_relay/entry.rs", "reason: format!(\"", &[':']);
    for opening in
        ["fail_probes(&format!(\"", "let reason = format!(\"", "failed(&keys, &format!(\"", "failed(&keys, \""]
    {
        given.extend(between("src/p3_relay/send.rs", opening, &[':', '"']));
    }
    let heads: BTreeSet<String> = relay.iter().map(|row| row.split(':').next().unwrap().to_owned()).collect();
    assert_eq!(heads, given, "reasons of the relay DLQ");
}

/// The sentences before the tables of reasons.
const RELAY_REASONS: &str = "request has its outcome):";
const MQ_REASONS: &str =
    "MQ DLQ (`<prefix>.dlq`; reason in the header `x-seckill-reason`, words in `x-seckill-detail`):";

#[test]
fn every_complaint_of_the_doctor_has_its_row_in_the_runbook() {
    let listed: BTreeSet<String> = rows("## What doctor complains about", 2).concat().into_iter().collect();
    let mut checks = between("src/store/mysql/checks.rs", "name: \"", &['"']);
    for opening in ["is(value, \"", "is(&value, \""] {
        checks.extend(between("src/store/mysql/checks.rs", opening, &['"']));
    }
    checks.extend(between("src/store/redis/health.rs", "name: \"", &['"']));
    for opening in [
        "::new(SERVER, \"",
        "::new(server, \"",
        "::new(\"redis\", \"",
        "::new(\"machine\", \"",
        "::new(\"mysql\", \"",
        "::new(\"rabbitmq\", \"",
        "::new(\"risk\", \"",
        "const DECLARED: &str = \"",
        "const MIGRATED: &str = \"",
    ] {
        checks.extend(between("src/cli/doctor", opening, &['"']));
    }
    // Each address is a check of its own.
    checks.extend(
        between("src/cli/doctor/addresses.rs", "DoctorCheck::new(server, format!(\"", &['"'])
            .into_iter()
            .map(|name| name.replace("{address}", "…")),
    );
    // Settings of one server of several.
    let of_one = [
        ("src/cli/doctor/addresses.rs", "format!(\"{} of {address}", "… of ADDRESS"),
        ("src/cli/doctor/redis.rs", "format!(\"{name} of replica ", "… of replica"),
        ("src/cli/doctor/redis.rs", "format!(\"snapshots of {}", "snapshots of ADDRESS"),
    ];
    for (file, name, row) in of_one {
        assert!(read(file).contains(name), "{file} names a check {row}");
        checks.insert(row.to_owned());
    }
    // The place of public keys: each kind of it has a key.
    for opening in ["Self::Auth => \"", "Self::Passes => \""] {
        let keys = between("src/config/key_settings.rs", opening, &['"']);
        checks.extend(keys.into_iter().filter(|key| key.contains(".jwks_") || key.ends_with(".key_file")));
    }
    let advice = read("src/cli/doctor/advice.rs");
    let arms = advice.lines().filter_map(|line| line.split_once(" => ")).map(|(names, _)| names);
    checks.extend(arms.flat_map(|names| names.split('"').skip(1).step_by(2)).map(str::to_owned));
    assert_eq!(listed, checks);
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
