//! A server that forgot that it gave units to another shard: they are in two buckets. It is found, and mended before one of them is
//! sold twice.

use super::rebuild_and_grants::{QUICK, rebuilt, stock};
use crate::support::basics::time::eventually;
use crate::support::processes::own_redis;
use crate::support::world::parts::buckets::buyer_of;
use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;
use seckill::domain::sale::MetaState;
use seckill::p5_reconcile::{Window, finish_transfers};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::redis::{Between, Given, Taken, Transfer};

const TWO: &[&str] = &["redis.shards=2", "p1_entry.cache_ttl_ms=50"];

async fn world() -> World {
    World::with(&[Api, Relay, Consumer], &[QUICK, TWO].concat()).await
}

/// The keys of one shard that a transfer changes, and their copies.
fn keys(world: &World, sale: &SaleId, shard: u16) -> Vec<(String, String)> {
    let keys = &world.servers.redis.keys;
    let stock = keys.stock(shard, sale);
    let all = [keys.meta(shard, sale), stock.replace(":stock:", ":transfers:"), stock];
    all.into_iter().map(|key| (key.clone(), format!("copy-of-{key}"))).collect()
}

/// Remembers a shard as it is now.
async fn copy(world: &World, sale: &SaleId, shard: u16) {
    for (key, copy) in keys(world, sale, shard) {
        world.redis(&["DEL", &copy]).await;
        world.redis(&["COPY", &key, &copy]).await;
    }
}

/// The shard is again as it was: its server was replaced by one that lacked what came since.
async fn go_back(world: &World, sale: &SaleId, shard: u16) {
    for (key, copy) in keys(world, sale, shard) {
        world.redis(&["DEL", &key]).await;
        world.redis(&["COPY", &copy, &key]).await;
    }
}

async fn take(world: &World, sale: &SaleId, between: Between, wanted: i64) -> Transfer {
    match world.servers.redis.transfers.take(sale, between, 1, wanted).await.unwrap() {
        Taken::Record(transfer) => transfer,
        other @ (Taken::Empty | Taken::Refused) => panic!("{other:?}"),
    }
}

/// A whole transfer.
async fn transfer(world: &World, sale: &SaleId, between: Between, wanted: i64) -> i64 {
    let (transfers, taken) = (&world.servers.redis.transfers, take(world, sale, between, wanted).await);
    assert_eq!(transfers.give(sale, &taken).await.unwrap(), Given::Now);
    transfers.forget(sale, &taken).await.unwrap();
    taken.units
}

async fn state(world: &World, sale: &SaleId) -> Vec<MetaState> {
    let mut states = Vec::new();
    for shard in 0..2 {
        states.push(world.servers.redis.sale_keys.meta(sale, shard).await.unwrap().unwrap().state);
    }
    states
}

/// Buyers of both shards in turn buy all there is; how many got a unit.
async fn sell_out(world: &World, sale: &SaleId) -> i64 {
    let mut sold = 0;
    for n in 0..60 {
        let buyer = buyer_of(u16::from(n % 2 == 1), 2, 100 + n);
        eventually("an answer that is final", async || {
            let answer = world.buy(sale, &buyer, 1, None).await;
            sold += i64::from(answer.status == 202);
            matches!(answer.status, 202 | 410)
        })
        .await;
    }
    sold
}

/// A sale of 20 units after its first purchase: the fence is passed.
async fn sold_one(world: &World, name: &str) -> SaleId {
    let sale = world.sale(name, 21, None).await;
    assert_eq!(world.buy(&sale, &buyer_of(0, 2, 0), 1, None).await.status, 202);
    assert_eq!(world.settled(&sale).await.counted.ordered, 1);
    sale
}

const FORTH: Between = Between { source: 0, target: 1 };
const BACK: Between = Between { source: 1, target: 0 };

