//! For the benchmark: the field's other ways to take one unit of stock from Redis. None of them knows buyers, repeats or
//! what becomes of the unit; several of them sell too much or too little, which is what the benchmark counts.
//!
//! Input: a key made for it. Output: whether a unit was taken. A crash leaves those keys.

use super::StockAttempt;
use fred::types::Value;
use seckill::domain::ids::{SaleId, UserId};
use seckill::domain::shard::{home_shard, share};
use seckill::store::redis::{RedisFault, RedisStore};
use std::time::Duration;

const LUA: &str = "local left = tonumber(redis.call('GET', KEYS[1])) if left and left > 0 then redis.call('DECR', KEYS[1]) return 1 end return 0";
const LUA_UNLOCK: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0";
/// A lock whose holder died is free after this time, ms.
const LOCK_MS: i64 = 1_000;
/// Pause before the next try to get the lock.
const LOCK_PAUSE: Duration = Duration::from_millis(1);
/// Tries to get the lock, or to commit a watched transaction; then the buyer is sent away.
pub(super) const TRIES: u64 = 2_000;

/// How a unit is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedisStockStrategy {
    /// GET, and DECR when it was above 0: two buyers can read the same last unit.
    GetThenDecr,
    /// DECR, and INCR back when it went below 0.
    DecrFirst,
    /// One script.
    Script,
    /// `SET NX PX`, GET, SET, unlock.
    Lock,
    /// WATCH, GET, MULTI, DECR, EXEC; again when somebody was faster.
    CpuMeter,
    /// The stock split into this number of keys; a buyer's key is chosen by the buyer, and empty means sold out.
    Segments(u16),
    /// The stock split into this number of keys, each with a lock of its own. A buyer begins with the key that is chosen by
    /// the buyer, and goes on to the next one when it is locked or empty.
    SegmentLocks(u16),
}

impl RedisStockStrategy {
    /// Whether a try may meet a conflict and be repeated.
    #[must_use]
    pub const fn has_retries(self) -> bool {
        match self {
            Self::Lock | Self::CpuMeter | Self::SegmentLocks(_) => true,
            Self::GetThenDecr | Self::DecrFirst | Self::Script | Self::Segments(_) => false,
        }
    }
}

/// Puts `units` under `key`, split as the strategy wants it.
///
/// # Errors
/// [`RedisFault`].
pub async fn stock(store: &RedisStore, strategy: RedisStockStrategy, key: &str, units: i64) -> Result<(), RedisFault> {
    let segments = segments(strategy);
    for segment in 0..segments {
        let share = share(units, segment, segments);
        store.command("SET", 0, vec![text(segment_key(key, segment)), Value::Integer(share)]).await?;
    }
    Ok(())
}

/// Units left under `key`.
///
/// # Errors
/// [`RedisFault`].
pub async fn left(store: &RedisStore, strategy: RedisStockStrategy, key: &str) -> Result<i64, RedisFault> {
    let mut left = 0;
    for segment in 0..segments(strategy) {
        left += number(store, "GET", &segment_key(key, segment)).await?;
    }
    Ok(left)
}

/// Makes one shard of a sale seem as if `count` requests of one unit had been accepted, landed and trimmed, as
/// `mysql_bulk` writes them. No purchase may run meanwhile.
///
/// # Errors
/// [`RedisFault`]; the sale is of no use then.
pub async fn settled(store: &RedisStore, sale: &SaleId, shard: u16, count: i64) -> Result<(), RedisFault> {
    let mut meta = vec![text(store.keys.meta(shard, sale))];
    for field in ["number", "accepted", "trimmed_count", "trimmed_ordered"] {
        meta.extend([text(field), Value::Integer(count)]);
    }
    store.command("HSET", 0, meta).await?;
    store.command("DECRBY", 0, vec![text(store.keys.stock(shard, sale)), Value::Integer(count)]).await?;
    Ok(())
}

/// Gives one shard of a sale the units that came back under this grant, as `mysql_bulk` wrote it.
///
/// # Errors
/// [`RedisFault`]; the sale is of no use then.
pub async fn given_back(
    store: &RedisStore,
    sale: &SaleId,
    shard: u16,
    (grant, units): (&str, i64),
) -> Result<(), RedisFault> {
    let of_grant = vec![text(store.keys.grants(shard, sale)), text(grant.to_owned()), Value::Integer(units)];
    store.command("HSET", 0, of_grant).await?;
    store.command("INCRBY", 0, vec![text(store.keys.stock(shard, sale)), Value::Integer(units)]).await?;
    Ok(())
}

/// Removes what the others left.
///
/// # Errors
/// [`RedisFault`].
pub async fn forget(store: &RedisStore, strategy: RedisStockStrategy, key: &str) -> Result<(), RedisFault> {
    for segment in 0..segments(strategy) {
        store.command("UNLINK", 0, vec![text(segment_key(key, segment)), text(lock_key(key, segment))]).await?;
    }
    Ok(())
}

/// Tries to take one unit for `user`. One caller a connection: WATCH belongs to the connection.
///
/// # Errors
/// [`RedisFault`]; the unit may have been taken after `Unknown`.
pub async fn take(
    store: &RedisStore,
    strategy: RedisStockStrategy,
    key: &str,
    user: &UserId,
) -> Result<StockAttempt, RedisFault> {
    match strategy {
        RedisStockStrategy::Lock => take_locked(store, key, user).await,
        RedisStockStrategy::CpuMeter => take_watched(store, &segment_key(key, 0)).await,
        RedisStockStrategy::SegmentLocks(count) => take_segment_locked(store, key, count, user).await,
        RedisStockStrategy::GetThenDecr
        | RedisStockStrategy::DecrFirst
        | RedisStockStrategy::Script
        | RedisStockStrategy::Segments(_) => {
            Ok(StockAttempt { is_taken: take_at_once(store, strategy, key, user).await?, retries: 0 })
        }
    }
}

