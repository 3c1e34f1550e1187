//! What the scenes share: what is found in a sale, and what happens to it.

use crate::support::world::{World, eventually};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::message::OrderMessage;
use seckill::domain::sale::MetaState;
use seckill::faults::held_count;
use seckill::p5_reconcile::{SaleAudit, Window};
use seckill::roles::Role;
use seckill::store::rabbit::declare;
use seckill::store::redis::{Between, Taken, Transfer};

/// P5 in a hurry.
pub const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];
/// The pipeline without P5.
pub const PIPELINE: [Role; 3] = [Role::Api, Role::Relay, Role::Consumer];
/// Rounds of P5 take this long, and a few more.
pub const ROUNDS_MS: u64 = 2_500;

/// A world whose queues are there: a rebuild asks what is in them.
pub async fn with_queues(roles: &[Role], set: &[&str]) -> World {
    let world = World::with(roles, set).await;
    declare(&world.servers.rabbit).await.unwrap();
    world
}

/// Buys, and waits until the order queue has this many messages: each purchase has one of its own.
pub async fn bought_in_a_message(world: &World, sale: &SaleId, user: &str, count: u64) -> RequestId {
    let request_id = world.bought(sale, user).await;
    eventually("its message", async || world.waiting_in("seckill.orders").await == count).await;
    request_id
}

pub fn details(audit: &SaleAudit) -> Vec<String> {
    audit.findings.iter().map(|finding| finding.detail.clone()).collect()
}

/// What an audit of now finds.
pub async fn found(world: &World, sale: &SaleId) -> Vec<String> {
    details(&world.audit(sale, Window::Now).await)
}

/// What an audit finds when everything has its outcome.
pub async fn found_at_last(world: &World, sale: &SaleId) -> Vec<String> {
    details(&world.settled(sale).await)
}

/// Redis loses every key of the sale.
pub async fn lose_the_keys(world: &World, sale: &SaleId) {
    for shard in 0..world.settings.redis.shards {
        for key in world.servers.redis.keys.of_warmed(shard, sale) {
            world.redis(&["DEL", &key]).await;
        }
    }
}

/// The epoch of the only sale, in the database.
pub async fn epoch(world: &World) -> i64 {
    world.number("SELECT CAST(epoch AS SIGNED) AS n FROM sales").await
}

/// Whether all shards sell, in the epoch of the database.
pub async fn sells(world: &World, sale: &SaleId) -> bool {
    let now = u32::try_from(epoch(world).await).unwrap();
    for shard in 0..world.settings.redis.shards {
        let meta = world.servers.redis.sale_keys.meta(sale, shard).await.unwrap();
        if !meta.is_some_and(|meta| meta.state == MetaState::Open && meta.epoch == now) {
            return false;
        }
    }
    true
}

/// Until the sale sells in a later epoch than this one.
pub async fn rebuilt(world: &World, sale: &SaleId, before: i64) {
    eventually("a rebuild", async || epoch(world).await > before && sells(world, sale).await).await;
}

/// Units for sale in all buckets.
pub async fn units(world: &World, sale: &SaleId) -> i64 {
    let mut sum = 0;
    for shard in 0..world.settings.redis.shards {
        sum += world.servers.redis.stock.units(sale, shard).await.unwrap().unwrap_or(0);
    }
    sum
}

/// Until this many wait at their holds.
pub async fn held(count: usize) {
    eventually("they are held", async || held_count() == count).await;
}

/// What was accepted under this id, as its ledger has it.
pub async fn message_of(world: &World, sale: &SaleId, id: RequestId) -> OrderMessage {
    let records = world.servers.redis.ledger.lookup(sale, 0, &[id]).await.unwrap();
    records[0].clone().expect("a record").order_message(id, sale, 0)
}

/// Buys one unit, whose order is refused by the database until it is a dead letter. The consumer runs.
pub async fn parked(world: &World, sale: &SaleId, user: &str) -> RequestId {
    world
        .sql("CREATE TRIGGER hold BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'held'")
        .await;
    let id = world.bought(sale, user).await;
    eventually("it is parked", async || !world.mq_dlq().await.is_empty()).await;
    world.sql("DROP TRIGGER hold").await;
    id
}

/// The same, given up by a person.
pub async fn given_up(world: &World, sale: &SaleId, user: &str) -> (RequestId, OrderMessage) {
    let id = parked(world, sale, user).await;
    let message = message_of(world, sale, id).await;
    world.servers.rows.persister.give_up(&message, "test", "test").await.unwrap();
    (id, message)
}

/// Takes units from one bucket for the other one.
pub async fn take(world: &World, sale: &SaleId, source: u16, epoch: u32, wanted: i64) -> Transfer {
    let between = Between { source, target: 1 - source };
    match world.servers.redis.transfers.take(sale, between, epoch, wanted).await.unwrap() {
        Taken::Record(transfer) => transfer,
        other @ (Taken::Empty | Taken::Refused) => panic!("{other:?}"),
    }
}