#[test]
fn a_lost_take_is_found_by_the_audit_and_its_units_are_sold_once() {
    run(async {
        let mut world = world().await;
        let sale = world.sale("take", 20, None).await;
        copy(&world, &sale, 0).await;
        assert_eq!(transfer(&world, &sale, FORTH, 4).await, 5);
        assert!(world.audit(&sale, Window::Now).await.consistent());
        go_back(&world, &sale, 0).await;
        assert_eq!(stock(&world, &sale).await, Some(25), "five are there twice");
        let said = world.cli(&["audit", "--now"]).exits(2).out;
        assert!(said.contains("shard 0 forgot that it gave units to shard 1"), "{said}");
        assert!(said.contains("5 units reached a bucket and left no other"), "{said}");
        // No person does anything.
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(20));
        assert_eq!(sell_out(&world, &sale).await, 20);
        assert_eq!(world.settled(&sale).await.counted.ordered, 20);
        world.finish().await;
    });
}

/// By sums alone all is well: what one direction has too much, the other one lacks.
#[test]
fn a_lost_take_and_a_lost_gift_do_not_hide_each_other() {
    run(async {
        let mut world = world().await;
        let sale = world.sale("both", 20, None).await;
        copy(&world, &sale, 0).await;
        assert_eq!((transfer(&world, &sale, FORTH, 10).await, transfer(&world, &sale, BACK, 10).await), (10, 10));
        go_back(&world, &sale, 0).await;
        let counted = world.audit(&sale, Window::Now).await.counted;
        assert_eq!((counted.redis_stock, counted.in_transit), (20, 0));
        let said = world.cli(&["audit", "--now"]).exits(2).out;
        assert!(said.contains("shard 0 forgot that it gave units to shard 1"), "{said}");
        assert!(said.contains("shard 0 forgot that it was given units by shard 1"), "{said}");
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(20));
        world.finish().await;
    });
}

/// No acceptance is lost, so the numbers alone say that all is well.
#[test]
fn the_boot_fence_freezes_a_sale_whose_transfer_was_forgotten() {
    run(async {
        let set = [QUICK, TWO].concat();
        let (_server, mut world) = own_redis::world("forgotten-transfer", &[Api, Relay, Consumer], &set).await;
        for (name, forgetful) in [("source", 0), ("target", 1)] {
            let (sale, other) = (world.sale(name, 20, None).await, world.sale(&format!("{name}-fine"), 20, None).await);
            assert_eq!(transfer(&world, &other, FORTH, 4).await, 5);
            copy(&world, &sale, forgetful).await;
            assert_eq!(transfer(&world, &sale, FORTH, 4).await, 5);
            go_back(&world, &sale, forgetful).await;
            world.redis(&["SCRIPT", "FLUSH"]).await;
            let answer = world.buy(&sale, &buyer_of(0, 2, 0), 1, None).await;
            assert_eq!((answer.status, answer.code().as_str()), (423, "P1-S7"), "{name}: {answer:?}");
            assert_eq!(state(&world, &sale).await, [MetaState::Frozen; 2], "{name}");
            assert_eq!(world.buy(&other, &buyer_of(0, 2, 0), 1, None).await.status, 202, "{name}: others go on");
            assert_eq!(state(&world, &other).await, [MetaState::Open; 2], "{name}");
        }
        world.start_roles(&[Reconcile]).await;
        for name in ["source", "target"] {
            let sale = SaleId::parse(name).unwrap();
            eventually("it is rebuilt", async || state(&world, &sale).await == [MetaState::Open; 2]).await;
            assert_eq!(stock(&world, &sale).await, Some(20), "{name}");
            assert_eq!(sell_out(&world, &sale).await, 20, "{name}");
        }
        world.finish().await;
    });
}