async fn take_at_once(
    store: &RedisStore,
    strategy: RedisStockStrategy,
    key: &str,
    user: &UserId,
) -> Result<bool, RedisFault> {
    let stock = segment_key(key, 0);
    match strategy {
        RedisStockStrategy::GetThenDecr => {
            if number(store, "GET", &stock).await? <= 0 {
                return Ok(false);
            }
            number(store, "DECR", &stock).await.map(|_left| true)
        }
        RedisStockStrategy::DecrFirst => {
            if number(store, "DECR", &stock).await? >= 0 {
                return Ok(true);
            }
            number(store, "INCR", &stock).await.map(|_left| false)
        }
        RedisStockStrategy::Segments(count) => eval(store, LUA, &segment_key(key, home_shard(user, count)), None).await,
        RedisStockStrategy::Script
        | RedisStockStrategy::Lock
        | RedisStockStrategy::CpuMeter
        | RedisStockStrategy::SegmentLocks(_) => eval(store, LUA, &stock, None).await,
    }
}

async fn take_locked(store: &RedisStore, key: &str, user: &UserId) -> Result<StockAttempt, RedisFault> {
    for retries in 0..TRIES {
        if let Some(is_taken) = take_under_lock(store, key, 0, user).await? {
            return Ok(StockAttempt { is_taken, retries });
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Ok(StockAttempt { is_taken: false, retries: TRIES })
}

/// One try with the lock of a segment: whether a unit was taken; `None` when somebody else holds the lock.
async fn take_under_lock(
    store: &RedisStore,
    key: &str,
    segment: u16,
    user: &UserId,
) -> Result<Option<bool>, RedisFault> {
    let (stock, lock) = (segment_key(key, segment), lock_key(key, segment));
    let args = vec![text(&*lock), text(user.as_str()), text("NX"), text("PX"), Value::Integer(LOCK_MS)];
    if store.command("SET", 0, args).await?.is_null() {
        return Ok(None);
    }
    let left = number(store, "GET", &stock).await?;
    if left > 0 {
        store.command("SET", 0, vec![text(&*stock), Value::Integer(left - 1)]).await?;
    }
    eval(store, LUA_UNLOCK, &lock, Some(user.as_str())).await?;
    Ok(Some(left > 0))
}

async fn take_segment_locked(
    store: &RedisStore,
    key: &str,
    segments: u16,
    user: &UserId,
) -> Result<StockAttempt, RedisFault> {
    let (home, mut retries) = (home_shard(user, segments), 0);
    while retries < TRIES {
        let before = retries;
        for offset in 0..segments {
            let segment = (home + offset) % segments;
            // No caller waits for the lock of an empty segment.
            if number(store, "GET", &segment_key(key, segment)).await? <= 0 {
                continue;
            }
            match take_under_lock(store, key, segment, user).await? {
                Some(true) => return Ok(StockAttempt { is_taken: true, retries }),
                Some(false) => {}
                None => retries += 1,
            }
        }
        if retries == before {
            break;
        }
        tokio::time::sleep(LOCK_PAUSE).await;
    }
    Ok(StockAttempt { is_taken: false, retries })
}

async fn take_watched(store: &RedisStore, stock: &str) -> Result<StockAttempt, RedisFault> {
    for retries in 0..TRIES {
        store.command("WATCH", 0, vec![text(stock)]).await?;
        if number(store, "GET", stock).await? <= 0 {
            store.command("UNWATCH", 0, vec![]).await?;
            return Ok(StockAttempt { is_taken: false, retries });
        }
        store.command("MULTI", 0, vec![]).await?;
        store.command("DECR", 0, vec![text(stock)]).await?;
        // Null: somebody touched the key since WATCH.
        if !store.command("EXEC", 0, vec![]).await?.is_null() {
            return Ok(StockAttempt { is_taken: true, retries });
        }
    }
    Ok(StockAttempt { is_taken: false, retries: TRIES })
}

async fn number(store: &RedisStore, name: &'static str, key: &str) -> Result<i64, RedisFault> {
    integer(&store.command(name, 0, vec![text(key)]).await?)
}

async fn eval(store: &RedisStore, script: &str, key: &str, arg: Option<&str>) -> Result<bool, RedisFault> {
    let mut args = vec![text(script), Value::Integer(1), text(key)];
    args.extend(arg.map(text));
    Ok(integer(&store.command("EVAL", 2, args).await?)? == 1)
}

const fn segments(strategy: RedisStockStrategy) -> u16 {
    match strategy {
        RedisStockStrategy::Segments(count) | RedisStockStrategy::SegmentLocks(count) => count,
        RedisStockStrategy::GetThenDecr
        | RedisStockStrategy::DecrFirst
        | RedisStockStrategy::Script
        | RedisStockStrategy::Lock
        | RedisStockStrategy::CpuMeter => 1,
    }
}

fn segment_key(key: &str, segment: u16) -> String {
    format!("{{{key}}}:stock:{segment}")
}

fn lock_key(key: &str, segment: u16) -> String {
    format!("{{{key}}}:lock:{segment}")
}

fn text(value: impl Into<String>) -> Value {
    Value::String(value.into().into())
}

fn integer(value: &Value) -> Result<i64, RedisFault> {
    value.as_i64().ok_or_else(|| RedisFault::Contract(format!("expected a number, got {value:?}")))
}
