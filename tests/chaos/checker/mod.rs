//! The independent checker: decides from the clients' answers and what is in the servers whether a promise was broken.
//!
//! Input: a folder with the history, the samples and the raw dumps. Output: a [`Verdict`]. It shares no code with the
//! product or the harness (a tidy test sees to it), reads no log of any service, and believes nothing it cannot read: a
//! missing or unreadable file is a violation, too.
//!
//! | rule | broken when |
//! |---|---|
//! | C0 | an input is missing or unreadable |
//! | C1 | more was sold than granted, at the end or in any sample; or stock, orders and journal disagree |
//! | C2 | a request has two orders, a buyer has more than the limit of a sale or a drop, or `purchases` or `drop_purchases` disagrees with the orders |
//! | C3-lost | a client got "accepted", and the request is nowhere |
//! | C3-limbo | an accepted request is in ledger, outbox or queues and has neither outcome nor a place among the parked |
//! | C3-torn | an outcome is half there: an outcome without its order or register row, or the reverse |
//! | C4 | an order or failure that no client asked for, or with another buyer, sale or quantity |
//! | C5 | a client got "sold out" although units were never accepted |
//! | C6 | a request that was answered "accepted" was later refused or not found |
//! | C7 | an unknown answer never became certain, or the client's last answer is not what the database says |
//! | C8 | Redis' sums, marks, grants or acceptance numbers disagree with the database |
//! | C10 | a request is both order and failure, in the database or in the answers that clients got |
//! | C11 | an order is paid and its units came back, units came back twice or not at all, or a payment is lost or answered in two ways |
//! | C12 | an outcome, a state or another version of an order, or money that has to go back was never published to downstream systems |
//! | C13 | the product's audit reported something beside the crowd that no other rule finds, but a leak, which may be mended since |
//! | C14 | an operator's act is not on record as it was answered, units were added or withdrawn unasked, or a paused sale accepted a purchase |
//! | C15 | the shop did not get an event by webhook |
//! | C16 | an event of a sale was never published to downstream systems, or two have one version |
//!
//! C12 and C16 are checked where a run listens to the events. C9, the drain time, is measured by the caller (`drain.json`) and only reported.

mod figures;
mod index;
pub mod loss;
mod read;
mod rules;
#[cfg(test)]
mod tests;

pub use figures::Figures;
use index::Index;
use read::Input;
use std::path::Path;

/// One broken promise.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// The rule, as in the table above.
    pub rule: &'static str,
    /// What exactly is wrong.
    pub detail: String,
}

/// What the checker has to say.
#[derive(Debug, serde::Serialize)]
pub struct Verdict {
    /// Everything that is wrong; empty is the only good verdict.
    pub violations: Vec<Violation>,
    /// What was counted.
    pub figures: Figures,
}

impl Verdict {
    /// Whether no promise was broken.
    pub fn is_green(&self) -> bool {
        self.violations.is_empty()
    }

    /// The rules that were broken, each once, in order.
    pub fn rules(&self) -> Vec<&'static str> {
        let rules: std::collections::BTreeSet<&str> = self.violations.iter().map(|found| found.rule).collect();
        rules.into_iter().collect()
    }
}

/// What the rules write to.
#[derive(Default)]
struct Found(Vec<Violation>);

impl Found {
    fn add(&mut self, rule: &'static str, detail: String) {
        self.0.push(Violation { rule, detail });
    }
}

/// Checks what is in `dir`, but for what was published: of a run without a downstream system.
pub fn check(dir: &Path) -> Verdict {
    let mut found = Found::default();
    let input = Input::read(dir, &mut found);
    judge(&input, found)
}

/// Checks what is in `dir`, with C12 and C16.
pub fn check_with_published(dir: &Path) -> Verdict {
    let mut found = Found::default();
    let published = read::lines(dir, "published", &mut found);
    let announced = read::lines(dir, "announced", &mut found);
    let input = Input { published, announced, ..Input::read(dir, &mut found) };
    rules::published::check(&Index::of(&input), &mut found);
    rules::published::check_announced(&input, &mut found);
    judge(&input, found)
}

fn judge(input: &Input, mut found: Found) -> Verdict {
    let index = Index::of(input);
    rules::stock::check(&index, &mut found);
    rules::limits::check(&index, &mut found);
    rules::outcomes::check(&index, &mut found);
    rules::phantoms::check(&index, &mut found);
    rules::answers::check(&index, &mut found);
    rules::converged::check(&index, &mut found);
    rules::payments::check(&index, &mut found);
    rules::redis::check(&index, &mut found);
    rules::numbers::check(&index, &mut found);
    rules::operators::check(&index, &mut found);
    rules::published::check_received(&index, &mut found);
    rules::audits::check(&index, &mut found);
    let figures = Figures::of(&index);
    Verdict { violations: found.0, figures }
}
