//! The figures of a run, as Markdown, in `target/chaos/loss-<seed>.md`.

use super::comparison::{AuditRating, Row, WaveResult};
use super::faults::{SaleFault, ServerFault};
use seckill::faults::Mechanism;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// In the order of the table's columns.
pub const RATINGS: [(AuditRating, &str); 6] = [
    (AuditRating::Unharmed, "no harm"),
    (AuditRating::Repaired, "repaired"),
    (AuditRating::ForAPerson, "for a person"),
    (AuditRating::Unseeable, "no trace left"),
    (AuditRating::FalseConsistent, "false consistent"),
    (AuditRating::FalseAlarm, "false alarm"),
];

/// What a run has shown.
pub struct LossReport {
    /// It decides everything that is drawn.
    pub seed: u64,
    /// Faults asked for.
    pub asked: usize,
    /// Its waves.
    pub waves: Vec<WaveResult>,
    /// The wave in which P5 and the audit did not read numbers.
    pub blind: WaveResult,
    /// How long it took.
    pub took_s: u64,
}

impl LossReport {
    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.waves.iter().flat_map(|wave| &wave.rows)
    }

    /// Faults that hit something.
    pub fn hit(&self) -> usize {
        self.waves.iter().map(WaveResult::hit).sum()
    }

    /// Sales of which this was said.
    pub fn said(&self, word: AuditRating) -> usize {
        self.rows().filter(|row| row.rating() == word).count()
    }

    /// What each equation is good for: sales that are called consistent without it, and are not.
    fn missed_without(&self) -> [(Mechanism, usize); 2] {
        let found = self.rows().filter(|row| row.rating() == AuditRating::ForAPerson);
        let without_bridge = found.filter(|row| row.consistent_without_bridge).count();
        let without_numbers = self.blind.rows.iter().filter(|row| row.rating() == AuditRating::FalseConsistent).count();
        [(Mechanism::UnitBridge, without_bridge), (Mechanism::NumberEquation, without_numbers)]
    }

    /// Everything that makes the run red.
    pub fn complaints(&self) -> Vec<String> {
        let mut complaints: Vec<String> = self.waves.iter().flat_map(complaints_of).collect();
        for (equation, missed) in self.missed_without() {
            if missed == 0 {
                complaints.push(format!("without {} nothing is missed: the run does not need it", equation.code()));
            }
        }
        complaints
    }

    /// Repeats it.
    pub fn command(&self) -> String {
        format!("make chaos-loss SEED={} FAULTS={}", self.seed, self.asked)
    }

    /// For people who wait.
    pub fn summary(&self) -> String {
        let words: Vec<String> = RATINGS.iter().map(|(word, text)| format!("{} {text}", self.said(*word))).collect();
        format!("seed {}: {} faults hit in {} s; sales: {}", self.seed, self.hit(), self.took_s, words.join(", "))
    }

    /// Writes the report, and says where.
    pub fn write(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("chaos");
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(format!("loss-{}.md", self.seed));
        std::fs::write(&path, self.text()).expect("written");
        path
    }

    fn text(&self) -> String {
        let word = if self.complaints().is_empty() { "green" } else { "**RED**" };
        let mut out = format!("# Data that go back or vanish, seed {}\n\n{}\n\n", self.seed, self.summary());
        writeln!(out, "Verdict: {word}. The same again: `{}`\n", self.command()).expect("text");
        self.table(&mut out);
        self.promises(&mut out);
        for complaint in self.complaints() {
            writeln!(out, "\n```\n{complaint}\n```").expect("text");
        }
        let rows = self.waves.iter().flat_map(|wave| wave.rows.iter().map(|row| (row, &wave.wide)));
        let left = rows.filter(|(row, _)| row.rating() == AuditRating::ForAPerson);
        let left: Vec<String> = left.map(|(row, wide)| describe(row, wide)).collect();
        writeln!(out, "\n## Left for a person\n\n```\n{}\n```", left.join("\n")).expect("text");
        out
    }

    /// Faults by kind, and what came of the sales they struck.
    fn table(&self, out: &mut String) {
        let mut kinds: BTreeMap<&str, (usize, usize, BTreeMap<AuditRating, usize>)> = BTreeMap::new();
        for row in self.rows() {
            for (fault, hit) in &row.faults {
                let kind = kinds.entry(fault.name()).or_default();
                kind.0 += 1;
                kind.1 += usize::from(*hit);
                *kind.2.entry(row.rating()).or_default() += 1;
            }
        }
        for (wide, rows) in self.waves.iter().flat_map(|wave| wave.wide.iter().map(|wide| (wide, &wave.rows))) {
            let kind = kinds.entry(wide.name()).or_default();
            kind.0 += 1;
            kind.1 += 1;
            for row in rows {
                *kind.2.entry(row.rating()).or_default() += 1;
            }
        }
        let heads: Vec<&str> = RATINGS.iter().map(|(_, text)| *text).collect();
        writeln!(out, "| fault | faults | hit | sales: {} |", heads.join(" | ")).expect("text");
        writeln!(out, "|---|---|---|{}", "---|".repeat(RATINGS.len())).expect("text");
        for (kind, (faults, hit, words)) in kinds {
            let words: Vec<String> =
                RATINGS.iter().map(|(word, _)| words.get(word).copied().unwrap_or(0).to_string()).collect();
            writeln!(out, "| {kind} | {faults} | {hit} | {} |", words.join(" | ")).expect("text");
        }
        let kinds = SaleFault::ALL.len() + ServerFault::DRAWN.len();
        writeln!(out, "\nA sale with two faults is in two rows. {} faults hit, of {kinds} kinds.\n", self.hit())
            .expect("text");
    }

    fn promises(&self, out: &mut String) {
        let sum = |of: fn(&Row) -> u64| self.rows().map(of).sum::<u64>();
        let unrest = self.waves.iter().filter(|wave| !wave.rested).count();
        let unknown: u64 = self.waves.iter().map(|wave| wave.unknown).sum();
        out.push_str("| figure | value |\n|---|---|\n");
        let figures = [
            ("sales", self.rows().count() as u64),
            ("requests answered as accepted", sum(|row| row.state.answered)),
            ("of them lost without a trace", sum(|row| row.state.unseeable.len() as u64)),
            ("answers that never came", unknown),
            ("orders written by repairs", sum(|row| row.state.compensated)),
            ("sales that were rebuilt", sum(|row| u64::from(row.state.rebuilt))),
            ("waves that did not come to rest", unrest as u64),
            ("acceptance numbers missing, by checker and audit alike", sum(|row| row.state.holes.len() as u64)),
            (
                "sales in which checker and audit differ in what is wrong",
                sum(|row| u64::from(!row.differences().is_empty())),
            ),
        ];
        for (figure, value) in figures {
            writeln!(out, "| {figure} | {value} |").expect("text");
        }
        for (equation, missed) in self.missed_without() {
            writeln!(out, "| control: called consistent without `{}`, and not | {missed} |", equation.code())
                .expect("text");
        }
    }
}

