//! The api as a client sees it: three calls, and what each answer comes to.

use super::{Backend, Load};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use reqwest::{Method, RequestBuilder};
use seckill::config::Secret;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;

/// How long clients wait for an answer, drawn per attempt: some get the api's own "unknown" after a few seconds, with the
/// request id, others are gone by then.
const PATIENCE_MS: std::ops::RangeInclusive<u64> = 2_000..=5_000;
const CONNECT_MAX: Duration = Duration::from_secs(1);
const ACCESS_TTL_S: u64 = 24 * 3600;

/// What an answer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// 202.
    Accepted,
    /// One purchase a buyer.
    Duplicate,
    /// Nothing left.
    SoldOut,
    /// The buyer's limit.
    Limit,
    /// Stopped or frozen.
    Paused,
    /// Too much waits.
    Overloaded,
    /// Too many requests.
    Limited,
    /// No such sale or order.
    NotFound,
    /// Status: on its way.
    Queued,
    /// Status: an order.
    Confirmed,
    /// Status: never an order.
    Failed,
    /// A purchase token.
    Issued,
    /// The order is paid.
    Paid,
    /// The money is on record and has to go back.
    RefundNeeded,
    /// The order is cancelled.
    Cancelled,
    /// The order is in a state that does not allow it.
    Refused,
    /// The request may or may not have had an effect.
    Unknown,
    /// There was no connection, so nothing can have happened.
    Unsent,
    /// Another refusal.
    Error(u16),
}

impl Outcome {
    /// As it stands in the history.
    pub fn text(self) -> String {
        let text = match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::SoldOut => "sold_out",
            Self::Limit => "limit",
            Self::Paused => "paused",
            Self::Overloaded => "overloaded",
            Self::Limited => "limited",
            Self::NotFound => "not_found",
            Self::Queued => "queued",
            Self::Confirmed => "confirmed",
            Self::Failed => "failed",
            Self::Issued => "issued",
            Self::Paid => "paid",
            Self::RefundNeeded => "refund_needed",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Unsent => "error:connect",
            Self::Error(status) => return format!("error:{status}"),
        };
        text.to_owned()
    }

    /// Whether nothing happened and the same may be tried again later.
    pub const fn is_later(self) -> bool {
        match self {
            Self::Paused | Self::Overloaded | Self::Limited | Self::Unsent | Self::Error(408 | 425 | 503) => true,
            Self::Accepted | Self::Duplicate | Self::SoldOut | Self::Limit | Self::NotFound => false,
            Self::Queued | Self::Confirmed | Self::Failed | Self::Issued => false,
            Self::Paid | Self::RefundNeeded | Self::Cancelled | Self::Refused => false,
            Self::Unknown | Self::Error(_) => false,
        }
    }

    /// Of an answer that accepts nothing.
    pub fn of_refusal(status: u16, code: &str) -> Self {
        match (status, code) {
            (404, _) => Self::NotFound,
            (409, "P2-R1") => Self::Duplicate,
            (409, "P2-R5") => Self::Limit,
            (409, "CONFLICT") => Self::Refused,
            (410, "P1-S2" | "P2-R2" | "P2-R4") => Self::SoldOut,
            (423, _) => Self::Paused,
            (429, _) => Self::Limited,
            (503, "P1-S8") => Self::Overloaded,
            // Of a balancer that ended a connection, say, on which the request had been sent.
            (503, "") => Self::Unknown,
            (503, _) => Self::Error(503),
            // A fault inside the api, or of something before it, says nothing about what was done.
            (500.., _) => Self::Unknown,
            (other, _) => Self::Error(other),
        }
    }
}

/// An answer, or its absence.
#[derive(Debug)]
pub struct ClientAnswer {
    /// What it comes to.
    pub outcome: Outcome,
    /// The request that the answer names.
    pub rid: Option<String>,
    /// The answer's code.
    pub code: Option<String>,
    /// The reason of a failure.
    pub reason: Option<String>,
    /// The purchase token of an answer that issues one.
    pub token: Option<String>,
    /// When to come back.
    pub retry_after_s: Option<u64>,
}

impl ClientAnswer {
    fn nothing(outcome: Outcome) -> Self {
        Self { outcome, rid: None, code: None, reason: None, token: None, retry_after_s: None }
    }
}

/// The way to the api processes.
pub struct ApiClient {
    http: reqwest::Client,
    issuer: TokenIssuer,
    apis: Vec<String>,
    backend: Option<Backend>,
    /// Which api an attempt goes to, and how long it waits.
    chance: Mutex<StdRng>,
}

