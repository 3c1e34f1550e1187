//! Operators at work under the faults, through the admin API: they add units and take some off sale, pause and resume, cancel orders, offer failed units again and
//! ask for audits by hand.
//!
//! Input: admin ports, sales, a seed. Output: `operators.jsonl`, a line for each call and its answer, which the checker holds against the
//! database (C14). Each operator has one task and repeats a call, in the same words, until the answer is definite, also after the faults are
//! over. So every act that was begun has an answer at the end, and no sale stays paused by intent.

use crate::clients::Backend;
use crate::clients::clock::{now_ms, patience};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// What operators do, each in a task of its own.
pub const DUTIES: [&str; 6] = ["top_up", "pause", "cancel", "reclaim", "audit", "withdraw"];
/// Between two acts of one operator, milliseconds.
const BETWEEN_MS: std::ops::RangeInclusive<u64> = 600..=2_400;
/// How long a sale stays paused.
const PAUSED_MS: std::ops::RangeInclusive<u64> = 300..=1_200;
/// A call without a definite answer is repeated, so often at most.
const CALLS_MAX: u32 = 240;
const REPEAT_MS: u64 = 500;
const PATIENCE: Duration = Duration::from_secs(5);
/// Most units of a top-up.
const UNITS_MAX: u32 = 5;

/// Operators at work.
pub struct Operators {
    office: Arc<Office>,
    tasks: JoinSet<()>,
}

/// What they share.
struct Office {
    backend: Backend,
    /// All sales, and those in which units come and go and orders are cancelled.
    sales: Vec<String>,
    own: Vec<String>,
    http: reqwest::Client,
    file: Mutex<File>,
    stopping: AtomicBool,
}

/// One act, and what it is about.
struct Act<'a> {
    name: &'static str,
    sale: &'a str,
    /// The grant or the request.
    about: Option<String>,
    units: Option<u32>,
}

impl Operators {
    /// Starts all of them. In the sales `own` they also add units and cancel orders.
    pub fn start(backend: Backend, (sales, own): (Vec<String>, Vec<String>), seed: u64, file: &Path) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().expect("a client");
        let file = Mutex::new(File::create(file).expect("the operators' file"));
        let office = Arc::new(Office { backend, sales, own, http, file, stopping: AtomicBool::new(false) });
        let mut tasks = JoinSet::new();
        for (at, duty) in (0..).zip(DUTIES) {
            let random = StdRng::seed_from_u64(seed ^ (at + 1) << 32);
            tasks.spawn(office.clone().work(duty, random));
        }
        Self { office, tasks }
    }

    /// They end what they have begun, and begin nothing new.
    pub async fn stop(self) {
        self.office.stopping.store(true, Relaxed);
        self.tasks.join_all().await;
    }
}

fn any<'a>(random: &mut StdRng, of: &'a [String]) -> &'a str {
    &of[random.random_range(0..of.len())]
}

impl Office {
    async fn work(self: Arc<Self>, duty: &'static str, mut random: StdRng) {
        for number in 0_u64.. {
            patience(random.random_range(BETWEEN_MS)).await;
            if self.stopping.load(Relaxed) {
                return;
            }
            self.act(duty, number, &mut random).await;
        }
    }

    async fn act(&self, duty: &'static str, number: u64, random: &mut StdRng) {
        let sale = any(random, if matches!(duty, "top_up" | "cancel" | "withdraw") { &self.own } else { &self.sales });
        let act = Act { name: duty, sale, about: None, units: None };
        match duty {
            "top_up" => {
                let (units, grant) = (random.random_range(1..=UNITS_MAX), format!("more-{number}"));
                let body = json!({ "units": units, "grant": grant, "by": "chaos" });
                let act = Act { about: Some(grant), units: Some(units), ..act };
                self.until_definite(&act, (Method::POST, &format!("sales/{sale}/top-up")), &body).await;
            }
            "withdraw" => {
                let (units, name) = (random.random_range(1..=UNITS_MAX), format!("off-{number}"));
                let body = json!({ "units": units, "name": name, "by": "chaos" });
                let act = Act { about: Some(name), units: Some(units), ..act };
                self.until_definite(&act, (Method::POST, &format!("sales/{sale}/withdraw")), &body).await;
            }
            "pause" => {
                self.until_definite(&act, (Method::POST, &format!("sales/{sale}/pause")), &json!({})).await;
                patience(random.random_range(PAUSED_MS)).await;
                let act = Act { name: "resume", ..act };
                self.until_definite(&act, (Method::POST, &format!("sales/{sale}/resume")), &json!({})).await;
            }
            "cancel" => {
                let Some(rid) = self.order_of(sale, random).await else { return };
                let path = format!("orders/{rid}/cancel");
                let act = Act { about: Some(rid), ..act };
                self.until_definite(&act, (Method::POST, &path), &json!({ "reason": "by hand" })).await;
            }
            "reclaim" => {
                self.until_definite(&act, (Method::POST, &format!("sales/{sale}/reclaim")), &json!({})).await;
            }
            _ => {
                self.until_definite(&act, (Method::GET, &format!("sales/{sale}/audit")), &Value::Null).await;
            }
        }
    }

    /// One of the newest orders of a sale.
    async fn order_of(&self, sale: &str, random: &mut StdRng) -> Option<String> {
        let found = self.call((Method::GET, &format!("orders?sale={sale}&limit=20")), &Value::Null).await?;
        let orders = found.1["orders"].as_array().filter(|orders| !orders.is_empty())?;
        orders[random.random_range(0..orders.len())]["request_id"].as_str().map(str::to_owned)
    }

    async fn until_definite(&self, act: &Act<'_>, (method, path): (Method, &str), body: &Value) {
        for _ in 0..CALLS_MAX {
            let invoke_ms = now_ms();
            let answer = self.call((method.clone(), path), body).await;
            let is_definite = self.write(act, invoke_ms, answer);
            if is_definite {
                return;
            }
            patience(REPEAT_MS).await;
        }
    }

    /// Status and body, when there was a whole answer.
    async fn call(&self, (method, path): (Method, &str), body: &Value) -> Option<(StatusCode, Value)> {
        // Not drawn by the seed: how often a call is repeated depends on the answers.
        let admin = &self.backend.admins[rand::random_range(0..self.backend.admins.len())];
        let request = self.http.request(method, format!("{admin}/admin/v1/{path}")).bearer_auth(&self.backend.token);
        let request = if body.is_null() { request } else { request.json(body) };
        let answer = request.send().await.ok()?;
        let status = answer.status();
        let body = answer.bytes().await.ok()?;
        Some((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    /// Writes a call down; whether its answer is definite.
    fn write(&self, act: &Act<'_>, invoke_ms: u64, answer: Option<(StatusCode, Value)>) -> bool {
        let result = match answer.as_ref().map(|(status, _)| status.as_u16()) {
            Some(200) => "done",
            Some(404 | 409 | 410 | 422) => "refused",
            // Also "later": half of the act may be done.
            Some(_) | None => "unknown",
        };
        let body = answer.map(|(_, body)| body).unwrap_or_default();
        let findings: Vec<&str> = body["audit"]["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|found| found["kind"].as_str())
            .collect();
        let line = json!({
            "act": act.name, "sale": act.sale, "about": act.about, "units": act.units, "invoke_ms": invoke_ms,
            "complete_ms": now_ms(), "result": result, "detail": body["detail"], "findings": findings,
            "taken": body["withdrawn"]["taken"],
        });
        writeln!(self.file.lock().expect("not poisoned"), "{line}").expect("written");
        result != "unknown"
    }
}
