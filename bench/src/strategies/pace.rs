//! How fast a way takes stock, how long a buyer waits for the answer, and whether exactly the stock is sold: as many buyers
//! at once, each with a connection of its own, the same stock, five times as many tries. Only the taking is measured: no
//! HTTP, and except for ours nothing is remembered about who bought.

use super::taker::{Taker, stock_up};
use super::{CROWD, Strategy};
use crate::bar::Bar;
use crate::baseline::redis as ways;
use crate::ground::Ground;
use crate::latency::ms;
use crate::relay::per_s;
use hdrhistogram::Histogram;
use seckill::cli::Failure;
use seckill::store::redis::RedisStore;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Tries for each unit.
const TRIES_PER_UNIT: u64 = 5;

/// What the buyers of one strategy share.
struct Round {
    taker: Taker,
    next: AtomicU64,
    end: u64,
}

/// Measures one; the other figure is how many units it sold too much or too little.
pub(super) async fn one(
    ground: &mut Ground,
    connections: &[RedisStore],
    (name, strategy): (&'static str, Strategy),
    stock: u64,
) -> Result<(Bar, u64), Failure> {
    let tries = stock * TRIES_PER_UNIT;
    let sale = stock_up(ground, strategy, stock).await?;
    let first = ground.numbers(tries);
    let taker = Taker::new(ground.servers.db.clone(), ground.settings.redis.shards, strategy, sale);
    let round = Arc::new(Round { taker, next: AtomicU64::new(first), end: first + tries });
    let begun = Instant::now();
    let mut crew = JoinSet::new();
    for redis in connections {
        crew.spawn(buyers(Arc::clone(&round), redis.clone()));
    }
    let (mut sold, mut latencies) = (0, histogram()?);
    while let Some(done) = crew.join_next().await {
        let (units, took) = done.map_err(|error| Failure::Failed(error.to_string()))??;
        sold += units;
        latencies.add(&took).map_err(|error| Failure::Failed(error.to_string()))?;
    }
    let took = begun.elapsed();
    if let Strategy::Redis(way) = strategy {
        ways::forget(&ground.servers.redis, way, &round.taker.key).await?;
    }
    let (over, under) = (sold.saturating_sub(stock), stock.saturating_sub(sold));
    let p99 = ms(latencies.value_at_quantile(0.99));
    let note = format!(
        "{CROWD} at once, {tries} tries for {stock} units: p99 {p99:.2} ms, oversold {over}, undersold {under}"
    );
    let more =
        json!({ "stock": stock, "tries": tries, "sold": sold, "oversold": over, "undersold": under, "p99_ms": p99 });
    Ok((Bar::rate(name, per_s(tries, took)).note(note).more(more), over + under))
}

fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new(3).map_err(|error| Failure::Failed(error.to_string()))
}

/// Makes room for a value slower than any before.
fn record(latencies: &mut Histogram<u64>, took: Duration) -> Result<(), Failure> {
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
    latencies.record(us).map_err(|error| Failure::Failed(error.to_string()))
}

/// One connection's buyers, one after the other: units they got, and how long each was answered after.
async fn buyers(round: Arc<Round>, redis: RedisStore) -> Result<(u64, Histogram<u64>), Failure> {
    let (mut sold, mut latencies) = (0, histogram()?);
    let step = round.taker.step();
    loop {
        let first = round.next.fetch_add(step, Relaxed);
        if first >= round.end {
            return Ok((sold, latencies));
        }
        let begun = Instant::now();
        let winners = round.taker.take(&redis, first, (first + step).min(round.end)).await?;
        record(&mut latencies, begun.elapsed())?;
        sold += winners.len() as u64;
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
