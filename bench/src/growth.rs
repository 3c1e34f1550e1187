//! `growth`: what one more order costs when there is ten and a hundred times as much of everything: orders in the outbox,
//! buyers and ledger records, stock, sales, shards. Given as a ratio to the smallest size; 1 is linear.
//!
//! At every size the same number of orders goes through the same three steps: reserve (the store's API, the same number
//! of purchases in a call), relay, landing. Their cost is the processor time of all processes together, which says more
//! than time passed on a machine where they share the cores.

use super::bar::Bar;
use super::baseline::redis_info;
use super::cpu::CpuMeter;
use super::environment::{Difference, Environment};
use super::fill::fill;
use super::growth_cost::{GrowthPoint, OrderCost, each, worst};
use super::sizes::{Sizes, Spinner};
use super::{landing, memory, relay, steady_crowd};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::p3_relay::Relay;
use seckill::p5_reconcile::SaleAudit;
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};

/// Most an order may cost at any size, as a multiple of what it costs at the smallest.
const BAR: f64 = 1.5;
/// Most bytes of Redis that may be left of each request of a closed sale.
const BAR_LEFT_BYTES: f64 = 8.0;
/// Longest wait for Redis to give the memory of removed keys back.
const FREED_WITHIN: Duration = Duration::from_secs(30);
const FREED_CHECK: Duration = Duration::from_millis(50);
/// Purchases in one script call, however many shards share the buyers.
const GROUP: u64 = 32;
/// Stock of sales of which something else grows.
const STOCK: i64 = 100_000_000;
/// Units for each order; twice as many as needed, because not every shard gets the same buyers.
const STOCKS: [u64; 4] = [2, 20, 200, 2_000];
const SALES: [usize; 3] = [1, 10, 100];
/// Bounded by `redis.shards`.
const SHARDS: [u16; 3] = [1, 8, 64];

/// Sizes by powers of ten up to `largest`, from 1,000 on; at least three.
fn sizes(largest: u64) -> Vec<u64> {
    let least = (largest / 100).clamp(1, 1_000);
    let mut sizes: Vec<u64> =
        std::iter::successors(Some(largest), |size| Some(size / 10)).take_while(|size| *size >= least).collect();
    sizes.reverse();
    sizes
}

/// Orders that are measured at every size.
fn probe_of(sizes: &Sizes) -> u64 {
    (sizes.entries / 20).clamp(100, 5_000)
}

/// Measures them all. Nothing may be under way, and only the api role may run.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let mut lab = Lab::new(environment, sizes);
    let warm = lab.sale("warm").await?;
    lab.point(0, &[warm], 0).await?;
    let mut bars = lab.orders(spinner).await?;
    spinner.say("stock");
    bars.push(lab.stock().await?);
    spinner.say("sales");
    bars.push(lab.sales().await?);
    bars.extend(shards(lab.environment, sizes, spinner).await?);
    Ok(bars)
}

/// An environment and how much is measured on it.
struct Lab<'a> {
    environment: &'a mut Environment,
    sizes: &'a Sizes,
    probe: u64,
    /// One for everything: what a relay does for each shard when it starts is no cost of an order.
    relayer: Relay,
}

impl<'a> Lab<'a> {
    fn new(environment: &'a mut Environment, sizes: &'a Sizes) -> Self {
        Self { probe: probe_of(sizes), relayer: relay::relayer(environment), environment, sizes }
    }

    async fn sale(&mut self, name: &str) -> Result<SaleId, Failure> {
        self.environment.sale(&format!("growth-{name}"), STOCK, Some(1)).await
    }

    /// The probe's orders on `sales` in turn, through all three steps; `before` orders wait in the outboxes already and
    /// go with them.
    async fn point(&mut self, size: u64, sales: &[SaleId], before: u64) -> Result<GrowthPoint, Failure> {
        let watch = CpuMeter::start_as("seckill", self.environment);
        let mut left = self.probe;
        // Everybody's calls have the same size: the buyers of one round are spread over the shards.
        let round = GROUP * u64::from(self.environment.settings.redis.shards);
        for sale in sales.iter().cycle() {
            let count = left.min(round);
            if count == 0 {
                break;
            }
            fill(self.environment, sale, count).await?;
            left -= count;
        }
        let reserve = OrderCost::of(&watch.end(), self.probe);
        let all = before + self.probe;
        let watch = CpuMeter::start_as("seckill", self.environment);
        relay::empty(self.environment, &mut self.relayer, self.sizes).await?;
        let relay = OrderCost::of(&watch.end(), all);
        let landers = landing::landers(self.environment);
        let watch = CpuMeter::start_as("seckill", self.environment);
        landing::empty(self.environment, landers, all, self.sizes).await?;
        let landing = OrderCost::of(&watch.end(), all);
        Ok(GrowthPoint { size, reserve, relay, landing })
    }

