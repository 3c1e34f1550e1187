//! The keeper of a round: when its crowd has gone, its sales are closed and archived, as a shop would that keeps its database small.
//!
//! Input: a round's sales, and what its buyers were answered. Output: what was kept, or what is wrong. Every step is repeated until it is
//! done: faults go on meanwhile.

use crate::deployment::Deployment;
use crate::measured::lines;
use crate::time::time_passes;
use futures::{StreamExt, stream};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Between two tries of a step.
const AGAIN_MS: u64 = 2_000;
/// A step that is not done by then is red.
const STEP_MAX: Duration = Duration::from_secs(300);
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// Calls of a shop that sends money back.
const REFUNDS_AT_ONCE: usize = 8;

/// Sales whose crowd has gone.
pub struct ClosedRound {
    /// Ids.
    pub sales: Vec<String>,
    /// What the crowd wrote down.
    pub history: PathBuf,
}

/// What a round came to.
#[derive(Debug, Default)]
pub struct Kept {
    /// Requests that were answered "accepted".
    pub accepted: usize,
    /// Payments that were answered.
    pub payments: usize,
    /// Archived sales.
    pub archived: usize,
    /// What is wrong.
    pub wrong: Vec<String>,
}

/// Keeps one round after the other.
pub struct Keeper {
    /// The system.
    pub deployment: Arc<Deployment>,
    /// `admin.token`.
    pub token: &'static str,
    /// Calls to the admin API.
    pub http: reqwest::Client,
}

/// Answers of a history: accepted requests by sale, and payments.
#[derive(Default)]
struct Promised {
    accepted: BTreeMap<String, BTreeSet<String>>,
    payments: BTreeSet<String>,
}

impl Promised {
    fn read(history: &Path) -> Self {
        let mut promised = Self::default();
        for line in std::fs::read_to_string(history).expect("the history").lines() {
            let attempt: Value = serde_json::from_str(line).expect("an attempt");
            let text = |field: &str| attempt[field].as_str().unwrap_or_default().to_owned();
            match (attempt["kind"].as_str(), attempt["result"].as_str()) {
                (Some("buy"), Some("accepted")) => {
                    promised.accepted.entry(text("sale")).or_default().insert(text("rid"));
                }
                (Some("pay"), Some("paid" | "refund_needed")) => {
                    promised.payments.insert(text("payment"));
                }
                _ => {}
            }
        }
        promised
    }
}

impl Keeper {
    /// Closes and archives the sales of a round.
    pub async fn keep(&self, round: ClosedRound) -> Kept {
        let promised = Promised::read(&round.history);
        let accepted = promised.accepted.values().map(BTreeSet::len).sum();
        let mut kept = Kept { accepted, payments: promised.payments.len(), ..Kept::default() };
        for sale in &round.sales {
            let nothing = BTreeSet::new();
            match self.put_away(sale, promised.accepted.get(sale).unwrap_or(&nothing)).await {
                Ok(()) => kept.archived += 1,
                Err(wrong) => kept.wrong.push(format!("sale {sale}: {wrong}")),
            }
        }
        std::fs::remove_file(&round.history).expect("the history");
        kept
    }

    async fn put_away(&self, sale: &str, accepted: &BTreeSet<String>) -> Result<(), String> {
        let unpaid = format!("SELECT request_id AS line FROM orders WHERE sale_id = '{sale}' AND state = 'UNPAID'");
        step("orders wait for their payment", || self.is_empty(&unpaid)).await?;
        step("accepted requests have no outcome", || self.have_outcomes(sale, accepted)).await?;
        step("money does not go back", || self.refunded(sale)).await?;
        let path = format!("sales/{sale}/close");
        let nothing = json!({});
        step("not closed", || self.post(&path, &nothing)).await?;
        let folder = self.deployment.dir().join("archive").join(sale);
        let to = folder.to_str().expect("text").to_owned();
        let export = ["sale", "archive", sale, "--to", &to];
        step("not exported", || self.command(&export)).await?;
        let remove = ["sale", "archive", sale, "--to", &to, "--remove"];
        step("not removed", || self.command(&remove)).await?;
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
    }

    async fn lines(&self, query: &str) -> Result<Vec<String>, String> {
        let asked = tokio::time::timeout(ANSWER_MAX, lines(&self.deployment.urls().mysql, query)).await;
        asked.map_err(|_late| "no answer".to_owned())?
    }

    async fn is_empty(&self, query: &str) -> Result<(), String> {
        let left = self.lines(query).await?;
        if left.is_empty() { Ok(()) } else { Err(format!("{} of them", left.len())) }
    }

    async fn have_outcomes(&self, sale: &str, accepted: &BTreeSet<String>) -> Result<(), String> {
        let query = format!("SELECT CAST(request_id AS CHAR) AS line FROM request_outcome WHERE sale_id = '{sale}'");
        let known: BTreeSet<String> = self.lines(&query).await?.into_iter().collect();
        let open: Vec<&String> = accepted.difference(&known).take(5).collect();
        if open.is_empty() { Ok(()) } else { Err(format!("e.g. {open:?}")) }
    }

    /// Sends every payment back that has to go back.
    async fn refunded(&self, sale: &str) -> Result<(), String> {
        let query = format!(
            "SELECT CONCAT(p.request_id, ' ', CONVERT(p.payment_id USING utf8mb4)) AS line FROM payments p \
             JOIN orders o ON o.request_id = p.request_id WHERE o.sale_id = '{sale}' AND p.state = 'REFUND_NEEDED'"
        );
        let mut calls = Vec::new();
        for line in self.lines(&query).await? {
            let (rid, payment) = line.split_once(' ').ok_or("no payment")?;
            calls.push(self.refund(rid.to_owned(), payment.to_owned()));
        }
        // One that fails keeps no other from being sent.
        let sent: Vec<Result<(), String>> = stream::iter(calls).buffer_unordered(REFUNDS_AT_ONCE).collect().await;
        sent.into_iter().collect()
    }

    async fn refund(&self, order: String, payment: String) -> Result<(), String> {
        self.post(&format!("orders/{order}/refunded"), &json!({ "payment_id": payment })).await
    }

    async fn post(&self, path: &str, body: &Value) -> Result<(), String> {
        let admins = self.deployment.admin_urls();
        let admin = &admins[rand::random_range(0..admins.len())];
        let request = self.http.request(Method::POST, format!("{admin}/admin/v1/{path}")).bearer_auth(self.token);
        let answer = request.json(body).send().await.map_err(|error| error.to_string())?;
        let status = answer.status();
        if status == StatusCode::OK {
            Ok(())
        } else {
            Err(format!("{status}: {}", answer.text().await.unwrap_or_default()))
        }
    }

    async fn command(&self, args: &[&str]) -> Result<(), String> {
        match self.deployment.try_call(args).await {
            Some((Some(0), _, _)) => Ok(()),
            Some((_, _, stderr)) => Err(stderr),
            None => Err("no answer".to_owned()),
        }
    }
}

/// Repeats a step until it is done.
async fn step<Done>(what: &str, mut once: impl FnMut() -> Done) -> Result<(), String>
where
    Done: Future<Output = Result<(), String>>,
{
    let deadline = Instant::now() + STEP_MAX;
    loop {
        let Err(why) = once().await else { return Ok(()) };
        if Instant::now() > deadline {
            return Err(format!("{what}: {why}"));
        }
        time_passes(AGAIN_MS).await;
    }
}
