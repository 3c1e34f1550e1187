//! A sale with very many grants, as one whose orders are cancelled again and again has. What they cost is seen in the server's own
//! counters of commands, which know those of scripts, too.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::own_redis;
use crate::support::world::parts::reserve_model::EPOCH;
use crate::support::world::parts::script_model::redis_sale;
use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::Window;
use seckill::store::redis::{Granted, RedisStore};
use std::ops::Range;

/// As a version gives grants that keeps no sum; each is of one unit.
const GIVE_WITHOUT_SUM: &str = "for no = 1, tonumber(ARGV[2]) do redis.call('HSET', KEYS[1], ARGV[1] .. no, '1') end \
    return redis.call('INCRBY', KEYS[2], ARGV[2])";

/// Calls of a command that the server has processed.
async fn calls(redis: &mut RawRedis, command: &str) -> i64 {
    let stats = redis.call(&["INFO", "commandstats"]).await.text();
    let start = format!("cmdstat_{command}:calls=");
    let calls = stats.lines().find_map(|line| line.strip_prefix(&start)?.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

/// A sale of which nothing is sold, and what has to be counted of it.
struct GrantedSale<'a> {
    store: &'a RedisStore,
    redis: RawRedis,
    sale: SaleId,
    count: u64,
    units: i64,
}

impl GrantedSale<'_> {
    /// Gives grants of two units by the product, each of them twice. Returns how often all grants were read for it.
    async fn give(&mut self, names: Range<u32>) -> i64 {
        let before = calls(&mut self.redis, "hvals").await;
        for no in names {
            for expected in [Granted::Now, Granted::Before] {
                let given = self.store.sale_keys.grant(&self.sale, 0, EPOCH, (&format!("g{no}"), 2)).await;
                assert_eq!(given.unwrap(), expected, "grant {no}");
            }
            self.count += 1;
            self.units += 2;
        }
        calls(&mut self.redis, "hvals").await - before
    }

    async fn give_without_sum(&mut self, name: &str, count: u32) {
        let keys = &self.store.keys;
        let (grants, stock) = (keys.grants(0, &self.sale), keys.stock(0, &self.sale));
        self.redis.call(&["EVAL", GIVE_WITHOUT_SUM, "2", &grants, &stock, name, &count.to_string()]).await;
        self.count += u64::from(count);
        self.units += i64::from(count);
    }

    /// Counts as audits do, and finds what is right. Returns how often all grants were read for it.
    async fn counted(&mut self) -> i64 {
        let before = calls(&mut self.redis, "hvals").await;
        let counted = self.store.sale_keys.count(&self.sale, 0).await.unwrap().unwrap();
        assert_eq!((counted.grants, counted.granted, counted.stock), (self.count, self.units, self.units));
        calls(&mut self.redis, "hvals").await - before
    }

    /// What the meta has as the sum of its grants.
    async fn kept(&mut self) -> Option<String> {
        self.redis.hash(&self.store.keys.meta(0, &self.sale)).await.remove("granted")
    }

    async fn keep(&mut self, text: &str) {
        let meta = self.store.keys.meta(0, &self.sale);
        self.redis.call(&["HSET", &meta, "granted", text]).await;
    }
}