/// The source sells on before anything was compared, and takes the number again that it forgot, with other units.
#[test]
fn a_number_that_is_taken_again_freezes_the_sale_before_its_units_vanish() {
    run(async {
        let mut world = world().await;
        let sale = sold_one(&world, "again").await;
        copy(&world, &sale, 0).await;
        assert_eq!(transfer(&world, &sale, FORTH, 4).await, 5);
        go_back(&world, &sale, 0).await;
        let taken = take(&world, &sale, FORTH, 7).await;
        assert_eq!((taken.number, taken.units), (1, 7));
        let transfers = &world.servers.redis.transfers;
        assert_eq!(transfers.give(&sale, &taken).await.unwrap(), Given::Behind);
        let shown = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        assert_eq!(finish_transfers(transfers, 2, &shown).await.unwrap(), 0);
        assert_eq!(transfers.pending(&sale, 0).await.unwrap(), [taken], "its units stay in the record");
        assert!(!world.audit(&sale, Window::Now).await.consistent());
        // The first purchase that needs units of the other shard meets it.
        eventually("it is frozen", async || {
            world.buy(&sale, &buyer_of(1, 2, 0), 16, None).await;
            state(&world, &sale).await == [MetaState::Frozen; 2]
        })
        .await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(sell_out(&world, &sale).await, 20);
        world.finish().await;
    });
}

/// The same units leave the source once more, and the target has them already: as if the take had never been lost.
#[test]
fn a_number_that_is_taken_again_with_the_same_units_mends_the_loss() {
    run(async {
        let world = world().await;
        let sale = world.sale("same", 20, None).await;
        copy(&world, &sale, 0).await;
        assert_eq!(transfer(&world, &sale, FORTH, 4).await, 5);
        go_back(&world, &sale, 0).await;
        let taken = take(&world, &sale, FORTH, 4).await;
        let transfers = &world.servers.redis.transfers;
        assert_eq!(transfers.give(&sale, &taken).await.unwrap(), Given::Before);
        transfers.forget(&sale, &taken).await.unwrap();
        assert!(world.audit(&sale, Window::Now).await.consistent());
        assert_eq!((stock(&world, &sale).await, sell_out(&world, &sale).await), (Some(20), 20));
        world.finish().await;
    });
}

/// Without a reconciler the last units meet it: better a frozen sale than 503 for ever, and a transfer that vanishes.
#[test]
fn a_sale_that_gave_out_more_than_it_had_is_frozen_when_its_buckets_are_empty() {
    run(async {
        let world = world().await;
        let sale = sold_one(&world, "empty").await;
        copy(&world, &sale, 0).await;
        assert_eq!(transfer(&world, &sale, FORTH, 4).await, 5);
        go_back(&world, &sale, 0).await;
        for (shard, units) in [(0, 10), (1, 15)] {
            let answer = world.buy(&sale, &buyer_of(shard, 2, 1), units, None).await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
        eventually("it is frozen", async || {
            let answer = world.buy(&sale, &buyer_of(1, 2, 2), 1, None).await;
            assert!(matches!(answer.status, 423 | 503), "{answer:?}");
            state(&world, &sale).await == [MetaState::Frozen; 2]
        })
        .await;
        world.stop().await;
    });
}

/// An older process gives without writing down the units, and finishes what a newer one began.
#[test]
fn a_transfer_that_an_older_version_gave_is_no_difference() {
    run(async {
        let world = world().await;
        let sale = world.sale("older", 20, None).await;
        assert_eq!(transfer(&world, &sale, FORTH, 4).await, 5);
        let second = take(&world, &sale, FORTH, 2).await;
        let (redis, meta) = (&world.servers.redis, world.servers.redis.keys.meta(1, &sale));
        world.redis(&["INCRBY", &redis.keys.stock(1, &sale), &second.units.to_string()]).await;
        world.redis(&["HSET", &meta, "from:0", "2"]).await;
        world.redis(&["HINCRBY", &meta, "in", &second.units.to_string()]).await;
        assert_eq!(world.redis(&["HGET", &meta, "got:0"]).await.as_str(), Some("1 5"));
        assert_eq!(redis.transfers.give(&sale, &second).await.unwrap(), Given::Before);
        assert!(world.audit(&sale, Window::Now).await.consistent());
        redis.transfers.forget(&sale, &second).await.unwrap();
        transfer(&world, &sale, FORTH, 1).await;
        assert_eq!((stock(&world, &sale).await, sell_out(&world, &sale).await), (Some(20), 20));
        world.finish().await;
    });
}
