//! `latency`: an open loop. Purchases are sent when they are due, answered or not, and the clock of each runs from the time
//! it was due, so that a slow answer cannot hide the requests that would have come meanwhile. Once at half of the peak rate
//! to the answer, once at a low rate to the order's row in the database.

use super::bar::Bar;
use super::baseline::redis_disk::{self, DiskWaits};
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::Environment;
use super::plain_process::PlainProcess;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{self, ENOUGH, LIMIT};
use crate::lags;
use crate::loadgen::plan::BUYERS_MAX;
use crate::loadgen::{self, LoadPlan, LoadReport};
use hdrhistogram::Histogram;
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::store::redis::RedisStore;
use serde_json::{Value, json};

/// Most of p99 to the answer above the plain handler's, ms.
const BAR_ANSWER_MS: f64 = 3.0;
/// Most of p99 to the order, ms.
const BAR_ORDER_MS: f64 = 50.0;
/// The warm-up is one of this many parts of a run.
const WARM_UP_PART: u64 = 5;
/// The low rate, purchases a second.
const LOW_PER_S: f64 = 200.0;
/// Quantiles of a curve.
const QUANTILES: [f64; 12] = [0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0];

/// The latency curve: quantile and milliseconds.
pub(super) fn curve(latencies_us: &Histogram<u64>) -> Vec<(f64, f64)> {
    QUANTILES.iter().map(|quantile| (*quantile, ms(latencies_us.value_at_quantile(*quantile)))).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

/// Purchases due in the scale's time at `per_s`, at least one.
fn due(per_s: f64, sizes: &Sizes) -> u64 {
    let count = (per_s * sizes.lasting.as_secs_f64()).round().clamp(1.0, 50_000_000.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 1 … 50 million")]
    let count = count as u64;
    count
}

/// A crowd that comes at `per_s`. Before the scale's time it comes at the same rate for a quarter of it, unmeasured: until
/// connections, caches and memory are as they stay.
pub(super) fn warmed(
    environment: &Environment,
    sizes: &Sizes,
    sale: &SaleId,
    per_s: f64,
    spinner: &Spinner,
) -> LoadPlan {
    open_loop(environment, sizes, sale, (per_s, due(per_s / 4.0, sizes)), spinner)
}

/// A crowd at the rate `per_s` for the time of a measurement, after `unmeasured` purchases of warm-up; each is of another buyer. Where
/// there are not this many buyers, for as long as there are.
fn open_loop(
    environment: &Environment,
    sizes: &Sizes,
    sale: &SaleId,
    (per_s, unmeasured): (f64, u64),
    spinner: &Spinner,
) -> LoadPlan {
    let buyers = (unmeasured + due(per_s, sizes)).min(BUYERS_MAX);
    LoadPlan {
        buyers,
        unmeasured: unmeasured.min(buyers / WARM_UP_PART),
        connections: sizes.crowd_connections(),
        rate_per_s: Some(per_s),
        // Stops by itself when everybody has had their turn, or with the whole benchmark.
        stop: environment.stop.clone(),
        progress: None,
        ..steady_crowd::crowd(environment, sizes, sale, spinner)
    }
}

/// Half of the peak rate, purchases a second.
pub(super) fn half(peak_per_s: Option<f64>) -> Result<f64, Failure> {
    let peak = peak_per_s.ok_or_else(|| Failure::Failed("latency: the peak rate was not measured".to_owned()))?;
    Ok((peak / 2.0).max(1.0))
}

/// What the crowd of the product saw, what that cost, and, where Redis is ours, how long Redis waited for its disk.
struct Watched {
    report: LoadReport,
    usage: CpuUsage,
    disk: Option<DiskWaits>,
}

/// Latency to the answer at half of `peak_per_s`, with the api role alone on a private environment.
pub(super) async fn accept(
    environment: &mut Environment,
    sizes: &Sizes,
    peak_per_s: Option<f64>,
    spinner: &Spinner,
) -> Result<Bar, Failure> {
    let rate = half(peak_per_s)?;
    let sale = environment.sale("latency", ENOUGH, LIMIT).await?;
    let crowd = || warmed(environment, sizes, &sale, rate, spinner);
    let ready = loadgen::prepare(crowd()).await?;
    count_disk_waits(environment).await?;
    let watch = CpuMeter::start(environment);
    let (report, usage) = (ready.run().await?, watch.end());
    let watched = Watched { report, usage, disk: disk_waits(environment).await? };
    spinner.say("plain handler");
    // The same crowd where nothing is behind the answer: how late this machine and this generator are by themselves.
    let plain = match PlainProcess::refusing(environment).await? {
        Some(plain) => Some(plain.crowd(crowd()).await?),
        None => None,
    };
    Ok(bar(&watched, plain.as_ref(), rate))
}

fn bar(watched: &Watched, plain: Option<&LoadReport>, rate: f64) -> Bar {
    let Watched { report, usage, disk } = watched;
    let at = |report: &LoadReport, quantile| ms(report.latency_us.value_at_quantile(quantile));
    let [p50, p99, p999, max] = [0.5, 0.99, 0.999, 1.0].map(|quantile| at(report, quantile));
    let sent = report.requests_per_s();
    let beside = plain.map_or_else(
        || format!("p99 to the answer: {p99:.2} ms, without a plain handler beside it"),
        |plain| {
            let [plain_p50, plain_p99] = [0.5, 0.99].map(|quantile| at(plain, quantile));
            format!(
                "p99 to the answer above a plain handler's at the same rate: {p99:.2} against {plain_p99:.2} ms (p50 {p50:.2} against \
                 {plain_p50:.2})"
            )
        },
    );
    let note = format!(
        "{beside}; {sent:.0} purchases/s ({rate:.0} wanted: half of the peak), one a buyer, from the time each was due; p99.9 \
         {p999:.2}, max {max:.2} ms{}{}{}",
        usage.busy_note(),
        disk.map_or_else(String::new, DiskWaits::note),
        usage.note()
    );
    let more = json!({
        "wanted_per_s": rate, "sent_per_s": sent, "requests": report.requests, "accepted": report.accepted,
        "answers": report.by_status, "p50_ms": p50, "p99_ms": p99, "p99_9_ms": p999, "max_ms": max,
        "curve": curve(&report.latency_us), "cpu": usage.json(), "disk_waits": disk,
        "plain_p50_ms": plain.map(|plain| at(plain, 0.5)), "plain_p99_ms": plain.map(|plain| at(plain, 0.99)),
        "plain_curve": plain.map(|plain| curve(&plain.latency_us)),
    });
    let bar = match plain {
        Some(plain) => Bar::of("latency", (p99 - at(plain, 0.99)).max(0.0), "ms").at_most(BAR_ANSWER_MS),
        None => Bar::of("latency", p99, "ms"),
    };
    bar.note(note).more(more)
}

/// Redis, where it is ours.
fn own_redis(environment: &Environment) -> Option<&RedisStore> {
    environment.pids().contains_key("redis").then_some(&environment.servers.redis)
}

/// From now on Redis' waits for its disk are counted.
pub(super) async fn count_disk_waits(environment: &Environment) -> Result<(), Failure> {
    match own_redis(environment) {
        Some(redis) => Ok(redis_disk::begin(redis).await?),
        None => Ok(()),
    }
}

/// How many there were; they are not counted any more.
pub(super) async fn disk_waits(environment: &Environment) -> Result<Option<DiskWaits>, Failure> {
    match own_redis(environment) {
        Some(redis) => Ok(Some(redis_disk::end(redis).await?)),
        None => Ok(None),
    }
}

/// Time from acceptance to the order's row at a low rate, with every role.
pub(super) async fn landed(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Bar, Failure> {
    let sale = environment.sale("latency-landed", ENOUGH, LIMIT).await?;
    let report = loadgen::run(open_loop(environment, sizes, &sale, (LOW_PER_S, 0), spinner)).await?;
    let drained = environment.drained(&sale, sizes.patience, &|_landed, _sold| {}).await?;
    let lags = lags::lags(&environment.servers.db, &sale).await?;
    let missing = || Failure::Failed("latency: nothing was ordered at the low rate".to_owned());
    let at = |percent| lags.percentile_ms(percent).ok_or_else(missing);
    let (p50, p99, max) = (at(50)?, at(99)?, at(100)?);
    let rest = if drained { "" } else { "; NOT ALL LANDED in time" };
    let note = format!(
        "p99 from acceptance (Redis' clock) to the order's row (the database's), {LOW_PER_S:.0} purchases/s; p50 {p50}, max {max} ms{rest}"
    );
    let more: Value =
        json!({ "accepted": report.accepted, "drained": drained, "p50_ms": p50, "p99_ms": p99, "max_ms": max });
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of one run")]
    let p99 = p99 as f64;
    Ok(Bar::of("latency_landed", p99, "ms").at_most(BAR_ORDER_MS).note(note).more(more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_curve_is_read_off_the_histogram() {
        let mut histogram = Histogram::new(3).unwrap();
        (1..=1_000u64).for_each(|n| histogram.record(n * 1_000).unwrap());
        let curve = curve(&histogram);
        let at = |quantile: f64| curve.iter().find(|(q, _)| *q == quantile).unwrap().1;
        // Three digits are exact to 0.1 %.
        assert!((at(0.5) - 500.0).abs() < 1.0 && (at(0.99) - 990.0).abs() < 2.0 && (at(1.0) - 1_000.0).abs() < 2.0);
        assert!(curve.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    }

    #[test]
    fn an_open_loop_sends_what_is_due_and_ends() {
        use clap::Parser;
        #[derive(Parser)]
        struct LatencyLine {
            #[command(flatten)]
            args: crate::BenchArgs,
        }
        let sizes =
            Sizes { lasting: Duration::from_millis(500), ..Sizes::of(&LatencyLine::parse_from(["bench"]).args) };
        assert_eq!([due(200.0, &sizes), due(0.1, &sizes)], [100, 1]);
    }
}
