//! The product's audit, judged against the independent checker.

use super::blow::{Blow, Wide};
use super::plan::Wave;
use super::stage::Stage;
use super::wave::Struck;
use crate::checker::loss::{self, SaleState};
use seckill::faults::Mechanism;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What comes of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Word {
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
    pub blows: Vec<(Blow, bool)>,
    /// The judge's word.
    pub state: SaleState,
    /// The audit's findings, `code: detail`; none: consistent.
    pub findings: Vec<String>,
    /// Whether an audit without the bridge calls it consistent.
    pub consistent_without_bridge: bool,
}

impl Row {
    /// What comes of it.
    pub fn word(&self) -> Word {
        match (self.state.is_well(), self.findings.is_empty()) {
            (false, true) => Word::FalseConsistent,
            (false, false) => Word::ForAPerson,
            // The sale has lost something: an audit that has found out is not to blame.
            (true, false) if self.state.unseeable.is_empty() => Word::FalseAlarm,
            (true, _) if !self.state.unseeable.is_empty() => Word::Unseeable,
            (true, _) if self.state.compensated > 0 || self.state.rebuilt => Word::Repaired,
            (true, _) => Word::Unharmed,
        }
    }
}

/// A wave at the end.
pub struct Judged {
    /// Its sales.
    pub rows: Vec<Row>,
    /// What struck whole servers.
    pub wide: Vec<Wide>,
    /// Whether everything came to rest.
    pub rested: bool,
    /// Answers that never came.
    pub unknown: u64,
}

/// Findings by sale.
type Findings = BTreeMap<String, Vec<String>>;

async fn audit(stage: &Stage, off: Option<Mechanism>) -> Findings {
    let (code, stdout, stderr) = stage.ground.call_without(off, &["audit", "--now", "--json"]).await;
    let told: Value = serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("exit code {code:?}: {stdout}{stderr}"));
    let mut findings = Findings::new();
    for sale in told["sales"].as_array().expect("sales") {
        let of_sale = sale["findings"].as_array().expect("findings");
        let text = |finding: &Value| {
            let word = |name: &str| finding[name].as_str().unwrap_or_default().to_owned();
            format!("{}: {} {}", word("kind"), word("request_id"), word("detail"))
        };
        findings.insert(sale["sale_id"].as_str().expect("a sale").to_owned(), of_sale.iter().map(text).collect());
    }
    // Scripts believe the exit code.
    let consistent = findings.values().all(Vec::is_empty);
    assert_eq!(code, Some(if consistent { 0 } else { 2 }), "the exit code is not what the findings say: {stdout}");
    findings
}

/// Asks both. `off`: an equation that the product leaves out.
pub async fn judge(stage: &Stage, wave: &Wave, struck: Struck, (dir, off): (&Path, Option<Mechanism>)) -> Judged {
    let judgement = loss::judge(dir);
    assert!(judgement.unreadable.is_empty(), "{:?}", judgement.unreadable);
    let findings = audit(stage, off).await;
    let blind = audit(stage, Some(Mechanism::UnitBridge)).await;
    let own: BTreeSet<&str> = wave.scenes.iter().map(|scene| scene.sale.as_str()).collect();
    assert!(judgement.sales.keys().all(|sale| own.contains(sale.as_str())), "{:?}", judgement.sales.keys());
    let mut blows = struck.sales;
    let rows = judgement.sales.into_iter().map(|(sale, state)| Row {
        blows: blows.remove(&sale).unwrap_or_default(),
        findings: findings.get(&sale).cloned().unwrap_or_default(),
        consistent_without_bridge: blind.get(&sale).is_none_or(Vec::is_empty),
        sale,
        state,
    });
    Judged { rows: rows.collect(), wide: struck.wide, rested: true, unknown: 0 }
}
