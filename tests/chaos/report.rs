//! The figures of a run, as Markdown, in `target/chaos/report-<seed>.md`.

use crate::asked;
use crate::nemesis::Kind;
use crate::run::Finished;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

/// The promises, and the checker's rules that would show one broken.
const PROMISES: [(&str, &[&str]); 12] = [
    ("acknowledged and lost", &["C3-lost", "C3-limbo", "C3-torn", "C6"]),
    ("duplicate orders, or above the limit", &["C2"]),
    ("oversold", &["C1"]),
    ("double outcomes", &["C10"]),
    ("orders that no client asked for", &["C4"]),
    ("wrong answers (sold out, unknown)", &["C5", "C7"]),
    ("Redis' side does not add up", &["C8"]),
    ("events that downstream systems never got", &["C12"]),
    ("findings of the audit that nothing confirms", &["C13"]),
    ("answers to operators that are not so", &["C14"]),
    ("events that the shop never got by webhook", &["C15"]),
    ("events of sales that were never published", &["C16"]),
];

/// Where reports are.
pub fn folder() -> PathBuf {
    // Cargo's temporary folder is target/tmp.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let folder = target.join("chaos");
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// Writes the report, with the schedule and what became of it beside it, and says where.
pub fn write(run: &Finished) -> PathBuf {
    let folder = folder();
    let path = folder.join(format!("report-{}.md", run.orders.seed));
    std::fs::write(&path, text(run)).expect("written");
    // For the checker alone, on the same lines again: `SECKILL_TRACES=folder cargo test --test traces`.
    if let (Some(kept), Some(traces)) = (asked::<PathBuf>("CHAOS_TRACES"), run.deployment.traces()) {
        std::fs::create_dir_all(&kept).expect("a folder");
        for file in std::fs::read_dir(traces).expect("the lines").flatten() {
            std::fs::copy(file.path(), kept.join(file.file_name())).expect("copied");
        }
    }
    for file in ["nemesis", "faults"] {
        let (from, to) = (format!("{file}.jsonl"), format!("{file}-{}.jsonl", run.orders.seed));
        std::fs::copy(run.deployment.dir().join(from), folder.join(to)).expect("copied");
    }
    path
}

fn text(run: &Finished) -> String {
    let mut out = format!("# Chaos run, seed {}\n\n{}\n\n", run.orders.seed, run.summary());
    let word = if run.is_green() { "green" } else { "**RED**" };
    writeln!(out, "Verdict: {word}. The same schedule again: `{}`\n", run.command()).expect("text");
    promises(run, &mut out);
    traffic(run, &mut out);
    faults(run, &mut out);
    crash_points(run, &mut out);
    traces(run, &mut out);
    notes(run, &mut out);
    surroundings(run, &mut out);
    if !run.is_green() {
        writeln!(out, "## What is wrong\n\n```\n{}\n```\n", run.complaints()).expect("text");
    }
    out
}

fn promises(run: &Finished, out: &mut String) {
    let n = run.verdict.figures.accepted;
    let bound = run.verdict.figures.rule_of_three.map_or("–".to_owned(), |bound| format!("{bound:.2e}"));
    out.push_str(
        "## Promises\n\n| broken | times | of n accepted | upper bound of the share (3/n, 95 %) |\n|---|---|---|---|\n",
    );
    for (promise, rules) in PROMISES {
        let times = run.verdict.violations.iter().filter(|found| rules.contains(&found.rule)).count();
        let bound = if times == 0 { bound.as_str() } else { "–" };
        writeln!(out, "| {promise} | {times} | {n} | {bound} |").expect("text");
    }
    out.push('\n');
}

fn traffic(run: &Finished, out: &mut String) {
    let figures = &run.verdict.figures;
    let state = |code: &str| run.states.get(code).copied().unwrap_or(0);
    out.push_str("## Traffic\n\n| figure | value |\n|---|---|\n");
    for (figure, value) in [
        ("attempts to buy", figures.sent.to_string()),
        ("requests accepted", figures.accepted.to_string()),
        ("answers refused", format!("{:?}", figures.refused)),
        ("answers unknown", figures.unknown.to_string()),
        ("replays that got the same", figures.replays_same.to_string()),
        ("purchases skipped by the crowd's own bound", run.totals.skipped.to_string()),
        ("requests without a final answer at the end", run.totals.unsettled.to_string()),
        ("payments reported", run.totals.payments.to_string()),
        ("payments on record", format!("{:?}", figures.payments)),
        ("orders of sales with a payment step", format!("{:?}", figures.orders_by_state)),
        ("orders", format!("{} {:?}", figures.orders, figures.orders_by_source)),
        ("orders by sale", format!("{:?}", figures.orders_by_sale)),
        ("acts of operators", format!("{:?}", figures.acts)),
        ("failures by reason", format!("{:?}", figures.failed)),
        ("redeliveries absorbed (P4-C1, at least)", state("P4-C1").to_string()),
        ("parked by the relay (P3-N4, at least)", state("P3-N4").to_string()),
        ("still parked", figures.parked.to_string()),
        (
            "events published, and outcomes whose publishing a fault destroyed",
            format!("{}, {}", figures.published_events, figures.destroyed_events),
        ),
        ("events that the shop got by webhook", figures.received_events.to_string()),
        ("undersold units", figures.undersold_units.to_string()),
        ("from the last heal until nothing was open, ms", run.drain_ms.to_string()),
        ("processes that ended by themselves", ends(run)),
    ] {
        writeln!(out, "| {figure} | {value} |").expect("text");
    }
    writeln!(out, "\nStates counted over all lives (lower bounds): {:?}\n", run.states).expect("text");
}

fn faults(run: &Finished, out: &mut String) {
    #[derive(Default)]
    struct Row {
        planned: u64,
        injected: u64,
        recoveries_ms: Vec<u64>,
    }
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    for record in &run.faults {
        let row = rows.entry(record.fault.kind.name()).or_default();
        row.planned += 1;
        row.injected += u64::from(record.injected);
        row.recoveries_ms.extend(record.recovery_ms);
    }
    out.push_str(
        "## Faults\n\nRecovery: from the fault's end until a purchase of a probe was accepted and confirmed, while other \
         faults went on.\n\n| fault | planned | hit | recovery median ms | worst ms | samples |\n|---|---|---|---|---|---|\n",
    );
    for (kind, mut row) in rows {
        row.recoveries_ms.sort_unstable();
        let times = &row.recoveries_ms;
        let show = |time: Option<&u64>| time.map_or("–".to_owned(), u64::to_string);
        let (median, worst) = (show(times.get(times.len() / 2)), show(times.last()));
        writeln!(out, "| {kind} | {} | {} | {median} | {worst} | {} |", row.planned, row.injected, times.len())
            .expect("text");
    }
    let survived = if run.is_green() { "all" } else { "not all" };
    writeln!(out, "\nSurvived: {survived} ({}).\n", run.faults.iter().filter(|record| record.injected).count())
        .expect("text");
}

/// How often a process died at each named line.
fn crash_points(run: &Finished, out: &mut String) {
    let mut deaths: BTreeMap<&str, u64> = BTreeMap::new();
    let is_at_point = |kind| matches!(kind, Kind::CrashPoint | Kind::FailAtStep);
    let at_points = run.faults.iter().filter(|record| record.injected && is_at_point(record.fault.kind));
    for point in at_points.filter_map(|record| record.note.as_deref()) {
        *deaths.entry(point).or_default() += 1;
    }
    let deaths: Vec<String> = deaths.iter().map(|(point, times)| format!("{point} × {times}")).collect();
    writeln!(out, "Deaths at crash points: {}.\n", deaths.join(", ")).expect("text");
}

/// Whether each line that the processes wrote was allowed.
fn traces(run: &Finished, out: &mut String) {
    let (summary, table) = (run.traces.summary(), run.traces.cells.table());
    writeln!(out, "## Traces\n\n{summary}.\n\n{table}").expect("text");
}

/// Why faults did not hit, and what else was special.
fn notes(run: &Finished, out: &mut String) {
    let mut notes: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for record in &run.faults {
        let is_worth_a_note = [Kind::TerminateRole, Kind::KillServer].contains(&record.fault.kind);
        let note = record.note.as_ref().filter(|_| !record.injected || is_worth_a_note);
        if let Some(note) = note {
            // Answers of servers are long and hold ids.
            let note = note.chars().take(100).collect::<String>().replace('\n', " ");
            *notes.entry((record.fault.kind.name(), note)).or_default() += 1;
        }
    }
    for ((kind, note), times) in notes {
        writeln!(out, "- {times} × {kind}: {note}").expect("text");
    }
    out.push('\n');
}

fn surroundings(run: &Finished, out: &mut String) {
    writeln!(out, "## Surroundings\n\nServers: {}.\n", run.versions).expect("text");
    writeln!(out, "Settings of every process:\n\n```\n{}\n```\n", run.deployment.settings().join("\n")).expect("text");
}

fn ends(run: &Finished) -> String {
    // A death at a crash point is a SIGKILL that was not sent from here; it has its own line.
    let ends = run.ends.iter().filter(|end| end.status.signal() != Some(libc::SIGKILL));
    let ends: Vec<String> = ends.map(|end| format!("{} in life {}: {}", end.name, end.life, end.status)).collect();
    if ends.is_empty() { "none".to_owned() } else { ends.join("; ") }
}