    /// Waits until Redis, which frees big keys beside its other work, has done so.
    async fn freed(&self) -> Result<(), Failure> {
        let deadline = Instant::now() + FREED_WITHIN;
        while redis_info::lazyfree_pending_count(&self.environment.servers.redis).await? > 0
            && Instant::now() < deadline
        {
            self.environment.stop.sleep(FREED_CHECK).await;
        }
        Ok(())
    }

    /// Orders in flight, then the same number of settled ones, and Redis' memory for both.
    async fn orders(&mut self, spinner: &Spinner) -> Result<Vec<Bar>, Failure> {
        let (mut backlogs, mut ledgers, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        // The script refuses behind a backlog of this many.
        let cap = self.environment.settings.p1_entry.backlog_max.saturating_sub(2 * self.probe);
        for size in sizes(self.sizes.entries.min(cap.max(1))) {
            spinner.say(&format!("{size} orders"));
            let sale = self.sale("orders").await?;
            let empty = redis_info::used_memory_bytes(&self.environment.servers.redis).await?;
            fill(self.environment, &sale, size).await?;
            let full = redis_info::used_memory_bytes(&self.environment.servers.redis).await?;
            backlogs.push(self.point(size, std::slice::from_ref(&sale), size).await?);
            ledgers.push(self.point(size, std::slice::from_ref(&sale), 0).await?);
            memory::trim(self.environment, &sale).await?;
            let trimmed = redis_info::used_memory_bytes(&self.environment.servers.redis).await?;
            let settled = size + 2 * self.probe;
            self.environment.archive(&sale).await?;
            self.freed().await?;
            let closed = redis_info::used_memory_bytes(&self.environment.servers.redis).await?;
            bytes.push(Bytes {
                size,
                in_flight: memory::bytes_each(empty, full, size),
                settled: memory::bytes_each(empty, trimmed, settled),
                closed: memory::bytes_each(empty, closed, settled),
            });
        }
        Ok(vec![
            bar("growth_backlog", "orders in the outbox and then in the queue", &backlogs),
            bar("growth_ledger", "buyers and ledger records of the same sale", &ledgers),
            in_flight(&bytes),
            closed(&bytes),
        ])
    }

    /// A sale with more and more stock.
    async fn stock(&mut self) -> Result<Bar, Failure> {
        let mut points = Vec::new();
        for times in STOCKS {
            let stock = times * self.probe;
            let units = i64::try_from(stock).unwrap_or(STOCK);
            let sale = self.environment.sale("growth-stock", units, Some(1)).await?;
            points.push(self.point(stock, &[sale], 0).await?);
        }
        Ok(bar("growth_stock", "units of stock", &points))
    }

    /// More and more sales at once; the orders are spread over all of them.
    async fn sales(&mut self) -> Result<Bar, Failure> {
        let (mut points, mut sales) = (Vec::new(), Vec::new());
        for size in SALES {
            while sales.len() < size {
                sales.push(self.sale("sales").await?);
            }
            points.push(self.point(size as u64, &sales, 0).await?);
        }
        Ok(bar("growth_sales", "sales, bought from in turn", &points))
    }
}

/// More and more shards on one server. How many there are is part of the setup, so each has an environment of its own, which
/// is audited before it goes.
async fn shards(environment: &Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Vec<Bar>, Failure> {
    let (mut points, mut wrong) = (Vec::new(), 0);
    for count in SHARDS {
        spinner.say(&format!("{count} shards"));
        let Some(mut other) = environment.another(Difference::Settings(&[&format!("redis.shards={count}")])).await?
        else {
            return Ok(Vec::new());
        };
        let measured = on_shards(&mut other, sizes, spinner).await;
        let audits = super::audit(&mut other, sizes).await;
        other.leave().await?;
        points.push(measured?);
        wrong += audits?.iter().filter(|audit| !SaleAudit::consistent(audit)).count() as u64;
    }
    let note = "sales on those grounds that did not add up".to_owned();
    let bar = bar("growth_shards", "shards on one server", &points);
    Ok(vec![bar, Bar::violations("growth_shards_exact", wrong).note(note)])
}

async fn on_shards(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<GrowthPoint, Failure> {
    // The first purchase through the api is what puts the script into Redis.
    steady_crowd::warm_up(environment, sizes, spinner).await?;
    environment.settle(sizes.patience, spinner).await?;
    environment.api_only().await?;
    let shards = environment.settings.redis.shards;
    let mut lab = Lab::new(environment, sizes);
    let sale = lab.sale("shards").await?;
    // Once to warm up, once to measure.
    lab.point(0, std::slice::from_ref(&sale), 0).await?;
    lab.point(shards.into(), &[sale], 0).await
}

/// The highest ratio of any step at any size to the smallest.
fn bar(name: &'static str, what: &str, points: &[GrowthPoint]) -> Bar {
    let (ratio, step) = worst(points);
    let words: Vec<String> = points.iter().map(GrowthPoint::words).collect();
    let note = format!(
        "dearest step of an order ({step}) against the smallest size; µs of processor for reserve + relay + landing by {what}: {}",
        words.join(", ")
    );
    Bar::of(name, ratio, "× smallest").at_most(BAR).note(note).more(json!({ "points": points }))
}

/// Redis' bytes a request.
#[derive(Debug, Clone, Copy, Serialize)]
struct Bytes {
    size: u64,
    /// Accepted and not relayed: outbox, ledger, buyer.
    in_flight: f64,
    /// Landed and trimmed: buyer.
    settled: f64,
    /// The sale is closed, and P5 has removed its keys.
    closed: f64,
}

fn in_flight(bytes: &[Bytes]) -> Bar {
    let smallest = bytes.first().map_or(0.0, |first| first.in_flight);
    let ratio = bytes.iter().map(|one| each(one.in_flight, smallest)).fold(0.0, f64::max);
    let words: Vec<String> =
        bytes.iter().map(|one| format!("{}: {:.0} and {:.0}", one.size, one.in_flight, one.settled)).collect();
    let note = format!("Redis' bytes a request in flight, and landed and trimmed (its buyer): {}", words.join(", "));
    Bar::of("growth_memory", ratio, "× smallest").at_most(BAR).note(note).more(json!({ "points": bytes }))
}

/// Of the largest size, where what Redis needs anyway weighs least.
fn closed(bytes: &[Bytes]) -> Bar {
    let left = bytes.last().map_or(f64::INFINITY, |last| last.closed);
    let note = "Redis' bytes of each request after its sale was closed and archived, at the largest size".to_owned();
    Bar::of("growth_memory_closed", left, "B/request").at_most(BAR_LEFT_BYTES).note(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_by_tens() {
        assert_eq!(sizes(100_000), [1_000, 10_000, 100_000]);
        assert_eq!(sizes(1_000_000), [1_000, 10_000, 100_000, 1_000_000]);
        assert_eq!((sizes(2_000), sizes(1)), (vec![20, 200, 2_000], vec![1]));
    }

    fn at(in_flight: f64, closed: f64) -> Bytes {
        Bytes { size: 1, in_flight, settled: 20.0, closed }
    }

    #[test]
    fn a_size_at_which_a_request_takes_more_memory_misses_the_bar() {
        let of = |bytes: &[f64]| in_flight(&bytes.iter().map(|bytes| at(*bytes, 0.0)).collect::<Vec<_>>()).holds;
        assert_eq!([of(&[400.0, 590.0]), of(&[400.0, 610.0, 400.0])], [Some(true), Some(false)]);
        assert_eq!([7.0, 9.0].map(|left| closed(&[at(400.0, 0.0), at(400.0, left)]).holds), [Some(true), Some(false)]);
        assert_eq!(closed(&[]).holds, Some(false), "nothing was measured");
    }
}
