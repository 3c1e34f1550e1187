//! Transfers between buckets (B4) that are cut off. Deaths between take and give (F25) and between give and forget
//! (F26), and repeats that come late: P5 finishes, no unit is lost and none is there twice (window 6).

use crate::support::world::parts::buckets::buyer_of;
use crate::support::world::second_world::NO_REPAIR;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::sale::MetaState;
use seckill::p5_reconcile::{Window, finish_transfers};
use seckill::roles::Role;
use seckill::store::redis::{Between, Given, RedisStore, Taken, Transfer};

async fn stocks(redis: &RedisStore, sale: &SaleId) -> (i64, i64) {
    (redis.stock.units(sale, 0).await.unwrap().unwrap(), redis.stock.units(sale, 1).await.unwrap().unwrap())
}

async fn take(redis: &RedisStore, sale: &SaleId, wanted: i64) -> Transfer {
    let taken = redis.transfers.take(sale, Between { source: 0, target: 1 }, 1, wanted).await.unwrap();
    let Taken::Record(transfer) = taken else { panic!("{taken:?}") };
    transfer
}

#[test]
fn an_api_that_dies_in_the_middle_of_a_transfer_strands_nothing() {
    run(async {
        let world = World::with(&NO_REPAIR, &["redis.shards=2", "p1_entry.cache_ttl_ms=50"]).await;
        for (point, at_death) in [("F25", (0, 0)), ("F26", (0, 1))] {
            let (sale, redis) = (world.sale(&format!("dies-{point}"), 2, Some(1)).await, &world.servers.redis);
            assert_eq!(world.buy(&sale, &buyer_of(1, 2, 0), 1, None).await.status, 202);
            let dying = world.start_armed(&format!("{point}=return"), "api").await;
            assert_eq!(world.buy_at(&dying, sale.as_str(), &buyer_of(1, 2, 1), None).await, None, "{point}");
            dying.died().await;
            assert_eq!(stocks(redis, &sale).await, at_death, "{point}");
            assert_eq!(redis.transfers.pending(&sale, 0).await.unwrap().len(), 1, "{point}: the record is there");
            let counted = world.audit(&sale, Window::Now).await.counted;
            assert_eq!(counted.redis_stock + counted.in_transit, 1, "{point}: {counted:?}");
            let p5 = world.extra_roles(&[Role::Reconcile], |s| s.p5_reconcile.interval_ms = 100);
            eventually("p5 finished it", async || redis.transfers.pending(&sale, 0).await.unwrap().is_empty()).await;
            p5.stop().await;
            assert_eq!(stocks(redis, &sale).await, (0, 1), "{point}: once");
            assert_eq!(world.buy(&sale, &buyer_of(0, 2, 0), 1, None).await.status, 202, "{point}: it is sold");
            assert_eq!(world.buy(&sale, &buyer_of(0, 2, 1), 1, None).await.code(), "P2-R4", "{point}");
            assert_eq!(world.settled(&sale).await.counted.ordered, 2, "{point}");
        }
        world.finish().await;
    });
}

#[test]
fn every_step_may_come_twice_and_late() {
    run(async {
        let world = World::with(&[], &["redis.shards=2"]).await;
        let (sale, redis) = (world.sale("late", 40, None).await, &world.servers.redis);
        let first = take(redis, &sale, 3).await;
        assert_eq!((first.number, first.units, stocks(redis, &sale).await), (1, 10, (10, 20)), "about half");
        assert_eq!(take(redis, &sale, 5).await, first, "a repeat finds the record");
        assert_eq!(redis.transfers.pending(&sale, 0).await.unwrap(), [first]);
        assert_eq!(redis.transfers.give(&sale, &first).await.unwrap(), Given::Now);
        assert_eq!(redis.transfers.give(&sale, &first).await.unwrap(), Given::Before);
        for _ in 0..2 {
            redis.transfers.forget(&sale, &first).await.unwrap();
        }
        let second = take(redis, &sale, 8).await;
        assert_eq!((second.number, second.units, stocks(redis, &sale).await), (2, 8, (2, 30)), "what is wanted");
        // The first transfer's steps once more, as late as can be.
        redis.transfers.forget(&sale, &first).await.unwrap();
        assert_eq!(redis.transfers.give(&sale, &first).await.unwrap(), Given::Before);
        assert_eq!(redis.transfers.pending(&sale, 0).await.unwrap(), [second], "the second one's record stays");
        let old = Transfer { epoch: 7, ..second };
        assert_eq!(redis.transfers.give(&sale, &old).await.unwrap(), Given::Refused, "another epoch");
        assert_eq!(redis.transfers.give(&sale, &second).await.unwrap(), Given::Now);
        redis.transfers.forget(&sale, &second).await.unwrap();
        let third = take(redis, &sale, 9).await;
        assert_eq!((third.units, stocks(redis, &sale).await), (2, (0, 38)), "at most all");
        assert_eq!(
            redis.transfers.take(&sale, Between { source: 0, target: 1 }, 2, 1).await.unwrap(),
            Taken::Refused,
            "another epoch"
        );
        world.sale_control().pause(&sale).await.unwrap();
        assert_eq!(
            redis.transfers.take(&sale, Between { source: 1, target: 0 }, 1, 1).await.unwrap(),
            Taken::Refused,
            "not open"
        );
        let shown = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        assert_eq!(
            finish_transfers(&world.servers.redis.transfers, world.settings.redis.shards, &shown).await.unwrap(),
            1,
            "also of a paused sale"
        );
        assert_eq!(
            finish_transfers(&world.servers.redis.transfers, world.settings.redis.shards, &shown).await.unwrap(),
            0
        );
        assert_eq!(stocks(redis, &sale).await, (0, 40));
        world.finish().await;
    });
}

