//! Rebuild, grants, reclaim and give-up as one algebra (docs/architecture.md, "The books"): whatever meets whatever, no unit is
//! lost and none is sold twice.

use crate::support::world::fault_injection::purge_mq_dlq;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::sale::MetaState;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

pub(super) const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];

/// Redis loses every key of the sale.
pub(super) async fn lose_the_keys(world: &World, sale: &SaleId) {
    let keys = &world.servers.redis.keys;
    for shard in 0..world.settings.redis.shards {
        for key in keys.of_warmed(shard, sale) {
            world.redis(&["DEL", &key]).await;
        }
    }
}

pub(super) async fn stock(world: &World, sale: &SaleId) -> Option<i64> {
    let mut sum = 0;
    for shard in 0..world.settings.redis.shards {
        sum += world.servers.redis.stock.units(sale, shard).await.unwrap()?;
    }
    Some(sum)
}

pub(super) async fn epoch(world: &World) -> i64 {
    world.number("SELECT CAST(epoch AS SIGNED) AS n FROM sales").await
}

/// Until the sale sells again under another epoch.
pub(super) async fn rebuilt(world: &World, sale: &SaleId, before: i64) {
    let opened = async || {
        let mut opened = epoch(world).await > before;
        for shard in 0..world.settings.redis.shards {
            let meta = world.servers.redis.sale_keys.meta(sale, shard).await.unwrap();
            opened &= meta.is_some_and(|meta| meta.state == MetaState::Open);
        }
        opened && world.audit(sale, Window::Now).await.consistent()
    };
    eventually("the rebuild", opened).await;
}

#[test]
fn a_grant_that_meets_a_rebuild_is_given_once_however_they_meet() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("meets", 10, Some(1)).await;
        for user in ["a", "b", "c"] {
            world.bought(&sale, user).await;
        }
        assert!(world.settled(&sale).await.consistent());

        // Keys are lost, and a grant comes before the rebuild: it is among the units of the rebuild.
        lose_the_keys(&world, &sale).await;
        world.cli(&["sale", "top-up", "meets", "5", "--grant", "early"]).exits(1);
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(12));
        world.cli(&["sale", "top-up", "meets", "5", "--grant", "early"]).exits(0);
        assert_eq!(stock(&world, &sale).await, Some(12), "given before");

        // Frozen keys take no grant; who read it as open long ago gives nothing to the keys of the next epoch.
        world.stop_roles().await;
        world.cli(&["sale", "rebuild", "meets"]).exits(0);
        world.cli(&["sale", "top-up", "meets", "4", "--grant", "late"]).exits(1);
        assert_eq!(stock(&world, &sale).await, Some(12), "nothing into frozen keys");
        assert!(!world.rows("stock_grants", "grant_id = 'late' AND applied_at IS NULL").await.eq(&0));
        world.start_roles(&[Api, Reconcile]).await;
        rebuilt(&world, &sale, 2).await;
        assert_eq!(stock(&world, &sale).await, Some(16));
        let now = u32::try_from(epoch(&world).await).unwrap();
        let again = world.servers.redis.sale_keys.grant(&sale, 0, now, ("late", 4)).await.unwrap();
        assert_eq!(again, seckill::store::redis::Granted::Before);

        // One that comes after it belongs to the new epoch.
        world.cli(&["sale", "top-up", "meets", "2", "--grant", "after"]).exits(0);
        assert_eq!(stock(&world, &sale).await, Some(18));
        world.finish().await;
    });
}