impl ApiClient {
    /// To the processes of a load.
    pub fn new(load: &Load) -> Self {
        let http = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_MAX);
        Self {
            http: http.build().expect("a client"),
            issuer: TokenIssuer::new(&Secret::new(load.secret.clone()), "seckill", "seckill").expect("an issuer"),
            apis: load.apis.clone(),
            backend: load.backend.clone(),
            chance: Mutex::new(StdRng::seed_from_u64(load.seed)),
        }
    }

    fn request(&self, method: Method, path: &str, user: &str) -> RequestBuilder {
        let (api, patience_ms) = {
            let mut chance = self.chance.lock().unwrap();
            (chance.random_range(0..self.apis.len()), chance.random_range(PATIENCE_MS))
        };
        let api = self.apis.get(api).expect("an api");
        let access = self.issuer.sign(user, ACCESS_TTL_S).expect("an access token");
        let request = self.http.request(method, format!("{api}{path}")).bearer_auth(access);
        request.timeout(Duration::from_millis(patience_ms))
    }

    /// Asks for a purchase token.
    pub async fn token(&self, sale: &str, user: &str) -> ClientAnswer {
        answer_to(self.request(Method::POST, &format!("/v1/sales/{sale}/tokens"), user)).await
    }

    /// Buys.
    pub async fn buy(&self, sale: &str, user: &str, quantity: u32, token: Option<&str>) -> ClientAnswer {
        let mut request = self
            .request(Method::POST, &format!("/v1/sales/{sale}/orders"), user)
            .json(&json!({ "quantity": quantity }));
        if let Some(token) = token {
            request = request.header("Idempotency-Key", token);
        }
        answer_to(request).await
    }

    /// Reports a payment, as the shop's backend.
    pub async fn pay(&self, rid: &str, payment: &str, amount: i64) -> ClientAnswer {
        let backend = self.backend.as_ref().expect("a backend");
        let (at, patience_ms) = {
            let mut chance = self.chance.lock().unwrap();
            (chance.random_range(0..backend.admins.len()), chance.random_range(PATIENCE_MS))
        };
        let admin = backend.admins.get(at).expect("an admin port");
        let request = self
            .http
            .post(format!("{admin}/admin/v1/orders/{rid}/paid"))
            .bearer_auth(&backend.token)
            .json(&json!({ "payment_id": payment, "amount": amount, "currency": "CNY" }));
        answer_to(request.timeout(Duration::from_millis(patience_ms))).await
    }

    /// Cancels an order, as its buyer.
    pub async fn cancel(&self, user: &str, rid: &str) -> ClientAnswer {
        answer_to(self.request(Method::DELETE, &format!("/v1/orders/{rid}"), user)).await
    }

    /// Asks what became of a request.
    pub async fn status(&self, sale: &str, user: &str, rid: &str) -> ClientAnswer {
        answer_to(self.request(Method::GET, &format!("/v1/sales/{sale}/orders/{rid}"), user)).await
    }
}

async fn answer_to(request: RequestBuilder) -> ClientAnswer {
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) if error.is_connect() => return ClientAnswer::nothing(Outcome::Unsent),
        Err(_) => return ClientAnswer::nothing(Outcome::Unknown),
    };
    let status = response.status().as_u16();
    let retry_after_s = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    // A cut body is no answer, whatever its head says.
    let Ok(body) = response.bytes().await else { return ClientAnswer::nothing(Outcome::Unknown) };
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let text = |field: &str| body[field].as_str().map(str::to_owned);
    let code = text("code");
    let outcome = match (status, body["status"].as_str()) {
        (200, None) if code.as_deref() == Some("P6-F1") => Outcome::Paid,
        (200, None) if code.as_deref() == Some("P6-F4") => Outcome::RefundNeeded,
        (200, None) if code.as_deref() == Some("P6-F3") => Outcome::Cancelled,
        (201, _) => Outcome::Issued,
        (202, _) => Outcome::Accepted,
        (200, Some("QUEUED")) => Outcome::Queued,
        (200, Some("CONFIRMED")) => Outcome::Confirmed,
        (200, Some("FAILED")) => Outcome::Failed,
        (status, _) => Outcome::of_refusal(status, code.as_deref().unwrap_or_default()),
    };
    ClientAnswer { outcome, rid: text("request_id"), code, reason: text("reason"), token: text("token"), retry_after_s }
}
