//! `landing`: P4's own code empties a full order queue. The baselines write into the same tables of the same database with
//! the same durability: one plain transaction an order on 16 connections, and bare multi-row INSERTs with one UPDATE.

use super::bar::Bar;
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::relay::per_s;
use super::sizes::Sizes;
use crate::baseline::mysql::{self, BaselineRun};
use seckill::cli::Failure;
use seckill::config::Settings;
use seckill::domain::fault::{Fault, Progress};
use seckill::domain::ids::SaleId;
use seckill::p4_persist::Persist;
use seckill::roles::RoleError;
use seckill::runtime::{Stopper, Worker, now_ms};
use seckill::store::mysql::{DatabaseAddress, Db, DbConfig};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The least ratio to one transaction an order.
const BAR_PLAIN: f64 = 12.0;
/// The least ratio to bare multi-row INSERTs.
const BAR_ROWS: f64 = 0.9;
/// Connections of the baseline with one transaction an order.
pub(super) const CONNECTIONS: usize = 16;
/// Orders in a transaction of the multi-row baseline: the consumer's group size, within these bounds.
const ROWS: (usize, usize) = (200, 500);
/// More than a baseline can sell.
const STOCK: i64 = 1_000_000_000;
/// Request ids set aside for one baseline; more than it can write.
const IDS: u64 = 20_000_000;

/// P4 as the role runs it.
pub(super) fn landers(environment: &Environment) -> Vec<Persist> {
    let servers = &environment.servers;
    Persist::writers(
        &servers.rows.of_persist(),
        &servers.redis.ledger,
        &servers.rabbit,
        &environment.settings.p4_persist,
    )
}

/// What the writers have done together.
#[derive(Default)]
struct PersistedOrders {
    orders: AtomicU64,
    /// Orders done and the time, when the first step (which connects) had moved some.
    first: OnceLock<(u64, Instant)>,
}

/// Steps the writers until `count` orders are done. Returns how many the first step did and the time from its end to the
/// last acknowledgement.
pub(super) async fn empty(
    environment: &Environment,
    landers: Vec<Persist>,
    count: u64,
    sizes: &Sizes,
) -> Result<(u64, Duration), Failure> {
    let (done, until) = (Arc::new(PersistedOrders::default()), Instant::now() + sizes.patience);
    let mut crew = JoinSet::new();
    for lander in landers {
        crew.spawn(one(lander, done.clone(), count, until, environment.stop.clone()));
    }
    while let Some(ended) = crew.join_next().await {
        ended.map_err(|error| Failure::Failed(error.to_string()))??;
    }
    environment.go_on()?;
    let orders = done.orders.load(Relaxed);
    if orders < count {
        let patience_s = sizes.patience.as_secs();
        return Err(Failure::Failed(format!("{orders} of {count} orders landed within {patience_s} s")));
    }
    let (first, since) = done.first.get().copied().unwrap_or((0, Instant::now()));
    Ok((first, since.elapsed()))
}

async fn one(
    mut lander: Persist,
    done: Arc<PersistedOrders>,
    count: u64,
    until: Instant,
    stop: Stopper,
) -> Result<(), Fault> {
    while done.orders.load(Relaxed) < count && Instant::now() < until && !stop.is_stopped() {
        let Progress::Moved(moved) = lander.step().await? else { continue };
        let moved = u64::try_from(moved).unwrap_or(0);
        let all = done.orders.fetch_add(moved, Relaxed) + moved;
        done.first.get_or_init(|| (all, Instant::now()));
    }
    // The last group is acknowledged now.
    lander.drain().await;
    Ok(())
}

/// Empties the queue, which holds `sizes.entries` orders of `sale`, and with `compared` measures the baselines.
pub(super) async fn measure(
    environment: &mut Environment,
    sale: &SaleId,
    sizes: &Sizes,
    compared: bool,
) -> Result<Vec<Bar>, Failure> {
    let watch = CpuMeter::start_as("consumer", environment);
    let (first, took) = empty(environment, landers(environment), sizes.entries, sizes).await?;
    let usage = watch.end();
    if !compared {
        return Ok(Vec::new());
    }
    let (landed, sold) = environment.landed_and_sold(sale).await?;
    let rate = per_s(sizes.entries - first, took);
    let group = environment.settings.p4_persist.group_max;
    let rows_group = u32::try_from(group.clamp(ROWS.0, ROWS.1)).unwrap_or(500);
    let plain = one_transaction_an_order(environment, sizes).await?;
    let begun = Instant::now();
    let bare = baseline_sale(environment, "bare-rows", sizes).await?;
    let rows = mysql::rows(&environment.servers.db, &bare, rows_group).await?;
    let rows = per_s(rows, begun.elapsed());
    mysql::book(&environment.servers.db, &bare.sale).await?;
    let more = json!({
        "orders": sizes.entries, "landed_units": landed, "sold_units": sold, "took_ms": took.as_millis(),
        "group_max": group, "cpu": usage.json(),
    });
    let missing = if landed == sold { String::new() } else { format!("; ONLY {landed} of {sold} landed") };
    let note = format!(
        "{} orders, groups of up to {group}{missing}; one transaction an order beside it{}",
        sizes.entries,
        usage.note()
    );
    let against_rows = format!("against INSERTs of {rows_group} rows, outcomes and orders, with one UPDATE");
    Ok(vec![
        Bar::rate("landing", rate).against(Some(plain), BAR_PLAIN).note(note).more(more),
        Bar::rate("landing_rows", rate).against(Some(rows), BAR_ROWS).note(against_rows),
    ])
}

/// Orders a second of one plain transaction each, on 16 connections: what a system without Redis and broker does.
pub(super) async fn one_transaction_an_order(environment: &mut Environment, sizes: &Sizes) -> Result<f64, Failure> {
    let db = pool(&environment.settings, CONNECTIONS)?;
    // The connections are made before the clock starts.
    let warm = BaselineRun {
        until: Instant::now() + sizes.lasting / 10,
        ..baseline_sale(environment, "bare-warm", sizes).await?
    };
    mysql::one_by_one(&db, &warm, CONNECTIONS).await?;
    mysql::book(&db, &warm.sale).await?;
    let bare = baseline_sale(environment, "bare-plain", sizes).await?;
    let begun = Instant::now();
    let committed = mysql::one_by_one(&db, &bare, CONNECTIONS).await?;
    let rate = per_s(committed, begun.elapsed());
    mysql::book(&environment.servers.db, &bare.sale).await?;
    Ok(rate)
}

/// A pool of `connections`, for a writer that is not the product.
pub(super) fn pool(settings: &Settings, connections: usize) -> Result<Db, Failure> {
    let mysql = &settings.mysql;
    Ok(Db::connect(DbConfig {
        address: DatabaseAddress::new(mysql).map_err(RoleError::from)?,
        pool_max: connections,
        wait_timeout_ms: mysql.pool_wait_ms,
        connect_timeout_ms: mysql.connect_timeout_ms,
        statement_timeout_ms: mysql.statement_timeout_ms,
    })?)
}

const FAR_AHEAD_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

async fn baseline_sale(environment: &mut Environment, name: &str, sizes: &Sizes) -> Result<BaselineRun, Failure> {
    // Far ahead: the api role warms up what begins soon, and these orders are none that Redis accepted.
    let sale = environment.draft(name, STOCK, Some(1), FAR_AHEAD_MS).await?.sale_id;
    let above = environment.numbers(IDS);
    Ok(BaselineRun { sale, above, until: Instant::now() + sizes.lasting, at_ms: now_ms() })
}
