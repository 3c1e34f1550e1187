//! Sales over four shards (B4) through the entry: the answers that buyers get, and what must not change while one lives.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::own_redis;
use crate::support::world::parts::buckets::buyer_of;
use crate::support::world::second_world::NO_REPAIR;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::sale::MetaState;
use seckill::domain::shard::home_shard;
use seckill::p5_reconcile::{Window, audit_sale};
use seckill::store::redis::{Between, Taken, Transfer};

const FOUR: [&str; 2] = ["redis.shards=4", "p1_entry.cache_ttl_ms=50"];

async fn stocks(world: &World, sale: &SaleId) -> Vec<i64> {
    let mut all = Vec::new();
    for shard in 0..4 {
        all.push(world.servers.redis.stock.units(sale, shard).await.unwrap().unwrap());
    }
    all
}

#[test]
fn sold_out_is_said_when_all_buckets_are_empty_and_taken_back_by_a_top_up() {
    run(async {
        let world = World::with(&seckill::roles::Role::ALL, &FOUR).await;
        let sale = world.sale("spread", 6, None).await;
        assert_eq!(stocks(&world, &sale).await, [2, 2, 1, 1]);
        // One buyer of shard 3 wants more than any bucket holds.
        let (buyer, token) = (buyer_of(3, 4, 0), world.token(&sale, &buyer_of(3, 4, 0)).await.0);
        let all = world.buy(&sale, &buyer, 7, None).await;
        assert_eq!((all.status, all.code().as_str(), &all.json["remaining"]), (409, "P2-R7", &6.into()), "{all:?}");
        let bought = world.buy(&sale, &buyer, 5, Some(&token)).await;
        assert_eq!(bought.status, 202, "gathered from several: {bought:?}");
        let more = world.buy(&sale, &buyer_of(0, 4, 0), 2, None).await;
        assert_eq!((more.status, more.code().as_str(), &more.json["remaining"]), (409, "P2-R7", &1.into()), "{more:?}");
        assert_eq!(world.buy(&sale, &buyer_of(1, 4, 0), 1, None).await.status, 202, "no mark was set");
        let none = world.buy(&sale, &buyer_of(2, 4, 0), 1, None).await;
        assert_eq!((none.status, none.code().as_str()), (410, "P2-R4"), "{none:?}");
        eventually("the mark keeps buyers away", async || {
            world.buy(&sale, &buyer_of(0, 4, 1), 1, None).await.code() == "P1-S2"
        })
        .await;
        let again = world.buy(&sale, &buyer, 5, Some(&token)).await;
        assert_eq!((again.status, again.text("request_id")), (202, bought.text("request_id")), "the winner's replay");
        let id = RequestId::parse(&bought.text("request_id")).unwrap();
        assert!(world.servers.redis.ledger.lookup(&sale, 3, &[id]).await.unwrap()[0].is_some(), "on the home shard");

        world.sale_control().top_up(&sale, "more", 1).await.unwrap();
        assert_eq!(stocks(&world, &sale).await, [1, 0, 0, 0]);
        eventually("it sells again", async || world.buy(&sale, &buyer_of(3, 4, 1), 1, None).await.status == 202).await;
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.ordered, counted.redis_stock, counted.in_transit), (7, 0, 0), "{counted:?}");
        world.finish().await;
    });
}

#[test]
fn a_sale_with_units_between_two_buckets_is_not_sold_out() {
    run(async {
        let world = World::with(&NO_REPAIR, &FOUR).await;
        let (sale, redis) = (world.sale("between", 4, Some(1)).await, &world.servers.redis);
        for shard in 1..4 {
            assert_eq!(world.buy(&sale, &buyer_of(shard, 4, 0), 1, None).await.status, 202);
        }
        // Someone took the last unit for shard 1 and died.
        let taken = redis.transfers.take(&sale, Between { source: 0, target: 1 }, 1, 1).await.unwrap();
        let transfer = Transfer { source: 0, target: 1, number: 1, units: 1, epoch: 1 };
        assert_eq!((taken, stocks(&world, &sale).await), (Taken::Record(transfer), vec![0; 4]));
        let shown = world.cli(&["sale", "show", "between", "--json"]).exits(0).json();
        assert_eq!(shown["in_transit"], 1, "{shown}");
        assert_eq!(
            shown["shards"].as_array().unwrap().iter().map(|s| s["in_transit"].as_i64().unwrap()).sum::<i64>(),
            1,
            "{shown}"
        );
        assert!(world.cli(&["sale", "show", "between"]).exits(0).out.contains("in transit"));
        for buyer in [buyer_of(2, 4, 1), buyer_of(3, 4, 1), buyer_of(2, 4, 1)] {
            let wait = world.buy(&sale, &buyer, 1, None).await;
            assert_eq!((wait.status, wait.code().as_str()), (503, "P2-R3"), "{wait:?}");
        }
        let counted = world.audit(&sale, Window::Now).await.counted;
        assert_eq!((counted.redis_stock, counted.in_transit), (0, 1), "{counted:?}");
        assert!(counted.equations().iter().all(|equation| equation.holds()), "{counted:?}");
        // A buyer of shard 1 finds the record; no buyer has to wait for P5.
        assert_eq!(world.buy(&sale, &buyer_of(1, 4, 1), 1, None).await.status, 202);
        assert_eq!(redis.transfers.pending(&sale, 0).await.unwrap(), []);
        let none = world.buy(&sale, &buyer_of(2, 4, 1), 1, None).await;
        assert_eq!((none.status, none.code().as_str()), (410, "P2-R4"), "{none:?}");
        world.finish().await;
    });
}

