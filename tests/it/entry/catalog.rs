//! The sales as the entry reads them: one process loads a sale, a stale one is served meanwhile, and a missing one is
//! remembered as missing (row A4).
//!
//! The database is held up by a table lock of another session. Purchases and sale pages show what the cache answers.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::refusals::refused;
use crate::support::processes::own_redis;
use crate::support::world::database_sessions::Session;
use crate::support::world::{Answer, World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use seckill::store::redis::SoldOutMark;

/// The database may take its time; a sale is warmed by hand; every reading of a cached sale finds it too old.
const SLOW: [&str; 5] = [
    "mysql.statement_timeout_ms=60000",
    "p1_entry.cache_ttl_ms=10",
    "p1_entry.cache_stale_max_ms=60000",
    "p5_reconcile.warm_ahead_ms=0",
    "p1_entry.missing_ttl_ms=60000",
];

async fn page(world: &World, sale: &SaleId) -> Answer {
    Answer::of(world.request(Method::GET, &format!("/v1/sales/{sale}"), "a")).await
}

/// Nothing reads the table until the session says `UNLOCK TABLES`.
async fn database_held_up(world: &World) -> Session {
    let mut session = Session::open(world).await;
    session.run("LOCK TABLES sales WRITE").await;
    session
}

async fn forget_in_redis(world: &World, sale: &SaleId) {
    RawRedis::of(world).await.call(&["DEL", &world.servers.redis.keys.sale(sale)]).await;
}

#[test]
fn one_process_loads_a_sale_and_the_others_say_that_it_is_being_loaded() {
    run(async {
        let world = World::with(&[Role::Api], &SLOW).await;
        let beside = world.second_world(&[Role::Api], &SLOW).await;
        let sale = world.sale("cold", 5, Some(1)).await;
        forget_in_redis(&world, &sale).await;
        let mut held = database_held_up(&world).await;
        let lock = world.servers.redis.keys.sale_lock(&sale);
        let (first, ()) = tokio::join!(page(&world, &sale), async {
            eventually("the load lock", async || RawRedis::of(&world).await.call(&["EXISTS", &lock]).await.int() == 1)
                .await;
            // The loader waits for the database; the process beside it does not wait, and asks nothing of the database.
            refused(&beside, &sale, 503, "P1-S4").await;
            let other = page(&beside, &sale).await;
            assert_eq!((other.status, other.code().as_str()), (503, "P1-S4"), "{other:?}");
            held.run("UNLOCK TABLES").await;
        });
        assert_eq!((first.status, first.json["sale_id"].as_str()), (200, Some("cold")), "{first:?}");
        // What one has loaded, the other finds in Redis.
        assert_eq!(page(&beside, &sale).await.status, 200);
        assert_eq!(RawRedis::of(&world).await.call(&["EXISTS", &lock]).await.int(), 0, "the lock is given back");
        beside.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_stale_sale_is_served_while_one_task_reads_it_again() {
    run(async {
        let world = World::with(&[Role::Api], &SLOW).await;
        let sale = world.sale("stale", 5, Some(1)).await;
        assert_eq!(page(&world, &sale).await.json["title"], "t");
        let mut held = database_held_up(&world).await;
        held.run("UPDATE sales SET title = 'new' WHERE sale_id = 'stale'").await;
        forget_in_redis(&world, &sale).await;
        let lock = world.servers.redis.keys.sale_lock(&sale);
        eventually("a refresh that waits for the database", async || {
            let answer = page(&world, &sale).await;
            assert_eq!((answer.status, &answer.json["title"]), (200, &"t".into()), "the stale one");
            RawRedis::of(&world).await.call(&["EXISTS", &lock]).await.int() == 1
        })
        .await;
        for _ in 0..20 {
            let answer = page(&world, &sale).await;
            assert_eq!((answer.status, &answer.json["title"]), (200, &"t".into()), "the stale one");
        }
        held.run("UNLOCK TABLES").await;
        eventually("the new title", async || page(&world, &sale).await.json["title"] == "new").await;
        world.finish().await;
    });
}

#[test]
fn a_load_lock_is_given_back_by_its_owner_only() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (redis, sale) = (&world.servers.redis, SaleId::parse("locked").unwrap());
        assert!(redis.sale_cache.lock(&sale, "first", 60_000).await.unwrap());
        assert!(!redis.sale_cache.lock(&sale, "second", 60_000).await.unwrap(), "it has an owner");
        // The first one's time runs out, and the second takes it.
        RawRedis::of(&world).await.call(&["DEL", &redis.keys.sale_lock(&sale)]).await;
        assert!(redis.sale_cache.lock(&sale, "second", 60_000).await.unwrap());
        redis.sale_cache.unlock(&sale, "first").await.unwrap();
        assert!(!redis.sale_cache.lock(&sale, "third", 60_000).await.unwrap(), "the second still has it");
        redis.sale_cache.unlock(&sale, "second").await.unwrap();
        assert!(redis.sale_cache.lock(&sale, "third", 60_000).await.unwrap());
        world.finish().await;
    });
}

#[test]
fn what_was_read_before_a_change_is_not_cached_after_it_and_nothing_is_cached_for_ever() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (cache, sale) = (&world.servers.redis.sale_cache, SaleId::parse("cached").unwrap());
        let key = world.servers.redis.keys.sale(&sale);
        let lives = async || (1..=60_000).contains(&RawRedis::of(&world).await.call(&["PTTL", &key]).await.int());
        let mark = SoldOutMark { epoch: 1, granted: 1, at_ms: 1 };
        cache.mark_sold_out(&sale, mark, 5_000).await.unwrap();
        assert!(lives().await, "a mark without a sale");
        let before = cache.get(&sale).await.unwrap();
        assert_eq!(before.sold_out, Some(mark));
        cache.forget(&sale).await.unwrap();
        cache.put(&sale, "old", 5_000, &before).await.unwrap();
        let now = cache.get(&sale).await.unwrap();
        assert_eq!((now.sale.as_deref(), now.sold_out), (None, None), "it was read before the change");
        cache.put(&sale, "new", 5_000, &now).await.unwrap();
        assert_eq!(cache.get(&sale).await.unwrap().sale.as_deref(), Some("new"));
        assert!(lives().await);
        world.finish().await;
    });
}

