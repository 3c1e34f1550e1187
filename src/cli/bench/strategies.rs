//! `strategies`: the field's ways to take stock, side by side on the same servers: as many buyers at once, each with a
//! connection of its own, the same stock, five times as many tries. Only the taking is measured: no HTTP, and except for
//! ours nothing is remembered about who bought. Units sold too much and too little are counted; of our own ways none may be.
//! What an acknowledged sale survives (kill -9, power cuts) is not measured here.

use super::super::Failure;
use super::bar::Bar;
use super::fill::purchase;
use super::ground::Ground;
use super::latency::ms;
use super::relay::per_s;
use super::scale::{Scale, Spinner};
use crate::domain::ids::{SaleId, UserId};
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::domain::shard::home_shard;
use crate::roles::{RoleError, redis_trust};
use crate::store::mysql::bare_units;
use crate::store::redis::{RedisStore, Way};
use hdrhistogram::Histogram;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// Buyers at once, each with a connection of its own.
const CROWD: usize = 16;
/// Tries for each unit.
const TRIES_PER_UNIT: u64 = 5;
/// Purchases in one call of ours in groups, about what a busy entry gathers.
const GROUP: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strategy {
    Redis(Way),
    Guarded,
    SkipLocked,
    /// `lua/reserve.lua`, so many purchases a call.
    Ours(u64),
}

const ALL: [(&str, Strategy); 10] = [
    ("strategy_get_then_decr", Strategy::Redis(Way::GetThenDecr)),
    ("strategy_decr_first", Strategy::Redis(Way::DecrFirst)),
    ("strategy_script", Strategy::Redis(Way::Script)),
    ("strategy_lock", Strategy::Redis(Way::Lock)),
    ("strategy_watch", Strategy::Redis(Way::Watch)),
    ("strategy_segments", Strategy::Redis(Way::Segments(8))),
    ("strategy_db_guarded", Strategy::Guarded),
    ("strategy_db_skip_locked", Strategy::SkipLocked),
    ("strategy_ours", Strategy::Ours(1)),
    ("strategy_ours_in_groups", Strategy::Ours(GROUP)),
];

/// What the buyers of one strategy share.
struct Round {
    ground: Shared,
    strategy: Strategy,
    sale: SaleId,
    key: String,
    next: AtomicU64,
    end: u64,
}

/// The parts of the ground that tasks may hold.
struct Shared {
    db: crate::store::mysql::Db,
    shards: u16,
}

/// Measures them all.
pub(super) async fn measure(ground: &mut Ground, scale: &Scale, spinner: &Spinner) -> Result<Vec<Bar>, Failure> {
    ground.api_only().await?;
    let mut connections = Vec::new();
    for _ in 0..CROWD {
        let redis = RedisStore::start(
            &ground.settings.redis,
            redis_trust(&ground.settings).map_err(RoleError::from)?.as_ref(),
        )?;
        redis.wait_connected(Duration::from_secs(5)).await;
        connections.push(redis);
    }
    let (stock, tries) = ((scale.entries / 10).max(1), (scale.entries / 10).max(1) * TRIES_PER_UNIT);
    let (mut bars, mut wrong) = (Vec::new(), 0);
    for (name, strategy) in ALL {
        ground.go_on()?;
        spinner.tell(name);
        let (bar, inexact) = one(ground, &connections, (name, strategy), (stock, tries)).await?;
        bars.push(bar);
        if matches!(strategy, Strategy::Ours(_)) {
            wrong += inexact;
        }
    }
    let note = "units that our own ways sold too much or too little".to_owned();
    bars.push(Bar::violations("strategies_exact", wrong).note(note));
    bare_units::forget(&ground.servers.db).await?;
    for redis in connections {
        redis.quit().await;
    }
    Ok(bars)
}

/// Measures one; the other figure is how many units it sold too much or too little.
async fn one(
    ground: &mut Ground,
    connections: &[RedisStore],
    (name, strategy): (&'static str, Strategy),
    (stock, tries): (u64, u64),
) -> Result<(Bar, u64), Failure> {
    let units = i64::try_from(stock).unwrap_or(i64::MAX);
    let sale = match strategy {
        Strategy::Ours(_) => ground.sale("strategy", units, Some(1)).await?,
        Strategy::Redis(_) | Strategy::Guarded | Strategy::SkipLocked => {
            ground.draft("strategy", units, Some(1)).await?.sale_id
        }
    };
    let key = format!("bench-strategy-{sale}");
    match strategy {
        Strategy::Redis(way) => ground.servers.redis.bare_stock(way, &key, units).await?,
        Strategy::SkipLocked => bare_units::make(&ground.servers.db, &sale, stock).await?,
        Strategy::Guarded | Strategy::Ours(_) => {}
    }
    let first = ground.numbers(tries);
    let shared = Shared { db: ground.servers.db.clone(), shards: ground.settings.redis.shards };
    let round = Arc::new(Round {
        ground: shared,
        strategy,
        sale,
        key: key.clone(),
        next: AtomicU64::new(first),
        end: first + tries,
    });
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
        ground.servers.redis.bare_forget(way, &key).await?;
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
    let step = if let Strategy::Ours(group) = round.strategy { group } else { 1 };
    loop {
        let first = round.next.fetch_add(step, Relaxed);
        if first >= round.end {
            return Ok((sold, latencies));
        }
        let begun = Instant::now();
        sold += round.take(&redis, first, (first + step).min(round.end)).await?;
        record(&mut latencies, begun.elapsed())?;
    }
}

impl Round {
    /// Units that the buyers with these numbers got.
    async fn take(&self, redis: &RedisStore, first: u64, end: u64) -> Result<u64, Failure> {
        let user =
            || UserId::parse(&crate::crowd::buyer_name(first)).map_err(|error| Failure::Failed(error.to_string()));
        let got = match self.strategy {
            Strategy::Redis(way) => redis.bare_take(way, &self.key, &user()?).await?,
            Strategy::Guarded => bare_units::take_guarded(&self.ground.db, &self.sale).await?,
            Strategy::SkipLocked => bare_units::take_skip_locked(&self.ground.db, &self.sale).await?,
            Strategy::Ours(_) => return self.take_ours(redis, first, end).await,
        };
        Ok(u64::from(got))
    }

    async fn take_ours(&self, redis: &RedisStore, first: u64, end: u64) -> Result<u64, Failure> {
        let purchases = (first..end).map(|number| purchase(&self.sale, number)).collect::<Result<Vec<_>, _>>()?;
        let mut sold = 0;
        for shard in 0..self.ground.shards {
            let group: Vec<&Purchase> =
                purchases.iter().filter(|one| home_shard(&one.user_id, self.ground.shards) == shard).collect();
            if group.is_empty() {
                continue;
            }
            let decided = redis.reserve(&self.sale, shard, 1, &group).await?.reserved;
            sold += decided.iter().filter(|one| **one == Reserved::Accepted).count() as u64;
        }
        Ok(sold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_strategy_has_a_name_of_its_own() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), ALL.len());
        assert!(names.iter().all(|name| name.starts_with("strategy_")));
    }

    #[test]
    fn slow_answers_are_not_cut() {
        let mut latencies = histogram().unwrap();
        for ms in [1, 50, 3_000] {
            record(&mut latencies, Duration::from_millis(ms)).unwrap();
        }
        assert!((ms(latencies.value_at_quantile(1.0)) - 3_000.0).abs() < 3.0);
    }
}
