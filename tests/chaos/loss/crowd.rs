//! The buyers of the scenes: each attempt and its answer goes into the history, which the judge reads.

use super::plan::Scene;
use crate::clients::clock::now_ms;
use futures::StreamExt;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use seckill::config::Secret;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Purchases at once.
const AT_ONCE: usize = 24;
/// Of a purchase; an answer that comes later is as good as none.
const PATIENCE: Duration = Duration::from_secs(10);

/// A crowd with its book.
pub struct Crowd {
    api: String,
    http: reqwest::Client,
    issuer: TokenIssuer,
    seq: AtomicU64,
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    lines: Vec<Value>,
    /// Accepted requests by sale, in the order of their answers.
    accepted: BTreeMap<String, Vec<String>>,
    /// Buyers so far, by sale.
    buyers: BTreeMap<String, usize>,
    unknown: u64,
}

impl Crowd {
    /// At this api, with `auth.secret`.
    pub fn new(api: String, secret: String) -> Self {
        Self {
            api,
            http: reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client"),
            issuer: TokenIssuer::new(&Secret::new(secret), "seckill", "seckill").expect("an issuer"),
            seq: AtomicU64::new(0),
            book: Mutex::default(),
        }
    }

    /// New buyers, a given number for each sale, try to buy; sales are mixed.
    pub async fn open(&self, visits: impl Iterator<Item = (&Scene, usize)>) {
        let mut purchases = Vec::new();
        for (scene, count) in visits {
            let first = {
                let mut book = self.book.lock().expect("not poisoned");
                let next = book.buyers.entry(scene.sale.clone()).or_default();
                *next += count;
                *next - count
            };
            purchases.extend((first..first + count).map(|buyer| (scene, buyer)));
        }
        purchases.sort_by_key(|(scene, buyer)| (*buyer, scene.dice));
        futures::stream::iter(purchases)
            .map(async |(scene, buyer)| self.buy(scene, buyer).await)
            .buffer_unordered(AT_ONCE)
            .collect::<Vec<()>>()
            .await;
    }

    async fn buy(&self, scene: &Scene, buyer: usize) {
        let mut dice = StdRng::seed_from_u64(scene.dice ^ buyer as u64);
        let quantity = match scene.limit {
            Some(limit) => dice.random_range(1..=limit.min(2)),
            None => dice.random_range(1..=3),
        };
        // Some come back: Redis may have forgotten them, the database must not.
        let person = if buyer > 3 && dice.random_bool(0.15) { dice.random_range(0..buyer) } else { buyer };
        let user = format!("{}-b{person}", scene.sale);
        let token = self.issuer.sign(&user, 3600).expect("a token");
        let url = format!("{}/v1/sales/{}/orders", self.api, scene.sale);
        let (seq, invoke_ms) = (self.seq.fetch_add(1, Relaxed), now_ms());
        let (status, body) = ask(self.http.post(url).bearer_auth(token).json(&json!({ "quantity": quantity }))).await;
        let rid = body["request_id"].as_str().map(str::to_owned);
        let result = match status {
            202 => "accepted".to_owned(),
            0 | 500 | 504 => "unknown".to_owned(),
            other => format!("error:{other}"),
        };
        // A refusal names the request that the buyer has.
        let rid = rid.filter(|_| ["accepted", "unknown"].contains(&result.as_str()));
        let mut book = self.book.lock().expect("not poisoned");
        book.lines.push(json!({
            "seq": seq, "client": seq, "user": user, "sale": scene.sale, "rid": rid, "token": false, "kind": "buy",
            "quantity": quantity, "invoke_ms": invoke_ms, "complete_ms": now_ms(), "result": result,
            "code": body["code"].as_str(), "reason": null, "other_rid": null,
        }));
        book.unknown += u64::from(result == "unknown");
        if let (202, Some(rid)) = (status, rid) {
            book.accepted.entry(scene.sale.clone()).or_default().push(rid);
        }
    }

    /// Requests of a sale with the answer "accepted".
    pub fn accepted(&self, sale: &str) -> Vec<String> {
        self.book.lock().expect("not poisoned").accepted.get(sale).cloned().unwrap_or_default()
    }

    /// All answers, as lines for the history; and how many never came.
    pub fn close(self) -> (Vec<Value>, u64) {
        let book = self.book.into_inner().expect("not poisoned");
        (book.lines, book.unknown)
    }
}

/// Status and body of an answer; 0 when there was none.
pub async fn ask(request: reqwest::RequestBuilder) -> (u16, Value) {
    let Ok(answer) = request.send().await else { return (0, Value::Null) };
    let status = answer.status().as_u16();
    let Ok(body) = answer.text().await else { return (0, Value::Null) };
    (status, serde_json::from_str(&body).unwrap_or_default())
}
