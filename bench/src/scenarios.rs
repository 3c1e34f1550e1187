//! The rates of a crowd that buys as fast as it is answered: accepting alone, and the whole way to the order.

use super::bar::Bar;
use super::baseline::redis_script;
use super::cost;
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{ENOUGH, crowd};
use super::{landing, latency};
use crate::loadgen::{self, LoadReport};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::store::mysql::lags;
use serde_json::json;
use std::time::Instant;

/// The least ratio to the plain handler's rate.
const BAR_ACCEPT: f64 = 0.6;
/// The highest ratio of the api's processor time for a purchase to the plain handler's for an answer.
const BAR_COST_API: f64 = 1.6;
/// The highest ratio of Redis' processor time for a purchase to that for a bare purchase script.
const BAR_COST_REDIS: f64 = 0.6;
/// The highest ratio of all processor time for an order to that of another build.
const BAR_COST_END_TO_END: f64 = 0.65;
/// The least part of the accept-only rate that lands while buyers keep buying.
const BAR_OF_ACCEPT: f64 = 0.25;
/// The least ratio to one plain transaction an order.
const BAR_OF_PLAIN: f64 = 3.0;

#[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
fn accepted_per_s(report: &LoadReport) -> f64 {
    report.accepted as f64 * 1000.0 / report.elapsed_ms.max(1) as f64
}

/// A crowd that has bought, and the meter that was started with it and goes on.
struct CrowdRun {
    sale: SaleId,
    watch: CpuMeter,
    report: LoadReport,
}

async fn run_crowd(
    environment: &mut Environment,
    name: &str,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<CrowdRun, Failure> {
    let sale = environment.sale(name, ENOUGH, None).await?;
    let ready = loadgen::prepare(crowd(environment, sizes, &sale, spinner)).await?;
    let watch = CpuMeter::start(environment);
    let report = ready.run().await?;
    Ok(CrowdRun { sale, watch, report })
}

/// Accepted purchases a second through HTTP, JWT and the script, and what one costs the api and Redis.
pub(super) async fn accept(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let alone = environment.is_api_alone();
    let CrowdRun { watch, report, .. } = run_crowd(environment, "accept", sizes, spinner).await?;
    let usage = watch.end();
    spinner.tell("bare script");
    let redis_url = environment.settings.redis.url.expose();
    let watch = CpuMeter::start(environment);
    let bare = redis_script::bare_script(redis_url, sizes.connections, sizes.baseline_requests).await;
    let bare_usage = watch.end();
    spinner.tell("plain handler");
    let plain = cost::of_plain_handler(environment, sizes).await?;
    let latency = report.latency();
    let mut note = format!("{} connections, p99 {:.1} ms", sizes.connections, latency::ms(latency.p99_us));
    note.push_str(if alone { ", api role alone" } else { ", all roles run beside it" });
    if let Err(why) = &bare {
        note.push_str(&format!("; no baseline: {why}"));
    }
    note.push_str(&usage.note());
    let more = json!({
        "requests": report.requests, "accepted": report.accepted, "answers": report.by_status, "latency": latency,
        "curve": latency::curve(&report.latency_us), "cpu": usage.json(), "bare_script_per_s": bare.clone().ok(),
    });
    let bare_us = bare.ok().and_then(|_| cost::us_each(&bare_usage, "redis", sizes.baseline_requests));
    let plain_per_s = plain.as_ref().map(|plain| plain.per_s);
    let mut bars =
        vec![Bar::rate("accept", accepted_per_s(&report)).against(plain_per_s, BAR_ACCEPT).note(note).more(more)];
    if let Some(us) = cost::us_each(&usage, "api", report.accepted) {
        let note = format!(
            "processor time of the api for a purchase, against that of a plain actix handler for an answer{}",
            usage.disturbed()
        );
        bars.push(
            Bar::of("cost_api", us, "µs").cost_against(plain.and_then(|plain| plain.us), BAR_COST_API).note(note),
        );
    }
    if let Some(us) = cost::us_each(&usage, "redis", report.accepted) {
        let note = format!(
            "processor time of Redis for a purchase (nothing is relayed), against that for a bare script under \
             redis-benchmark{}",
            usage.disturbed()
        );
        bars.push(Bar::of("cost_redis", us, "µs").cost_against(bare_us, BAR_COST_REDIS).note(note));
    }
    Ok(bars)
}

/// Orders a second that land while buyers keep buying, and how long the rest takes. `pair`: what an order costs with this build and
/// with that of `--against`, both on new servers.
pub(super) async fn end_to_end(
    environment: &mut Environment,
    sizes: &Sizes,
    accept_alone: Option<f64>,
    pair: Option<(f64, f64)>,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let CrowdRun { sale, watch, report } = run_crowd(environment, "end-to-end", sizes, spinner).await?;
    let usage = watch.end();
    let (landed, _) = environment.landed_and_sold(&sale).await?;
    let begin = Instant::now();
    let drained = environment
        .drained(&sale, sizes.patience, &|landed, sold| spinner.tell(&format!("{landed} of {sold} landed")))
        .await?;
    let whole = watch.end();
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
    // What has not landed has not cost everything yet.
    let cost = cost::us_of_all(&whole, report.accepted).filter(|_us| drained);
    let against_plain =
        format!("against one plain transaction an order on {} connections, nothing else", landing::CONNECTIONS);
    let mut bars = vec![
        Bar::rate("end_to_end", per_s).against(accept_alone, BAR_OF_ACCEPT).note(note).more(more),
        Bar::rate("end_to_end_plain", per_s).against(Some(plain), BAR_OF_PLAIN).note(against_plain),
    ];
    let (us, other_us) = pair.map_or((cost, None), |(us, other_us)| (Some(us), Some(other_us)));
    bars.extend(us.map(|us| cost_end_to_end(us, other_us, &whole.disturbed())));
    Ok(bars)
}

/// Processor time of all roles and servers for an order, against another build (`--against`).
fn cost_end_to_end(us: f64, other: Option<f64>, disturbed: &str) -> Bar {
    let note = match other {
        Some(_) => {
            "processor time of all roles and servers for an order, against the other build, both on new servers in the same run"
        }
        None => "processor time of all roles and servers for an order; --against PATH compares it with another build",
    };
    Bar::of("cost_end_to_end", us, "µs").cost_against(other, BAR_COST_END_TO_END).note(format!("{note}{disturbed}"))
}

/// The same crowd on another environment; processor time for an order, µs.
pub(super) async fn end_to_end_us(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Option<f64>, Failure> {
    let CrowdRun { sale, watch, report } = run_crowd(environment, "end-to-end", sizes, spinner).await?;
    let drained = environment.drained(&sale, sizes.patience, &|_, _| ()).await?;
    Ok(cost::us_of_all(&watch.end(), report.accepted).filter(|_us| drained))
}
