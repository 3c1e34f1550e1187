//! The product's audit, judged against the independent checker.

use super::cures::DamageRecord;
use super::faults::{SaleFault, ServerFault};
use super::plan::Wave;
use super::testbed::Testbed;
use super::wave::AppliedFaults;
use crate::checker::loss::{self, SaleState, Trouble};
use seckill::faults::Mechanism;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What comes of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AuditRating {
    /// Nothing is wrong, and nothing had to be repaired.
    Unharmed,
    /// Nothing is wrong any more.
    Repaired,
    /// Something is wrong, and the audit says so.
    ForAPerson,
    /// Requests are lost that leave no trace; the audit cannot know it.
    Unseeable,
    /// Something is wrong, and the audit calls it consistent.
    FalseConsistent,
    /// Nothing is wrong, and the audit says that something is.
    FalseAlarm,
}

/// A sale at the end.
#[derive(Debug)]
pub struct Row {
    /// Its id.
    pub sale: String,
    /// What struck it, and whether that hit anything.
    pub faults: Vec<(SaleFault, bool)>,
    /// The judge's word.
    pub state: SaleState,
    /// What the audit says.
    pub audit: AuditAnswer,
    /// Whether an audit without the bridge calls it consistent.
    pub consistent_without_bridge: bool,
}

/// What the audit says of a sale.
#[derive(Debug, Clone, Default)]
pub struct AuditAnswer {
    /// Its findings; none: consistent.
    pub findings: Vec<Finding>,
    /// Acceptance numbers that it misses, as (epoch, shard, number).
    pub gaps: BTreeSet<(u64, u16, u64)>,
}

/// One of them.
#[derive(Debug, Clone)]
pub struct Finding {
    /// Its kind.
    pub kind: String,
    /// For a person.
    pub detail: String,
}

/// The kinds of findings that may report a trouble.
const fn names(trouble: Trouble) -> &'static [&'static str] {
    match trouble {
        Trouble::Lost | Trouble::Hole => &["GAP"],
        Trouble::Limbo => &["LEAK"],
        Trouble::Torn => &["UNBALANCED", "LEAK", "GAP"],
        Trouble::Refused => &["REFUSED"],
        // Keys that the database guards: they are not counted again.
        Trouble::Twice => &[],
        Trouble::Oversold => &["OVER_SELL"],
        Trouble::Books | Trouble::Bridge => &["UNBALANCED", "OVER_SELL"],
        Trouble::Keys => &["KEYS_LOST"],
        Trouble::Ledger => &["LEDGER_DAMAGED"],
        Trouble::Unknown => &["UNKNOWN_SALE"],
        Trouble::Behind => &["ORPHAN", "UNBALANCED"],
    }
}

/// The troubles that a finding may be about.
fn reasons(finding: &str) -> &'static [Trouble] {
    match finding {
        "GAP" => &[Trouble::Hole],
        "LEDGER_DAMAGED" => &[Trouble::Ledger, Trouble::Keys, Trouble::Behind],
        "LEAK" => &[Trouble::Limbo],
        "REFUSED" => &[Trouble::Refused],
        "OVER_SELL" => &[Trouble::Oversold],
        "KEYS_LOST" => &[Trouble::Keys],
        "UNKNOWN_SALE" => &[Trouble::Unknown],
        "ORPHAN" => &[Trouble::Behind, Trouble::Keys, Trouble::Ledger],
        "UNBALANCED" => &[Trouble::Books, Trouble::Bridge, Trouble::Behind, Trouble::Torn, Trouble::Keys],
        _ => &[],
    }
}

