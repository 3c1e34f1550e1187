//! A small correct run, written step by step; a test then damages one thing and asks what the checker says.

use super::super::read::{
    Attempt, Body, DropOfSales, DropPurchase, Failed, Flow, Grant, Input, Message, Meta, Order, Outcome, Purchase,
    Record, Sale, Sample, Stock, Units,
};

/// A run in memory.
#[derive(Default, Clone)]
pub struct SampleRun {
    pub input: Input,
    clock_ms: u64,
    ids: u64,
}

impl SampleRun {
    /// Sold out, limits, silence that turned out either way, a failure, a parked request, a rebuilt sale: no promise is broken.
    pub fn correct() -> Self {
        let mut run = Self::default();
        run.sale("one", 3, Some(1));
        run.sale("five", 10, Some(5));
        run.sale("many", 20, None);
        let sale_ids = "one five".to_owned();
        run.input.drops.push(DropOfSales { drop_id: "drop".into(), per_user_limit: Some(6), sale_ids });
        for user in ["b1", "B1"] {
            let rid = run.bought("one", user, 1);
            run.answered(("status", "confirmed"), (user, "one", 1), Some(&rid));
        }
        let failed = run.accepted("one", "b2", 1);
        run.fails(&failed, "GIVEN_UP");
        run.answered(("status", "failed"), ("b2", "one", 1), Some(&failed));
        run.input.attempts.last_mut().unwrap().reason = Some("GIVEN_UP".into());
        run.answered(("buy", "sold_out"), ("b3", "one", 1), Some("9001"));
        run.bought("five", "b1", 2);
        run.bought("five", "b1", 3);
        run.answered(("buy", "limit"), ("b1", "five", 1), Some("9002"));
        // Silence that was an order, silence that was nothing, and silence without an id that was an order.
        let late = run.bought("many", "b4", 2);
        run.input.attempts.last_mut().unwrap().result = "unknown".into();
        run.answered(("status", "queued"), ("b4", "many", 2), Some(&late));
        run.answered(("status", "confirmed"), ("b4", "many", 2), Some(&late));
        run.answered(("buy", "unknown"), ("b5", "many", 1), Some("9003"));
        run.answered(("status", "not_found"), ("b5", "many", 1), Some("9003"));
        run.answered(("status", "not_found"), ("b5", "many", 1), Some("9003"));
        let unlearned = run.bought("many", "b6", 3);
        let last = run.input.attempts.last_mut().unwrap();
        assert_eq!(last.rid.take(), Some(unlearned.clone()));
        last.result = "unknown".into();
        run.input.attempts.retain(|attempt| attempt.rid.as_ref() != Some(&unlearned));
        let parked = run.accepted("many", "b7", 1);
        run.parks(&parked);
        run.rebuild("five", 5);
        run.bought("five", "b8", 1);
        run
    }

    pub fn next_ms(&mut self) -> u64 {
        self.clock_ms += 10;
        self.clock_ms
    }

    /// A sale is opened.
    pub fn sale(&mut self, id: &str, granted: i64, limit: Option<i64>) {
        let input = &mut self.input;
        input.sales.push(Sale {
            sale_id: id.into(),
            granted,
            stock: granted,
            per_user_limit: limit,
            status: "warmed".into(),
            epoch: 1,
        });
        input.flow.push(Flow { sale_id: id.into(), delta: granted, kind: "grant".into() });
        input.grants.push(Grant {
            sale_id: id.into(),
            grant_id: "first".into(),
            kind: "grant".into(),
            quantity: granted,
            epoch: 1,
            applied_at: Some("2025-11-11".into()),
        });
        let fields = [("state", "open"), ("epoch", "1"), ("number", "0")];
        let fields = fields.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        input.meta.push(Meta { sale: id.into(), shard: 0, fields });
        input.stock.push(Stock { sale: id.into(), shard: 0, value: granted.to_string() });
        input.redis_grants.push(Units { sale: id.into(), shard: 0, id: "first".into(), units: granted.to_string() });
        self.sample(id);
    }

    fn sample(&mut self, id: &str) {
        let at_ms = self.next_ms();
        let sale = self.sale_of(id).clone();
        self.input.samples.push(Sample {
            at_ms,
            sale: Some(id.into()),
            granted: sale.granted,
            stock: sale.stock,
            ordered: sale.granted - sale.stock,
        });
    }

    pub fn sale_of(&mut self, id: &str) -> &mut Sale {
        self.input.sales.iter_mut().find(|sale| sale.sale_id == id).expect("a sale")
    }

    pub fn meta_of(&mut self, id: &str) -> &mut Meta {
        self.input.meta.iter_mut().find(|meta| meta.sale == id).expect("a meta")
    }

    pub fn record_of(&mut self, rid: &str) -> &mut Record {
        self.input.ledger.iter_mut().find(|record| record.rid == rid).expect("a record")
    }

    /// A client gets an answer.
    pub fn answered(
        &mut self,
        (kind, result): (&str, &str),
        (user, sale, quantity): (&str, &str, i64),
        rid: Option<&str>,
    ) {
        let (invoke_ms, complete_ms) = (self.next_ms(), self.next_ms());
        let seq = self.input.attempts.len() as u64;
        self.input.attempts.push(Attempt {
            seq,
            client: seq,
            user: user.into(),
            sale: sale.into(),
            rid: rid.map(Into::into),
            token: rid.is_some(),
            kind: kind.into(),
            quantity,
            invoke_ms,
            complete_ms,
            result: result.into(),
            ..Attempt::default()
        });
    }

