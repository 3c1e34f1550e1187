//! Buyers whose only purpose is to measure: one for each shard, one purchase after the other, from before a fault until after it.
//!
//! Output: attempts with their times, and lines for the checker's history. They know which host is gone, as a balancer does that
//! takes an api out of service, so that only what is behind the apis is measured; the crowd does not.

use crate::clients::clock::now_ms;
use crate::clients::http::Outcome;
use crate::network::Number;
use crate::servers::roles::{self, SHARDS};
use crate::status_and_body;
use crate::time::time_passes;
use seckill::config::Secret;
use seckill::domain::ids::UserId;
use seckill::domain::shard::home_shard;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

const PACE_MS: u64 = 250;
const CONFIRMED_WITHIN_MS: u64 = 90_000;
/// The first sequence number of the probes' attempts, far above any of the crowd.
const SEQ_FROM: u64 = 1 << 40;

/// One purchase.
#[derive(Debug, Clone)]
pub struct Purchase {
    /// The buyer's home shard.
    pub shard: u16,
    /// When it was sent.
    pub begun_ms: u64,
    /// When the answer came, or patience ended.
    pub ended_ms: u64,
    /// Whether it was accepted.
    pub accepted: bool,
    /// The answer, in short.
    pub answer: String,
    /// When its order was confirmed.
    pub confirmed_ms: Option<u64>,
}

impl Purchase {
    /// Whether patience ended before there was an answer.
    pub fn is_unanswered(&self) -> bool {
        !self.accepted && self.answer == "0"
    }
}

struct Shared {
    sale: String,
    http: reqwest::Client,
    tokens: Vec<(String, String)>,
    gone: Mutex<Vec<Number>>,
    stopping: AtomicBool,
    seq: AtomicU64,
    found: Mutex<Vec<Purchase>>,
    lines: Mutex<Vec<Value>>,
}

/// Probes at work.
pub struct Probes {
    shared: Arc<Shared>,
    tasks: JoinSet<()>,
}

/// A buyer for each shard.
fn buyers(sale: &str) -> Vec<String> {
    let of = |shard: u16| {
        let lives_there = |name: &String| UserId::parse(name).is_ok_and(|user| home_shard(&user, SHARDS) == shard);
        (0..).map(|number| format!("probe-{sale}-{number}")).find(lives_there).expect("a buyer")
    };
    (0..SHARDS).map(of).collect()
}

impl Probes {
    /// Starts buying in `sale`, which has no limit.
    pub fn start(sale: &str) -> Self {
        let issuer = TokenIssuer::new(&Secret::new(roles::secret()), "seckill", "seckill").expect("an issuer");
        let signed = |user: String| (user.clone(), issuer.sign(&user, 24 * 3600).expect("a token"));
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(4));
        let shared = Arc::new(Shared {
            sale: sale.to_owned(),
            http: http.connect_timeout(Duration::from_secs(1)).build().expect("a client"),
            tokens: buyers(sale).into_iter().map(signed).collect(),
            gone: Mutex::default(),
            stopping: AtomicBool::new(false),
            seq: AtomicU64::new(SEQ_FROM + now_ms() * 1000),
            found: Mutex::default(),
            lines: Mutex::default(),
        });
        let mut tasks = JoinSet::new();
        for shard in 0..SHARDS {
            tasks.spawn(buy_on(shared.clone(), shard));
        }
        Self { shared, tasks }
    }

    /// These hosts' apis are not asked any more.
    pub fn leave_out(&self, hosts: &[Number]) {
        *self.shared.gone.lock().expect("not poisoned") = hosts.to_vec();
    }

    /// Begins nothing new; what was found, and lines for the history.
    pub async fn stop(mut self) -> (Vec<Purchase>, Vec<Value>) {
        self.shared.stopping.store(true, Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a probe ends");
        }
        let found = self.shared.found.lock().expect("not poisoned").clone();
        let lines = self.shared.lines.lock().expect("not poisoned").clone();
        (found, lines)
    }
}

async fn buy_on(shared: Arc<Shared>, shard: u16) {
    let mut waiting = JoinSet::new();
    while !shared.stopping.load(Relaxed) {
        let (at, request_id) = buy(&shared, shard).await;
        if let Some(request_id) = request_id {
            waiting.spawn(until_confirmed(shared.clone(), shard, at, request_id));
        }
        time_passes(PACE_MS).await;
    }
    while let Some(ended) = waiting.join_next().await {
        ended.expect("a wait ends");
    }
}

impl Shared {
    /// An api that is in service, in turn.
    fn api(&self, turn: u64) -> String {
        let gone = self.gone.lock().expect("not poisoned");
        let there = roles::apis(&gone);
        let at = usize::try_from(turn).expect("few") % there.len().max(1);
        there.get(at).expect("not all hosts are gone").clone()
    }
}

/// One purchase; where it is noted, and its request if it was accepted.
async fn buy(shared: &Shared, shard: u16) -> (usize, Option<String>) {
    let (user, token) = &shared.tokens[usize::from(shard)];
    let seq = shared.seq.fetch_add(1, Relaxed);
    let api = shared.api(seq);
    let begun_ms = now_ms();
    let request = shared.http.post(format!("{api}/v1/sales/{}/orders", shared.sale)).bearer_auth(token);
    let (status, body) = status_and_body(request.json(&json!({ "quantity": 1 }))).await;
    let ended_ms = now_ms();
    let request_id = body["request_id"].as_str().map(str::to_owned).filter(|_| status == 202);
    let code = body["code"].as_str().unwrap_or_default();
    let result = match status {
        202 => Outcome::Accepted.text(),
        0 => Outcome::Unknown.text(),
        other => Outcome::of_refusal(other, code).text(),
    };
    // No client will ask for an unknown one: the checker gets an attempt, not a request.
    shared.lines.lock().expect("not poisoned").push(json!({
        "seq": seq, "client": seq, "user": user, "sale": shared.sale, "rid": request_id, "token": false, "kind": "buy",
        "quantity": 1, "invoke_ms": begun_ms, "complete_ms": ended_ms, "result": result, "code": body["code"].as_str(),
        "reason": null, "other_rid": null,
    }));
    let answer = format!("{status} {code}").trim().to_owned();
    let accepted = request_id.is_some();
    let mut found = shared.found.lock().expect("not poisoned");
    found.push(Purchase { shard, begun_ms, ended_ms, accepted, answer, confirmed_ms: None });
    (found.len() - 1, request_id)
}

async fn until_confirmed(shared: Arc<Shared>, shard: u16, at: usize, request_id: String) {
    let deadline_ms = now_ms() + CONFIRMED_WITHIN_MS;
    let (_, token) = &shared.tokens[usize::from(shard)];
    for turn in 0.. {
        let api = shared.api(turn);
        let url = format!("{api}/v1/sales/{}/orders/{request_id}?wait=2", shared.sale);
        let (_, body) = status_and_body(shared.http.get(url).bearer_auth(token)).await;
        if body["status"] == "CONFIRMED" {
            shared.found.lock().expect("not poisoned")[at].confirmed_ms = Some(now_ms());
            return;
        }
        if now_ms() > deadline_ms {
            return;
        }
        time_passes(PACE_MS).await;
    }
}