/// What of a wave makes the run red.
pub fn complaints_of(wave: &WaveResult) -> Vec<String> {
    let is_false = |row: &Row| [AuditRating::FalseConsistent, AuditRating::FalseAlarm].contains(&row.rating());
    let wrong = wave.rows.iter().filter(|row| is_false(row) || !row.differences().is_empty());
    let wrong = wrong.map(|row| describe(row, &wave.wide));
    let kept =
        |sale: &String| format!("sale {sale}: its settled records are not forgotten, although their time is over");
    wrong.chain(wave.untrimmed.iter().map(kept)).collect()
}

/// A sale, with both words about it.
pub fn describe(row: &Row, wide: &[ServerFault]) -> String {
    let faults = row.faults.iter().map(|(fault, _)| fault.name());
    let faults: Vec<&str> = faults.chain(wide.iter().map(|wide| wide.name())).collect();
    let findings: Vec<String> =
        row.audit.findings.iter().map(|finding| format!("{}: {}", finding.kind, finding.detail)).collect();
    let troubles: Vec<String> = row.state.troubles.iter().map(|(kind, detail)| format!("{kind:?}: {detail}")).collect();
    let mut text = format!(
        "{:?}: sale {} ({}); rebuilt: {}; failed: {:?}; unseeable: {}\n  checker: {}\n  audit: {}",
        row.rating(),
        row.sale,
        faults.join(", "),
        row.state.rebuilt,
        row.state.failed,
        row.state.unseeable.len(),
        if troubles.is_empty() { "nothing is wrong".to_owned() } else { troubles.join("\n           ") },
        if findings.is_empty() { "consistent".to_owned() } else { findings.join("\n         ") },
    );
    for difference in row.differences() {
        writeln!(text, "\n  they differ: {difference}").expect("text");
    }
    text.trim_end().to_owned()
}
