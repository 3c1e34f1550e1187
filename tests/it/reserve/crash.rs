//! Deaths at the crash points of P1, P2 and the rebuild (F1, F2, F23, F24; windows 1, 3, 9, 12, 17), and what is lost when a
//! mechanism of theirs is left out: a test that would not see that proves nothing.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::own_redis;
use crate::support::world::second_world::NO_REPAIR;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::sale::MetaState;
use seckill::p5_reconcile::{Window, compensate};
use seckill::roles::Role;

#[test]
fn an_api_that_dies_around_the_script_takes_one_unit_for_one_purchase() {
    run(async {
        let world = World::start().await;
        for (point, is_in_the_ledger) in [("F1", false), ("F2", true)] {
            let sale = world.sale(&format!("dies-{point}"), 10, Some(1)).await;
            let (token, request_id) = world.token(&sale, "alice").await;
            // The first purchase passes, the second one is fatal.
            let api = world.start_armed(&format!("{point}=1*off->return"), "api").await;
            assert_eq!(world.buy_at(&api, sale.as_str(), "first", None).await, Some(202));
            assert_eq!(world.buy_at(&api, sale.as_str(), "alice", Some(&token)).await, None, "{point}: no answer");
            api.died().await;
            let id = RequestId::parse(&request_id).unwrap();
            let record = world.servers.redis.ledger.lookup(&sale, 0, &[id]).await.unwrap().remove(0);
            assert_eq!(record.is_some(), is_in_the_ledger, "{point}");
            let again = world.buy(&sale, "alice", 1, Some(&token)).await;
            assert_eq!((again.status, again.text("request_id")), (202, request_id.clone()), "{point}: {again:?}");
            let status = world.status(&sale, "alice", &request_id, 20).await;
            assert_eq!(status.text("status"), "CONFIRMED", "{point}: {status:?}");
            let counted = world.settled(&sale).await.counted;
            assert_eq!((counted.ordered, counted.redis_stock), (2, 8), "{point}: {counted:?}");
        }
        world.finish().await;
    });
}

#[test]
fn a_warm_up_that_dies_half_way_is_finished_by_the_next_one() {
    run(async {
        // Without an api role nothing else warms the drafts.
        let mut world = World::with(&[], &[]).await;
        for (at, armed) in ["F23=return", "F23=1*off->return", "F23=2*off->return"].into_iter().enumerate() {
            let sale = world.draft(&format!("half-{at}"), 7, |_| {}).await;
            assert!(world.run_armed(armed, &["sale", "warm", sale.as_str()]), "{armed}: it dies there");
            let meta = world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().unwrap();
            assert_eq!(meta.state, MetaState::Loaded, "{armed}: closed to buyers");
            assert!(!world.run_armed("", &["sale", "warm", sale.as_str()]));
            let meta = world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().unwrap();
            assert_eq!(meta.state, MetaState::Open, "{armed}");
            assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(7), "{armed}: loaded once");
        }
        world.start_roles(&Role::ALL).await;
        for at in 0..3 {
            let sale = seckill::domain::ids::SaleId::parse(&format!("half-{at}")).unwrap();
            for buyer in 0..7 {
                assert_eq!(world.buy(&sale, &format!("buyer-{buyer}"), 1, None).await.status, 202);
            }
            assert_eq!(world.buy(&sale, "late", 1, None).await.status, 410);
        }
        world.finish().await;
    });
}

#[test]
fn a_rebuild_that_dies_half_way_is_finished_by_the_next_one() {
    run(async {
        let world = World::with(&NO_REPAIR, &["p5_reconcile.quiet_ms=300", "p1_entry.cache_ttl_ms=50"]).await;
        for (epoch, armed) in [(2, "F24=return"), (3, "F24=1*off->return")] {
            let sale = world.sale(&format!("rebuild-{epoch}"), 10, Some(1)).await;
            let (token, _) = world.token(&sale, "alice").await;
            assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202);
            assert_eq!(world.settled(&sale).await.counted.ordered, 1);
            let mut redis = RawRedis::of(&world).await;
            redis.call(&["DEL", &world.servers.redis.keys.stock(0, &sale)]).await;

            let dying = world.start_armed(armed, "reconcile").await;
            dying.died().await;
            let meta = world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().unwrap();
            assert_eq!(meta.state, MetaState::Frozen, "{armed}: closed to buyers");
            assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 423, "{armed}");
            let next = world.start_armed("", "reconcile").await;
            eventually("it sells again", async || world.buy(&sale, "bob", 1, None).await.status == 202).await;
            assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202, "{armed}: the replay is known");
            assert_eq!(world.buy(&sale, "alice", 1, None).await.code(), "P2-R1", "{armed}: and so is the buyer");
            let now = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
            assert_eq!(now.epoch, 3, "{armed}: each attempt has an epoch of its own");
            assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(8), "{armed}");
            next.kill();
        }
        world.finish().await;
    });
}

#[test]
fn without_the_replay_check_one_purchase_takes_two_units() {
    run(async {
        let world = World::with(&NO_REPAIR, &[]).await;
        let sale = world.sale("twice", 10, None).await;
        let (token, _) = world.token(&sale, "alice").await;
        let api = world.start_armed("replay_check=return", "api").await;
        for _ in 0..2 {
            assert_eq!(world.buy_at(&api, "twice", "alice", Some(&token)).await, Some(202));
        }
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(8));
        assert!(!world.settled(&sale).await.consistent(), "the balance sheet sees it");
        api.kill();
        world.stop().await;
    });
}

#[test]
fn without_the_ledger_a_lost_message_is_lost_for_good() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("unwritten", 10, None).await;
        let api = world.start_armed("ledger=return", "api").await;
        assert_eq!(world.buy_at(&api, "unwritten", "alice", None).await, Some(202));
        let mut redis = RawRedis::of(&world).await;
        let keys = world.servers.redis.keys.clone();
        assert_eq!(redis.call(&["HLEN", &keys.ledger(0, &sale)]).await.int(), 1, "the marker only");
        redis.call(&["XTRIM", &keys.outbox(0), "MAXLEN", "0"]).await;
        let repaired = compensate(&world.reconcile_context(), &world.audit(&sale, Window::Now).await).await.unwrap();
        assert_eq!(world.orders(&sale).await, 0, "there is no content to land: {repaired:?}");
        assert!(!world.audit(&sale, Window::Now).await.consistent(), "the balance sheet sees it");
        api.kill();
        world.stop().await;
    });
}

#[test]
fn without_the_boot_fence_a_rewound_sale_sells_on() {
    run(async {
        let (_server, world) = own_redis::world("unfenced", &NO_REPAIR, &[]).await;
        let sale = world.sale("unfenced", 10, None).await;
        for buyer in ["alice", "bob", "carol"] {
            assert_eq!(world.buy(&sale, buyer, 1, None).await.status, 202);
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 3);
        let api = world.start_armed("boot_fence=return", "api").await;
        let mut redis = RawRedis::of(&world).await;
        redis.call(&["HSET", &world.servers.redis.keys.meta(0, &sale), "number", "1"]).await;
        redis.call(&["SCRIPT", "FLUSH"]).await;
        assert_eq!(world.buy_at(&api, "unfenced", "dave", None).await, Some(202), "it sells on what went back in time");
        assert!(!world.settled(&sale).await.consistent(), "the balance sheet sees it");
        api.kill();
        world.stop().await;
    });
}