#[test]
fn a_missing_sale_is_remembered_as_missing_for_its_time() {
    run(async {
        let long = World::with(&[Role::Api], &SLOW).await;
        let short =
            long.second_world(&[Role::Api], &["p5_reconcile.warm_ahead_ms=0", "p1_entry.missing_ttl_ms=10"]).await;
        let sale = SaleId::parse("later").unwrap();
        refused(&long, &sale, 404, "P1-S3").await;
        refused(&short, &sale, 404, "P1-S3").await;
        long.sale("later", 5, Some(1)).await;
        eventually("the sale, where a missing one is forgotten at once", async || {
            short.buy(&sale, "alice", 1, None).await.status == 202
        })
        .await;
        refused(&long, &sale, 404, "P1-S3").await;
        short.stop().await;
        long.stop().await;
    });
}

/// With several shards the cached sale may be on another server than the shards that sell. Here one server plays all of them: the
/// page shows whether the sale is found.
#[test]
fn a_new_process_finds_a_sale_whose_cache_refuses_reads_or_writes() {
    run(async {
        let set = [&SLOW[..], &["redis.shards=2"]].concat();
        let (_server, mut world) = own_redis::world("catalog-refuses", &[], &set).await;
        let sale = world.sale("refuses", 5, Some(1)).await;
        let refusals = [
            // NOREPLICAS to the load lock.
            (["CONFIG", "SET", "min-replicas-to-write", "1"], ["CONFIG", "SET", "min-replicas-to-write", "0"]),
            // NOPERM to the reading of the cached sale.
            (["ACL", "SETUSER", "default", "-hmget"], ["ACL", "SETUSER", "default", "+hmget"]),
        ];
        for (refuse, permit) in refusals {
            forget_in_redis(&world, &sale).await;
            RawRedis::of(&world).await.call(&refuse).await;
            world.start_roles(&[Role::Api]).await;
            let answer = page(&world, &sale).await;
            let found = (answer.status, answer.json["sale_id"].as_str());
            assert_eq!(found, (200, Some("refuses")), "{refuse:?}: {answer:?}");
            RawRedis::of(&world).await.call(&permit).await;
            world.stop_roles().await;
        }
        world.finish().await;
    });
}
