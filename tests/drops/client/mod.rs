//! What buyers and the shop's backend call over HTTP, and the log of it.

mod lines;

pub use lines::Entrance;

use crate::accounts::{Account, Showing, Signer};
use crate::checker::{Attempt, Came, DropTerms, Issued, Log, Reported};
use crate::target::Target;
use crate::time::time_passes;
use reqwest::{Method, RequestBuilder};
use seckill::config::Secret;
use seckill::runtime::now_ms;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(8);
/// Between two tries.
const PAUSE_MS: u64 = 120;
/// Tries of a call that has to come through while processes die.
const TRIES: usize = 60;

/// How tries to get around a drop ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Calls.
    pub tries: u64,
    /// Answered with a refusal.
    pub refused: u64,
    /// Accepted: the one that is everybody's right, or the same request again.
    pub accepted: u64,
}

/// A purchase.
#[derive(Debug, Clone, Copy)]
pub struct Purchase<'a> {
    pub buyer: &'a str,
    pub sale: &'a str,
    pub quantity: u32,
    pub token: Option<&'a str>,
    pub showing: &'a Showing,
    /// Whether the first letter of the sale's id is sent as `%XX`.
    pub encoded: bool,
    pub trick: Option<&'static str>,
}

/// A purchase token.
#[derive(Debug, Clone)]
pub struct Token {
    pub text: String,
    pub rid: String,
}

/// The way to a system, for all buyers of a drop.
pub struct Client {
    pub target: Target,
    pub terms: DropTerms,
    http: reqwest::Client,
    log: Mutex<Log>,
    tallies: Mutex<BTreeMap<&'static str, Tally>>,
}

/// An answer: status and body; none when there was no connection, an empty status when there was no whole answer.
enum Answer {
    Whole(u16, Value),
    Cut,
    Unsent,
}

impl Answer {
    async fn of(request: RequestBuilder) -> Self {
        let response = match request.timeout(PATIENCE).send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Self::Unsent,
            Err(_cut) => return Self::Cut,
        };
        let status = response.status().as_u16();
        match response.bytes().await {
            Ok(body) => Self::Whole(status, serde_json::from_slice(&body).unwrap_or(Value::Null)),
            Err(_cut) => Self::Cut,
        }
    }
}

fn text(body: &Value, field: &str) -> String {
    body[field].as_str().unwrap_or_default().to_owned()
}

