//! The judge without servers: a table of sales, of what happened to them, and of what the audit must say, word by word
//! where words matter. The rows of `tests/cases/books.txt` are held against the chaos run's independent checker and the
//! model, too.

mod cases_grants;
mod cases_numbers;
mod cases_open;
mod cases_shards;
mod cases_transfers;
mod cases_units;
mod cases_withdrawals;
mod questions;
mod scene;
mod servers;
mod shared_cases;
mod sides;

use super::super::finding::AuditFinding;
use super::super::result::SaleAudit;
use scene::AuditScene;
use std::collections::BTreeSet;

/// One row of the table.
struct JudgeCase {
    name: &'static str,
    /// What happens in a sale of ten units, on this number of shards.
    shards: u16,
    happens: fn(&mut AuditScene),
    finds: Finds,
}

/// What the audit must say.
enum Finds {
    /// Nothing is wrong.
    Nothing,
    /// These findings and no others, in this order: code, and a part of the words.
    These(&'static [(&'static str, &'static str)]),
    /// The sides are of different moments.
    Moved,
}

impl Finds {
    /// What the audit says beside or instead of it.
    fn complaint(&self, name: &str, audit: Option<&SaleAudit>) -> Option<String> {
        let expected: &[(&str, &str)] = match (self, audit) {
            (Self::Moved, None) => return None,
            (_, None) => return Some(format!("{name}: the judge wants everything read again")),
            (Self::Moved, Some(_)) => {
                return Some(format!("{name}: decided although the sides are of different moments"));
            }
            (Self::Nothing, Some(audit)) if !audit.consistent() => &[("a consistent sheet", "")],
            (Self::Nothing, Some(_)) => &[],
            (Self::These(expected), Some(_)) => expected,
        };
        let found = audit.map(|audit| &audit.findings[..]).unwrap_or_default();
        let is = |(finding, (code, words)): (&AuditFinding, &(&str, &str))| {
            finding.kind.code() == *code && finding.detail.contains(words)
        };
        let agree = found.len() == expected.len() && found.iter().zip(expected).all(is);
        (!agree).then(|| format!("{name}: expected {expected:#?}, found {found:#?}"))
    }
}

fn all_cases() -> impl Iterator<Item = &'static JudgeCase> {
    let parts = [
        cases_units::CASES,
        cases_grants::CASES,
        cases_withdrawals::CASES,
        cases_numbers::CASES,
        cases_open::CASES,
        cases_shards::CASES,
        cases_transfers::CASES,
    ];
    parts.into_iter().flatten()
}

#[test]
fn each_case_of_the_table_is_judged_as_it_says() {
    let mut complaints = Vec::new();
    for JudgeCase { name, shards, happens, finds } in all_cases() {
        let mut scene = AuditScene::on_shards(*shards, 10);
        happens(&mut scene);
        let judged = scene.judged();
        complaints.extend(finds.complaint(name, judged.as_ref().map(|(judged, _)| &judged.audit)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(all_cases().count() >= 100, "only {} cases", all_cases().count());
}

#[test]
fn no_two_cases_have_one_name() {
    let names: BTreeSet<&str> = all_cases().map(|case| case.name).collect();
    assert_eq!(names.len(), all_cases().count());
}
