//! What the servers have of a drop at rest, as plain queries found it.

use std::collections::BTreeMap;

/// A row of `orders`.
#[derive(Debug, Clone)]
pub struct OrderRow {
    pub rid: String,
    pub sale: String,
    pub buyer: String,
    pub person: Option<String>,
    pub quantity: i64,
    pub amount_cents: i64,
    /// UNPAID, PAID, EXPIRED, CANCELLED; none where the sale has no payment step.
    pub state: Option<String>,
    /// When Redis accepted it, Unix milliseconds.
    pub accepted_ms: i64,
    /// When it got its state.
    pub state_ms: Option<i64>,
}

impl OrderRow {
    /// Whether its units are its buyer's.
    pub fn holds_units(&self) -> bool {
        !matches!(self.state.as_deref(), Some("EXPIRED" | "CANCELLED"))
    }
}

/// A row of `stock_withdrawals`.
#[derive(Debug, Clone)]
pub struct Withdrawal {
    pub sale: String,
    pub name: String,
    /// None while it is open.
    pub taken: Option<i64>,
    pub moves_to: Option<String>,
}

/// A row of `line_entries`.
#[derive(Debug, Clone)]
pub struct EntryRow {
    pub id: String,
    pub sale: String,
    pub buyer: String,
    pub person: Option<String>,
    pub quantity: i64,
    /// Of a waiting list; of a raffle once its turn has come.
    pub rank: Option<i64>,
    /// WAITING, OFFERED, TAKEN, LAPSED, LEFT.
    pub state: String,
    /// Whether it is in the list that is drawn.
    pub listed: bool,
    /// The request of its offer, once its turn has come.
    pub rid: Option<String>,
    /// When it was written, Unix milliseconds.
    pub entered_ms: i64,
    /// When it got its state.
    pub state_ms: i64,
    /// Why it lapsed.
    pub reason: Option<String>,
}

/// A row of `sale_lines`, with the door of its sale.
#[derive(Debug, Clone, Default)]
pub struct LineRow {
    /// What the ranks of a raffle follow from, in hexadecimal.
    pub seed: String,
    /// Of the list of a raffle, in hexadecimal.
    pub digest: Option<String>,
    /// Whether clicks get nothing.
    pub by_line: bool,
}

/// All of it.
#[derive(Debug, Clone, Default)]
pub struct Books {
    pub orders: Vec<OrderRow>,
    /// Request → sale and units, of `failed_request`.
    pub failed: BTreeMap<String, (String, i64)>,
    /// Sale and name → units, of `stock_grants`.
    pub grants: BTreeMap<(String, String), i64>,
    pub withdrawals: Vec<Withdrawal>,
    /// Order → amount of the payment that paid it.
    pub payments: BTreeMap<String, i64>,
    /// Sale → units left in Redis, over all shards.
    pub unsold: BTreeMap<String, i64>,
    /// Sale and buyer, or person → units, of Redis.
    pub held: BTreeMap<(String, String), i64>,
    /// Entries of lines.
    pub entries: Vec<EntryRow>,
    /// Sale → its line.
    pub lines: BTreeMap<String, LineRow>,
    /// What the product's own audit complains of.
    pub audit: Vec<String>,
}

impl Books {
    /// The order of a request.
    pub fn order(&self, rid: &str) -> Option<&OrderRow> {
        self.orders.iter().find(|order| order.rid == rid)
    }

    /// The entries whose offer is this request.
    pub fn entries_of<'a>(&'a self, rid: &'a str) -> impl Iterator<Item = &'a EntryRow> {
        self.entries.iter().filter(move |entry| entry.rid.as_deref() == Some(rid))
    }

    /// Units that moved into a sale.
    pub fn moved_in(&self, sale: &str) -> i64 {
        let into = self.withdrawals.iter().filter(|one| one.moves_to.as_deref() == Some(sale));
        into.filter_map(|one| one.taken).sum()
    }

    /// Units that left a sale.
    pub fn taken_from(&self, sale: &str) -> i64 {
        self.withdrawals.iter().filter(|one| one.sale == sale).filter_map(|one| one.taken).sum()
    }

    /// Units of failures of a sale.
    pub fn failed_units(&self, sale: &str) -> i64 {
        self.failed.values().filter(|(of, _)| of == sale).map(|(_, units)| units).sum()
    }

    /// Units of the orders that hold some of a sale.
    pub fn ordered(&self, sale: &str) -> i64 {
        let of_sale = self.orders.iter().filter(|order| order.sale == sale && order.holds_units());
        of_sale.map(|order| order.quantity).sum()
    }
}
