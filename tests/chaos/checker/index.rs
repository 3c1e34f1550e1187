//! The input, found by request, by sale and by place.

use super::read::{Attempt, Body, Failed, Input, Order, Outcome, Record, Sale};
use std::collections::{BTreeMap, BTreeSet};

/// An accepted request that has no outcome, wherever it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided<'a> {
    pub sale: &'a str,
    pub shard: u16,
    pub epoch: u64,
    pub number: u64,
    pub quantity: i64,
}

impl Order {
    /// Whether its units are on sale again.
    pub fn has_ended(&self) -> bool {
        matches!(self.state.as_deref(), Some("EXPIRED" | "CANCELLED"))
    }
}

/// The input with its indexes.
pub struct Index<'a> {
    pub input: &'a Input,
    pub sales: BTreeMap<&'a str, &'a Sale>,
    pub orders: BTreeMap<&'a str, &'a Order>,
    pub outcomes: BTreeMap<&'a str, &'a Outcome>,
    pub failed: BTreeMap<&'a str, &'a Failed>,
    pub ledger: BTreeMap<&'a str, &'a Record>,
    /// Attempts by request, in the order in which they were completed.
    pub attempts: BTreeMap<&'a str, Vec<&'a Attempt>>,
    /// Requests that are in a DLQ, or in the register as open.
    pub parked: BTreeSet<&'a str>,
    /// Requests on their way: outbox, order queues, retry queues.
    pub moving: BTreeSet<&'a str>,
    /// Accepted requests without an outcome, as far as their record or message can be read.
    pub undecided: BTreeMap<&'a str, Undecided<'a>>,
}

impl<'a> Index<'a> {
    /// Indexes the input.
    pub fn of(input: &'a Input) -> Self {
        let mut attempts: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
        for attempt in &input.attempts {
            if let Some(rid) = &attempt.rid {
                attempts.entry(rid).or_default().push(attempt);
            }
        }
        let entry_rid = |rid: &'a Option<String>, body: &'a Option<Body>| {
            body.as_ref().map(|body| body.rid.as_str()).or(rid.as_deref())
        };
        let messages = |dlq: bool| {
            let in_kind = input.rabbit.iter().filter(move |message| (message.kind == "dlq") == dlq);
            in_kind.filter_map(move |message| entry_rid(&message.message_id, &message.body))
        };
        let open = input.failed.iter().filter(|row| row.status == "open").map(|row| row.request_id.as_str());
        let relay_dlq = input.relay_dlq.iter().filter_map(|entry| entry_rid(&entry.rid, &entry.body));
        let outbox = input.outbox.iter().filter_map(|entry| entry_rid(&entry.rid, &entry.body));
        let mut index = Self {
            input,
            sales: input.sales.iter().map(|sale| (sale.sale_id.as_str(), sale)).collect(),
            orders: input.orders.iter().map(|order| (order.request_id.as_str(), order)).collect(),
            outcomes: input.outcomes.iter().map(|outcome| (outcome.request_id.as_str(), outcome)).collect(),
            failed: input.failed.iter().map(|failed| (failed.request_id.as_str(), failed)).collect(),
            ledger: input.ledger.iter().map(|record| (record.rid.as_str(), record)).collect(),
            attempts,
            parked: messages(true).chain(open).chain(relay_dlq).collect(),
            moving: messages(false).chain(outbox).collect(),
            undecided: BTreeMap::new(),
        };
        index.undecided = index.find_undecided();
        index
    }

    fn find_undecided(&self) -> BTreeMap<&'a str, Undecided<'a>> {
        let of_body = |body: &'a Body| {
            let undecided = Undecided {
                sale: &body.sale,
                shard: body.shard,
                epoch: body.epoch,
                number: body.no,
                quantity: body.qty,
            };
            (body.rid.as_str(), undecided)
        };
        let input = self.input;
        let entries = input.outbox.iter().chain(&input.relay_dlq).filter_map(|entry| entry.body.as_ref());
        let bodies = entries.chain(input.rabbit.iter().filter_map(|message| message.body.as_ref())).map(of_body);
        let records = input.ledger.iter().filter(|record| record.unreadable.is_none()).map(|record| {
            let undecided = Undecided {
                sale: &record.sale,
                shard: record.shard,
                epoch: record.epoch,
                number: record.number,
                quantity: record.quantity,
            };
            (record.rid.as_str(), undecided)
        });
        bodies.chain(records).filter(|(rid, _)| !self.outcomes.contains_key(rid)).collect()
    }

    /// Whether some client got "accepted" for the request.
    pub fn was_answered_accepted(&self, rid: &str) -> bool {
        let accepted = |attempt: &Attempt| {
            (attempt.kind == "buy" && attempt.result == "accepted")
                || (attempt.kind == "status" && ["queued", "confirmed", "failed"].contains(&attempt.result.as_str()))
        };
        self.attempts.get(rid).is_some_and(|attempts| attempts.iter().any(|attempt| accepted(attempt)))
    }

    /// Units of a decided request: of its order, or of its row in the register; of its record if its outcome is torn.
    pub fn units(&self, rid: &str) -> Option<i64> {
        let ordered = self.orders.get(rid).map(|order| order.quantity);
        let failed = self.failed.get(rid).map(|failed| failed.quantity);
        ordered.or(failed).or_else(|| self.ledger.get(rid).map(|record| record.quantity))
    }

    /// Units ordered in a sale that are their buyers': not of orders that expired or were cancelled.
    pub fn ordered_units(&self, sale: &str) -> i64 {
        let live = self.input.orders.iter().filter(|order| order.sale_id == sale && !order.has_ended());
        live.map(|order| order.quantity).sum()
    }

    /// Units of all orders of a sale, whatever became of them.
    fn ever_ordered_units(&self, sale: &str) -> i64 {
        self.input.orders.iter().filter(|order| order.sale_id == sale).map(|order| order.quantity).sum()
    }

    /// Units of a sale's final failures.
    pub fn failed_units(&self, sale: &str) -> i64 {
        let failed = self.input.outcomes.iter().filter(|outcome| outcome.sale_id == sale && outcome.kind == "FAILED");
        failed.filter_map(|outcome| self.units(&outcome.request_id)).sum()
    }

    /// Units of a sale's undecided requests.
    pub fn undecided_units(&self, sale: &str) -> i64 {
        self.undecided.values().filter(|request| request.sale == sale).map(|request| request.quantity).sum()
    }

    /// Units of a sale that were accepted and, at the end, are neither ordered, nor refused, nor open; at most 0 when
    /// more was accepted than granted.
    pub fn never_accepted_units(&self, sale: &Sale) -> i64 {
        let id = sale.sale_id.as_str();
        sale.granted - self.ever_ordered_units(id) - self.failed_units(id) - self.undecided_units(id)
    }
}
