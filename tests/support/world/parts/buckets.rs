//! Several buckets of one sale: P2 without the entry, for any number of shards, and what is in the buckets.

use super::reserve_model::EPOCH;
use super::script_model::redis_sale;
use crate::support::world::World;
use futures::future::join_all;
use seckill::config::Redis;
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::policy::Quantity;
use seckill::domain::request::Purchase;
use seckill::domain::sale::MetaState;
use seckill::domain::sale_door::SaleDoor;
use seckill::domain::shard::{home_shard, share};
use seckill::p2_reserve::{Decision, DurabilityGuard, Fence, FenceHandles, Reserve, ReserveHandles};
use seckill::store::redis::{Granted, RedisStore};
use std::time::Duration;

/// P2 of one process that splits sales into `shards` buckets.
pub struct Buckets {
    /// Its Redis.
    pub store: RedisStore,
    /// Its entrance.
    pub reserve: Reserve,
    /// How many.
    pub shards: u16,
}

impl Buckets {
    /// On a world's Redis.
    pub async fn of(world: &World, shards: u16) -> Self {
        let settings = Redis { shards, ..world.settings.redis.clone() };
        let store = RedisStore::start(&settings, None).expect("a handle");
        assert!(store.wait_connected(Duration::from_secs(10)).await, "redis connects");
        let fence = FenceHandles {
            servers: store.boot_fence.clone(),
            sale_keys: store.sale_keys.clone(),
            transfers: store.transfers.clone(),
        };
        let guard = DurabilityGuard::new(store.health.clone());
        let fence = Fence::new(fence, world.servers.rows.sales.clone(), guard, shards);
        // Nothing here is about being slow.
        let p2 = seckill::config::P2Reserve { deadline_ms: 30_000, ..world.settings.p2_reserve.clone() };
        let handles = ReserveHandles {
            stock: store.stock.clone(),
            ledger: store.ledger.clone(),
            transfers: store.transfers.clone(),
        };
        let reserve = Reserve::new(handles, fence, shards, &p2);
        Self { store, reserve, shards }
    }

    /// An open sale that is only in Redis.
    pub async fn sale(&self, id: &str, limit: u32, stock: i64) -> SaleId {
        let sale = redis_sale(id, limit);
        let open = |shard| {
            let (sale, units) = (&sale, share(stock, shard, self.shards));
            async move {
                self.store.sale_keys.activate(sale, shard, 100_000, ("first", units)).await.expect("activated");
                let opened =
                    self.store.sale_keys.set_state(&sale.sale_id, shard, MetaState::Open, &[MetaState::Loaded]).await;
                opened.expect("opened");
            }
        };
        join_all((0..self.shards).map(open)).await;
        sale.sale_id
    }

    /// Adds units.
    pub async fn grant(&self, sale: &SaleId, id: &str, units: i64) {
        let grant = |shard| self.store.sale_keys.grant(sale, shard, EPOCH, (id, share(units, shard, self.shards)));
        for granted in join_all((0..self.shards).map(grant)).await {
            assert_eq!(granted.expect("granted"), Granted::Now);
        }
    }

    /// One purchase.
    pub async fn buy(&self, sale: &SaleId, user: UserId, id: RequestId, quantity: u32) -> Decision {
        let quantity = Quantity::new(quantity).expect("a quantity");
        self.reserve
            .decide(
                Purchase { request_id: id, sale_id: sale.clone(), user_id: user, person: None, quantity },
                EPOCH,
                SaleDoor::Token,
            )
            .await
    }

    /// Units in all buckets. Fails when anything is between two of them, or a shard does not add up.
    pub async fn left(&self, sale: &SaleId) -> i64 {
        let (mut left, mut between) = (0, 0);
        let reads = (0..self.shards).map(|shard| async move {
            tokio::join!(self.store.transfers.bucket(sale, shard), self.store.transfers.pending(sale, shard))
        });
        for (bucket, transfers) in join_all(reads).await {
            let bucket = bucket.expect("redis").expect("a bucket");
            assert_eq!(transfers.expect("redis"), [], "no transfer is under way");
            assert!(bucket.stock >= 0, "{bucket:?}");
            left += bucket.stock;
            between += bucket.sent - bucket.received;
        }
        assert_eq!(between, 0, "what was sent was received");
        left
    }
}

/// The `n`th buyer whose home is this shard.
pub fn buyer_of(shard: u16, shards: u16, n: usize) -> String {
    let names = (0..).map(|no| format!("b{no}"));
    let mut at_home = names.filter(|name| home_shard(&UserId::parse(name).expect("a user"), shards) == shard);
    at_home.nth(n).expect("there is always another")
}