impl Row {
    /// Where the two disagree although both say that something is wrong: troubles that no finding names, findings that no trouble
    /// confirms, acceptance numbers that only one of them misses.
    pub fn differences(&self) -> Vec<String> {
        if self.rating() != AuditRating::ForAPerson {
            return Vec::new();
        }
        let (troubles, findings) = (&self.state.troubles, &self.audit.findings);
        let named = |trouble: Trouble| findings.iter().any(|finding| names(trouble).contains(&finding.kind.as_str()));
        let confirmed = |finding: &Finding| {
            // Units that Redis had twice and the database refused: the refusals balance the bridge, and Redis' own sum stays off.
            let refused = finding.detail.starts_with("granted to redis");
            let is_about =
                |trouble| reasons(&finding.kind).contains(trouble) || refused && *trouble == Trouble::Refused;
            troubles.iter().any(|(trouble, _)| is_about(trouble))
        };
        // A sale that could not be rebuilt is reported as such: what it lacks is counted when it has whole keys again.
        let broken =
            troubles.iter().any(|(trouble, _)| [Trouble::Keys, Trouble::Behind, Trouble::Unknown].contains(trouble));
        let unnamed = troubles.iter().filter(|(trouble, _)| !named(*trouble) && !broken);
        let unnamed = unnamed.map(|(trouble, detail)| format!("no finding names {trouble:?}: {detail}"));
        let unconfirmed = findings.iter().filter(|finding| !confirmed(finding));
        let unconfirmed = unconfirmed.map(|finding| format!("nothing confirms {}: {}", finding.kind, finding.detail));
        let numbers = self.state.holes.symmetric_difference(&self.audit.gaps).filter(|_| !broken);
        let numbers = numbers.map(|number| format!("only one of them misses (epoch, shard, number) {number:?}"));
        unnamed.chain(unconfirmed).chain(numbers).collect()
    }

    /// What comes of it.
    pub fn rating(&self) -> AuditRating {
        match (self.state.is_well(), self.audit.findings.is_empty()) {
            (false, true) => AuditRating::FalseConsistent,
            (false, false) => AuditRating::ForAPerson,
            // The sale has lost something: an audit that has found out is not to blame.
            (true, false) if self.state.unseeable.is_empty() => AuditRating::FalseAlarm,
            (true, _) if !self.state.unseeable.is_empty() => AuditRating::Unseeable,
            (true, _) if self.state.compensated > 0 || self.state.rebuilt => AuditRating::Repaired,
            (true, _) => AuditRating::Unharmed,
        }
    }
}

/// A wave at the end.
pub struct WaveResult {
    /// Its sales.
    pub rows: Vec<Row>,
    /// What struck whole servers.
    pub wide: Vec<ServerFault>,
    /// What came of a damaged file.
    pub damage: Option<DamageRecord>,
    /// Sales whose settled records stayed in Redis beyond their time.
    pub untrimmed: Vec<String>,
    /// Whether everything came to rest.
    pub rested: bool,
    /// Answers that never came.
    pub unknown: u64,
}

impl WaveResult {
    /// Faults that hit something.
    pub fn hit(&self) -> usize {
        let faults = self.rows.iter().flat_map(|row| &row.faults).filter(|(_, hit)| *hit).count();
        faults + self.wide.len()
    }
}

/// What is said of each sale.
type AuditAnswers = BTreeMap<String, AuditAnswer>;

async fn audit(testbed: &Testbed, off: Option<Mechanism>) -> AuditAnswers {
    let (code, stdout, stderr) = testbed.deployment.call_without(off, &["audit", "--now", "--json"]).await;
    let said: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("exit code {code:?}: {stdout}{stderr}"));
    let mut answers = AuditAnswers::new();
    for sale in said["sales"].as_array().expect("sales") {
        let word = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
        let finding = |finding: &Value| {
            let detail = format!("{} {}", word(finding, "request_id"), word(finding, "detail"));
            Finding { kind: word(finding, "kind"), detail: detail.trim().to_owned() }
        };
        let findings = sale["findings"].as_array().expect("findings").iter().map(finding).collect();
        let gaps = sale["series"].as_array().expect("series").iter().flat_map(gaps).collect();
        answers.insert(word(sale, "sale_id"), AuditAnswer { findings, gaps });
    }
    // Scripts believe the exit code.
    let consistent = answers.values().all(|said| said.findings.is_empty());
    assert_eq!(code, Some(if consistent { 0 } else { 2 }), "the exit code is not what the findings say: {stdout}");
    answers
}

/// The numbers that a series lacks.
fn gaps(series: &Value) -> Vec<(u64, u16, u64)> {
    let number = |of: &Value| of.as_u64().expect("a number");
    let (epoch, shard) = (number(&series["epoch"]), u16::try_from(number(&series["shard"])).expect("a shard"));
    let runs = series["gaps"].as_array().expect("gaps").iter();
    runs.flat_map(|run| (number(&run[0])..=number(&run[1])).map(move |number| (epoch, shard, number))).collect()
}