/// Window 111. The books balance: the units are recorded as under way.
#[test]
fn a_transfer_that_its_target_goes_on_refusing_is_a_finding_until_it_is_given() {
    run(async {
        let world = World::with(&NO_REPAIR, &["redis.shards=2"]).await;
        let (sale, redis) = (world.sale("refused", 40, None).await, &world.servers.redis);
        let shown = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        let stranded = take(redis, &sale, 3).await;
        assert!(world.audit(&sale, Window::Now).await.findings.is_empty(), "under way is not stuck");
        let meta = redis.keys.meta(1, &sale);
        world.redis(&["HSET", &meta, "from:0", "many"]).await;
        assert_eq!(redis.transfers.give(&sale, &stranded).await.unwrap(), Given::Refused, "damaged");
        let finish = async || finish_transfers(&redis.transfers, 2, &shown).await.unwrap();
        assert_eq!(finish().await, 0);
        let audit = world.audit(&sale, Window::Now).await;
        let details: Vec<&str> = audit.findings.iter().map(|finding| finding.detail.as_str()).collect();
        assert!(details.len() == 1 && details[0].contains("shard 1 refuses transfer 1"), "{details:?}");
        assert!(details[0].starts_with("10 units stay between shards 0 and 1"), "{details:?}");
        world.redis(&["HDEL", &meta, "from:0"]).await;
        assert_eq!((finish().await, stocks(redis, &sale).await), (1, (10, 30)));
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.finish().await;
    });
}

#[test]
fn a_rebuild_counts_units_between_two_buckets_once() {
    run(async {
        let world = World::with(&NO_REPAIR, &["redis.shards=2", "p1_entry.cache_ttl_ms=50"]).await;
        let (sale, redis) = (world.sale("rebuilt", 10, None).await, &world.servers.redis);
        assert_eq!(world.buy(&sale, &buyer_of(0, 2, 0), 1, None).await.status, 202);
        assert_eq!(world.settled(&sale).await.counted.ordered, 1);
        let stranded = take(redis, &sale, 1).await;
        for shard in 0..2 {
            redis.sale_keys.set_state(&sale, shard, MetaState::Frozen, &[MetaState::Open]).await.unwrap();
        }
        assert_eq!(redis.transfers.give(&sale, &stranded).await.unwrap(), Given::Refused, "frozen");
        let p5 = world.extra_roles(&[Role::Reconcile], |s| {
            s.p5_reconcile.interval_ms = 100;
            s.p5_reconcile.quiet_ms = 200;
        });
        eventually("it is rebuilt", async || {
            let metas = [redis.sale_keys.meta(&sale, 0).await.unwrap(), redis.sale_keys.meta(&sale, 1).await.unwrap()];
            metas.iter().flatten().all(|meta| meta.state == MetaState::Open && meta.epoch == 2)
        })
        .await;
        assert_eq!(stocks(redis, &sale).await, (5, 4));
        assert_eq!(redis.transfers.give(&sale, &stranded).await.unwrap(), Given::Refused, "its epoch is over");
        assert_eq!(redis.transfers.pending(&sale, 0).await.unwrap(), []);

        // Again with one unit left for two shards: the one that gets none is rebuilt all the same, not "still being rebuilt".
        eventually("it sells", async || world.buy(&sale, &buyer_of(1, 2, 0), 1, None).await.status == 202).await;
        for n in 1..8 {
            assert_eq!(world.buy(&sale, &buyer_of(1, 2, n), 1, None).await.status, 202);
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 9);
        for epoch in [3, 4] {
            redis.sale_keys.set_state(&sale, 1, MetaState::Frozen, &[MetaState::Open]).await.unwrap();
            eventually("it is rebuilt", async || {
                let metas =
                    [redis.sale_keys.meta(&sale, 0).await.unwrap(), redis.sale_keys.meta(&sale, 1).await.unwrap()];
                metas.iter().flatten().all(|meta| meta.state == MetaState::Open && meta.epoch == epoch)
            })
            .await;
            assert_eq!(stocks(redis, &sale).await, (1, 0), "epoch {epoch}");
        }
        p5.stop().await;
        world.finish().await;
    });
}
