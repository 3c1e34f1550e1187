//! Lines of sales: created, entered, closed and asked about.

use crate::support::world::{Answer, World, eventually};
use reqwest::Method;
use seckill::domain::draw::{ListDigest, Ranks, from_hex, key};
use seckill::domain::fault::Progress;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::line::{LineKind, LinePlan};
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::sale::Sale;
use seckill::domain::timetable::Timetable;
use seckill::p5_reconcile::LineKeeper;
use seckill::runtime::{Worker, now_ms};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// An hour, milliseconds.
const HOUR_MS: i64 = 3_600_000;

impl World {
    /// A sale that starts in an hour, with a raffle until then; as `change` says.
    pub async fn raffle(&self, id: &str, change: impl FnOnce(&mut Sale, &mut LinePlan)) -> SaleId {
        let sale_id = SaleId::parse(id).expect("a sale id");
        let mut sale = Sale::draft(sale_id.clone(), 10, now_ms() + HOUR_MS, now_ms() + 2 * HOUR_MS);
        let mut line = LinePlan { kind: LineKind::Raffle, closes_at_ms: now_ms() + HOUR_MS, needs_beacon: false };
        change(&mut sale, &mut line);
        let plan = Timetable { line: Some(line), ..Timetable::default() };
        self.servers.rows.sales.create_planned(&sale, &plan).await.expect("create");
        if !self.api.is_empty() {
            eventually("the entry knows it", async || self.draw_of(&sale_id).await.status == 200).await;
        }
        sale_id
    }

    /// A sale with a line that sells now, warmed: a raffle that takes entries, or a waiting list. With a payment step of an hour.
    pub async fn line_sale(&self, id: &str, units: i64, kind: LineKind, change: impl FnOnce(&mut Sale)) -> SaleId {
        let sale_id = SaleId::parse(id).expect("a sale id");
        let mut sale = Sale::draft(sale_id.clone(), units, now_ms() - 1_000, now_ms() + HOUR_MS);
        sale.payment = Some(PaymentTerms { pay_within_s: 3_600, pay_grace_s: 0, limit_returns: false });
        change(&mut sale);
        let line = LinePlan { kind, closes_at_ms: now_ms() + HOUR_MS, needs_beacon: false };
        let plan = Timetable { line: Some(line), ..Timetable::default() };
        self.servers.rows.sales.create_planned(&sale, &plan).await.expect("create");
        eventually("it is warmed", async || self.sale_control().warm(&sale_id).await.is_ok()).await;
        eventually("the entry knows it", async || self.shown_sale(&sale_id).await.status == 200).await;
        sale_id
    }

    /// The sale as buyers see it.
    pub async fn shown_sale(&self, sale: &SaleId) -> Answer {
        Answer::of(self.http.get(format!("{}/v1/sales/{sale}", self.api))).await
    }

    /// The public state of an entry.
    pub async fn entry_is(&self, sale: &SaleId, user: &str, state: &str) -> bool {
        self.entry_of(sale, user).await.text("state") == state
    }

    /// Waits for an offer; its request.
    pub async fn offered(&self, sale: &SaleId, user: &str) -> RequestId {
        eventually(&format!("an order for {user}"), async || {
            let entry = self.entry_of(sale, user).await;
            entry.text("state") == "OFFERED"
                && self.rows("orders", &format!("request_id = {}", entry.text("request_id"))).await == 1
        })
        .await;
        RequestId::parse(&self.entry_of(sale, user).await.text("request_id")).expect("a request id")
    }

    /// Buyers enter, the raffle is drawn; the buyers in the order of ranks.
    pub async fn drawn(&self, sale: &SaleId, buyers: &[&str]) -> Vec<String> {
        let mut entries = Vec::new();
        for buyer in buyers {
            entries.push((self.entered(sale, buyer).await, (*buyer).to_owned()));
        }
        self.line_is_over(sale).await;
        let draw = self.draw_once(sale, "DRAWN").await;
        let ranks = ranks(&draw, &self.list_of(sale).await);
        entries.sort_by_key(|(id, _)| ranks.of(id.parse().expect("an id")));
        entries.into_iter().map(|(_, buyer)| buyer).collect()
    }

    /// Enters a waiting list as soon as it takes entries.
    pub async fn joined(&self, sale: &SaleId, user: &str) {
        eventually("the waiting list is open", async || {
            let answer = self.enter_line(sale, user, 1).await;
            assert!(matches!(answer.status, 201 | 409), "{answer:?}");
            answer.status == 201
        })
        .await;
    }

    /// Enters its line.
    pub async fn enter_line(&self, sale: &SaleId, user: &str, quantity: u32) -> Answer {
        let request = self.request(Method::POST, &format!("/v1/sales/{sale}/entries"), user);
        Answer::of(request.json(&json!({ "quantity": quantity }))).await
    }

    /// Enters its line, and is in it; the id of the entry.
    pub async fn entered(&self, sale: &SaleId, user: &str) -> String {
        let answer = self.enter_line(sale, user, 1).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.text("entry_id")
    }

    /// Leaves its line.
    pub async fn leave_line(&self, sale: &SaleId, user: &str, entry: &str) -> Answer {
        Answer::of(self.request(Method::DELETE, &format!("/v1/sales/{sale}/entries/{entry}"), user)).await
    }

    /// The entry of a buyer.
    pub async fn entry_of(&self, sale: &SaleId, user: &str) -> Answer {
        Answer::of(self.request(Method::GET, &format!("/v1/sales/{sale}/entries/mine"), user)).await
    }

    /// What is public of the draw.
    pub async fn draw_of(&self, sale: &SaleId) -> Answer {
        Answer::of(self.http.get(format!("{}/v1/sales/{sale}/draw", self.api))).await
    }

    /// The public list.
    pub async fn list_of(&self, sale: &SaleId) -> Answer {
        Answer::of(self.http.get(format!("{}/v1/sales/{sale}/draw/entries", self.api))).await
    }

    /// Lets the time of its line be over.
    pub async fn line_is_over(&self, sale: &SaleId) {
        self.sql(&format!("UPDATE sale_lines SET closes_at = NOW(3) WHERE sale_id = '{sale}'")).await;
    }

    /// Everything that is due, by a process that has just begun.
    pub async fn keep_lines(&self) {
        let mut keeper = LineKeeper::new(self.servers.rows.lines.clone(), Arc::new(AtomicBool::new(true)));
        while keeper.step().await.expect("a step") != Progress::Idle {}
    }

    /// The draw, once its line has this state.
    pub async fn draw_once(&self, sale: &SaleId, state: &str) -> Answer {
        eventually(state, async || self.draw_of(sale).await.text("state") == state).await;
        self.draw_of(sale).await
    }
}

/// The ranks of a public draw.
pub fn ranks(draw: &Answer, list: &Answer) -> Ranks {
    let ids: Vec<u64> = list.body.lines().map(|line| line.parse().expect("an id")).collect();
    let digest = ListDigest::of(&ids);
    assert_eq!(from_hex(&draw.text("digest")), Some(digest));
    let beacon = draw.json["beacon"].as_str();
    Ranks::new(ids, &key(&from_hex(&draw.text("seed")).expect("a seed"), beacon), &digest)
}