    /// Redis takes a request, and the buyer gets the answer; nothing else happened yet.
    pub fn accepted(&mut self, sale: &str, user: &str, quantity: i64) -> String {
        self.ids += 1;
        let rid = (1000 + self.ids).to_string();
        let fields = &mut self.meta_of(sale).fields;
        let number: u64 = fields["number"].parse::<u64>().expect("a number") + 1;
        let epoch = fields["epoch"].parse().expect("an epoch");
        fields.insert("number".into(), number.to_string());
        let stock = self.input.stock.iter_mut().find(|stock| stock.sale == sale).expect("a bucket");
        stock.value = (stock.value.parse::<i64>().expect("units") - quantity).to_string();
        self.input.ledger.push(Record {
            sale: sale.into(),
            rid: rid.clone(),
            state: "Q".into(),
            number,
            quantity,
            epoch,
            reason: "-".into(),
            user: user.into(),
            ..Record::default()
        });
        self.answered(("token", "issued"), (user, sale, quantity), Some(&rid));
        self.answered(("buy", "accepted"), (user, sale, quantity), Some(&rid));
        rid
    }

    fn decided(&mut self, rid: &str, kind: &str, reason: Option<&str>) -> Record {
        let record = self.record_of(rid);
        record.state = if kind == "ORDER" { "C" } else { "F" }.into();
        record.reason = reason.unwrap_or("-").into();
        let record = record.clone();
        self.input.outcomes.push(Outcome {
            request_id: rid.into(),
            kind: kind.into(),
            reason: reason.map(Into::into),
            sale_id: record.sale.clone(),
            epoch: record.epoch,
            number: Some(record.number),
            ..Outcome::default()
        });
        self.publishes(rid, if kind == "ORDER" { "CONFIRMED" } else { "FAILED" });
        record
    }

    /// An accepted request becomes an order.
    pub fn persisted(&mut self, rid: &str) {
        let Record { sale, user, quantity, .. } = self.decided(rid, "ORDER", None);
        self.sale_of(&sale).stock -= quantity;
        let cumulative = self.sale_of(&sale).per_user_limit.is_some_and(|limit| limit > 1);
        let input = &mut self.input;
        input.flow.push(Flow { sale_id: sale.clone(), delta: -quantity, kind: "order".into() });
        if cumulative {
            match input.purchases.iter_mut().find(|row| row.sale_id == sale && row.user_id == user) {
                Some(row) => row.quantity += quantity,
                None => input.purchases.push(Purchase { sale_id: sale.clone(), user_id: user.clone(), quantity }),
            }
        }
        let of_sale = |drop: &&DropOfSales| drop.sale_ids.split(' ').any(|id| id == sale);
        if let Some(DropOfSales { drop_id, .. }) = input.drops.iter().find(of_sale) {
            match input.drop_purchases.iter_mut().find(|row| row.drop_id == *drop_id && row.user_id == user) {
                Some(row) => row.quantity += quantity,
                None => {
                    input.drop_purchases.push(DropPurchase {
                        drop_id: drop_id.clone(),
                        user_id: user.clone(),
                        quantity,
                    });
                }
            }
        }
        let (request_id, source) = (rid.into(), "relay".into());
        let order = Order { request_id, sale_id: sale.clone(), user_id: user, quantity, source, ..Order::default() };
        input.orders.push(order);
        self.sample(&sale);
    }

    pub fn bought(&mut self, sale: &str, user: &str, quantity: i64) -> String {
        let rid = self.accepted(sale, user, quantity);
        self.persisted(&rid);
        rid
    }

    /// An accepted request is refused for good.
    pub fn fails(&mut self, rid: &str, reason: &str) {
        let Record { sale, user, quantity, .. } = self.decided(rid, "FAILED", Some(reason));
        self.input.failed.push(Failed {
            request_id: rid.into(),
            sale_id: sale,
            user_id: user,
            quantity,
            reason: reason.into(),
            status: "failed_final".into(),
            reclaimed_by: None,
        });
    }

    /// An accepted request is in a queue.
    pub fn is_in(&mut self, kind: &str, rid: &str) {
        let Record { sale, user, quantity, epoch, number, .. } = self.record_of(rid).clone();
        let body = Body { rid: rid.into(), sale, user, qty: quantity, shard: 0, epoch, no: number };
        let message = Message { queue: "q".into(), kind: kind.into(), body: Some(body), ..Message::default() };
        self.input.rabbit.push(message);
    }

    /// An accepted request is given up by the consumer, and waits in the DLQ.
    pub fn parks(&mut self, rid: &str) {
        self.is_in("dlq", rid);
    }

    /// A request vanishes from the database and from Redis, as if it had never been: stock, journal and numbers fit.
    pub fn vanishes(&mut self, rid: &str) {
        let record = self.record_of(rid).clone();
        let input = &mut self.input;
        input.ledger.retain(|other| other.rid != rid);
        input.outcomes.retain(|other| other.request_id != rid);
        input.orders.retain(|other| other.request_id != rid);
        input.flow.push(Flow { sale_id: record.sale.clone(), delta: record.quantity, kind: "correction".into() });
        let stock = input.stock.iter_mut().find(|stock| stock.sale == record.sale).expect("a bucket");
        stock.value = (stock.value.parse::<i64>().expect("units") + record.quantity).to_string();
        self.sale_of(&record.sale).stock += record.quantity;
        self.meta_of(&record.sale).fields.insert("number".into(), (record.number - 1).to_string());
    }
}
