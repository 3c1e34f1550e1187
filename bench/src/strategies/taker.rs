//! One try of a buyer in a given way; the throughput rounds and the process that is killed take by the same code.

use super::Strategy;
use crate::baseline::mysql_units::{self, Order};
use crate::baseline::redis as ways;
use crate::fill::purchase;
use crate::ground::Ground;
use seckill::cli::Failure;
use seckill::domain::ids::{SaleId, UserId};
use seckill::domain::request::Purchase;
use seckill::domain::reserve::Reserved;
use seckill::domain::shard::home_shard;
use seckill::runtime::now_ms;
use seckill::store::mysql::Db;
use seckill::store::redis::RedisStore;

/// A way, and the stock it takes from.
pub(super) struct Taker {
    pub sale: SaleId,
    /// The stock of the field's ways in Redis.
    pub key: String,
    strategy: Strategy,
    db: Db,
    shards: u16,
    is_ordering: bool,
}

/// Makes a sale of so many units, with its stock where the strategy takes it from.
pub(super) async fn stock_up(ground: &mut Ground, strategy: Strategy, units: u64) -> Result<SaleId, Failure> {
    let count = i64::try_from(units).unwrap_or(i64::MAX);
    if let Strategy::Ours(_) = strategy {
        return ground.sale("strategy", count, Some(1)).await;
    }
    let sale = ground.draft("strategy", count, Some(1), -1_000).await?.sale_id;
    match strategy {
        Strategy::Redis(way) => ways::stock(&ground.servers.redis, way, &key(&sale), count).await?,
        Strategy::SkipLocked => mysql_units::make(&ground.servers.db, &sale, units).await?,
        Strategy::Guarded | Strategy::Ours(_) => {}
    }
    Ok(sale)
}

/// Where the field's ways have the stock of this sale in Redis.
pub(super) fn key(sale: &SaleId) -> String {
    format!("bench-strategy-{sale}")
}

impl Taker {
    /// Takes units and writes no order, except that ours writes its outbox.
    pub fn new(db: Db, shards: u16, strategy: Strategy, sale: SaleId) -> Self {
        Self { key: key(&sale), sale, strategy, db, shards, is_ordering: false }
    }

    /// The database's own ways write the order in the transaction that takes the unit.
    pub fn ordering(self) -> Self {
        Self { is_ordering: true, ..self }
    }

    /// Buyers of one try.
    pub const fn step(&self) -> u64 {
        match self.strategy {
            Strategy::Ours(group) => group,
            Strategy::Redis(_) | Strategy::Guarded | Strategy::SkipLocked => 1,
        }
    }

    /// Those of the buyers with these numbers who got a unit; `end` is at most one step above `first`.
    pub async fn take(&self, redis: &RedisStore, first: u64, end: u64) -> Result<Vec<u64>, Failure> {
        let order = self.is_ordering.then(|| Order { id: first, at_ms: now_ms() });
        let got = match self.strategy {
            Strategy::Redis(way) => {
                let user = UserId::parse(&crate::loadgen::buyer_name(first));
                let user = user.map_err(|error| Failure::Failed(error.to_string()))?;
                ways::take(redis, way, &self.key, &user).await?
            }
            Strategy::Guarded => mysql_units::take_guarded(&self.db, &self.sale, order).await?,
            Strategy::SkipLocked => mysql_units::take_skip_locked(&self.db, &self.sale, order).await?,
            Strategy::Ours(_) => return self.take_ours(redis, first, end).await,
        };
        Ok(if got { vec![first] } else { Vec::new() })
    }

    async fn take_ours(&self, redis: &RedisStore, first: u64, end: u64) -> Result<Vec<u64>, Failure> {
        let purchases = (first..end).map(|number| purchase(&self.sale, number)).collect::<Result<Vec<_>, _>>()?;
        let mut winners = Vec::new();
        for shard in 0..self.shards {
            let group: Vec<&Purchase> =
                purchases.iter().filter(|one| home_shard(&one.user_id, self.shards) == shard).collect();
            if group.is_empty() {
                continue;
            }
            let decided = redis.stock.reserve(&self.sale, shard, 1, &group).await?.reserved;
            let accepted = group.iter().zip(&decided).filter(|(_, one)| **one == Reserved::Accepted);
            winners.extend(accepted.map(|(one, _)| one.request_id.get()));
        }
        Ok(winners)
    }
}