#[test]
fn the_number_of_shards_of_a_live_sale_does_not_change() {
    run(async {
        let world = World::with(&NO_REPAIR, &FOUR).await;
        let sale = world.sale("fixed", 40, Some(1)).await;
        let buyer = (0..)
            .map(|n| buyer_of(1, 4, n))
            .find(|name| home_shard(&seckill::domain::ids::UserId::parse(name).unwrap(), 2) == 1);
        let buyer = buyer.unwrap();
        assert_eq!(world.buy(&sale, &buyer, 1, None).await.status, 202);
        assert!(world.settled(&sale).await.consistent());
        let other = world.second_world(&NO_REPAIR, &["redis.shards=2"]).await;
        for name in [buyer.as_str(), "somebody", "else"] {
            let answer = other.buy(&sale, name, 1, None).await;
            assert_eq!((answer.status, answer.code().as_str()), (503, "UNAVAILABLE"), "{answer:?}");
        }
        let found = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        let refusals = [
            other.sale_control().warm(&sale).await.unwrap_err().to_string(),
            other.sale_control().top_up(&sale, "more", 1).await.unwrap_err().to_string(),
            other.sale_control().pause(&sale).await.unwrap_err().to_string(),
            audit_sale(&other.reconcile_context(), &found, Window::Now).await.unwrap_err().to_string(),
        ];
        for refusal in refusals {
            assert!(refusal.contains("redis.shards = 4, this process has 2"), "{refusal}");
        }
        other.stop().await;
        assert_eq!(stocks(&world, &sale).await.iter().sum::<i64>(), 39);
        world.finish().await;
    });
}

#[test]
fn a_shard_that_went_back_in_time_freezes_the_whole_sale_and_it_is_rebuilt_over_all_shards() {
    run(async {
        let (_server, world) = own_redis::world("shard-rewound", &NO_REPAIR, &FOUR).await;
        let (sale, redis) = (world.sale("rewound", 9, None).await, &world.servers.redis);
        for n in 0..2 {
            assert_eq!(world.buy(&sale, &buyer_of(2, 4, n), 1, None).await.status, 202);
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        let mut raw = RawRedis::of(&world).await;
        raw.call(&["HSET", &redis.keys.meta(2, &sale), "number", "1"]).await;
        raw.call(&["SCRIPT", "FLUSH"]).await;
        assert_eq!(world.buy(&sale, &buyer_of(0, 4, 0), 1, None).await.status, 423);
        for shard in 0..4 {
            assert_eq!(
                redis.sale_keys.meta(&sale, shard).await.unwrap().unwrap().state,
                MetaState::Frozen,
                "shard {shard}"
            );
        }
        let p5 = world.extra_roles(&[seckill::roles::Role::Reconcile], |s| {
            s.p5_reconcile.interval_ms = 100;
            s.p5_reconcile.quiet_ms = 200;
        });
        eventually("it is rebuilt", async || {
            redis.sale_keys.meta(&sale, 3).await.unwrap().is_some_and(|m| m.epoch == 2)
        })
        .await;
        eventually("it sells", async || world.buy(&sale, &buyer_of(0, 4, 0), 7, None).await.status == 202).await;
        let none = world.buy(&sale, &buyer_of(2, 4, 0), 1, None).await;
        assert_eq!((none.status, none.code().as_str()), (410, "P2-R4"), "{none:?}");
        p5.stop().await;
        world.finish().await;
    });
}
