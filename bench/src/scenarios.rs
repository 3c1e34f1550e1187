//! The rates of a crowd that buys as fast as it is answered: accepting alone, and the whole way to the order.

use super::bar::Bar;
use super::baseline::redis_script;
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{ENOUGH, crowd};
use super::{landing, latency};
use crate::loadgen::{self, LoadReport};
use seckill::cli::Failure;
use seckill::store::mysql::lags;
use serde_json::json;
use std::time::Instant;

/// The least ratio to the bare script.
const BAR_ACCEPT: f64 = 1.3;
/// The least part of the accept-only rate that lands while buyers keep buying.
const BAR_OF_ACCEPT: f64 = 0.25;
/// The least ratio to one plain transaction an order.
const BAR_OF_PLAIN: f64 = 1.2;

#[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
fn accepted_per_s(report: &LoadReport) -> f64 {
    report.accepted as f64 * 1000.0 / report.elapsed_ms.max(1) as f64
}

/// Accepted purchases a second through HTTP, JWT and the script.
pub(super) async fn accept(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Bar, Failure> {
    let alone = environment.is_api_alone();
    let sale = environment.sale("accept", ENOUGH, None).await?;
    let plan = crowd(environment, sizes, &sale, spinner);
    let ready = loadgen::prepare(plan).await?;
    let watch = CpuMeter::start(environment);
    let report = ready.run().await?;
    let usage = watch.end();
    spinner.tell("bare script");
    let redis_url = environment.settings.redis.url.expose();
    let bare = redis_script::bare_script(redis_url, sizes.connections, sizes.baseline_requests).await;
    let latency = report.latency();
    let mut note = format!("{} connections, p99 {:.1} ms", sizes.connections, latency::ms(latency.p99_us));
    note.push_str(if alone { ", api role alone" } else { ", all roles run beside it" });
    if let Err(why) = &bare {
        note.push_str(&format!("; no baseline: {why}"));
    }
    note.push_str(&usage.note());
    let more = json!({
        "requests": report.requests, "accepted": report.accepted, "answers": report.by_status, "latency": latency,
        "curve": latency::curve(&report.latency_us), "cpu": usage.json(),
    });
    Ok(Bar::rate("accept", accepted_per_s(&report)).against(bare.ok(), BAR_ACCEPT).note(note).more(more))
}

/// Orders a second that land while buyers keep buying, and how long the rest takes.
pub(super) async fn end_to_end(
    environment: &mut Environment,
    sizes: &Sizes,
    accept_alone: Option<f64>,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let sale = environment.sale("end-to-end", ENOUGH, None).await?;
    let plan = crowd(environment, sizes, &sale, spinner);
    let ready = loadgen::prepare(plan).await?;
    let watch = CpuMeter::start(environment);
    let report = ready.run().await?;
    let usage = watch.end();
    let (landed, _) = environment.landed_and_sold(&sale).await?;
    let begin = Instant::now();
    let drained = environment
        .drained(&sale, sizes.patience, &|landed, sold| spinner.tell(&format!("{landed} of {sold} landed")))
        .await?;
    let drain_ms = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    let lags = lags::lags(&environment.servers.db, &sale).await?;
    let (p50, p99) = (lags.percentile_ms(50).unwrap_or(0), lags.percentile_ms(99).unwrap_or(0));
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    let per_s = landed as f64 * 1000.0 / report.elapsed_ms.max(1) as f64;
    let rest = if drained { format!("the rest after {drain_ms} ms") } else { "NOT DRAINED in time".to_owned() };
    let note = format!(
        "{:.0} accepted/s meanwhile, {rest}; accept to order p50 {p50} ms, p99 {p99} ms{}",
        accepted_per_s(&report),
        usage.note()
    );
    let more = json!({
        "accepted": report.accepted, "accepted_per_s": accepted_per_s(&report), "landed_under_load": landed, "drained": drained,
        "drain_ms": drain_ms, "accept_to_order_p50_ms": p50, "accept_to_order_p99_ms": p99, "cpu": usage.json(),
    });
    spinner.tell("one transaction an order");
    let plain = landing::one_transaction_an_order(environment, sizes).await?;
    let against_plain =
        format!("against one plain transaction an order on {} connections, nothing else", landing::CONNECTIONS);
    Ok(vec![
        Bar::rate("end_to_end", per_s).against(accept_alone, BAR_OF_ACCEPT).note(note).more(more),
        Bar::rate("end_to_end_plain", per_s).against(Some(plain), BAR_OF_PLAIN).note(against_plain),
    ])
}
