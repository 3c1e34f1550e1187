//! What a run came to. Plain data: printing is done by `cli`.

use super::plan::buyer_name;
use hdrhistogram::Histogram;
use seckill::domain::ids::RequestId;
use serde::{Serialize, Serializer};

/// Limit of different (status, code) pairs; the API has about 30.
const KINDS_COUNT_MAX: usize = 256;

/// The final answer to one purchase, from the buyer's side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum FinalAnswer {
    /// 202, or the status URL knows the request.
    Accepted,
    /// A definite no with this status.
    Refused {
        /// HTTP status.
        status: u16,
    },
    /// No answer that says what happened, and asking did not help.
    Unknown,
    /// It never reached the server.
    NotSent,
}

/// Whether a refusal with this status speaks about the purchase itself. Who may not ask at all (401, 403), or not now (408,
/// 429, 5xx), has got nothing about an earlier try.
#[must_use]
pub(super) const fn is_final_no(status: u16) -> bool {
    matches!(status, 400..500) && !matches!(status, 401 | 403 | 408 | 429)
}

/// The final answer to one purchase of one buyer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BuyerAnswer {
    /// Number of the buyer; written as its name.
    #[serde(serialize_with = "as_name")]
    pub user: u64,
    /// The request, as far as the buyer knows it.
    pub request_id: Option<RequestId>,
    /// Units.
    pub quantity: u32,
    /// What was said last.
    pub verdict: FinalAnswer,
    /// Some answer to it was unknown before the last word was said.
    pub doubted: bool,
}

impl BuyerAnswer {
    /// The buyer's `sub`.
    #[must_use]
    pub fn user_name(&self) -> String {
        buyer_name(self.user)
    }
}

/// One accepted request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AcceptedPurchase {
    /// The request.
    pub request_id: RequestId,
    /// Number of the buyer; written as its name.
    #[serde(serialize_with = "as_name")]
    pub user: u64,
    /// Units.
    pub quantity: u32,
}

/// How often one kind of answer came.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct StatusCount {
    /// HTTP status.
    pub status: u16,
    /// `code` of the body; empty when it has none.
    pub code: String,
    /// How often.
    pub count: u64,
}

/// Answers by status and code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Answers(Vec<StatusCount>);

impl Answers {
    /// Counts one answer.
    pub fn add(&mut self, status: u16, code: &str) {
        self.add_many(status, code, 1);
    }

    fn add_many(&mut self, status: u16, code: &str, count: u64) {
        let full = self.0.len() >= KINDS_COUNT_MAX;
        if let Some(row) = self.0.iter_mut().find(|row| row.status == status && (full || row.code == code)) {
            row.count += count;
        } else {
            self.0.push(StatusCount { status, code: code.to_owned(), count });
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for row in &other.0 {
            self.add_many(row.status, &row.code, row.count);
        }
        self.0.sort();
    }

    /// Every kind, by status and code.
    #[must_use]
    pub fn rows(&self) -> &[StatusCount] {
        &self.0
    }

    /// Answers with this status, whatever their code.
    #[must_use]
    pub fn status(&self, status: u16) -> u64 {
        self.0.iter().filter(|row| row.status == status).map(|row| row.count).sum()
    }

    /// Answers with this status and code.
    #[must_use]
    pub fn code(&self, status: u16, code: &str) -> u64 {
        self.0.iter().filter(|row| row.status == status && row.code == code).map(|row| row.count).sum()
    }

    /// All answers.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|row| row.count).sum()
    }
}

/// Latencies for people, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Latency {
    /// How many were measured.
    pub count: u64,
    /// Mean.
    pub mean_us: f64,
    /// Half were quicker.
    pub p50_us: u64,
    /// 90 % were quicker.
    pub p90_us: u64,
    /// 99 % were quicker.
    pub p99_us: u64,
    /// 99.9 % were quicker.
    pub p999_us: u64,
    /// The slowest.
    pub max_us: u64,
}

impl From<&Histogram<u64>> for Latency {
    fn from(all: &Histogram<u64>) -> Self {
        Self {
            count: all.len(),
            mean_us: all.mean(),
            p50_us: all.value_at_quantile(0.5),
            p90_us: all.value_at_quantile(0.9),
            p99_us: all.value_at_quantile(0.99),
            p999_us: all.value_at_quantile(0.999),
            max_us: all.max(),
        }
    }
}

/// What one connection, and in the end the whole crowd, has seen.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// Purchases finished, whatever came of them; replays are not purchases.
    pub purchases: u64,
    /// Purchase requests sent: first ones, repeats and replays. Rates are made of these.
    pub requests: u64,
    /// Distinct accepted request ids.
    pub accepted: u64,
    /// Their units.
    pub accepted_units: u64,
    /// Purchases that were given the id of another accepted purchase. Must be 0.
    pub accepted_twice: u64,
    /// Answers to purchase requests.
    pub by_status: Answers,
    /// Answers to requests for purchase tokens.
    pub tokens_by_status: Answers,
    /// Answers of the waiting room.
    pub places_by_status: Answers,
    /// Answers to questions about a status.
    pub polls_by_status: Answers,
    /// Purchase requests whose answer was cut off, missing, or said that the outcome is unknown (504, another 5xx).
    pub unknown: u64,
    /// Purchases still unknown after asking and repeating.
    pub unresolved: u64,
    /// Connections made. Many more than the plan's mean that the server closes them after its answers, which costs a run most
    /// of its speed (Actix does so when it answers before it has read the request's body).
    pub connected: u64,
    /// Attempts to connect that failed.
    pub not_connected: u64,
    /// Purchases sent again with the same token after a definite answer.
    pub replays: u64,
    /// Replays of accepted purchases that did not get the same 202 again but something else definite. Must be 0.
    pub replays_broken: u64,
    /// The first of them, with their second answers.
    pub broken: Vec<BuyerAnswer>,
    /// From the first request to the last answer, milliseconds.
    pub elapsed_ms: u64,
    /// Latency of purchase requests, microseconds; one that was cut off counts until then. With a rate it counts from the
    /// intended time, a token first included; the timer adds up to a millisecond.
    #[serde(rename = "latency", serialize_with = "as_latency")]
    pub latency_us: Histogram<u64>,
    /// The distinct accepted requests, by id.
    #[serde(skip)]
    pub accepted_requests: Vec<AcceptedPurchase>,
    /// Every buyer's final answer, when the plan keeps the history. A replay with another answer is a second entry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<BuyerAnswer>,
}

impl LoadReport {
    /// Purchase requests a second.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    pub fn requests_per_s(&self) -> f64 {
        self.requests as f64 * 1000.0 / self.elapsed_ms.max(1) as f64
    }

    /// The latencies in short.
    #[must_use]
    pub fn latency(&self) -> Latency {
        Latency::from(&self.latency_us)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn as_name<S: Serializer>(user: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&buyer_name(*user))
}

fn as_latency<S: Serializer>(all: &Histogram<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    Latency::from(all).serialize(serializer)
}
