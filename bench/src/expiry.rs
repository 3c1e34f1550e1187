//! `expiry` (L2): what an order costs that nobody paid, against landing it; and what buyers notice while such orders expire.
//!
//! The orders land through the product's own steps. Their deadlines are set to one moment in the near future, so that the roles
//! are at rest when it comes and everything measured from then on is expiry: transactions, grants to Redis, events to the broker.

use super::bar::Bar;
use super::baseline::mysql_unpaid;
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::fill::fill;
use super::growth_cost::OrderCost;
use super::latency::{self, ms};
use super::sizes::{Sizes, Spinner};
use super::{landing, relay};
use crate::loadgen;
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::domain::order_life::PaymentTerms;
use serde_json::json;
use std::time::{Duration, Instant};

/// Most an order may cost as a multiple of what landing it cost.
const BAR: f64 = 1.0;
/// More units than are bought.
const STOCK: i64 = 100_000_000;
/// Purchases a second of the crowd whose answers are timed.
const CROWD_PER_S: f64 = 500.0;
/// Longer than everything here takes: the deadlines are set by hand.
const TERMS: PaymentTerms = PaymentTerms { pay_within_s: 86_400, pay_grace_s: 0, limit_returns: false };
/// Until the deadline: setting it takes a while.
const AHEAD_S: u64 = 10;
const PER_AHEAD_S: u64 = 50_000;
const LOOK: Duration = Duration::from_millis(100);

/// Measures both. Nothing may be under way, and only the api role may run.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let count = sizes.entries;
    let (alone, landed) = landed_unpaid(environment, sizes, count, spinner).await?;
    let (busy, _) = landed_unpaid(environment, sizes, count, spinner).await?;
    environment.all_roles().await?;
    let quiet = timed_crowd(environment, sizes, spinner).await?;

    spinner.tell("orders expire");
    overdue_at_once(environment, &alone, count).await?;
    let (watch, begun) = (CpuMeter::start(environment), Instant::now());
    expired(environment, &alone, sizes).await?;
    let (usage, took) = (watch.end(), begun.elapsed());
    let cost = OrderCost::of(&usage, count);

    spinner.tell("orders expire beside a crowd");
    overdue_at_once(environment, &busy, count).await?;
    let beside = timed_crowd(environment, sizes, spinner).await?;
    let left = mysql_unpaid::count(&environment.servers.db, &busy).await?;
    expired(environment, &busy, sizes).await?;

    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let per_s = count as f64 / took.as_secs_f64().max(0.001);
    let note = format!(
        "processor time of all processes for an order that expires, against landing it (reserve aside); {count} orders in {:.1} s, \
         {per_s:.0}/s (p6_fulfil.rate_per_s bounds it){}",
        took.as_secs_f64(),
        usage.note()
    );
    let more = json!({ "orders": count, "took_ms": took.as_millis(), "expired_per_s": per_s, "landing_us": landed.cpu_us,
        "by_process_us": cost.by_process_us, "landing_by_process_us": landed.by_process_us });
    let beside_note = format!(
        "p99 to the answer of {CROWD_PER_S:.0} purchases/s while orders expire: {:.2} ms, without: {:.2} ms; {left} orders were \
         still unpaid at the end of the crowd",
        beside.1, quiet.1
    );
    let curves = json!({ "quiet_p50_ms": quiet.0, "quiet_p99_ms": quiet.1, "beside_p50_ms": beside.0, "beside_p99_ms": beside.1 });
    Ok(vec![
        Bar::of("expiry", cost.cpu_us, "µs").cost_against(Some(landed.cpu_us), BAR).note(note).more(more),
        Bar::of("expiry_latency", beside.1, "ms").beside(Some(quiet.1)).note(beside_note).more(curves),
    ])
}

/// `count` orders of a sale with a payment step, and what landing one cost (relay and consumer).
async fn landed_unpaid(
    environment: &mut Environment,
    sizes: &Sizes,
    count: u64,
    spinner: &Spinner,
) -> Result<(SaleId, OrderCost), Failure> {
    spinner.tell("orders land");
    environment.api_only().await?;
    let sale = environment.paying_sale("expiry", STOCK, TERMS).await?;
    let mut relayer = relay::relayer(environment);
    fill(environment, &sale, count).await?;
    let landers = landing::landers(environment);
    let watch = CpuMeter::start_as("seckill", environment);
    relay::empty(environment, &mut relayer, sizes).await?;
    landing::empty(environment, landers, count, sizes).await?;
    Ok((sale, OrderCost::of(&watch.end(), count)))
}

/// Sets the deadline of all orders to one moment, and waits for it.
async fn overdue_at_once(environment: &Environment, sale: &SaleId, count: u64) -> Result<(), Failure> {
    let ahead = AHEAD_S + count / PER_AHEAD_S;
    let begun = Instant::now();
    mysql_unpaid::due_in(&environment.servers.db, sale, ahead).await?;
    environment.stop.sleep(Duration::from_secs(ahead).saturating_sub(begun.elapsed())).await;
    environment.go_on()
}

/// Waits until no order is unpaid and Redis has every unit back.
async fn expired(environment: &Environment, sale: &SaleId, sizes: &Sizes) -> Result<(), Failure> {
    let until = Instant::now() + sizes.patience;
    loop {
        environment.go_on()?;
        if mysql_unpaid::count(&environment.servers.db, sale).await? == 0 {
            let mut units = 0;
            for shard in 0..environment.settings.redis.shards {
                units += environment.servers.redis.stock.units(sale, shard).await?.unwrap_or(0);
            }
            if units == STOCK {
                return Ok(());
            }
        }
        if Instant::now() > until {
            return Err(Failure::Failed(format!(
                "orders of {sale} did not expire within {} s",
                sizes.patience.as_secs()
            )));
        }
        environment.stop.sleep(LOOK).await;
    }
}

/// p50 and p99 to the answer of a crowd on another sale, ms.
async fn timed_crowd(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<(f64, f64), Failure> {
    let sale = environment.sale("expiry-crowd", STOCK, None).await?;
    let report = loadgen::run(latency::warmed(environment, sizes, &sale, CROWD_PER_S, spinner)).await?;
    environment.drained(&sale, sizes.patience, &|_landed, _sold| {}).await?;
    let [p50, p99] = [0.5, 0.99].map(|quantile| ms(report.latency_us.value_at_quantile(quantile)));
    Ok((p50, p99))
}
