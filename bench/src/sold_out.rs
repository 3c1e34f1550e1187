//! A sold-out sale: refusals of late buyers, repeated answers to winners, and winners' status polls.

use super::bar::Bar;
use super::closed_loop::{ResponseCounts, closed_loop};
use super::cost;
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::Environment;
use super::plain_process::{PlainProcess, PlainUsage};
use super::request_texts::{head, purchase};
use super::sizes::Sizes;
use crate::loadgen::answer::text_field;
use crate::loadgen::http::{Connection, ServerAddress};
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
const BAR: f64 = 0.85;
/// The highest ratio of the api's processor time for a status question to the plain handler's for an answer.
const BAR_COST_POLL: f64 = 1.5;

/// A sold-out sale, with the requests of those who bought it.
pub(super) struct SoldOut {
    repeats: Vec<String>,
    questions: Vec<String>,
    late: Vec<String>,
}

impl SoldOut {
    /// Sells a sale out to [`WINNERS`] buyers with purchase tokens.
    pub async fn prepare(environment: &mut Environment) -> Result<Self, Failure> {
        let sale = environment.sale("sold-out", i64::try_from(WINNERS).unwrap_or(0), Some(1)).await?;
        let auth = &environment.settings.auth;
        let issuer = TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience)?;
        let failed = |error: loadgen::http::HttpError| Failure::Failed(error.to_string());
        let target = ServerAddress::resolve(&environment.api, Duration::from_secs(5)).await.map_err(failed)?;
        let host = target.host().to_owned();
        let mut connection = Connection::new(target, Duration::from_secs(5));
        let mut all = Self { repeats: Vec::new(), questions: Vec::new(), late: Vec::new() };
        for buyer in 0..WINNERS + LATE {
            let access = issuer.sign(&buyer_name(buyer), loadgen::access_tokens::ACCESS_TTL_S)?;
            let head = |line: &str| head(line, &host, &access);
            let order = |key: &str| purchase(&head(&format!("POST /v1/sales/{sale}/orders")), key);
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
                return Err(Failure::Failed(format!("a winner got {status} instead of 202")));
            }
            all.repeats.push(repeat);
            all.questions.push(question);
        }
        Ok(all)
    }

    /// Answers a second to buyers who come too late.
    pub async fn sold_out(&self, environment: &Environment, sizes: &Sizes) -> Result<Bar, Failure> {
        let watch = CpuMeter::start(environment);
        let responses = self.closed_loop(environment, sizes, &self.late).await?;
        let usage = watch.end();
        let plain = self.plain_handler(environment, sizes).await?;
        let note =
            format!("refused at the entry; against a plain actix handler with the same token check{}", usage.note());
        Ok(bar("sold_out", &responses, 410, &note, &usage).against(plain.map(PlainUsage::per_s), BAR))
    }

    /// Requests of late buyers at a handler that only checks the access token.
    async fn plain_handler(&self, environment: &Environment, sizes: &Sizes) -> Result<Option<PlainUsage>, Failure> {
        match PlainProcess::refusing(environment).await? {
            Some(plain) => plain.under_requests(environment, &self.late, sizes).await.map(Some),
            None => Ok(None),
        }
    }

    /// Answers a second to winners who repeat their request after sell-out.
    pub async fn replay(&self, environment: &Environment, sizes: &Sizes) -> Result<Bar, Failure> {
        let watch = CpuMeter::start(environment);
        let responses = self.closed_loop(environment, sizes, &self.repeats).await?;
        let usage = watch.end();
        Ok(bar("replay", &responses, 202, "the winners' own requests again, after sell-out", &usage))
    }

    /// Answers a second to winners who ask for their request's status while nothing lands, and what an answer costs the api.
    pub async fn poll(&self, environment: &Environment, sizes: &Sizes) -> Result<Vec<Bar>, Failure> {
        let queued = self.queued(environment).await?;
        let watch = CpuMeter::start(environment);
        let responses = self.closed_loop(environment, sizes, &self.questions).await?;
        let usage = watch.end();
        let mut bars = vec![bar("poll", &responses, 200, "status of winners' requests", &usage)];
        if let Some(us) = cost::us_each(&usage, "api", responses.answers.status(200)) {
            let plain = self.plain_handler(environment, sizes).await?.and_then(PlainUsage::us);
            let note = format!(
                "processor time of the api for a status question, against a plain actix handler; {queued} of {WINNERS} \
                 orders queued{}",
                usage.disturbed()
            );
            let more = json!({ "queued": queued, "asked_about": WINNERS });
            bars.push(Bar::of("cost_poll", us, "µs").cost_against(plain, BAR_COST_POLL).note(note).more(more));
        }
        Ok(bars)
    }

    /// How many of the winners' orders have not landed.
    async fn queued(&self, environment: &Environment) -> Result<usize, Failure> {
        let target = ServerAddress::resolve(&environment.api, Duration::from_secs(5)).await?;
        let mut connection = Connection::new(target, Duration::from_secs(5));
        let mut queued = 0;
        for question in &self.questions {
            let answer = connection.call(question.as_bytes()).await?;
            queued += usize::from(text_field(answer.body(), "status") == Some("QUEUED"));
        }
        Ok(queued)
    }

    async fn closed_loop(
        &self,
        environment: &Environment,
        sizes: &Sizes,
        requests: &[String],
    ) -> Result<ResponseCounts, Failure> {
        closed_loop(&environment.api, requests.to_vec(), sizes.connections, sizes.lasting, &environment.stop).await
    }
}

fn bar(name: &'static str, responses: &ResponseCounts, status: u16, note: &str, usage: &CpuUsage) -> Bar {
    let others = responses.others(status);
    let wrong = if others == 0 { String::new() } else { format!("; {others} answers were not {status}") };
    let more =
        json!({ "answers": responses.answers, "broken": responses.broken, "others": others, "cpu": usage.json() });
    Bar::rate(name, responses.per_s(status)).note(format!("{note}{wrong}")).more(more)
}
