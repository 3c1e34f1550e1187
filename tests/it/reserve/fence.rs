//! The boot fence: a sale in a Redis that went back in time sells nothing, and the others go on.

use crate::support::basics::resp::{RawRedis, spares_the_others};
use crate::support::links::link::Link;
use crate::support::processes::own_redis;
use crate::support::processes::replicas::{has_everything, pair};
use crate::support::world::database_sessions::Session;
use crate::support::world::parts::buckets::buyer_of;
use crate::support::world::second_world::NO_REPAIR;
use crate::support::world::{World, eventually, run};
use futures::future::join_all;
use seckill::domain::sale::MetaState;
use seckill::p5_reconcile::Window;
use seckill::roles::Role;

#[test]
fn a_sale_that_went_back_in_time_freezes_and_the_others_go_on() {
    run(async {
        let (_server, world) = own_redis::world("fence-rewound", &NO_REPAIR, &[]).await;
        let (sale, other) = (world.sale("rewound", 10, None).await, world.sale("fine", 10, None).await);
        for _ in 0..3 {
            assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
            assert_eq!(world.buy(&other, "alice", 1, None).await.status, 202);
        }
        let token = world.token(&sale, "alice").await.0;
        let winner = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!(world.settled(&sale).await.counted.ordered, 4);
        assert_eq!(world.settled(&other).await.counted.ordered, 3);
        let (mut redis, keys) = (RawRedis::of(&world).await, world.servers.redis.keys.clone());
        redis.call(&["HSET", &keys.meta(0, &sale), "number", "2"]).await;
        redis.call(&["SCRIPT", "FLUSH"]).await;
        for user in ["bob", "carol", "dave"] {
            let frozen = world.buy(&sale, user, 1, None).await;
            assert_eq!((frozen.status, frozen.code().as_str()), (423, "P1-S7"), "{frozen:?}");
        }
        assert_eq!(world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().unwrap().state, MetaState::Frozen);
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(6), "nothing is sold");
        assert!(world.sale_control().warm(&sale).await.is_err() && world.sale_control().pause(&sale).await.is_err());
        world.sale_control().resume(&sale).await.expect_err("neither opens a frozen sale");
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 423);
        let again = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!((again.status, again.body), (202, winner.body), "what was accepted stays accepted");
        assert_eq!(world.buy(&other, "bob", 1, None).await.status, 202, "other sales go on");
        assert_eq!(world.settled(&other).await.counted.ordered, 4);
        assert!(!world.audit(&sale, Window::Now).await.consistent(), "the audit sees the rewind");
        world.stop().await;
    });
}

#[test]
fn one_systems_fence_does_not_let_another_systems_rewound_sale_through() {
    run(async {
        let (server, ours) = own_redis::world("fence-ours", &NO_REPAIR, &[]).await;
        let theirs = World::on_redis(&server.url(), "fence-theirs", &NO_REPAIR, &[]).await;
        let sale = ours.sale("ours", 10, None).await;
        let other = theirs.sale("theirs", 10, None).await;
        assert_eq!(ours.buy(&sale, "alice", 3, None).await.status, 202);
        assert_eq!(ours.settled(&sale).await.counted.ordered, 3);
        let (mut redis, keys) = (RawRedis::of(&ours).await, ours.servers.redis.keys.clone());
        redis.call(&["HSET", &keys.meta(0, &sale), "number", "0"]).await;
        redis.call(&["SCRIPT", "FLUSH"]).await;
        // Both systems are on one Redis; the other one meets the empty cache first and loads its script.
        assert_eq!(theirs.buy(&other, "bob", 1, None).await.status, 202);
        let frozen = ours.buy(&sale, "bob", 1, None).await;
        assert_eq!((frozen.status, frozen.code().as_str()), (423, "P1-S7"), "{frozen:?}");
        ours.stop().await;
        theirs.finish().await;
    });
}

#[test]
fn one_damaged_sale_does_not_keep_the_others_closed() {
    run(async {
        let (_server, world) = own_redis::world("fence-damaged", &NO_REPAIR, &[]).await;
        let mut redis = RawRedis::of(&world).await;
        let keys = world.servers.redis.keys.clone();
        let (no_number, no_hash) = (world.sale("a-number", 10, None).await, world.sale("a-hash", 10, None).await);
        let fine = world.sale("fine", 10, None).await;
        redis.call(&["HSET", &keys.meta(0, &no_number), "number", "many"]).await;
        redis.call(&["SET", &keys.meta(0, &no_hash), "x"]).await;
        redis.call(&["SCRIPT", "FLUSH"]).await;
        let answer = world.buy(&fine, "alice", 1, None).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        for sale in [&no_number, &no_hash] {
            let answer = world.buy(sale, "alice", 1, None).await;
            assert_eq!((answer.status, answer.code().as_str()), (503, "UNAVAILABLE"), "{answer:?}");
            assert_eq!(world.servers.redis.stock.units(sale, 0).await.unwrap(), Some(10));
        }
        // Its neighbour's trouble does not keep a later sale from being warmed by itself, either.
        let draft = world.draft("z-draft", 5, |_| {}).await;
        eventually("the draft sells", async || world.buy(&draft, "bob", 1, None).await.status == 202).await;
        assert_eq!(world.settled(&fine).await.counted.ordered, 1);
        world.stop().await;
    });
}

