//! `strategies`: the field's strategies to take stock, side by side on the same servers. By file: `taker` (one try) → `pace`
//! (how fast, how exactly) and `kill` (which answers to buyers a kill of the application breaks; `victim` is
//! that application, a process of its own) → `table`. `messages` has the strategies in which an order has an event.

mod kill;
mod messages;
mod pace;
pub(crate) mod table;
mod taker;
mod victim;

use super::bar::Bar;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use crate::baseline::redis::RedisStockStrategy;
use crate::baseline::{mysql_messages, mysql_units};
use messages::MessageScheme;
use seckill::cli::Failure;
use seckill::config::Settings;
use seckill::roles::{RoleError, redis_trust};
use seckill::store::redis::RedisStore;
use serde_json::{Value, json};
use std::time::Duration;
pub(crate) use victim::{BuyersArgs, run as buyers};

/// Buyers at once, each with a connection of its own.
const CROWD: usize = 16;
/// Purchases in one call of ours in groups, about what a busy entry gathers.
const GROUP: u64 = 64;
/// Segments of the strategies that split the stock.
const SEGMENTS: u16 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StockStrategy {
    Redis(RedisStockStrategy),
    Guarded,
    Versioned,
    SkipLocked,
    /// The guarded UPDATE, and an event that must follow the order.
    Messages(MessageScheme),
    /// `lua/reserve.lua`, this number of purchases a call.
    Ours(u64),
}

const ALL: [(&str, StockStrategy); 14] = [
    ("strategy_get_then_decr", StockStrategy::Redis(RedisStockStrategy::GetThenDecr)),
    ("strategy_decr_first", StockStrategy::Redis(RedisStockStrategy::DecrFirst)),
    ("strategy_script", StockStrategy::Redis(RedisStockStrategy::Script)),
    ("strategy_lock", StockStrategy::Redis(RedisStockStrategy::Lock)),
    ("strategy_watch", StockStrategy::Redis(RedisStockStrategy::CpuMeter)),
    ("strategy_segments", StockStrategy::Redis(RedisStockStrategy::Segments(SEGMENTS))),
    ("strategy_segment_locks", StockStrategy::Redis(RedisStockStrategy::SegmentLocks(SEGMENTS))),
    ("strategy_db_guarded", StockStrategy::Guarded),
    ("strategy_db_version", StockStrategy::Versioned),
    ("strategy_db_skip_locked", StockStrategy::SkipLocked),
    ("strategy_db_outbox", StockStrategy::Messages(MessageScheme::Outbox)),
    ("strategy_half_message", StockStrategy::Messages(MessageScheme::HalfMessage)),
    ("strategy_ours", StockStrategy::Ours(1)),
    ("strategy_ours_in_groups", StockStrategy::Ours(GROUP)),
];

impl StockStrategy {
    /// Whether a try may meet a conflict and be repeated.
    const fn has_retries(self) -> bool {
        match self {
            Self::Redis(strategy) => strategy.has_retries(),
            Self::Guarded | Self::Versioned | Self::SkipLocked | Self::Messages(_) => true,
            Self::Ours(_) => false,
        }
    }

    /// How an order's event is published, where it has one.
    const fn scheme(self) -> Option<MessageScheme> {
        match self {
            Self::Messages(scheme) => Some(scheme),
            Self::Redis(_) | Self::Guarded | Self::Versioned | Self::SkipLocked | Self::Ours(_) => None,
        }
    }
}

/// Measures them all, then lets what was sold land and counts what the kills left.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    environment.api_only().await?;
    let connections = connect(&environment.settings).await?;
    let stock = (sizes.entries / 10).max(1);
    let (mut bars, mut killed, mut wrong) = (Vec::new(), Vec::new(), 0);
    for (name, strategy) in ALL {
        environment.go_on()?;
        spinner.say(name);
        let (bar, inexact) = pace::one(environment, &connections, (name, strategy), (stock, sizes.patience)).await?;
        bars.push(bar);
        killed.push(kill::one(environment, (name, strategy), sizes.patience).await?);
        if matches!(strategy, StockStrategy::Ours(_)) {
            wrong += inexact;
        }
    }
    spinner.say("landing what was sold");
    environment.settle(sizes.patience, spinner).await?;
    for (bar, killed) in bars.iter_mut().zip(&killed) {
        let losses = killed.count(environment, sizes.patience).await?;
        bar.note.push_str(&format!("; {losses}"));
        if let Value::Object(more) = &mut bar.more {
            more.insert("kill".to_owned(), json!(losses));
        }
        if matches!(killed.strategy, StockStrategy::Ours(_)) {
            wrong += losses.wrong();
        }
    }
    let note = "units that our own strategies sold too much or too little, or that a kill -9 lost, doubled or stranded";
    bars.push(Bar::violations("strategies_exact", wrong).note(note.to_owned()));
    mysql_units::forget(&environment.servers.db).await?;
    mysql_messages::forget(&environment.servers.db).await?;
    for redis in connections {
        redis.quit().await;
    }
    Ok(bars)
}

/// A connection for each buyer.
async fn connect(settings: &Settings) -> Result<Vec<RedisStore>, Failure> {
    let trust = redis_trust(settings).map_err(RoleError::from)?;
    let mut connections = Vec::new();
    for _ in 0..CROWD {
        let redis = RedisStore::start(&settings.redis, trust.as_ref())?;
        if !redis.wait_connected(Duration::from_secs(5)).await {
            return Err(Failure::Failed("redis does not answer".to_owned()));
        }
        connections.push(redis);
    }
    Ok(connections)
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
}
