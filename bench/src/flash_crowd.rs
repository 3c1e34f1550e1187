//! `crowd`: many different buyers for a few units, everyone once and until an answer. Their access tokens are signed before
//! the clock starts, about 200 bytes each. How long it takes, what the api role needed for it, and whether exactly the
//! stock was sold.

use super::bar::Bar;
use super::cpu::{CpuMeter, resident_peak_mib};
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use super::{latency, steady_crowd};
use crate::loadgen::{self, LoadPlan};
use seckill::cli::Failure;
use serde_json::json;
use std::sync::Arc;

/// Units of the sale.
const STOCK: u64 = 500;
/// Retries of a buyer after 429, 503 or no answer; more than any sale needs.
const RETRIES: u32 = 1_000;

/// What was sold, by each account of it.
#[derive(Clone, Copy)]
struct Sold {
    expected: u64,
    /// Units that were answered with "accepted".
    accepted: u64,
    /// Units that left Redis' stock.
    redis: i64,
    landed: i64,
    /// Purchases that share a request id with another one.
    doubled: u64,
    /// Buyers without a final answer.
    unresolved: u64,
}

/// One such crowd.
pub(super) async fn crowd(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let sale = environment.sale("crowd", i64::try_from(STOCK).unwrap_or(0), Some(1)).await?;
    let words = spinner.clone();
    let plan = LoadPlan {
        buyers: sizes.users,
        max_retries: RETRIES,
        stop: environment.stop.clone(),
        progress: Some(Arc::new(move |now| words.say(&format!("{} of {} answered", now.finished, now.planned)))),
        ..steady_crowd::crowd(environment, sizes, &sale, spinner)
    };
    let ready = loadgen::prepare(plan).await?;
    let watch = CpuMeter::start(environment);
    let report = ready.run().await?;
    let usage = watch.end();
    environment.drained(&sale, sizes.patience, &|_landed, _sold| {}).await?;
    let (landed, redis) = environment.landed_and_sold(&sale).await?;
    let wrong = complaints(Sold {
        expected: STOCK.min(sizes.users),
        accepted: report.accepted_units,
        redis,
        landed,
        doubled: report.accepted_twice,
        unresolved: report.unresolved,
    });
    let peak = environment.pids().get("api").and_then(|pid| resident_peak_mib(*pid));
    let [p50, p99] = [0.5, 0.99].map(|quantile| latency::ms(report.latency_us.value_at_quantile(quantile)));
    let memory = peak.map_or_else(String::new, |mib| format!(", api at most {mib:.0} MiB resident"));
    let note = format!(
        "{} buyers for {STOCK} units, everyone answered in {:.2} s (tokens signed before), p50 {p50:.1} ms, p99 {p99:.1} ms, {} accepted{memory}{}{}",
        sizes.users,
        seconds(report.elapsed_ms),
        report.accepted,
        if wrong.is_empty() { String::new() } else { format!("; {}", wrong.join("; ")) },
        usage.note()
    );
    let more = json!({
        "users": sizes.users, "stock": STOCK, "crowd": report, "landed_units": landed, "api_peak_mib": peak,
        "p50_ms": p50, "p99_ms": p99, "wall_s": seconds(report.elapsed_ms), "curve": latency::curve(&report.latency_us),
        "complaints": wrong, "cpu": usage.json(),
    });
    let rate = Bar::rate("crowd", report.requests_per_s()).note(note).more(more);
    let exact = Bar::violations("crowd_exact", wrong.len() as u64).note(format!("{landed} ordered of {STOCK}"));
    Ok(vec![rate, exact])
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// Everything that is not as it must be.
fn complaints(sold: Sold) -> Vec<String> {
    let expected = sold.expected;
    let equal = |count: i64| u64::try_from(count) == Ok(expected);
    let rules = [
        (sold.accepted == expected, format!("{} units accepted instead of {expected}", sold.accepted)),
        (equal(sold.redis), format!("redis sold {} units instead of {expected}", sold.redis)),
        (equal(sold.landed), format!("{} units ordered instead of {expected}", sold.landed)),
        (sold.doubled == 0, format!("{} purchases share a request id", sold.doubled)),
        (sold.unresolved == 0, format!("{} buyers never got an answer", sold.unresolved)),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, complaint)| complaint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_account_must_say_the_same() {
        let good = Sold { expected: 500, accepted: 500, redis: 500, landed: 500, doubled: 0, unresolved: 0 };
        assert_eq!(complaints(good), Vec::<String>::new());
        for bad in [
            Sold { accepted: 501, ..good },
            Sold { redis: 499, ..good },
            Sold { landed: 501, ..good },
            Sold { doubled: 1, ..good },
            Sold { unresolved: 1, ..good },
        ] {
            assert_eq!(complaints(bad).len(), 1);
        }
    }
}
