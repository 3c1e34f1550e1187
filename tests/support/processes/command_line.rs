//! The real command line against a world, and requests parked the way misfortune parks them.

use super::programs::{call, scratch, seckill};
use crate::support::world::outbox_kinds::parked_orders;
use crate::support::world::{QUICK, SETTLE, World, pause};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::message::{self, OrderMessage};
use seckill::store::rabbit::{HeaderValue, Outgoing, ParkedMessage, PublishRoute, Topology, browse_dlq, send_all};
use seckill::store::redis::{ParkReason, Parking};
use serde_json::Value;
use std::collections::HashMap;
use std::time::Instant;

/// What a subcommand said.
#[derive(Debug)]
pub struct CommandOutput {
    /// Exit code; none when it was killed.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl CommandOutput {
    /// Its one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Fails unless the exit code is this one.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }
}

impl World {
    /// Settings of this world as arguments.
    pub fn sets(&self) -> Vec<String> {
        let quick = QUICK.iter().map(|set| (*set).to_owned());
        let sets = quick.chain(self.own_sets()).flat_map(|set| ["--set".to_owned(), set]);
        let config = self.config_file().into_iter().flat_map(|file| ["--config".into(), file.display().to_string()]);
        let sets = sets.chain(config);
        sets.chain(["--data-dir".to_owned(), scratch("desk").to_str().expect("a path").to_owned()]).collect()
    }

    /// Runs a subcommand of the real binary on this world's servers.
    pub fn cli(&self, args: &[&str]) -> CommandOutput {
        let sets = self.sets();
        let all: Vec<&str> = sets.iter().map(String::as_str).chain(args.iter().copied()).collect();
        let (code, out, err) = call(&all);
        CommandOutput { code, out, err }
    }

    /// The same with fault points armed.
    pub fn cli_with_faults(&self, faults: &str, args: &[&str]) -> CommandOutput {
        let sets = self.sets();
        let all: Vec<&str> = sets.iter().map(String::as_str).chain(args.iter().copied()).collect();
        let output = seckill(&all).env("FAILPOINTS", faults).output().expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// What Redis accepted.
    pub async fn accepted(&self, sale: &SaleId, id: RequestId) -> OrderMessage {
        let record = self.servers.redis.ledger.lookup(sale, 0, &[id]).await.expect("redis").remove(0);
        record.expect("a ledger record").order_message(id, sale, 0)
    }

    /// Takes every entry out of the outbox behind everybody's back.
    pub async fn lose_the_outbox(&self) {
        let outbox = self.servers.redis.keys.outbox(0);
        for entry in self.servers.redis.outbox.page(0, "-", 1_000).await.expect("redis") {
            assert_eq!(self.redis(&["XDEL", &outbox, &entry.id]).await, 1);
        }
    }

    /// Moves everything in the outbox to the relay DLQ, as a relay whose attempts are spent does.
    pub async fn park_the_outbox(&self) {
        let redis = &self.servers.redis;
        for entry in redis.outbox.new_entries(0, "by hand", 1_000).await.expect("redis") {
            let why = ParkReason { reason: "nack", attempts: 10 };
            let parking = redis.outbox.park_orders(0, "by hand", &entry.id, (why, &parked_orders(&entry))).await;
            assert_eq!(parking.expect("redis"), Parking::Moved);
        }
    }

    /// Puts messages into the MQ DLQ: message id, body, reason.
    pub async fn park_in_mq(&self, messages: impl IntoIterator<Item = (String, Vec<u8>, &str)>) {
        let dlq = Topology::new(&self.servers.rabbit).dlq();
        let outgoing = messages.into_iter().map(|(id, body, reason)| {
            let parked = Outgoing::new(PublishRoute { exchange: &dlq, key: "0" }, id, body);
            parked.header("x-seckill-reason", HeaderValue::Text(reason.to_owned()))
        });
        send_all(&self.servers.rabbit, &mut None, outgoing.collect()).await.expect("parked");
    }

    /// Puts a request, as it was accepted, into the MQ DLQ.
    pub async fn park_request_in_mq(&self, sale: &SaleId, id: RequestId) {
        let body = message::encode(&self.accepted(sale, id).await).into_bytes();
        self.park_in_mq([(id.to_string(), body, "ATTEMPTS_SPENT")]).await;
    }

    /// Puts every request that the ledger has into the MQ DLQ. Returns how many there are.
    pub async fn park_all_in_mq(&self, sale: &SaleId) -> usize {
        let (mut all, mut cursor) = (HashMap::new(), Some("0".to_owned()));
        while let Some(at) = cursor {
            let page = self.servers.redis.ledger.page(sale, 0, &at, 1_000).await.expect("redis");
            all.extend(page.records.into_iter().map(|(id, record)| (id, record.order_message(id, sale, 0))));
            cursor = page.next;
        }
        let count = all.len();
        let parked = all.iter().map(|(id, accepted)| (id.to_string(), message::encode(accepted).into_bytes()));
        self.park_in_mq(parked.map(|(id, body)| (id, body, "ATTEMPTS_SPENT"))).await;
        count
    }

    /// What is in the MQ DLQ. A queue that was declared a moment ago is known before it can be read: the broker closes the channel
    /// of who asks then with INTERNAL_ERROR, "noproc".
    pub async fn mq_dlq_messages(&self) -> Vec<ParkedMessage> {
        let deadline = Instant::now() + SETTLE;
        loop {
            match browse_dlq(&self.servers.rabbit, 1_000).await {
                Ok(parked) => return parked,
                Err(error) => assert!(Instant::now() < deadline, "the MQ DLQ: {error:?}"),
            }
            pause().await;
        }
    }

    /// Bodies in the MQ DLQ, sorted.
    pub async fn mq_dlq(&self) -> Vec<String> {
        let parked = self.mq_dlq_messages().await;
        let mut bodies: Vec<String> = parked.iter().map(|p| String::from_utf8_lossy(&p.body).into_owned()).collect();
        bodies.sort();
        bodies
    }

    /// Everything that a desk could change, but for its own audit rows.
    pub async fn dump(&self, sale: &SaleId) -> String {
        let keys = &self.servers.redis.keys;
        let mut ledger = self.redis(&["HGETALL", &keys.ledger(0, sale)]).await.as_array().expect("a list").clone();
        ledger.sort_by_key(ToString::to_string);
        let parked = self.redis(&["XRANGE", &keys.relay_dlq(0), "-", "+"]).await;
        let mut tables = String::new();
        for (table, columns) in [
            ("orders", "request_id, user_id, quantity, source"),
            ("request_outcome", "request_id, kind, COALESCE(reason, '-'), number"),
            (
                "failed_request",
                "request_id, source, reason, status, COALESCE(resolved_at, '-'), COALESCE(resolved_by, '-')",
            ),
            ("sales", "sale_id, granted, stock"),
            ("stock_flow", "flow_id, kind, delta"),
            ("stock_grants", "grant_id, quantity, COALESCE(applied_at, '-')"),
        ] {
            // A table as one number that changes with every cell, and the number of its rows.
            let sum =
                format!("SELECT CAST(COALESCE(SUM(CRC32(CONCAT_WS('|', {columns}))), 0) AS SIGNED) AS n FROM {table}");
            tables.push_str(&format!("{table} {} {}\n", self.rows(table, "TRUE").await, self.number(&sum).await));
        }
        format!("{tables}\nledger {ledger:?}\nrelay dlq {parked}\nmq dlq {:?}", self.mq_dlq().await)
    }
}
