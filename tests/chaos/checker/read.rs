//! The input as it is in the files: one struct per file, one line per value.

use super::Found;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

macro_rules! lines {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[$attribute])* pub $field: $type,)* }
    )*};
}

lines! {
    /// One attempt of a client.
    Attempt {
        seq: u64, client: u64, user: String, sale: String, rid: Option<String>, token: bool, kind: String,
        quantity: i64, invoke_ms: u64, complete_ms: u64, result: String, code: Option<String>, reason: Option<String>,
        other_rid: Option<String>, #[serde(default)] payment: Option<String>,
    }
    /// One sample of a sale; without a sale the database was down.
    Sample { at_ms: u64, sale: Option<String>, #[serde(default)] granted: i64, #[serde(default)] stock: i64, #[serde(default)] ordered: i64, }
    /// A sale.
    Sale { sale_id: String, granted: i64, stock: i64, per_user_limit: Option<i64>, status: String, epoch: u64, }
    /// An order.
    Order {
        request_id: String, sale_id: String, user_id: String, quantity: i64, source: String,
        #[serde(default)] cancelled_at: Option<String>, #[serde(default)] state: Option<String>,
        #[serde(default)] limit_returned: u8, #[serde(default)] version: u64,
    }
    /// A payment.
    Payment { payment_id: String, request_id: String, amount_cents: i64, state: String, reason: Option<String>, }
    /// An outcome; without a number when another request has the one it was accepted under.
    Outcome {
        request_id: String, kind: String, reason: Option<String>, sale_id: String, shard: u16, epoch: u64, number: Option<u64>,
        #[serde(default)] created_at: Option<String>,
    }
    /// A row of the register of failures.
    Failed {
        request_id: String, sale_id: String, user_id: String, quantity: i64, reason: String, status: String,
        #[serde(default)] reclaimed_by: Option<String>,
    }
    /// Units owned.
    Purchase { sale_id: String, user_id: String, quantity: i64, }
    /// Sales with one limit for each buyer over all of them; their ids, with blanks between.
    DropOfSales { drop_id: String, per_user_limit: Option<i64>, sale_ids: String, }
    /// Units owned in a drop.
    DropPurchase { drop_id: String, user_id: String, quantity: i64, }
    /// A movement of stock.
    Flow { sale_id: String, delta: i64, kind: String, }
    /// A release of units.
    Grant { sale_id: String, grant_id: String, kind: String, quantity: i64, epoch: u64, applied_at: Option<String>, }
    /// A key of a sale in Redis.
    Key { sale: String, shard: u16, name: String, }
    /// A sale's settings in Redis.
    Meta { sale: String, shard: u16, fields: BTreeMap<String, String>, }
    /// A bucket.
    Stock { sale: String, shard: u16, value: String, }
    /// Grants, and units between buckets.
    Units { sale: String, shard: u16, id: String, units: String, }
    /// A ledger record.
    Record {
        sale: String, shard: u16, rid: String, #[serde(default)] state: String, #[serde(default)] number: u64,
        #[serde(default)] quantity: i64, #[serde(default)] epoch: u64, #[serde(default)] reason: String,
        #[serde(default)] user: String, unreadable: Option<String>,
    }
    /// A message's content.
    Body { rid: String, sale: String, user: String, qty: i64, shard: u16, epoch: u64, no: u64, }
    /// An entry of the outbox or the relay DLQ.
    Entry { shard: u16, entry: String, rid: Option<String>, #[serde(default)] body: Option<Body>, }
    /// A message in a queue.
    Message { queue: String, kind: String, #[serde(default)] message_id: Option<String>, #[serde(default)] body: Option<Body>, }
    /// What the product's audit reported.
    Reported { sale_id: Option<String>, code: String, detail: String, }
    /// An event that downstream systems got.
    Published { rid: String, status: String, version: Option<u64>, payment_id: Option<String>, }
    /// An event of a sale that downstream systems got.
    Announced { key: String, sale_id: String, version: u64, }
    /// A call of an operator.
    Act {
        act: String, sale: String, about: Option<String>, units: Option<i64>, invoke_ms: u64, complete_ms: u64, result: String,
        findings: Vec<String>, #[serde(default)] taken: Option<i64>,
    }
    /// A fault that destroyed messages of the broker: when it began and when it was over, Unix milliseconds.
    Destroyed { began_ms: i64, healed_ms: i64, }
    /// What the caller measured.
    Drain { drain_ms: u64, #[serde(default)] destroyed: Vec<Destroyed>, }
}

/// Everything.
#[derive(Debug, Clone, Default)]
pub struct Input {
    /// The history, in the order in which attempts were completed.
    pub attempts: Vec<Attempt>,
    pub samples: Vec<Sample>,
    pub sales: Vec<Sale>,
    pub orders: Vec<Order>,
    pub outcomes: Vec<Outcome>,
    pub failed: Vec<Failed>,
    pub purchases: Vec<Purchase>,
    pub drops: Vec<DropOfSales>,
    pub drop_purchases: Vec<DropPurchase>,
    pub payments: Vec<Payment>,
    pub flow: Vec<Flow>,
    pub grants: Vec<Grant>,
    pub keys: Vec<Key>,
    pub meta: Vec<Meta>,
    pub stock: Vec<Stock>,
    pub ledger: Vec<Record>,
    pub redis_grants: Vec<Units>,
    pub transfers: Vec<Units>,
    pub outbox: Vec<Entry>,
    pub relay_dlq: Vec<Entry>,
    pub rabbit: Vec<Message>,
    pub published: Vec<Published>,
    pub announced: Vec<Announced>,
    /// What a shop got by webhook; of a run with one.
    pub received: Option<Vec<Published>>,
    pub destroyed: Vec<Destroyed>,
    pub findings: Vec<Reported>,
    /// Of a run with operators.
    pub acts: Vec<Act>,
    pub drain_ms: Option<u64>,
}

impl Input {
    /// Reads the folder; what is missing or unreadable is a violation.
    pub fn read(dir: &Path, found: &mut Found) -> Self {
        let drain = std::fs::read_to_string(dir.join("drain.json")).ok();
        let drain = drain.and_then(|text| serde_json::from_str::<Drain>(&text).ok());
        Self {
            attempts: history(dir, found),
            samples: lines(dir, "samples", found),
            rabbit: lines(dir, "rabbit", found),
            findings: lines(dir, "audit_findings", found),
            received: dir.join("received.jsonl").exists().then(|| lines(dir, "received", found)),
            acts: if dir.join("operators.jsonl").exists() { lines(dir, "operators", found) } else { Vec::new() },
            drain_ms: drain.as_ref().map(|drain| drain.drain_ms),
            destroyed: drain.map(|drain| drain.destroyed).unwrap_or_default(),
            ..Self::stores(dir, found)
        }
    }

    /// Reads what the database and Redis had.
    pub fn stores(dir: &Path, found: &mut Found) -> Self {
        Self {
            sales: lines(dir, "sales", found),
            orders: lines(dir, "orders", found),
            outcomes: lines(dir, "request_outcome", found),
            failed: lines(dir, "failed_request", found),
            purchases: lines(dir, "purchases", found),
            drops: lines(dir, "drops", found),
            drop_purchases: lines(dir, "drop_purchases", found),
            payments: lines(dir, "payments", found),
            flow: lines(dir, "stock_flow", found),
            grants: lines(dir, "stock_grants", found),
            keys: lines(dir, "redis_keys", found),
            meta: lines(dir, "redis_meta", found),
            stock: lines(dir, "redis_stock", found),
            ledger: lines(dir, "redis_ledger", found),
            redis_grants: lines(dir, "redis_grants", found),
            transfers: lines(dir, "redis_transfers", found),
            outbox: lines(dir, "redis_outbox", found),
            relay_dlq: lines(dir, "redis_relay_dlq", found),
            ..Self::default()
        }
    }
}

/// The history, in the order in which attempts were completed.
pub(super) fn history(dir: &Path, found: &mut Found) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = lines(dir, "history", found);
    attempts.sort_by_key(|attempt| (attempt.complete_ms, attempt.seq));
    attempts
}

pub(super) fn lines<T: DeserializeOwned>(dir: &Path, name: &str, found: &mut Found) -> Vec<T> {
    let path = dir.join(format!("{name}.jsonl"));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => {
            found.add("C0", format!("{name}.jsonl: {error}"));
            return Vec::new();
        }
    };
    let mut values = Vec::new();
    for (at, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(value) => values.push(value),
            Err(error) => found.add("C0", format!("{name}.jsonl:{}: {error}: {line}", at + 1)),
        }
    }
    values
}
