//! The judge of a scene in which data went back or vanished: what is wrong with each sale, reported from clients' answers and raw
//! rows alone.
//!
//! Input: a folder with `history.jsonl`, and three dumps: `before` the fault, right after the `strike` (no process of the product
//! was at work between these two), and at the `end`, when nothing moves any more. Output: for each sale its troubles.
//!
//! | trouble | when |
//! |---|---|
//! | LOST | a buyer got "accepted", and the request is nowhere any more; its acceptance number shows the hole |
//! | HOLE | an acceptance number below the highest known one has no request (its buyer may have got no answer) |
//! | LIMBO | a request has neither an outcome nor a place among the parked |
//! | TORN | half an outcome: an outcome without its order, or the reverse |
//! | REFUSED | accepted, and then refused for a reason that is not the buyer's: no units, no sale, its number given twice |
//! | TWICE | two outcomes, or more for a buyer than the limit |
//! | OVERSOLD | more ordered than granted |
//! | BOOKS | the database's own sums disagree |
//! | BRIDGE | the database's unsold units are not where Redis' side says they are |
//! | KEYS | a sale that sells lacks keys in Redis |
//! | LEDGER | Redis has fewer records than it has accepted requests and not forgotten in order: repeats would buy again |
//! | UNKNOWN | Redis has accepted requests of a sale that the database does not know, or has as a draft |
//! | BEHIND | Redis knows fewer acceptances than the database has decided, or another epoch |
//!
//! A lost request whose number no reader could know to be missing is no trouble of the sale, but [`SaleState::unseeable`]: its
//! number is above everything that was left after the strike, or was given to another request by a Redis that had gone back.

mod books;
mod lost;
mod numbers;
mod redis;

use super::index::Index;
use super::read::{self, Input};
use super::{Found, Violation};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is wrong with a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Trouble {
    Lost,
    Hole,
    Limbo,
    Torn,
    Refused,
    Twice,
    Oversold,
    Books,
    Bridge,
    Keys,
    Ledger,
    Unknown,
    Behind,
}

/// What the judge has to say about a sale.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct SaleState {
    /// Everything that is wrong; empty: nothing is lost that anyone could see.
    pub troubles: Vec<(Trouble, String)>,
    /// Acceptance numbers that no request has, as (epoch, shard, number).
    pub holes: BTreeSet<(u64, u16, u64)>,
    /// Accepted requests that are lost and leave no trace anywhere.
    pub unseeable: Vec<String>,
    /// Requests with the answer "accepted".
    pub answered: u64,
    /// Orders written by the product's repairs.
    pub compensated: u64,
    /// Whether it is under another epoch than before the strike.
    pub rebuilt: bool,
    /// Final failures by reason.
    pub failed: BTreeMap<String, u64>,
}

impl SaleState {
    /// Whether nothing is wrong.
    pub fn is_well(&self) -> bool {
        self.troubles.is_empty()
    }

    fn add(&mut self, kind: Trouble, detail: String) {
        self.troubles.push((kind, detail));
    }
}

/// The judgement.
#[derive(Debug)]
pub struct Judgement {
    /// By sale.
    pub sales: BTreeMap<String, SaleState>,
    /// Files that are missing or unreadable: nothing may be concluded then.
    pub unreadable: Vec<Violation>,
}

/// What the rules read.
struct Case<'a> {
    before: &'a Input,
    end: &'a Index<'a>,
    numbers: numbers::Numbers<'a>,
}

/// Judges every sale that is there at the end, or of which a buyer got an answer.
pub fn judge(dir: &Path) -> Judgement {
    let mut found = Found::default();
    let before = Input::stores(&dir.join("before"), &mut found);
    let strike = Input::stores(&dir.join("strike"), &mut found);
    let end = dir.join("end");
    let end = Input {
        attempts: read::history(dir, &mut found),
        rabbit: read::lines(&end, "rabbit", &mut found),
        ..Input::stores(&end, &mut found)
    };
    let index = Index::of(&end);
    let numbers = numbers::Numbers::of(&before, &strike, &index);
    let case = Case { before: &before, end: &index, numbers };
    let answered = end.attempts.iter().map(|attempt| attempt.sale.as_str());
    let mut sales: BTreeMap<String, SaleState> = BTreeMap::new();
    for sale in answered.chain(end.sales.iter().map(|sale| sale.sale_id.as_str())) {
        if !sales.contains_key(sale) {
            sales.insert(sale.to_owned(), case.judge(sale));
        }
    }
    Judgement { sales, unreadable: found.0 }
}

impl Case<'_> {
    fn judge(&self, sale: &str) -> SaleState {
        let mut state = SaleState::default();
        self.figures(sale, &mut state);
        lost::check(self, sale, &mut state);
        numbers::check(self, sale, &mut state);
        books::check(self, sale, &mut state);
        redis::check(self, sale, &mut state);
        state
    }

    fn figures(&self, sale: &str, state: &mut SaleState) {
        let input = self.end.input;
        let orders = input.orders.iter().filter(|order| order.sale_id == sale && order.source == "compensation");
        state.compensated = orders.count() as u64;
        let epoch = |input: &Input| input.sales.iter().find(|row| row.sale_id == sale).map(|row| row.epoch);
        state.rebuilt = epoch(input) != epoch(self.before);
        for outcome in input.outcomes.iter().filter(|outcome| outcome.sale_id == sale && outcome.kind == "FAILED") {
            *state.failed.entry(outcome.reason.clone().unwrap_or_default()).or_default() += 1;
        }
    }
}
