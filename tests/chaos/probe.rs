//! A buyer of its own on a sale of its own: how soon is anybody served again?
//!
//! Goes around the buyers' links, so that only the product is measured. Writes its attempts down like the crowd, because
//! the checker must know of every purchase that anybody tried.

use crate::clients::clock::now_ms;
use crate::time::pause;
use seckill::config::Secret;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The probe's own sale.
pub const SALE: &str = "probe";
/// Probes at once; more would only measure one another.
const AT_ONCE: usize = 6;
/// A recovery that takes longer is given up, and reported as this long.
const GIVEN_UP: Duration = Duration::from_secs(60);
/// The first sequence number of the probe's attempts, far above any of the crowd.
const SEQ_FROM: u64 = 1 << 40;

/// A prober.
pub struct Probe {
    apis: Vec<String>,
    http: reqwest::Client,
    issuer: TokenIssuer,
    room: Semaphore,
    buyers: AtomicU64,
    attempts: Mutex<Vec<Value>>,
}

impl Probe {
    /// On these apis, with `auth.secret`.
    pub fn new(apis: Vec<String>, secret: String) -> Self {
        Self {
            apis,
            http: reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(3)).build().expect("a client"),
            issuer: TokenIssuer::new(&Secret::new(secret), "seckill", "seckill").expect("an issuer"),
            room: Semaphore::new(AT_ONCE),
            buyers: AtomicU64::new(0),
            attempts: Mutex::default(),
        }
    }

    /// Milliseconds until a purchase that began now or later was accepted and confirmed. `None` when enough others probe.
    pub async fn until_served(&self) -> Option<u64> {
        let _place = self.room.try_acquire().ok()?;
        let begun = Instant::now();
        while begun.elapsed() < GIVEN_UP && !self.served(begun + GIVEN_UP).await {
            pause().await;
        }
        Some(u64::try_from(begun.elapsed().as_millis()).expect("a short run"))
    }

    /// Lines for the history.
    pub fn attempts(&self) -> Vec<Value> {
        self.attempts.lock().expect("not poisoned").clone()
    }

    async fn served(&self, deadline: Instant) -> bool {
        let buyer = self.buyers.fetch_add(1, Relaxed);
        let user = format!("probe-{buyer}");
        let token = self.issuer.sign(&user, 24 * 3600).expect("a token");
        let Some(rid) = self.accepted(buyer, &user, &token).await else { return false };
        while Instant::now() < deadline {
            for api in &self.apis {
                let url = format!("{api}/v1/sales/{SALE}/orders/{rid}?wait=1");
                let (_, body) = ask(self.http.get(url).bearer_auth(&token)).await;
                if body["status"] == "CONFIRMED" {
                    return true;
                }
            }
            pause().await;
        }
        false
    }

    async fn accepted(&self, buyer: u64, user: &str, token: &str) -> Option<String> {
        let api = &self.apis[usize::try_from(buyer).expect("few") % self.apis.len()];
        let url = format!("{api}/v1/sales/{SALE}/orders");
        let invoke_ms = now_ms();
        let (status, body) = ask(self.http.post(url).bearer_auth(token).json(&json!({ "quantity": 1 }))).await;
        let rid = body["request_id"].as_str().map(str::to_owned);
        let result = match status {
            202 => "accepted".to_owned(),
            0 | 504 => "unknown".to_owned(),
            other => format!("error:{other}"),
        };
        let accepted = result == "accepted";
        // No client will ask for an unknown one: the checker gets an attempt, not a request.
        let known = rid.as_ref().filter(|_| accepted);
        self.attempts.lock().expect("not poisoned").push(json!({
            "seq": SEQ_FROM + buyer, "client": SEQ_FROM + buyer, "user": user, "sale": SALE, "rid": known, "token": false,
            "kind": "buy", "quantity": 1, "invoke_ms": invoke_ms, "complete_ms": now_ms(), "result": result,
            "code": body["code"].as_str(), "reason": null, "other_rid": null,
        }));
        rid.filter(|_| accepted)
    }
}

/// Status and body of an answer; 0 when there was none.
async fn ask(request: reqwest::RequestBuilder) -> (u16, Value) {
    let Ok(answer) = request.send().await else { return (0, Value::Null) };
    let status = answer.status().as_u16();
    let Ok(body) = answer.text().await else { return (0, Value::Null) };
    (status, serde_json::from_str(&body).unwrap_or_default())
}
