//! The figures of a soak, as Markdown, in `target/chaos/soak-<seed>.md`.

use crate::flat::{Flatness, GROWTH_MAX, judge};
use crate::run::{Finished, reports};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

/// Tables that keep the record of what was done: they grow with the run, on purpose (`docs/operations.md`), and the rest is judged.
const RECORDS: [&str; 5] = ["payments", "archived_sales", "operator_acts", "audit_runs", "audit_findings"];

/// Each figure that has to be flat.
pub fn flatness(run: &Finished) -> BTreeMap<&str, Flatness> {
    let length_s = run.minutes as f64 * 60.0;
    let is_record = |name: &str| RECORDS.iter().any(|table| name == format!("{table}: rows"));
    let judged = run.measured.iter().filter(|(name, _)| !is_record(name));
    judged.map(|(name, series)| (name.as_str(), judge(series, length_s))).collect()
}

/// Writes the report, and says where.
pub fn write(run: &Finished) -> PathBuf {
    std::fs::create_dir_all(reports()).expect("a folder");
    let path = reports().join(format!("soak-{}.md", run.seed));
    std::fs::write(&path, text(run)).expect("written");
    path
}

fn text(run: &Finished) -> String {
    let wrong = run.wrong();
    let word = if wrong.is_empty() { "green" } else { "**RED**" };
    let peak = run.peak_per_s.map_or("not measured".to_owned(), |peak: u64| peak.to_string());
    let accepted: usize = run.kept.iter().map(|kept| kept.accepted).sum();
    let mut out = format!(
        "# Soak, seed {}\n\n{} minutes, {} purchases/s (accepted at the peak: {peak}/s), {accepted} accepted: {word}. \
         Again: `{}`\n\n",
        run.seed,
        run.minutes,
        run.rate_per_s,
        run.command()
    );
    writeln!(
        out,
        "## What could grow\n\nAt most {:.0} % or a floor from the second quarter to the last, and within the lives of a process.\n",
        GROWTH_MAX * 100.0
    )
    .expect("text");
    out.push_str("| figure | second quarter | last quarter | within lives, half a run | |\n|---|---|---|---|---|\n");
    for (name, flat) in flatness(run) {
        let lives = flat.within_lives.map_or("–".to_owned(), |grown| format!("{grown:.1}"));
        let word = flat.wrong.as_deref().unwrap_or("flat");
        writeln!(out, "| {name} | {:.1} | {:.1} | {lives} | {word} |", flat.second, flat.last).expect("text");
    }
    writeln!(out, "\n## Rows at the end\n\n| table | rows |\n|---|---|").expect("text");
    for (table, rows) in &run.rows {
        writeln!(out, "| {table} | {rows} |").expect("text");
    }
    faults(run, &mut out);
    if !wrong.is_empty() {
        writeln!(out, "## What is wrong\n\n```\n{}\n```", wrong.join("\n")).expect("text");
    }
    out
}

fn faults(run: &Finished, out: &mut String) {
    writeln!(
        out,
        "\n## Faults\n\n| minute | fault | where | hit | served again after, ms | |\n|---|---|---|---|---|---|"
    )
    .expect("text");
    for record in &run.faults {
        let (kind, target) = (record.fault.kind.name(), record.fault.target);
        let recovery = record.recovery_ms.map_or("–".to_owned(), |ms| ms.to_string());
        let note = record.note.as_deref().unwrap_or_default().chars().take(80).collect::<String>().replace('\n', " ");
        writeln!(
            out,
            "| {} | {kind} | {target} | {} | {recovery} | {note} |",
            record.began_ms / 60_000,
            record.injected
        )
        .expect("text");
    }
    out.push_str("\n## Audits\n\n");
    for audit in run.audits.iter().filter(|audit| audit.findings.as_ref().is_none_or(|found| !found.is_empty())) {
        let found = audit.findings.as_ref().map_or("no answer".to_owned(), |found| found.join(", "));
        writeln!(out, "- minute {}: {found}", audit.minute).expect("text");
    }
    let silent = run.audits.iter().filter(|audit| audit.findings.is_none()).count();
    writeln!(out, "- {} audits, {silent} without an answer\n", run.audits.len()).expect("text");
}