#[test]
fn a_count_does_not_read_many_grants_whichever_version_gave_them() {
    run(async {
        let (_server, world) = own_redis::world("many-grants", &[], &[]).await;
        let (store, redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let sale = redis_sale("many", 5);
        store.sale_keys.activate(&sale, 0, 100, ("first", 10)).await.unwrap();
        let mut sale = GrantedSale { store, redis, sale: sale.sale_id, count: 1, units: 10 };
        assert_eq!((sale.give(1..128).await, sale.counted().await, sale.kept().await), (0, 1, None), "few are read");
        assert_eq!((sale.give(128..129).await, sale.counted().await), (1, 0), "summed once");
        assert!(sale.kept().await.unwrap().starts_with("129 266 "));
        assert_eq!((sale.give(129..200).await, sale.counted().await), (0, 0), "and kept");

        // A process of the version before gives very many. They were summed a moment ago: the grants do not read them all.
        sale.give_without_sum("before-", 100_000).await;
        assert_eq!((sale.counted().await, sale.give(200..203).await, sale.counted().await), (1, 0, 1));
        // Long ago.
        sale.keep("129 266 1").await;
        assert_eq!((sale.give(203..204).await, sale.counted().await), (1, 0), "the first grant sums them again");
        assert_eq!((sale.give(204..230).await, sale.counted().await), (0, 0));
        sale.give_without_sum("late-", 1).await;
        assert_eq!(sale.counted().await, 1, "one more that was given without the sum");

        // What cannot be read is no sum.
        let number = sale.count;
        for text in ["", "x", "N", "N 5", "N 5 5 5", "N 1e3 5", " N 5 5"] {
            sale.keep(&text.replace('N', &number.to_string())).await;
            assert_eq!(sale.counted().await, 1, "{text:?}");
        }
        assert_eq!((sale.give(230..231).await, sale.counted().await), (1, 0), "it is made anew");
        world.stop().await;
    });
}

#[test]
fn a_grant_goes_on_where_another_one_is_no_number() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (store, mut redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let sale = redis_sale("no-number", 5);
        store.sale_keys.activate(&sale, 0, 100, ("first", 10)).await.unwrap();
        let (grants, meta) = (store.keys.grants(0, &sale.sale_id), store.keys.meta(0, &sale.sale_id));
        for no in 0..200 {
            redis.call(&["HSET", &grants, &format!("by-hand-{no}"), "x"]).await;
        }
        let given = store.sale_keys.grant(&sale.sale_id, 0, EPOCH, ("more", 5)).await.unwrap();
        assert_eq!((given, store.stock.units(&sale.sale_id, 0).await.unwrap()), (Granted::Now, Some(15)));
        assert!(!redis.hash(&meta).await.contains_key("granted"), "there is no sum to keep");
        assert!(store.sale_keys.count(&sale.sale_id, 0).await.is_err(), "and none to report");
        world.stop().await;
    });
}

/// A sale may have been frozen for hours, while its buyers cancelled.
#[test]
fn the_grants_that_a_rebuild_takes_in_are_counted_with_its_own() {
    run(async {
        let (_server, world) = own_redis::world("rebuilt-grants", &[], &[]).await;
        let (store, mut redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let (sale, keys) = (redis_sale("rebuilt", 5), &store.keys);
        store.sale_keys.activate(&sale, 0, 100, ("rebuild-1", 0)).await.unwrap();
        let meta = keys.meta(0, &sale.sale_id);
        redis.call(&["HSET", &meta, "state", "frozen", "page", "0"]).await;
        let (stock, grants, epoch) = (keys.stock(0, &sale.sale_id), keys.grants(0, &sale.sale_id), EPOCH.to_string());
        let script = include_str!("../../../lua/rebuild_end.lua");
        let taken_in: Vec<String> = (0..200).map(|no| format!("cancel-{no}")).collect();
        let fixed: [&str; 9] = ["EVAL", script, "3", &meta, &stock, &grants, &epoch, "50", "open"];
        let end: Vec<&str> = fixed.into_iter().chain(taken_in.iter().map(String::as_str)).collect();
        assert_eq!(redis.call(&end).await.int(), 1);
        let mut sale = GrantedSale { store, redis, sale: sale.sale_id, count: 201, units: 50 };
        assert_eq!((sale.counted().await, sale.kept().await.as_deref()), (0, Some("201 50 0")));
        assert_eq!((sale.give(0..3).await, sale.counted().await), (0, 0));
        world.stop().await;
    });
}

/// Nothing else shows it: Redis' own books are in order, and the database calls what it lacks "not given yet".
#[test]
fn too_many_grants_are_compared_by_their_sum_and_not_read() {
    run(async {
        let (_server, world) = own_redis::world("summed-grants", &[], &[]).await;
        let sale = world.sale("summed", 10, None).await;
        let (store, redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let mut given = GrantedSale { store, redis, sale: sale.clone(), count: 1, units: 10 };
        let before = calls(&mut given.redis, "hgetall").await;
        assert!(world.audit(&sale, Window::Now).await.consistent());
        let few = calls(&mut given.redis, "hgetall").await - before;
        assert!(few > 0, "few grants are read, with their names");

        given.give_without_sum("unknown-", 10_001).await;
        let before = calls(&mut given.redis, "hgetall").await;
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(calls(&mut given.redis, "hgetall").await - before, few - 1);
        let details: Vec<&str> = audit.findings.iter().map(|finding| finding.detail.as_str()).collect();
        assert_eq!(details, ["redis was given 10011 units of grants, the database knows of 10 in this epoch"]);
        world.stop().await;
    });
}
