//! Judges a drop that was played: from what buyers were answered and from raw rows and values, by nothing that the product computed.
//!
//! Input: the shop's file, the log of all attempts, who the buyers really are, and the books as plain queries found them at rest.
//! Output: violations. It shares no code with the product nor with the harness that drives it, and its own tests let it fail.
//!
//! | rule | holds when |
//! |---|---|
//! | OVERSOLD | no sale has more units in orders and failures than it got, and the drop no more than its file gives |
//! | UNITS | what a sale got is, to the unit, unsold in Redis, in orders that hold, or in recorded failures; what moved arrived |
//! | LIMIT | no buyer, or person, ever holds more than a limit of a sale or of the drop, at any moment |
//! | PERSON | an order's person is the one who really has the account |
//! | HELD | Redis knows of each buyer, or person, exactly what the orders say |
//! | NEEDS | no order of a buyer who has not what the sale needs, none of which it was not shown |
//! | WINDOW | nothing is accepted outside of a sale's window, or before it was published |
//! | TOKEN | where a purchase token is needed each order has one that was issued to its buyer for its sale; one token is one request |
//! | LOST | each 202 is an order or a recorded failure |
//! | UNKNOWN | each order has a 202, or an attempt without an answer that may have been it |
//! | PRICE | an order costs what its file says; a paid one was paid with that, and an answer "paid" is a paid order |
//! | ENTRY | each 201 of a line is its buyer's entry until that leaves; each entry has one, or a try without an answer; none is behind the close, none a second one of its buyer or person |
//! | OFFER | each order of a sale with a line is a click, or of exactly one entry of its buyer, with its units; what an entry says of its order is so; who left or was passed over has none |
//! | RANK | ranks are those of the arrival, or of the draw that anybody recomputes; nothing was given behind an entry that waits, is not in hand, and wants no more units; no request was chosen [`ranks::LATER_MS`] before that of such an entry that also got its order later |
//! | CLICK | no click was accepted while an entry waited, by rows ([`clicks::SLACK_MS`] at each end) and by what buyers saw; the door is the line's while one waits |
//! | AUDIT | `seckill audit --now` calls each sale consistent |

mod answers;
mod books;
mod clicks;
mod entries;
mod limits;
mod line_tests;
mod offers;
mod ranks;
mod terms;
mod tests;
mod units;

pub use books::{Books, EntryRow, LineRow, OrderRow, Withdrawal};
pub use terms::{DropTerms, LineTerms, SaleTerms};

use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What an answer comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// 202, with the request's id.
    Accepted(String),
    /// Another answer: nothing was bought.
    Refused { status: u16, code: String },
    /// Sent, and no answer that says what became of it.
    Unknown,
    /// No connection: nothing can have happened.
    Unsent,
}

/// An attempt to buy.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// The account.
    pub buyer: String,
    /// The sale, however its id was spelt.
    pub sale: String,
    /// Units wanted.
    pub quantity: u32,
    /// The purchase token that was sent.
    pub token: Option<String>,
    /// Whether the attempt showed all that the sale needs, valid and of this buyer.
    pub shows: bool,
    /// Unix milliseconds by the clock of this machine, which the servers have, too.
    pub begun_ms: i64,
    /// The same, of the answer.
    pub ended_ms: i64,
    /// What it comes to.
    pub came: Came,
    /// How it tries to get around the drop, if it does.
    pub trick: Option<&'static str>,
}

/// A purchase token that was issued.
#[derive(Debug, Clone)]
pub struct Issued {
    /// To whom.
    pub buyer: String,
    /// For what.
    pub sale: String,
    /// The request that it is.
    pub rid: String,
}

/// A call to be in a line.
#[derive(Debug, Clone)]
pub struct Entering {
    pub buyer: String,
    pub sale: String,
    pub quantity: u32,
    pub begun_ms: i64,
    pub ended_ms: i64,
    /// Accepted: with the id of the entry. An answer 503 is unknown here: the entry may be there.
    pub came: Came,
}

/// A call to leave a line.
#[derive(Debug, Clone)]
pub struct Leaving {
    pub buyer: String,
    pub entry: String,
    /// Whether it left; none: no answer.
    pub left: Option<bool>,
}

/// What a buyer was shown of its entry.
#[derive(Debug, Clone)]
pub struct Seen {
    pub buyer: String,
    pub sale: String,
    pub entry: String,
    pub state: String,
    pub quantity: u32,
    pub rank: Option<i64>,
    pub rid: Option<String>,
    /// When the call began: it was so then, or later.
    pub begun_ms: i64,
}

impl Seen {
    /// Whether its offer was made, so that there is an outcome.
    pub fn is_made(&self) -> bool {
        matches!(self.state.as_str(), "OFFERED" | "TAKEN")
    }
}

/// A payment that the shop's backend reported.
#[derive(Debug, Clone)]
pub struct Reported {
    /// Of which order.
    pub rid: String,
    /// In the currency's smallest unit.
    pub amount: i64,
    /// Whether the answer was that the order is paid; none: no answer.
    pub paid: Option<bool>,
}

/// Who an account really is.
#[derive(Debug, Clone, Default)]
pub struct Identity {
    /// The person who has it.
    pub person: String,
    /// What the shop has said of the account.
    pub facts: Map<String, Value>,
    /// Whether the shop gave it a pass for this drop.
    pub has_pass: bool,
}

/// All that buyers and the shop did.
#[derive(Debug, Clone, Default)]
pub struct Log {
    /// Purchases.
    pub attempts: Vec<Attempt>,
    /// Token → what it is.
    pub issued: BTreeMap<String, Issued>,
    /// Payments.
    pub reported: Vec<Reported>,
    /// Calls to be in a line.
    pub entering: Vec<Entering>,
    /// Calls to leave it.
    pub leaving: Vec<Leaving>,
    /// What buyers were shown of their entries.
    pub seen: Vec<Seen>,
    /// Account → who it is.
    pub who: BTreeMap<String, Identity>,
}

/// A rule that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which.
    pub rule: &'static str,
    /// Of what, and why.
    pub what: String,
}

/// A drop that was played, at rest.
pub struct Played<'a> {
    /// The shop's file, with the times that it had.
    pub terms: &'a DropTerms,
    /// What was answered.
    pub log: &'a Log,
    /// What is there.
    pub books: &'a Books,
}

/// Everything that is wrong.
pub fn judge(played: &Played<'_>) -> Vec<Violation> {
    let rules: [fn(&Played<'_>) -> Vec<Violation>; 16] = [
        units::oversold,
        units::add_up,
        limits::at_any_moment,
        limits::persons,
        limits::held,
        answers::needs,
        answers::windows,
        answers::tokens,
        answers::lost,
        answers::unknown,
        answers::prices,
        entries::entries,
        offers::offers,
        ranks::ranks,
        clicks::clicks,
        |played| played.books.audit.iter().map(|found| violation("AUDIT", found.clone())).collect(),
    ];
    rules.iter().flat_map(|rule| rule(played)).collect()
}

fn violation(rule: &'static str, what: impl Into<String>) -> Violation {
    Violation { rule, what: what.into() }
}

impl Played<'_> {
    /// Whom a limit counts: the account, or the person who really has it.
    fn key(&self, buyer: &str) -> String {
        let person = || self.log.who.get(buyer).map(|who| who.person.clone());
        if self.terms.by_person { person().unwrap_or_else(|| format!("unknown {buyer}")) } else { buyer.to_owned() }
    }
}