#[test]
fn a_replay_is_answered_while_the_fence_is_shut() {
    run(async {
        let set = ["p1_entry.cache_ttl_ms=60000", "p1_entry.cache_stale_max_ms=60000"];
        let (_server, world) = own_redis::world("fence-shut", &NO_REPAIR, &set).await;
        let sale = world.sale("shut", 10, None).await;
        let token = world.token(&sale, "alice").await.0;
        let winner = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!(winner.status, 202, "{winner:?}");
        // Without the sales there is nothing to compare with.
        let mut database = Session::open(&world).await;
        database.run("RENAME TABLE sales TO sales_elsewhere").await;
        RawRedis::of(&world).await.call(&["SCRIPT", "FLUSH"]).await;
        let again = world.buy(&sale, "alice", 1, Some(&token)).await;
        let other = world.buy(&sale, "bob", 1, None).await;
        database.run("RENAME TABLE sales_elsewhere TO sales").await;
        assert_eq!((again.status, again.body), (202, winner.body), "the ledger has it");
        assert_eq!((other.status, other.code().as_str()), (503, "UNAVAILABLE"), "{other:?}");
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 202);
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        world.stop().await;
    });
}

#[test]
fn a_server_is_compared_once_for_all_the_groups_that_wait_for_it() {
    const SHARDS: u16 = 4;
    const SALES: u16 = 5;
    run(async {
        let roles = [Role::Relay, Role::Consumer];
        let (_server, world) = own_redis::world("fence-once", &roles, &["redis.shards=4"]).await;
        let mut sales = Vec::new();
        for n in 0..SALES {
            sales.push(world.sale(&format!("sale-{n}"), 100, None).await);
        }
        let api = world.start_armed("", "api").await;
        let buy_all = async |nth: usize| {
            let buyers: Vec<String> = (0..SHARDS).map(|shard| buyer_of(shard, SHARDS, nth)).collect();
            let pairs = sales.iter().flat_map(|sale| buyers.iter().map(move |buyer| (sale.as_str(), buyer.as_str())));
            let answers = join_all(pairs.map(|(sale, buyer)| world.buy_at(&api, sale, buyer, None))).await;
            assert!(answers.iter().all(|answer| *answer == Some(202)), "{answers:?}");
        };
        let reads = async || api.metric("seckill_mysql_seconds_count{name=\"highest_number\"}").await.unwrap_or(0.0);
        buy_all(0).await;
        let before = reads().await;
        RawRedis::of(&world).await.call(&["SCRIPT", "FLUSH"]).await;
        buy_all(1).await;
        let each_once = f64::from(SHARDS * SALES);
        let rounds = (reads().await - before) / each_once;
        assert!((1.0..2.0).contains(&rounds), "twenty groups compared their server {rounds} times");
        world.finish().await;
    });
}

#[test]
fn a_name_that_moves_back_to_a_former_primary_sells_nothing_that_it_missed() {
    run(async {
        let (first, second) = pair("moves").await;
        let name = Link::before(first.port()).await;
        let world = World::on_redis(&name.url(&first.url()), "moves", &NO_REPAIR, &[]).await;
        let sale = world.sale("moves", 20, Some(1)).await;
        let sold = async |users: &[&str], ordered: i64| {
            for user in users {
                // Of a purchase that the move cut off the next one learns that it was made.
                let bought = async || [202, 409].contains(&world.buy(&sale, user, 1, None).await.status);
                eventually("it sells", bought).await;
            }
            assert_eq!(world.settled(&sale).await.counted.ordered, ordered);
        };
        sold(&["alice", "bob", "carol"], 3).await;
        has_everything(&first, &second).await;
        RawRedis::at(&second.url(), "").await.call(&["REPLICAOF", "NO", "ONE"]).await;
        let port = second.port().to_string();
        RawRedis::at(&first.url(), "").await.call(&["REPLICAOF", "127.0.0.1", &port]).await;
        name.move_to(second.port());
        sold(&["dave"], 4).await;
        has_everything(&second, &first).await;
        RawRedis::at(&first.url(), "").await.call(&["REPLICAOF", "NO", "ONE"]).await;
        sold(&["erin", "frank"], 6).await;

        let memory = RawRedis::at(&first.url(), "").await.call(&["INFO", "memory"]).await.text();
        assert!(!memory.contains("number_of_cached_scripts:0"), "it has kept its scripts");
        name.move_to(first.port());
        eventually("the sale is frozen", async || {
            let answer = world.buy(&sale, "grace", 1, None).await;
            assert_ne!(answer.status, 202, "its number and its unit are another buyer's: {answer:?}");
            answer.status == 423
        })
        .await;
        let repair = world.extra_roles(&[Role::Reconcile], |_| {});
        sold(&["grace"], 7).await;
        repair.stop().await;
        world.finish().await;
    });
}

/// The tests above empty the cache of their own servers; on the shared one that would freeze other tests' sales.
#[test]
#[should_panic(expected = "SCRIPT FLUSH changes a server that other tests use")]
fn the_scripts_of_the_shared_server_are_not_flushed() {
    spares_the_others(false, &[b"SCRIPT", b"FLUSH"]);
    spares_the_others(true, &[b"SCRIPT", b"EXISTS"]);
    spares_the_others(true, &[b"script", b"flush"]);
}
