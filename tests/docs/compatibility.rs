//! `docs/compatibility.md` says "run" of nothing that no recorded run had (`scripts/record-run.py`).

use crate::markdown::{Page, no_complaints, root};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;

const PAGE: &str = "docs/compatibility.md";
const RECORDS: &str = "docs/data/compat";
const BEGIN: &str = "<!-- recorded runs: written by UPDATE_DOCS=1 cargo test --test docs -->\n";
const END: &str = "<!-- end of recorded runs -->";
/// What is the whole suite, each part with the day since which there is one.
const SUITES: [(&str, &str); 12] = [
    ("unit", ""),
    ("it", ""),
    ("system", ""),
    ("model", ""),
    ("ops", ""),
    ("docs", ""),
    ("chaos", ""),
    ("controls", "2026-11-28"),
    ("drops", "2026-11-30"),
    ("generated", "2026-11-29"),
    ("traces", "2026-11-28"),
    ("tidy", ""),
];

/// One run of the whole suite.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    date: String,
    commit: String,
    servers: Servers,
    machine: String,
    rust: String,
    suites: BTreeMap<String, Suite>,
    failed: Vec<String>,
    minutes: f64,
    #[serde(skip)]
    file: String,
}

/// Name and version of each server, as it answered.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Servers {
    redis: String,
    rabbitmq: String,
    database: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    passed: u32,
    failed: u32,
    seconds: f64,
}

impl Run {
    fn row(&self) -> String {
        let Servers { redis, rabbitmq, database } = &self.servers;
        let counts = |(name, _): &(&str, _)| self.suites.get(*name).map(|suite| format!("{name} {}", suite.passed));
        let passed = SUITES.iter().filter_map(counts).collect::<Vec<_>>().join(", ");
        let red = match self.failed.as_slice() {
            [] => "none".to_owned(),
            failed => failed.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
        };
        let Self { date, commit, machine, rust, minutes, file, .. } = self;
        let raw = format!("[{date}, {commit}]({})", file.trim_start_matches("docs/"));
        format!(
            "| {redis} | {rabbitmq} | {database} | {raw} | {machine}, Rust {rust} | {passed} | {red} | {minutes:.0} |\n"
        )
    }

    fn is_green(&self) -> bool {
        self.failed.is_empty() && self.suites.values().all(|suite| suite.failed == 0)
    }

    /// Everything of it that has a version.
    fn versions(&self) -> Vec<&str> {
        let Servers { redis, rabbitmq, database } = &self.servers;
        let words = [redis, rabbitmq, database, &self.machine].into_iter().flat_map(|text| text.split([' ', ',']));
        words.chain([self.rust.as_str()]).filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).collect()
    }
}

/// The runs, the newest first.
fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(root().join(RECORDS)).into_iter().flatten() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let file = format!("{RECORDS}/{name}");
        let text = fs::read_to_string(root().join(&file)).unwrap();
        let run: Run = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(name.starts_with(&format!("{}-{}-", run.date, run.commit)), "{file} is named after its run");
        let known = |suite: &String| SUITES.iter().any(|(name, _)| name == suite);
        assert!(run.suites.keys().all(known), "{file}: a suite that is unknown");
        for (suite, _) in SUITES.iter().filter(|(_, since)| *since <= run.date.as_str()) {
            let of =
                run.suites.get(*suite).unwrap_or_else(|| panic!("{file}: no {suite}, so it was not the whole suite"));
            assert!(of.passed > 0 && of.seconds >= 0.0, "{file}: {suite}");
        }
        let red: u32 = run.suites.values().map(|suite| suite.failed).sum();
        assert_eq!(red as usize, run.failed.len(), "{file}: the red tests are named");
        runs.push(Run { file, ..run });
    }
    runs.sort_by(|a, b| b.file.cmp(&a.file));
    runs
}

fn table(runs: &[Run]) -> String {
    let mut table = "| Redis | RabbitMQ | database | run | on | tests passed | red | minutes |\n\
                     |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    table.extend(runs.iter().map(Run::row));
    format!("\n{table}\n")
}

#[test]
fn the_table_of_runs_is_made_from_their_records() {
    let page = Page::read(PAGE);
    let (before, rest) = page.text.split_once(BEGIN).expect("the table's place");
    let (_, after) = rest.split_once(END).expect("the table's end");
    let printed = format!("{before}{BEGIN}{}{END}{after}", table(&runs()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        // In one piece: other tests read the page meanwhile.
        let whole = root().join(format!("{PAGE}.new"));
        fs::write(&whole, &printed).unwrap();
        fs::rename(whole, root().join(PAGE)).unwrap();
    }
    let written = fs::read_to_string(root().join(PAGE)).unwrap();
    assert_eq!(written, printed, "UPDATE_DOCS=1 cargo test --test docs writes the table of {PAGE}");
}

/// Versions in a text: `7.0.15`, `10.11`.
fn versions_in(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.').map(|word| word.trim_matches('.'));
    words.filter(|word| word.contains('.')).collect()
}

#[test]
fn what_is_called_run_was_run() {
    let runs = runs();
    let had: Vec<&str> = runs.iter().filter(|run| run.is_green()).flat_map(Run::versions).collect();
    let ran = |version: &str| had.iter().any(|had| *had == version || had.starts_with(&format!("{version}.")));
    let mut complaints = Vec::new();
    let page = Page::read(PAGE);
    let (_, by_hand) = page.text.split_once(END).expect("the table's end");
    for line in by_hand.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [what, version, how] = cells.as_slice() else { panic!("three cells: {line}") };
        if !how.starts_with("run") {
            continue;
        }
        let claimed = versions_in(version);
        if claimed.is_empty() || !claimed.iter().all(|version| ran(version)) {
            complaints.push(format!("{PAGE}: {what} {version} is called run, and no green record of a run has it"));
        }
    }
    no_complaints(&complaints);
}

#[test]
fn a_version_is_found_in_words_and_a_longer_one_is_not_taken_for_it() {
    assert_eq!(versions_in("7.0.15 (Debian 12), one master"), ["7.0.15"]);
    assert_eq!(versions_in("Linux x86-64 with glibc 2.36."), ["2.36"]);
    assert!(versions_in("9 or newer").is_empty());
}
