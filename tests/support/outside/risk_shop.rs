//! The shop's risk service, on a real HTTP server in the test's process: it judges buyers by their names, and takes on every mood of a
//! server that is in trouble.

use super::hook_receiver::{HookCall, SECRET};
use super::http_server::{HttpReply, HttpServer};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct RiskMind {
    refused: BTreeSet<String>,
    /// What every call gets in place of a verdict.
    mood: Option<HttpReply>,
    calls: Vec<HookCall>,
}

/// Listens until it is dropped.
pub struct RiskShop {
    server: HttpServer,
    mind: Arc<Mutex<RiskMind>>,
}

fn locked(mind: &Mutex<RiskMind>) -> MutexGuard<'_, RiskMind> {
    mind.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer of 200 with this body.
pub fn said(body: &str) -> HttpReply {
    HttpReply::new("200 OK", "Content-Type: application/json\r\n", body.as_bytes())
}

impl RiskShop {
    /// One that allows everybody.
    pub async fn start() -> Self {
        let mind = Arc::<Mutex<RiskMind>>::default();
        let judging = mind.clone();
        let server = HttpServer::start(None, move |call| {
            let mut mind = locked(&judging);
            let call = HookCall { line: call.line, headers: call.headers, body: call.body, taken: true };
            let buyer = call.json()["data"]["user"].as_str().unwrap_or_default().to_owned();
            let allow = !mind.refused.contains(&buyer);
            mind.calls.push(call);
            mind.mood.clone().unwrap_or_else(|| said(&format!(r#"{{"allow": {allow}, "score": 0.5}}"#)))
        });
        Self { server: server.await, mind }
    }

    /// The settings of a world that asks it.
    pub fn settings(&self) -> [String; 2] {
        [format!("risk.url={}", self.server.url("/risk?shop=7")), format!("risk.secrets={SECRET}")]
    }

    /// Refuses this buyer from now on.
    pub fn refuses(&self, buyer: &str) {
        locked(&self.mind).refused.insert(buyer.to_owned());
    }

    /// Every call gets this from now on; none: a verdict again.
    pub fn takes_on(&self, mood: Option<HttpReply>) {
        locked(&self.mind).mood = mood;
    }

    /// Nothing listens at its address any more.
    pub fn close(&mut self) {
        self.server.close();
    }

    /// Every call so far.
    pub fn calls(&self) -> Vec<HookCall> {
        locked(&self.mind).calls.clone()
    }
}
