//! Damaged files: each wave kills one server, damages one of its files, starts it again, and is judged as all waves are. A server that
//! does not start is cured as `docs/operations.md` says.
//!
//! `make corruption` damages hundreds: `DAMAGE_CASES` of each server, `CHAOS_SEED`, `DAMAGE_SERVERS=redis,rabbitmq,mysql` for some of them.
//! Output: `target/chaos/damage-<seed>.md`. Red: the audit calls a sale consistent in which the checker finds something, or the
//! reverse; doctor says nothing of a server that does not start; nothing that the manual names brings a server back.

use super::comparison::{AuditRating, WaveResult};
use super::cures::DamageRecord;
use super::faults::ServerFault;
use super::report::{RATINGS, complaints_of, describe};
use super::testbed::Testbed;
use super::{plan, wave};
use crate::{asked, given_settings, seeds, time};
use seckill::dev::ServerKind;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Cases of each server in every test run, which damages Redis only.
const CASES: usize = 1;

struct DamageReport {
    seed: u64,
    waves: Vec<WaveResult>,
    took_s: u64,
}

/// Cases of one row of the table.
#[derive(Default)]
struct DamageCount {
    cases: usize,
    refused: usize,
    by_rating: BTreeMap<AuditRating, usize>,
}

impl DamageReport {
    fn records(&self) -> impl Iterator<Item = (&DamageRecord, &WaveResult)> {
        self.waves.iter().filter_map(|wave| Some((wave.damage.as_ref()?, wave)))
    }

    fn complaints(&self) -> Vec<String> {
        let of_doctor = self.records().filter_map(|(record, _)| record.complaint.clone());
        let of_waves = self.records().flat_map(|(record, wave)| {
            let place = format!("{} ({}, {})", record.damage.place, record.damage.kind.name(), record.server);
            complaints_of(wave).into_iter().map(move |complaint| format!("{place}: {complaint}"))
        });
        of_doctor.chain(of_waves).collect()
    }

    fn write(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("chaos");
        std::fs::create_dir_all(&folder).expect("a folder");
        let path = folder.join(format!("damage-{}.md", self.seed));
        std::fs::write(&path, self.text()).expect("written");
        path
    }

    fn text(&self) -> String {
        let word = if self.complaints().is_empty() { "green" } else { "**RED**" };
        let mut out = format!(
            "# Damaged files, seed {}\n\n{} cases in {} s: {word}.\n\n",
            self.seed,
            self.waves.len(),
            self.took_s
        );
        self.table(&mut out);
        out.push_str("\n| server | file | how | refused | cured by |\n|---|---|---|---|---|\n");
        for (record, _) in self.records().filter(|(record, _)| record.refused.is_some()) {
            let refused = record.refused.as_deref().unwrap_or_default().replace('|', "/");
            let (damage, cures) = (&record.damage, record.cures.join(", then "));
            writeln!(out, "| {} | {} | {} | {refused} | {cures} |", record.server, damage.place, damage.kind.name())
                .expect("text");
        }
        for complaint in self.complaints() {
            writeln!(out, "\n```\n{complaint}\n```").expect("text");
        }
        let left = self.waves.iter().flat_map(|wave| wave.rows.iter().map(move |row| (row, wave)));
        let left = left.filter(|(row, _)| row.rating() == AuditRating::ForAPerson);
        let left: Vec<String> = left.map(|(row, wave)| describe(row, &wave.wide)).collect();
        writeln!(out, "\n## Left for a person\n\n```\n{}\n```", left.join("\n")).expect("text");
        out
    }

    /// By server and kind of damage: how many servers refused, and what came of the sales.
    fn table(&self, out: &mut String) {
        let mut rows: BTreeMap<String, DamageCount> = BTreeMap::new();
        for (record, wave) in self.records() {
            let row = rows.entry(format!("{} | {}", record.server, record.damage.kind.name())).or_default();
            row.cases += 1;
            row.refused += usize::from(record.refused.is_some());
            for sale in &wave.rows {
                *row.by_rating.entry(sale.rating()).or_default() += 1;
            }
        }
        let heads: Vec<&str> = RATINGS.iter().map(|(_, text)| *text).collect();
        writeln!(out, "| server | damage | cases | not usable | sales: {} |", heads.join(" | ")).expect("text");
        writeln!(out, "|---|---|---|---|{}", "---|".repeat(RATINGS.len())).expect("text");
        for (kind, row) in rows {
            let ratings: Vec<String> =
                RATINGS.iter().map(|(rating, _)| row.by_rating.get(rating).copied().unwrap_or(0).to_string()).collect();
            writeln!(out, "| {kind} | {} | {} | {} |", row.cases, row.refused, ratings.join(" | ")).expect("text");
        }
    }
}

fn faults() -> Vec<ServerFault> {
    let wanted: String = asked("DAMAGE_SERVERS").unwrap_or_else(|| ServerKind::Redis.name().to_owned());
    let is_wanted = |server: ServerKind| wanted.split(',').any(|name| name == server.name());
    ServerFault::ALL.iter().copied().filter(|fault| fault.damaged().is_some_and(is_wanted)).collect()
}

#[test]
fn damaged_files_are_never_called_consistent() {
    time::run_waiting(async {
        let (seed, cases) = (seeds(&[1])[0], asked("DAMAGE_CASES").unwrap_or(CASES));
        let (begun, faults) = (Instant::now(), faults());
        assert!(!faults.is_empty(), "DAMAGE_SERVERS: expected some of redis, rabbitmq, mysql");
        let testbed = Testbed::start(&given_settings()).await;
        let mut report = DamageReport { seed, waves: Vec::new(), took_s: 0 };
        for case in 0..cases {
            for (at, fault) in faults.iter().enumerate() {
                let (number, of_case) = (case * faults.len() + at, Instant::now());
                let judged = wave::play(&testbed, &plan::of_damage(number, *fault, seed), None).await;
                let damage = judged.damage.as_ref().expect("of this wave");
                let usable = damage
                    .refused
                    .as_deref()
                    .map_or("started".to_owned(), |why| format!("refused: {why}; {:?}", damage.cures));
                eprintln!(
                    "case {number}: {} {} in {} ms: {usable}",
                    damage.damage.place,
                    damage.damage.kind.name(),
                    of_case.elapsed().as_millis()
                );
                complaints_of(&judged).iter().for_each(|complaint| eprintln!("{complaint}"));
                report.waves.push(judged);
                report.took_s = begun.elapsed().as_secs();
                report.write();
            }
        }
        let complaints = report.complaints();
        eprintln!("report: {}", report.write().display());
        assert!(
            complaints.is_empty(),
            "{}\nreplay with: make corruption SEED={seed} CASES={cases}",
            complaints.join("\n")
        );
        testbed.deployment.finish().await;
    });
}
