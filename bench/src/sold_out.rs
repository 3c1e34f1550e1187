//! A sold-out sale: refusing whoever comes too late, repeating the answer to winners, telling winners their status.

use super::bar::Bar;
use super::cpu::{Usage, Watch};
use super::ground::Ground;
use super::hammer::{Heard, hammer};
use super::plain::Plain;
use super::scale::Scale;
use crate::loadgen::http::{Connection, Target};
use crate::loadgen::{self, buyer_name};
use seckill::cli::Failure;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::time::Duration;

/// Buyers who bought everything, and whose requests are repeated and asked for.
const WINNERS: u64 = 500;
/// Buyers who come too late.
const LATE: u64 = 1_000;
/// The least ratio to a plain handler.
const BAR: f64 = 0.8;

/// A sold-out sale, with the requests of those who bought it.
pub(super) struct SoldOut {
    repeats: Vec<String>,
    questions: Vec<String>,
    late: Vec<String>,
}

impl SoldOut {
    /// Sells a sale out to [`WINNERS`] buyers with purchase tokens.
    pub async fn prepare(ground: &mut Ground) -> Result<Self, Failure> {
        let sale = ground.sale("sold-out", i64::try_from(WINNERS).unwrap_or(0), Some(1)).await?;
        let auth = &ground.settings.auth;
        let issuer = TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience)?;
        let failed = |error: loadgen::http::HttpError| Failure::Failed(error.to_string());
        let target = Target::resolve(&ground.api, Duration::from_secs(5)).await.map_err(failed)?;
        let host = target.host().to_owned();
        let mut connection = Connection::new(target, Duration::from_secs(5));
        let mut all = Self { repeats: Vec::new(), questions: Vec::new(), late: Vec::new() };
        for buyer in 0..WINNERS + LATE {
            let access = issuer.sign(&buyer_name(buyer), loadgen::wallet::CROWD_TTL_S)?;
            let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {access}\r\n");
            let order = |key: &str| {
                let json = "Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"quantity\":1}";
                format!("{}{key}{json}", head(&format!("POST /v1/sales/{sale}/orders")))
            };
            if buyer >= WINNERS {
                all.late.push(order(""));
                continue;
            }
            let ask = format!("{}Content-Length: 0\r\n\r\n", head(&format!("POST /v1/sales/{sale}/tokens")));
            let answer = connection.call(ask.as_bytes()).await.map_err(failed)?;
            let ticket: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
            let (Some(token), Some(id)) = (ticket["token"].as_str(), ticket["request_id"].as_str()) else {
                return Err(Failure::Failed(format!("no purchase token, status {}", answer.status())));
            };
            let repeat = order(&format!("Idempotency-Key: {token}\r\n"));
            let question = format!("{}\r\n", head(&format!("GET /v1/sales/{sale}/orders/{id}")));
            let status = connection.call(repeat.as_bytes()).await.map_err(failed)?.status();
            if status != 202 {
                return Err(Failure::Failed(format!("a winner heard {status} instead of 202")));
            }
            all.repeats.push(repeat);
            all.questions.push(question);
        }
        Ok(all)
    }

    /// Answers a second to buyers who come too late.
    pub async fn sold_out(&self, ground: &Ground, scale: &Scale) -> Result<Bar, Failure> {
        let watch = Watch::start(ground);
        let heard = self.hammer(ground, scale, &self.late).await?;
        let usage = watch.end();
        let plain = self.plain_handler(ground, scale).await?;
        let note =
            format!("refused at the entry; against a plain actix handler with the same token check{}", usage.note());
        Ok(bar("sold_out", &heard, 410, &note, &usage).against(Some(plain), BAR))
    }

    /// The same requests at a handler that only checks the access token.
    async fn plain_handler(&self, ground: &Ground, scale: &Scale) -> Result<f64, Failure> {
        let plain = Plain::start(ground)?;
        let heard = hammer(&plain.url, self.late.clone(), scale.connections, scale.lasting, &ground.stop).await;
        plain.end().await?;
        let heard = heard?;
        if heard.others(410) > 0 {
            return Err(Failure::Failed(format!("the plain handler answered otherwise: {:?}", heard.answers.rows())));
        }
        Ok(heard.per_s(410))
    }

    /// Answers a second to winners who repeat their request after sell-out.
    pub async fn replay(&self, ground: &Ground, scale: &Scale) -> Result<Bar, Failure> {
        let watch = Watch::start(ground);
        let heard = self.hammer(ground, scale, &self.repeats).await?;
        let usage = watch.end();
        Ok(bar("replay", &heard, 202, "the winners' own requests again, after sell-out", &usage))
    }

    /// Answers a second to winners who ask for their request's status.
    pub async fn poll(&self, ground: &Ground, scale: &Scale) -> Result<Bar, Failure> {
        let watch = Watch::start(ground);
        let heard = self.hammer(ground, scale, &self.questions).await?;
        let usage = watch.end();
        Ok(bar("poll", &heard, 200, "status of winners' requests", &usage))
    }

    async fn hammer(&self, ground: &Ground, scale: &Scale, requests: &[String]) -> Result<Heard, Failure> {
        hammer(&ground.api, requests.to_vec(), scale.connections, scale.lasting, &ground.stop).await
    }
}

fn bar(name: &'static str, heard: &Heard, status: u16, note: &str, usage: &Usage) -> Bar {
    let others = heard.others(status);
    let wrong = if others == 0 { String::new() } else { format!("; {others} answers were not {status}") };
    let more = json!({ "answers": heard.answers, "broken": heard.broken, "others": others, "cpu": usage.json() });
    Bar::rate(name, heard.per_s(status)).note(format!("{note}{wrong}")).more(more)
}
