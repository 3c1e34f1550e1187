//! `line`: an open loop of buyers who enter a raffle, 2,000 a second, each once and answered when the entry is in the database; then its draw,
//! with units for half of them, and what the offers cost.
//!
//! Nothing else runs on the servers. A crash leaves what a private environment leaves.

use super::bar::Bar;
use super::cost::us_of;
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::Environment;
use super::latency::{ms, warmed};
use super::sizes::{Sizes, Spinner};
use crate::loadgen::{self, LoadPlan};
use seckill::cli::Failure;
use serde_json::json;
use std::time::{Duration, Instant};

/// Entries a second.
const PER_S: f64 = 2_000.0;
/// Longest wait for the draw and its offers.
const PATIENCE: Duration = Duration::from_secs(300);

/// Processor time of these processes together.
fn seconds(usage: &CpuUsage, of: &[&str]) -> f64 {
    of.iter().filter_map(|name| usage.seconds.get(*name)).sum()
}

/// Both bars, or three.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let crowd = |environment: &Environment, sale: &_| warmed(environment, sizes, sale, PER_S, spinner);
    let planned = {
        let probe = environment.raffle("line-size", 1).await?;
        crowd(environment, &probe).buyers
    };
    let units = i64::try_from(planned / 2).unwrap_or(i64::MAX).max(1);
    let sale = environment.raffle("line", units).await?;
    let ready = loadgen::prepare(LoadPlan { enters_line: true, ..crowd(environment, &sale) }).await?;
    let watch = CpuMeter::start(environment);
    let (report, usage) = (ready.run().await?, watch.end());
    let at = |quantile| ms(report.latency_us.value_at_quantile(quantile));
    let note = format!(
        "p99 to the answer of {:.0} entries/s ({PER_S:.0} wanted), each committed, from the time it was due; p50 {:.2}, p99.9 {:.2}, max \
         {:.2} ms; {} entered{}",
        report.requests_per_s(),
        at(0.5),
        at(0.999),
        at(1.0),
        report.accepted,
        usage.note()
    );
    let more = json!({ "accepted": report.accepted, "answers": report.by_status, "cpu": usage.json() });
    let mut bars = vec![Bar::of("line_entries", at(0.99), "ms").note(note).more(more)];
    let cost = us_of(seconds(&usage, &["api", "mysql"]), report.accepted);
    bars.extend(cost.map(|us| {
        Bar::of("cost_entry", us, "µs").note("processor time of the api role and the database, for an entry".to_owned())
    }));

    spinner.say("the draw and its offers");
    let watch = CpuMeter::start(environment);
    environment.close_line(&sale).await?;
    environment.all_roles().await?;
    let began = Instant::now();
    let wanted = units.min(i64::try_from(report.accepted).unwrap_or(i64::MAX));
    let all_landed = async || Ok(environment.landed_and_sold(&sale).await?.0 >= wanted);
    let landed = environment.until(PATIENCE, all_landed).await?;
    let (took, usage) = (began.elapsed(), watch.end());
    let offered = u64::try_from(environment.landed_and_sold(&sale).await?.0).unwrap_or_default();
    let rest = if landed { "" } else { "; NOT ALL OFFERED in time" };
    let note = format!(
        "{offered} offers and their orders {:.1} s after the close, the draw among them; processor time of all servers and roles, for an \
         offer and its order{rest}{}",
        took.as_secs_f64(),
        usage.note()
    );
    let all = ["api", "relay", "consumer", "reconcile", "redis", "rabbitmq", "mysql"];
    let cost = us_of(seconds(&usage, &all), offered);
    let more = json!({ "offered": offered, "took_s": took.as_secs_f64(), "cpu": usage.json() });
    bars.extend(cost.map(|us| Bar::of("cost_offer", us, "µs").note(note).more(more)));
    Ok(bars)
}
