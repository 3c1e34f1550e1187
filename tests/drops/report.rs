//! What came of a drop: a line of a table, and the same as JSON in `target/drops`.

use crate::checker::{Books, DropTerms, Log, Violation};
use crate::client::Tally;
use crate::roles::Kills;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A drop that was played and judged.
pub struct Report {
    /// Its name.
    pub name: String,
    pub seed: u64,
    pub buyers: usize,
    pub cheaters: usize,
    pub units: i64,
    /// Purchases that were sent, and calls to be in a line.
    pub purchases: usize,
    /// Requests that were accepted.
    pub accepted: usize,
    pub unknown: usize,
    pub paid: usize,
    /// Of them offers of lines.
    pub offers: usize,
    /// Units of orders that hold some, at the end.
    pub sold: i64,
    pub kills: Kills,
    pub tricks: BTreeMap<&'static str, Tally>,
    pub violations: Vec<Violation>,
    pub took_s: u64,
}

/// The head of the table.
pub const HEAD: &str = "| drop | buyers | cheaters | units | purchases | accepted | sold at the end | tries of cheaters | refused | kills | violations |";

impl Report {
    /// Counts what the log and the books say.
    pub fn counted(&mut self, terms: &DropTerms, log: &Log, books: &Books, accepted: &[String]) {
        let mut accepted = accepted.to_vec();
        accepted.sort();
        accepted.dedup();
        self.accepted = accepted.len();
        self.purchases = log.attempts.len() + log.entering.len();
        self.offers = books.orders.iter().filter(|order| books.entries_of(&order.rid).next().is_some()).count();
        let came = log.attempts.iter().map(|attempt| &attempt.came).chain(log.entering.iter().map(|call| &call.came));
        self.unknown = came.filter(|came| **came == crate::checker::Came::Unknown).count();
        self.paid = books.orders.iter().filter(|order| order.state.as_deref() == Some("PAID")).count();
        self.units = terms.units();
        self.sold = terms.sales.iter().map(|sale| books.ordered(&sale.sale_id)).sum();
    }

    /// Its line.
    pub fn line(&self) -> String {
        let sum = |of: fn(&Tally) -> u64| self.tricks.values().map(of).sum::<u64>();
        format!(
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.name,
            self.buyers,
            self.cheaters,
            self.units,
            self.purchases,
            self.accepted,
            self.sold,
            sum(|tally| tally.tries),
            sum(|tally| tally.refused),
            self.kills.values().sum::<u64>(),
            self.violations.len()
        )
    }

    fn json(&self) -> Value {
        let tricks: serde_json::Map<String, Value> = self
            .tricks
            .iter()
            .map(|(trick, tally)| {
                let Tally { tries, refused, accepted } = tally;
                ((*trick).to_owned(), json!({ "tries": tries, "refused": refused, "accepted": accepted }))
            })
            .collect();
        let violations: Vec<Value> =
            self.violations.iter().map(|found| json!({ "rule": found.rule, "what": found.what })).collect();
        json!({
            "drop": self.name, "seed": self.seed, "buyers": self.buyers, "cheaters": self.cheaters, "units": self.units,
            "purchases": self.purchases, "accepted": self.accepted, "unanswered": self.unknown, "offers": self.offers, "paid": self.paid,
            "sold_at_the_end": self.sold, "kills": self.kills, "tricks": tricks, "violations": violations, "took_s": self.took_s,
        })
    }

    /// Prints its line and writes its file.
    pub fn write(&self) -> PathBuf {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("drops");
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join(format!("{}.json", self.name.replace('/', "_")));
        std::fs::write(&file, format!("{:#}\n", self.json())).expect("written");
        eprintln!("{HEAD}\n{}", self.line());
        for (trick, tally) in &self.tricks {
            eprintln!("    {trick}: {} tries, {} refused, {} accepted", tally.tries, tally.refused, tally.accepted);
        }
        for Violation { rule, what } in &self.violations {
            eprintln!("    {rule}: {what}");
        }
        file
    }
}