/// Redis had a part of a grant, and units of it were sold, when it lost everything: the rest is not given again on top.
#[test]
fn a_grant_that_redis_had_in_part_before_it_was_lost_is_not_given_twice() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[QUICK, &["redis.shards=4"]].concat()).await;
        let sale = world.sale("part", 8, Some(1)).await;
        for user in 0..8 {
            world.bought(&sale, &format!("u{user}")).await;
        }
        assert!(world.settled(&sale).await.consistent());
        assert!(world.servers.rows.grants.top_up(&sale, "half", 8).await.unwrap());
        for shard in 0..2 {
            world.servers.redis.sale_keys.grant(&sale, shard, 1, ("half", 2)).await.unwrap();
        }
        let mut sold = 0;
        for user in 8..40 {
            sold += i64::from(sold < 3 && world.buy(&sale, &format!("u{user}"), 1, None).await.status == 202);
        }
        assert_eq!(sold, 3);
        eventually("they landed", async || world.orders(&sale).await == 11).await;
        lose_the_keys(&world, &sale).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(5), "16 granted, 11 sold");
        world.finish().await;
    });
}

#[test]
fn failures_from_before_a_rebuild_can_be_sold_again_and_limits_survive_it() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer, Reconcile], QUICK).await;
        let sale = world.sale("before", 20, Some(3)).await;
        for (user, units) in [("alice", 2), ("bob", 1), ("bob", 1)] {
            assert_eq!(world.buy(&sale, user, units, None).await.status, 202);
        }
        assert!(world.settled(&sale).await.consistent());
        world.sql("CREATE TRIGGER hold BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'held'").await;
        let carol = world.bought(&sale, "carol").await;
        eventually("it is parked", async || world.rows("failed_request", "status = 'open'").await == 1).await;
        world.cli(&["dlq", "give-up", &carol.to_string(), "--reason", "test"]).exits(0);
        world.sql("DROP TRIGGER hold").await;
        lose_the_keys(&world, &sale).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(15), "20 less 4 sold less 1 held");

        // Buyers have what they had: alice 2 of 3, bob 2 of 3 in two orders, carol nothing.
        eventually("alice meets her limit", async || world.buy(&sale, "alice", 2, None).await.code() == "P2-R5").await;
        assert_eq!(world.buy(&sale, "bob", 2, None).await.code(), "P2-R5");
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 202);
        assert_eq!(world.buy(&sale, "carol", 3, None).await.status, 202);
        let said = world.cli(&["sale", "reclaim", "before"]).exits(0).out;
        assert!(said.contains("1 units again, of 1 failed requests"), "{said}");
        assert!(world.settled(&sale).await.consistent());
        assert_eq!(stock(&world, &sale).await, Some(12));
        world.finish().await;
    });
}

#[test]
fn a_number_given_twice_gets_its_loser_an_outcome_and_the_sale_can_be_rebuilt() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer, Reconcile], QUICK).await;
        let sale = world.sale("twice", 10, Some(1)).await;
        world.bought(&sale, "alice").await;
        assert!(world.settled(&sale).await.consistent());
        // Redis went back: number 1 is given once more, to bob; alice and her unit are forgotten.
        let keys = &world.servers.redis.keys;
        let alice = world.number("SELECT CAST(request_id AS SIGNED) AS n FROM orders").await.to_string();
        world.redis(&["HSET", &keys.meta(0, &sale), "number", "0", "accepted", "0 0"]).await;
        world.redis(&["HDEL", &keys.ledger(0, &sale), &alice]).await;
        world.redis(&["HDEL", &keys.buyers(0, &sale), "alice"]).await;
        world.redis(&["INCRBY", &keys.stock(0, &sale), "1"]).await;
        let bob = world.bought(&sale, "bob").await;
        eventually("bob's outcome", async || world.status_of(&sale, "bob", bob).await.1 == "NUMBER_REUSED").await;
        // His unit is gone with alice's: the two sides agree again, and the sale can be built again.
        lose_the_keys(&world, &sale).await;
        rebuilt(&world, &sale, 1).await;
        assert_eq!(stock(&world, &sale).await, Some(9));
        assert_eq!(world.status_of(&sale, "bob", bob).await, ("FAILED".to_owned(), "NUMBER_REUSED".to_owned()));
        world.finish().await;
    });
}