/// The first letter as `%XX`: the same sale to every server that follows the rules of addresses.
fn encoded(sale: &str) -> String {
    format!("%{:02X}{}", sale.as_bytes()[0], &sale[1..])
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// A new one.
    pub fn new(target: Target, terms: DropTerms) -> Self {
        let http = reqwest::Client::builder().no_proxy().connect_timeout(Duration::from_secs(1));
        let http = http.build().expect("a client");
        // What signs tokens in this process is installed with the first issuer.
        TokenIssuer::new(&Secret::new(target.secret.clone()), "seckill", "seckill").expect("an issuer");
        Self { target, terms, http, log: Mutex::default(), tallies: Mutex::default() }
    }

    /// What signs for it.
    pub const fn signer(&self) -> Signer<'_> {
        Signer { target: &self.target, terms: &self.terms }
    }

    /// The checker has to know who it is.
    pub fn knows(&self, account: &Account) {
        locked(&self.log).who.insert(account.name.clone(), account.identity.clone());
    }

    /// The log so far, and how tricks ended.
    pub fn logged(&self) -> (Log, BTreeMap<&'static str, Tally>) {
        (locked(&self.log).clone(), locked(&self.tallies).clone())
    }

    /// Requests that were accepted, and offers that were made, as far as is known.
    pub fn accepted(&self) -> Vec<String> {
        let log = locked(&self.log);
        let accepted = log.attempts.iter().filter_map(|attempt| match &attempt.came {
            Came::Accepted(rid) => Some(rid.clone()),
            Came::Refused { .. } | Came::Unknown | Came::Unsent => None,
        });
        let offers = log.seen.iter().filter(|seen| seen.is_made()).filter_map(|seen| seen.rid.clone());
        accepted.chain(offers).collect()
    }

    fn tally(&self, trick: Option<&'static str>, refused: bool, accepted: bool) {
        if let Some(trick) = trick {
            let mut tallies = locked(&self.tallies);
            let tally = tallies.entry(trick).or_default();
            tally.tries += 1;
            tally.refused += u64::from(refused);
            tally.accepted += u64::from(accepted);
        }
    }

    fn call(&self, method: Method, path: &str, showing: &Showing) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.target.api)).bearer_auth(&showing.access);
        match &showing.pass {
            Some(pass) => request.header("Seckill-Pass", pass),
            None => request,
        }
    }

    /// Buys once.
    pub async fn buy_once(&self, purchase: Purchase<'_>) -> Came {
        let Purchase { buyer, sale, quantity, token, showing, trick, .. } = purchase;
        let spelt = if purchase.encoded { encoded(sale) } else { sale.to_owned() };
        let request = self.call(Method::POST, &format!("/v1/sales/{spelt}/orders"), showing);
        let request = token.iter().fold(request.json(&json!({ "quantity": quantity })), |request, token| {
            request.header("Idempotency-Key", *token)
        });
        let begun_ms = now_ms();
        let came = match Answer::of(request).await {
            Answer::Whole(202, body) => Came::Accepted(text(&body, "request_id")),
            // A fault on the way says nothing about what was done, and 503 says that nothing was.
            Answer::Whole(500 | 502 | 504, _) | Answer::Cut => Came::Unknown,
            Answer::Whole(status, body) => Came::Refused { status, code: text(&body, "code") },
            Answer::Unsent => Came::Unsent,
        };
        let (refused, accepted) = (matches!(came, Came::Refused { .. }), matches!(came, Came::Accepted(_)));
        self.tally(trick.filter(|_| came != Came::Unsent), refused, accepted);
        let token = token.map(str::to_owned);
        let (shows, ended_ms, known) = (showing.shows, now_ms(), came.clone());
        let (buyer, sale) = (buyer.to_owned(), sale.to_owned());
        locked(&self.log).attempts.push(Attempt {
            buyer,
            sale,
            quantity,
            token,
            shows,
            begun_ms,
            ended_ms,
            came,
            trick,
        });
        known
    }

    /// Buys; while a process is away, again.
    pub async fn buy(&self, purchase: Purchase<'_>) -> Came {
        let mut came = Came::Unsent;
        for _ in 0..TRIES {
            came = self.buy_once(purchase).await;
            match &came {
                Came::Unsent | Came::Refused { status: 429 | 503, .. } => time_passes(PAUSE_MS).await,
                Came::Unknown if purchase.token.is_some() => time_passes(PAUSE_MS).await,
                Came::Accepted(_) | Came::Refused { .. } | Came::Unknown => break,
            }
        }
        came
    }

    /// Asks for a purchase token; status and code when there is none.
    pub async fn token(
        &self,
        (buyer, sale): (&str, &str),
        showing: &Showing,
        trick: Option<&'static str>,
    ) -> Result<Token, (u16, String)> {
        for _ in 0..TRIES {
            let asked = self.call(Method::POST, &format!("/v1/sales/{sale}/tokens"), showing);
            match Answer::of(asked).await {
                Answer::Whole(201, body) => {
                    let token = Token { text: text(&body, "token"), rid: text(&body, "request_id") };
                    let issued = Issued { buyer: buyer.to_owned(), sale: sale.to_owned(), rid: token.rid.clone() };
                    locked(&self.log).issued.insert(token.text.clone(), issued);
                    return Ok(token);
                }
                Answer::Whole(429 | 503, _) | Answer::Cut | Answer::Unsent => time_passes(PAUSE_MS).await,
                Answer::Whole(status, body) => {
                    self.tally(trick, true, false);
                    return Err((status, text(&body, "code")));
                }
            }
        }
        Err((0, "no answer".to_owned()))
    }

    /// A call of a buyer that is no purchase: its status; 0: no answer.
    pub async fn ask(&self, method: Method, path: &str, showing: &Showing, trick: Option<&'static str>) -> u16 {
        let answer = Answer::of(self.call(method, path, showing)).await;
        let Answer::Whole(status, _) = answer else { return 0 };
        self.tally(trick, status >= 400, status < 300);
        status
    }

    /// Reports a payment of an order, as the shop's backend does, until there is an answer. Whether the order is paid; none: unknown.
    pub async fn pay(&self, rid: &str, (amount, currency): (i64, &str), trick: Option<&'static str>) -> Option<bool> {
        let path = format!("{}/admin/v1/orders/{rid}/paid", self.target.admin);
        let body = json!({ "payment_id": format!("{rid}-{amount}"), "amount": amount, "currency": currency });
        let mut paid = None;
        for _ in 0..TRIES {
            let request = self.http.post(&path).bearer_auth(&self.target.admin_token).json(&body);
            match Answer::of(request).await {
                Answer::Whole(200, body) => {
                    paid = Some(body["code"] == "P6-F1");
                    break;
                }
                // The order is not written yet, or a process is away.
                Answer::Whole(404 | 409 | 429 | 500.., _) | Answer::Cut | Answer::Unsent => time_passes(PAUSE_MS).await,
                Answer::Whole(..) => {
                    paid = Some(false);
                    break;
                }
            }
        }
        self.tally(trick, paid == Some(false), paid == Some(true));
        locked(&self.log).reported.push(Reported { rid: rid.to_owned(), amount, paid });
        paid
    }
}
