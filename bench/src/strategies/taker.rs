//! One try of a buyer with a given strategy; the throughput rounds and the process that is killed take by the same code.

use super::StockStrategy;
use super::messages::{HalfMessageSender, MessageScheme, MessageStores};
use crate::baseline::mysql_units::{self, BareOrder};
use crate::baseline::{StockAttempt, mysql_messages, redis as redis_strategies};
use crate::environment::Environment;
use crate::purchases::purchase;
use seckill::cli::Failure;
use seckill::domain::ids::{SaleId, UserId};
use seckill::domain::request::Purchase;
use seckill::domain::reserve::Reserved;
use seckill::domain::shard::home_shard;
use seckill::runtime::now_ms;
use seckill::store::mysql::{Db, DbError};
use seckill::store::redis::RedisStore;

/// A strategy, and the stock it takes from.
pub(super) struct Taker {
    pub sale: SaleId,
    /// The stock of the field's strategies in Redis.
    pub key: String,
    strategy: StockStrategy,
    db: Db,
    shards: u16,
    is_ordering: bool,
    halves: Option<HalfMessageSender>,
}

/// What one call came to.
#[derive(Debug, Default)]
pub(super) struct TakenUnits {
    /// The buyers who got a unit.
    pub winners: Vec<u64>,
    /// How often a conflict made the call try again.
    pub retries: u64,
}

/// Makes a sale of this number of units, with its stock where the strategy takes it from, and its queues.
pub(super) async fn stock_up(
    environment: &mut Environment,
    strategy: StockStrategy,
    units: u64,
) -> Result<SaleId, Failure> {
    let count = i64::try_from(units).unwrap_or(i64::MAX);
    if let StockStrategy::Ours(_) = strategy {
        return environment.sale("strategy", count, Some(1)).await;
    }
    let sale = environment.draft("strategy", count, Some(1), -1_000).await?.sale_id;
    match strategy {
        StockStrategy::Redis(redis) => {
            redis_strategies::stock(&environment.servers.redis, redis, &key(&sale), count).await?;
        }
        StockStrategy::SkipLocked => mysql_units::make(&environment.servers.db, &sale, units).await?,
        StockStrategy::Versioned => mysql_units::make_version(&environment.servers.db, &sale, count).await?,
        StockStrategy::Messages(_) => stores(environment, &sale).make().await?,
        StockStrategy::Guarded | StockStrategy::Ours(_) => {}
    }
    Ok(sale)
}

/// Where the field's strategies have the stock of this sale in Redis.
pub(super) fn key(sale: &SaleId) -> String {
    format!("bench-strategy-{sale}")
}

/// Where this sale's rows and messages are.
pub(super) fn stores(environment: &Environment, sale: &SaleId) -> MessageStores {
    MessageStores::new(environment.servers.db.clone(), environment.servers.rabbit.clone(), sale.clone())
}

impl Taker {
    /// Takes units and writes no order, except that ours writes its outbox, and the schemes with events all they write.
    pub fn new(db: Db, shards: u16, strategy: StockStrategy, sale: SaleId) -> Self {
        Self { key: key(&sale), sale, strategy, db, shards, is_ordering: false, halves: None }
    }

    /// The database's own strategies write the order in the transaction that takes the unit.
    pub fn ordering(self) -> Self {
        Self { is_ordering: true, ..self }
    }

    /// What half messages are sent with.
    pub fn with_halves(self, halves: Option<HalfMessageSender>) -> Self {
        Self { halves, ..self }
    }

    /// Buyers of one try.
    pub const fn step(&self) -> u64 {
        match self.strategy {
            StockStrategy::Ours(group) => group,
            StockStrategy::Redis(_)
            | StockStrategy::Guarded
            | StockStrategy::Versioned
            | StockStrategy::SkipLocked
            | StockStrategy::Messages(_) => 1,
        }
    }

    /// Those of the buyers with these numbers who got a unit; `end` is at most one step above `first`.
    pub async fn take(&self, redis: &RedisStore, first: u64, end: u64) -> Result<TakenUnits, Failure> {
        let attempt = match self.strategy {
            StockStrategy::Ours(_) => return self.take_ours(redis, first, end).await,
            StockStrategy::Messages(MessageScheme::HalfMessage) => {
                let none = || Failure::Failed("half messages need a connection to the broker".to_owned());
                self.halves.as_ref().ok_or_else(none)?.buy(first).await?
            }
            StockStrategy::Redis(strategy) => {
                let user = UserId::parse(&crate::loadgen::buyer_name(first));
                let user = user.map_err(|error| Failure::Failed(error.to_string()))?;
                redis_strategies::take(redis, strategy, &self.key, &user).await?
            }
            StockStrategy::Guarded
            | StockStrategy::Versioned
            | StockStrategy::SkipLocked
            | StockStrategy::Messages(MessageScheme::Outbox) => self.take_in_database(first).await?,
        };
        Ok(TakenUnits { winners: attempt.is_taken.then_some(first).into_iter().collect(), retries: attempt.retries })
    }

    /// Tries again what the database rolled back because of contention.
    async fn take_in_database(&self, number: u64) -> Result<StockAttempt, Failure> {
        let mut contended = 0;
        loop {
            match self.try_in_database(number).await {
                Ok(attempt) => return Ok(StockAttempt { retries: attempt.retries + contended, ..attempt }),
                Err(DbError::Deadlock | DbError::LockWait) => contended += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn try_in_database(&self, number: u64) -> Result<StockAttempt, DbError> {
        let (db, sale, order) = (&self.db, &self.sale, BareOrder { id: number, at_ms: now_ms() });
        let wanted = self.is_ordering.then_some(order);
        let is_taken = match self.strategy {
            StockStrategy::Versioned => return mysql_units::take_versioned(db, sale, wanted).await,
            StockStrategy::SkipLocked => mysql_units::take_skip_locked(db, sale, wanted).await?,
            StockStrategy::Messages(_) => mysql_messages::order_with_event(db, sale, order).await?,
            StockStrategy::Guarded | StockStrategy::Redis(_) | StockStrategy::Ours(_) => {
                mysql_units::take_guarded(db, sale, wanted).await?
            }
        };
        Ok(StockAttempt { is_taken, retries: 0 })
    }

    async fn take_ours(&self, redis: &RedisStore, first: u64, end: u64) -> Result<TakenUnits, Failure> {
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
        Ok(TakenUnits { winners, retries: 0 })
    }
}