/// What Redis forgot together with a whole epoch is still reported: the numbers of the old epoch are not thrown away with it.
#[test]
fn a_gap_of_an_epoch_that_redis_forgot_is_reported_for_ever_and_its_unit_is_kept_back() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("forgot", 10, Some(1)).await;
        world
            .sql(
                "CREATE TRIGGER hold BEFORE INSERT ON orders FOR EACH ROW BEGIN IF NEW.user_id = 'lost' THEN \
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'held'; END IF; END",
            )
            .await;
        world.bought(&sale, "a").await;
        world.bought(&sale, "lost").await;
        world.bought(&sale, "c").await;
        eventually("two of three", async || world.orders(&sale).await == 2).await;
        eventually("the third is parked", async || !world.mq_dlq().await.is_empty()).await;
        // Everything that knew of it goes: Redis' keys, the broker's queue, the register. P5 starts after that: it could else
        // be between the queue and the register, and write the row that was deleted.
        lose_the_keys(&world, &sale).await;
        purge_mq_dlq(&world.servers.rabbit).await;
        world.sql("DELETE FROM failed_request; DROP TRIGGER hold").await;
        world.start_roles(&[Reconcile]).await;
        eventually("rebuilt", async || epoch(&world).await == 2 && stock(&world, &sale).await == Some(7)).await;
        eventually("it is reported", async || world.rows("audit_findings", "code = 'P5-RC4'").await > 0).await;
        let said = world.cli(&["audit", "--now"]).exits(2).out;
        assert!(said.contains("epoch 1: number 2 has no outcome"), "{said}");
        assert_eq!(stock(&world, &sale).await, Some(7), "10 less 2 sold less 1 that somebody was promised");
        // Its message turns up after all: its unit is still there.
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!((audit.counted.gaps_held, audit.counted.database_stock), (1, 8));
        world.cli(&["finding", "close", "forgot", "--gap", "1:0:2", "--reason", "refunded"]).exits(0);
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.cli(&["sale", "reclaim", "forgot"]).exits(0);
        assert_eq!(stock(&world, &sale).await, Some(8));
        assert_eq!(world.rows("audit_findings", "code = 'P5-RC3'").await, 0, "no orphan was cried after the rebuild");
        world.finish().await;
    });
}

#[test]
fn records_of_former_epochs_are_forgotten_and_a_closed_sale_leaves_redis_after_a_rebuild() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer, Reconcile], QUICK).await;
        let sale = world.sale("trims", 10, Some(1)).await;
        world.bought(&sale, "a").await;
        world.bought(&sale, "b").await;
        assert!(world.settled(&sale).await.consistent());
        lose_the_keys(&world, &sale).await;
        rebuilt(&world, &sale, 1).await;
        let ledger = world.servers.redis.keys.ledger(0, &sale);
        assert_eq!(world.redis(&["HLEN", &ledger]).await.as_u64(), Some(3), "loaded, for replays");
        eventually("c buys", async || world.buy(&sale, "c", 1, None).await.status == 202).await;
        assert!(world.settled(&sale).await.consistent());
        let mut world = world;
        world.stop_roles().await;
        world.cli(&["sale", "close", "trims"]).exits(0);
        let short = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.ledger_retention_s = 1);
        let meta = world.servers.redis.keys.meta(0, &sale);
        eventually("gone from redis", async || world.redis(&["EXISTS", &meta]).await.as_u64() == Some(0)).await;
        short.stop().await;
        assert_eq!(world.rows("sale_epochs", "epoch = 2 AND number = 1 AND accepted = 1").await, 1);
        assert!(world.audit(&sale, Window::Now).await.consistent());
        // A database that goes back after that is reported all the same.
        world.sql("DELETE FROM request_outcome WHERE epoch = 2").await;
        assert!(!world.audit(&sale, Window::Now).await.consistent());
    });
}
