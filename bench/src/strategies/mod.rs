//! `strategies`: the field's ways to take stock, side by side on the same servers. By file: `taker` (one try) → `pace` (how
//! fast, how exactly) and `kill` (what is left of what buyers were told when the application is killed; `victim` is that
//! application, a process of its own).

mod kill;
mod pace;
mod taker;
mod victim;

use super::bar::Bar;
use super::ground::Ground;
use super::scale::{Scale, Spinner};
use crate::baseline::mysql_units;
use crate::baseline::redis::Way;
use seckill::cli::Failure;
use seckill::config::Settings;
use seckill::roles::{RoleError, redis_trust};
use seckill::store::redis::RedisStore;
use serde_json::{Value, json};
use std::time::Duration;
pub(crate) use victim::{Args as BuyersArgs, run as buyers};

/// Buyers at once, each with a connection of its own.
const CROWD: usize = 16;
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

/// Measures them all, then lets what was sold land and counts what the kills left.
pub(super) async fn measure(ground: &mut Ground, scale: &Scale, spinner: &Spinner) -> Result<Vec<Bar>, Failure> {
    ground.api_only().await?;
    let connections = connect(&ground.settings).await?;
    let stock = (scale.entries / 10).max(1);
    let (mut bars, mut killed, mut wrong) = (Vec::new(), Vec::new(), 0);
    for (name, strategy) in ALL {
        ground.go_on()?;
        spinner.tell(name);
        let (bar, inexact) = pace::one(ground, &connections, (name, strategy), stock).await?;
        bars.push(bar);
        killed.push(kill::one(ground, (name, strategy), scale.patience).await?);
        if matches!(strategy, Strategy::Ours(_)) {
            wrong += inexact;
        }
    }
    spinner.tell("landing what was sold");
    ground.settle(scale.patience, spinner).await?;
    for (bar, killed) in bars.iter_mut().zip(&killed) {
        let losses = killed.count(ground).await?;
        bar.note.push_str(&format!("; {losses}"));
        if let Value::Object(more) = &mut bar.more {
            more.insert("kill".to_owned(), json!(losses));
        }
        if matches!(killed.strategy, Strategy::Ours(_)) {
            wrong += losses.wrong();
        }
    }
    let note = "units that our own ways sold too much or too little, or that a kill -9 lost or stranded".to_owned();
    bars.push(Bar::violations("strategies_exact", wrong).note(note));
    mysql_units::forget(&ground.servers.db).await?;
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
