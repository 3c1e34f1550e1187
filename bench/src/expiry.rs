//! `expiry` (L2): what an order costs that was not paid, against landing it; and what buyers notice while such orders expire.
//!
//! The orders land through the product's own steps, with the api role alone beside them, so that no process expires them: when the
//! other roles start, the deadlines of all have passed, and everything measured from then on is expiry: transactions, grants to
//! Redis, events to the broker, the start of these roles, and what they do anyway.

use super::bar::Bar;
use super::baseline::mysql_unpaid;
use super::cpu::{CpuMeter, CpuUsage};
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
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Most an order may cost as a multiple of what landing it cost.
const BAR: f64 = 1.0;
/// More units than are bought.
const STOCK: i64 = 100_000_000;
/// Orders that lie in the outboxes at a time, at most; the script refuses at `p1_entry.backlog_max`.
const PIECE: u64 = 250_000;
/// Purchases a second of the crowd whose answers are timed.
const CROWD_PER_S: f64 = 500.0;
/// Orders that expire beside the crowd, at most: they only have to outlast it.
const BESIDE_MAX: u64 = 200_000;
/// Short, so that landing them takes longer; the rest is waited for.
const SHORT: PaymentTerms = PaymentTerms { pay_within_s: 20, pay_grace_s: 0, limit_returns: false };
/// Longer than everything here takes: the deadlines are set by hand.
const LONG: PaymentTerms = PaymentTerms { pay_within_s: 86_400, pay_grace_s: 0, limit_returns: false };
/// Until the deadline: setting it takes a while.
const AHEAD_S: u64 = 10;
const PER_AHEAD_S: u64 = 20_000;
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// How long the roles are measured when nothing is to be done.
const AT_REST: Duration = Duration::from_secs(10);

/// What was measured while orders expired.
struct Expired {
    orders: u64,
    took: Duration,
    usage: CpuUsage,
    /// Of all roles and servers at rest, µs of processor time a second.
    at_rest_us: f64,
}

/// Measures both. Nothing may be under way, and only the api role may run.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let (sale, landed) = landed_unpaid(environment, sizes, (sizes.entries, SHORT), spinner).await?;
    spinner.say("deadlines pass");
    while mysql_unpaid::last_due_in_s(&environment.servers.db, &sale).await? >= 0 {
        environment.go_on()?;
        environment.stop.sleep(Duration::from_secs(1)).await;
    }
    spinner.say("orders expire");
    let (watch, begun) = (CpuMeter::start(environment), Instant::now());
    environment.all_roles().await?;
    returned(environment, &sale, sizes).await?;
    let (usage, took) = (watch.end_with_started(environment), begun.elapsed());
    spinner.say("roles at rest");
    environment.settle(sizes.patience, spinner).await?;
    let watch = CpuMeter::start(environment);
    environment.stop.sleep(AT_REST).await;
    let at_rest_us = watch.end().seconds.values().sum::<f64>() * 1e6 / AT_REST.as_secs_f64();
    let cost = cost_bar(&Expired { orders: sizes.entries, took, usage, at_rest_us }, &landed);
    Ok(vec![cost, beside(environment, sizes, spinner).await?])
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn cost_bar(expired: &Expired, landed: &OrderCost) -> Bar {
    let Expired { orders, took, usage, at_rest_us } = expired;
    let cost = OrderCost::of(usage, *orders);
    let per_s = *orders as f64 / took.as_secs_f64().max(0.001);
    let at_rest_each_us = at_rest_us * took.as_secs_f64() / (*orders).max(1) as f64;
    let note = format!(
        "processor time of all processes for an order that expires, against landing it (relay and consumer; reserve aside); \
         {orders} orders in {:.1} s, {per_s:.0}/s (p6_fulfil.rate_per_s bounds it); {at_rest_each_us:.1} µs more are what the \
         processes need in that time when nothing is to be done{}",
        took.as_secs_f64(),
        usage.note()
    );
    let more = json!({ "orders": orders, "took_ms": took.as_millis(), "expired_per_s": per_s, "landing_us": landed.cpu_us,
        "by_process_us": cost.by_process_us, "landing_by_process_us": landed.by_process_us, "at_rest_us": at_rest_each_us,
        "with_rest_us": cost.cpu_us,
        "cpu": usage.json() });
    // An order costs what it adds. How long the roles run for it is the limit's choice.
    Bar::of("expiry", cost.cpu_us - at_rest_each_us, "µs").cost_against(Some(landed.cpu_us), BAR).note(note).more(more)
}