/// Asks both. `off`: an equation that the product leaves out.
pub async fn judge(
    testbed: &Testbed,
    wave: &Wave,
    struck: AppliedFaults,
    (dir, off): (&Path, Option<Mechanism>),
) -> WaveResult {
    let judgement = loss::judge(dir);
    assert!(judgement.unreadable.is_empty(), "{:?}", judgement.unreadable);
    let answers = audit(testbed, off).await;
    let blind = audit(testbed, Some(Mechanism::UnitBridge)).await;
    let own: BTreeSet<&str> = wave.scenes.iter().map(|scene| scene.sale.as_str()).collect();
    // A database whose log was cut off may have sales of the wave before again. They were judged.
    let is_own = |sale: &str| own.contains(sale);
    assert!(struck.damage.is_some() || judgement.sales.keys().all(|sale| is_own(sale)), "{:?}", judgement.sales.keys());
    let mut faults = struck.sales;
    let of_wave = judgement.sales.into_iter().filter(|(sale, _)| is_own(sale));
    let rows = of_wave.map(|(sale, state)| Row {
        faults: faults.remove(&sale).unwrap_or_default(),
        audit: answers.get(&sale).cloned().unwrap_or_default(),
        consistent_without_bridge: blind.get(&sale).is_none_or(|said| said.findings.is_empty()),
        sale,
        state,
    });
    WaveResult {
        rows: rows.collect(),
        wide: struck.wide,
        damage: struck.damage,
        untrimmed: Vec::new(),
        rested: true,
        unknown: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(troubles: &[Trouble], findings: &[&str]) -> Row {
        let finding = |kind: &&str| Finding { kind: (*kind).to_owned(), detail: String::new() };
        Row {
            sale: "s".into(),
            faults: Vec::new(),
            state: SaleState {
                troubles: troubles.iter().map(|trouble| (*trouble, String::new())).collect(),
                ..SaleState::default()
            },
            audit: AuditAnswer { findings: findings.iter().map(finding).collect(), gaps: BTreeSet::new() },
            consistent_without_bridge: false,
        }
    }

    #[test]
    fn each_word_is_said_where_it_is_due() {
        let rebuilt = |unseeable: &[&str]| {
            let mut row = row(&[], &[]);
            row.state.rebuilt = true;
            row.state.unseeable = unseeable.iter().map(|rid| (*rid).to_owned()).collect();
            row.rating()
        };
        assert_eq!(row(&[], &[]).rating(), AuditRating::Unharmed);
        assert_eq!((rebuilt(&[]), rebuilt(&["1"])), (AuditRating::Repaired, AuditRating::Unseeable));
        assert_eq!(row(&[Trouble::Lost], &["GAP"]).rating(), AuditRating::ForAPerson);
        assert_eq!(row(&[Trouble::Lost], &[]).rating(), AuditRating::FalseConsistent);
        assert_eq!(row(&[], &["GAP"]).rating(), AuditRating::FalseAlarm);
    }

    #[test]
    fn what_only_one_of_them_says_is_a_difference() {
        let differences = |troubles: &[Trouble], findings: &[&str]| row(troubles, findings).differences().len();
        assert_eq!(differences(&[Trouble::Lost, Trouble::Hole, Trouble::Bridge], &["GAP", "UNBALANCED"]), 0);
        assert_eq!(differences(&[Trouble::Lost, Trouble::Hole], &["UNBALANCED"]), 3, "two unnamed, one unconfirmed");
        assert_eq!(differences(&[Trouble::Refused], &["REFUSED", "LEAK"]), 1);
        let mut twice = row(&[Trouble::Refused], &["REFUSED", "UNBALANCED"]);
        assert_eq!(twice.differences().len(), 1, "{:?}", twice.differences());
        twice.audit.findings[1].detail =
            "granted to redis = redis remaining + in transit + accepted: 32 against 36".into();
        assert_eq!(twice.differences(), Vec::<String>::new());
        assert_eq!(differences(&[Trouble::Bridge], &["UNBALANCED", "SOMETHING_NEW"]), 1, "its meaning is not known");
        assert_eq!(differences(&[Trouble::Behind, Trouble::Lost, Trouble::Hole], &["ORPHAN"]), 0, "not rebuilt yet");
        let mut other = row(&[Trouble::Hole], &["GAP"]);
        other.state.holes.extend([(1, 0, 3), (1, 0, 4)]);
        other.audit.gaps.extend([(1, 0, 4), (1, 0, 5)]);
        assert_eq!(other.differences().len(), 2, "{:?}", other.differences());
    }
}
