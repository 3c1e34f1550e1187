//! What is measured: accepting, refusing, repeating, asking, and the whole way to the order.

use super::super::Failure;
use super::baseline;
use super::ground::Ground;
use super::hammer::{Heard, hammer};
use super::report::Bar;
use super::{Scale, Spinner};
use crate::crowd::http::{Connection, Target};
use crate::crowd::{self, CrowdPlan, CrowdReport, Minter, buyer_name};
use crate::domain::ids::SaleId;
use crate::runtime::Stopper;
use crate::store::mysql::lags;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Far more than can be sold in one run.
const ENOUGH: i64 = 50_000_000;
/// Buyers who bought everything, and whose requests are repeated and asked for.
const WINNERS: u64 = 500;
/// Buyers who come too late.
const LATE: u64 = 1_000;

/// A crowd that buys from `sale` for the scale's time.
fn crowd(ground: &Ground, scale: &Scale, sale: &SaleId, spinner: &Spinner) -> CrowdPlan {
    let auth = &ground.settings.auth;
    let mut plan = CrowdPlan::new(ground.api.clone(), sale.clone(), auth.secret.clone());
    plan.issuer.clone_from(&auth.issuer);
    plan.audience.clone_from(&auth.audience);
    plan.connections = scale.connections;
    plan.buyers = scale.buyers;
    plan.requests_per_buyer = 1_000;
    plan.stop = Stopper::new();
    // The clock starts with the first purchase, not with the minting of tokens before it.
    let (timer, stop, outer, lasting) = (OnceLock::new(), plan.stop.clone(), ground.stop.clone(), scale.lasting);
    let spinner = spinner.clone();
    plan.progress = Some(Arc::new(move |progress| {
        timer.get_or_init(|| {
            let (stop, outer) = (stop.clone(), outer.clone());
            tokio::spawn(async move {
                outer.sleep(lasting).await;
                stop.stop();
            });
        });
        spinner.tell(&format!("{} accepted", progress.accepted));
    }));
    plan
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
fn accepted_per_s(report: &CrowdReport) -> f64 {
    report.accepted as f64 * 1000.0 / report.elapsed_ms.max(1) as f64
}

/// Accepted purchases a second through HTTP, JWT and the script.
pub(super) async fn accept(ground: &mut Ground, scale: &Scale, spinner: &Spinner) -> Result<Bar, Failure> {
    let alone = ground.is_api_alone();
    let sale = ground.sale("accept", ENOUGH, None).await?;
    let report = crowd::run(crowd(ground, scale, &sale, spinner)).await?;
    spinner.tell("bare script");
    let redis_url = ground.settings.redis.url.expose();
    let bare = baseline::bare_script(redis_url, scale.connections, scale.baseline_requests).await;
    let latency = report.latency();
    let mut note = format!("{} connections, p99 {:.1} ms", scale.connections, ms(latency.p99_us));
    note.push_str(if alone { ", api role alone" } else { ", all roles run beside it" });
    if let Err(why) = &bare {
        note.push_str(&format!("; no baseline: {why}"));
    }
    let more = json!({ "requests": report.requests, "answers": report.by_status, "latency": latency });
    Ok(Bar::rate("accept", accepted_per_s(&report)).against(bare.ok(), 1.3).note(note).more(more))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

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
        let minter = Minter::new(&auth.secret, &auth.issuer, &auth.audience)?;
        let failed = |error: crowd::http::HttpError| Failure::Failed(error.to_string());
        let target = Target::resolve(&ground.api, Duration::from_secs(5)).await.map_err(failed)?;
        let host = target.host().to_owned();
        let mut connection = Connection::new(target, Duration::from_secs(5));
        let mut all = Self { repeats: Vec::new(), questions: Vec::new(), late: Vec::new() };
        for buyer in 0..WINNERS + LATE {
            let access = minter.sign(&buyer_name(buyer), crowd::mint::CROWD_TTL_S)?;
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
        let heard = self.hammer(ground, scale, &self.late).await?;
        Ok(bar("sold_out", &heard, 410, "refused at the entry; no baseline yet"))
    }

    /// Answers a second to winners who repeat their request after sell-out.
    pub async fn replay(&self, ground: &Ground, scale: &Scale) -> Result<Bar, Failure> {
        let heard = self.hammer(ground, scale, &self.repeats).await?;
        Ok(bar("replay", &heard, 202, "the winners' own requests again, after sell-out"))
    }

    /// Answers a second to winners who ask for their request's status.
    pub async fn poll(&self, ground: &Ground, scale: &Scale) -> Result<Bar, Failure> {
        let heard = self.hammer(ground, scale, &self.questions).await?;
        Ok(bar("poll", &heard, 200, "status of winners' requests"))
    }

    async fn hammer(&self, ground: &Ground, scale: &Scale, requests: &[String]) -> Result<Heard, Failure> {
        hammer(&ground.api, requests.to_vec(), scale.connections, scale.lasting, &ground.stop).await
    }
}

fn bar(name: &'static str, heard: &Heard, status: u16, note: &str) -> Bar {
    let others = heard.others(status);
    let wrong = if others == 0 { String::new() } else { format!("; {others} answers were not {status}") };
    let more = json!({ "answers": heard.answers, "broken": heard.broken });
    Bar::rate(name, heard.per_s(status)).note(format!("{note}{wrong}")).more(more)
}

/// Orders a second that land while buyers keep buying, and how long the rest takes.
pub(super) async fn end_to_end(
    ground: &mut Ground,
    scale: &Scale,
    accept_alone: Option<f64>,
    spinner: &Spinner,
) -> Result<Bar, Failure> {
    ground.start_landing()?;
    let sale = ground.sale("end-to-end", ENOUGH, None).await?;
    let report = crowd::run(crowd(ground, scale, &sale, spinner)).await?;
    let (landed, _) = ground.landed_and_sold(&sale).await?;
    let begin = Instant::now();
    let drained = ground
        .drained(&sale, scale.patience, &|landed, sold| spinner.tell(&format!("{landed} of {sold} landed")))
        .await?;
    let drain_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let lags = lags::lags(&ground.servers.db, &sale).await?;
    let (p50, p99) = (lags.percentile_ms(50).unwrap_or(0), lags.percentile_ms(99).unwrap_or(0));
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    let per_s = landed as f64 * 1000.0 / report.elapsed_ms.max(1) as f64;
    let rest = if drained { format!("the rest after {drain_ms} ms") } else { "NOT DRAINED in time".to_owned() };
    let note = format!(
        "{:.0} accepted/s meanwhile, {rest}; accept to order p50 {p50} ms, p99 {p99} ms",
        accepted_per_s(&report)
    );
    let more = json!({
        "accepted": report.accepted, "accepted_per_s": accepted_per_s(&report), "landed_under_load": landed, "drained": drained,
        "drain_ms": drain_ms, "accept_to_order_p50_ms": p50, "accept_to_order_p99_ms": p99,
    });
    Ok(Bar::rate("end_to_end", per_s).against(accept_alone, 0.25).note(note).more(more))
}