/// What a crowd on another sale notices of orders that expire.
async fn beside(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Bar, Failure> {
    spinner.say("a crowd alone");
    let quiet = timed_crowd(environment, sizes, spinner).await?;
    let count = sizes.entries.min(BESIDE_MAX);
    let (sale, _) = landed_unpaid(environment, sizes, (count, LONG), spinner).await?;
    environment.all_roles().await?;
    spinner.say("orders expire beside a crowd");
    overdue_at_once(environment, &sale, count).await?;
    let beside = timed_crowd(environment, sizes, spinner).await?;
    let left = mysql_unpaid::count(&environment.servers.db, &sale).await?;
    returned(environment, &sale, sizes).await?;
    let note = format!(
        "p99 to the answer of {CROWD_PER_S:.0} purchases/s while {count} orders expire: {:.2} ms, without: {:.2} ms; {left} \
         orders were still unpaid when the crowd's own orders had landed",
        beside.1, quiet.1
    );
    let more: Value = json!({ "orders": count, "unpaid_at_the_end": left, "quiet_p50_ms": quiet.0, "quiet_p99_ms": quiet.1,
        "beside_p50_ms": beside.0, "beside_p99_ms": beside.1 });
    Ok(Bar::of("expiry_latency", beside.1, "ms").beside(Some(quiet.1)).note(note).more(more))
}

/// Orders of a sale with a payment step, and what landing one cost (relay and consumer).
async fn landed_unpaid(
    environment: &mut Environment,
    sizes: &Sizes,
    (count, terms): (u64, PaymentTerms),
    spinner: &Spinner,
) -> Result<(SaleId, OrderCost), Failure> {
    spinner.say("orders land");
    environment.api_only().await?;
    let sale = environment.paying_sale("expiry", STOCK, terms).await?;
    let mut relayer = relay::relayer(environment);
    let mut cost = OrderCost::default();
    let mut left = count;
    while left > 0 {
        let piece = left.min(PIECE);
        fill(environment, &sale, piece).await?;
        let landers = landing::landers(environment);
        let watch = CpuMeter::start_as("seckill", environment);
        relay::empty(environment, &mut relayer, sizes).await?;
        landing::empty(environment, landers, piece, sizes).await?;
        cost.add(&OrderCost::of(&watch.end(), count));
        left -= piece;
    }
    Ok((sale, cost))
}

/// Sets the deadline of all orders to one moment, and waits for it.
async fn overdue_at_once(environment: &Environment, sale: &SaleId, count: u64) -> Result<(), Failure> {
    let ahead = AHEAD_S + count / PER_AHEAD_S;
    let begun = Instant::now();
    mysql_unpaid::due_in(&environment.servers.db, sale, ahead).await?;
    environment.stop.sleep(Duration::from_secs(ahead).saturating_sub(begun.elapsed())).await;
    environment.go_on()
}

/// Waits until every order has expired, Redis has every unit back and the broker every event. What has moved lately is waited for.
async fn returned(environment: &Environment, sale: &SaleId, sizes: &Sizes) -> Result<(), Failure> {
    let (mut moved, mut last) = (Instant::now(), 0);
    loop {
        environment.go_on()?;
        let stock = mysql_unpaid::stock(&environment.servers.db, sale).await?;
        let mut units = 0;
        for shard in 0..environment.settings.redis.shards {
            units += environment.servers.redis.stock.units(sale, shard).await?.unwrap_or(0);
        }
        let is_back = (stock, units) == (STOCK, STOCK);
        if is_back && mysql_unpaid::event_waits(&environment.servers.db, sale).await? == 0 {
            return Ok(());
        }
        // Events follow the units within moments; while they do not, patience runs.
        if std::mem::replace(&mut last, stock + units) != stock + units {
            moved = Instant::now();
        }
        if moved.elapsed() > sizes.patience {
            let patience_s = sizes.patience.as_secs();
            return Err(Failure::Failed(format!("no order of {sale} expired for {patience_s} s")));
        }
        environment.stop.sleep(CHECK_EVERY).await;
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
