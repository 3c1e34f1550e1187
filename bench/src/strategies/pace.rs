//! How fast a strategy takes stock, how long a buyer waits for the answer, how often a try meets a conflict, and whether
//! exactly the stock is sold: the same number of buyers at once, each with a connection of its own, the same stock, five
//! times as many tries. Only the taking is measured: no HTTP, and except for ours and the schemes with events nothing is
//! remembered about who bought. What publishes events begins when the last buyer is answered, and is measured by itself.

use super::messages::{EventDispatcher, HalfMessageSender, MessageScheme, SharedProducer};
use super::taker::{Taker, stock_up, stores};
use super::{CROWD, StockStrategy};
use crate::bar::Bar;
use crate::baseline::redis as redis_strategies;
use crate::environment::Environment;
use crate::latency::ms;
use crate::relay::per_s;
use hdrhistogram::Histogram;
use seckill::cli::Failure;
use seckill::store::redis::RedisStore;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Tries for each unit.
const TRIES_PER_UNIT: u64 = 5;

/// What the buyers of one strategy share.
struct SellingRound {
    taker: Taker,
    next: AtomicU64,
    end: u64,
}

#[derive(Debug, Clone, Copy)]
struct RoundSize {
    stock: u64,
    tries: u64,
}

/// What buyers came to.
struct RoundResult {
    sold: u64,
    retries: u64,
    latencies: Histogram<u64>,
}

impl RoundResult {
    fn new() -> Result<Self, Failure> {
        Ok(Self { sold: 0, retries: 0, latencies: histogram()? })
    }

    fn add(&mut self, other: &Self) -> Result<(), Failure> {
        self.sold += other.sold;
        self.retries += other.retries;
        self.latencies.add(&other.latencies).map_err(|error| Failure::Failed(error.to_string()))
    }
}

/// Measures one; the other figure is how many units it sold too much or too little. `stock` is followed by the longest wait
/// for events.
pub(super) async fn one(
    environment: &mut Environment,
    connections: &[RedisStore],
    (name, strategy): (&'static str, StockStrategy),
    (stock, patience): (u64, Duration),
) -> Result<(Bar, u64), Failure> {
    let tries = stock * TRIES_PER_UNIT;
    let sale = stock_up(environment, strategy, stock).await?;
    let first = environment.numbers(tries);
    let stores = stores(environment, &sale);
    let taker = Taker::new(environment.servers.db.clone(), environment.settings.redis.shards, strategy, sale);
    let (halves, publishing) = match strategy.scheme() {
        Some(MessageScheme::HalfMessage) => {
            let (producer, publishing) = SharedProducer::connect(&stores.rabbit).await?;
            (Some(HalfMessageSender { stores: stores.clone(), producer, stops: None }), Some(publishing))
        }
        Some(MessageScheme::Outbox) | None => (None, None),
    };
    let round =
        Arc::new(SellingRound { taker: taker.with_halves(halves), next: AtomicU64::new(first), end: first + tries });
    let begun = Instant::now();
    let mut crew = JoinSet::new();
    for redis in connections {
        crew.spawn(buyers(Arc::clone(&round), redis.clone()));
    }
    let mut result = RoundResult::new()?;
    while let Some(done) = crew.join_next().await {
        result.add(&done.map_err(|error| Failure::Failed(error.to_string()))??)?;
    }
    let took = begun.elapsed();
    if let StockStrategy::Redis(redis) = strategy {
        redis_strategies::forget(&environment.servers.redis, redis, &round.taker.key).await?;
    }
    drop(round);
    if let Some(publishing) = publishing {
        publishing.await.map_err(|error| Failure::Failed(error.to_string()))??;
    }
    let events = match strategy.scheme() {
        Some(scheme) => {
            let (events, took) = EventDispatcher::start(scheme, stores.clone()).await?.drain(patience).await?;
            stores.take_events(patience).await?;
            Some((events, per_s(events, took)))
        }
        None => None,
    };
    Ok(bar((name, strategy), RoundSize { stock, tries }, &result, (took, events)))
}

#[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
fn bar(
    (name, strategy): (&'static str, StockStrategy),
    RoundSize { stock, tries }: RoundSize,
    result: &RoundResult,
    (took, events): (Duration, Option<(u64, f64)>),
) -> (Bar, u64) {
    let RoundResult { sold, retries, latencies } = result;
    let (over, under) = (sold.saturating_sub(stock), stock.saturating_sub(*sold));
    let [p50, p99] = [0.5, 0.99].map(|quantile| ms(latencies.value_at_quantile(quantile)));
    let retries = strategy.has_retries().then_some(*retries);
    let retry_rate = retries.map(|retries| retries as f64 / tries.max(1) as f64);
    let note = format!(
        "{CROWD} at once, {tries} tries for {stock} units: p99 {p99:.2} ms, oversold {over}, undersold {under}"
    );
    let mut more = json!({
        "stock": stock, "tries": tries, "sold": sold, "oversold": over, "undersold": under, "p50_ms": p50, "p99_ms": p99,
        "retries": retries, "retry_rate": retry_rate,
    });
    if let (Some((events, events_per_s)), Value::Object(more)) = (events, &mut more) {
        more.insert("events".to_owned(), json!(events));
        more.insert("events_per_s".to_owned(), json!(events_per_s));
    }
    (Bar::rate(name, per_s(tries, took)).note(note).more(more), over + under)
}

fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new(3).map_err(|error| Failure::Failed(error.to_string()))
}

/// Makes room for a value slower than any before.
fn record(latencies: &mut Histogram<u64>, took: Duration) -> Result<(), Failure> {
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    latencies.record(us).map_err(|error| Failure::Failed(error.to_string()))
}

/// One connection's buyers, one after the other.
async fn buyers(round: Arc<SellingRound>, redis: RedisStore) -> Result<RoundResult, Failure> {
    let mut result = RoundResult::new()?;
    let step = round.taker.step();
    loop {
        let first = round.next.fetch_add(step, Relaxed);
        if first >= round.end {
            return Ok(result);
        }
        let begun = Instant::now();
        let taken = round.taker.take(&redis, first, (first + step).min(round.end)).await?;
        record(&mut result.latencies, begun.elapsed())?;
        result.sold += taken.winners.len() as u64;
        result.retries += taken.retries;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_answers_are_not_cut() {
        let mut latencies = histogram().unwrap();
        for ms in [1, 50, 3_000] {
            record(&mut latencies, Duration::from_millis(ms)).unwrap();
        }
        assert!((ms(latencies.value_at_quantile(1.0)) - 3_000.0).abs() < 3.0);
    }
}
