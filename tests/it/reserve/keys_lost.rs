//! Keys of a warmed sale missing in Redis. It stays closed, nothing refills it, and the audit says so (A6).

use crate::support::basics::resp::RawRedis;
use crate::support::world::second_world::NO_REPAIR;
use crate::support::world::{World, eventually, run};
use seckill::p5_reconcile::{FindingKind, Window};
use seckill::roles::Role;
use seckill::sales::SaleControlError;

#[test]
fn a_sale_whose_keys_are_lost_stays_closed() {
    run(async {
        let world = World::with(&NO_REPAIR, &[]).await;
        let sale = world.sale("lost", 10, None).await;
        assert_eq!(world.buy(&sale, "alice", 4, None).await.status, 202);
        assert_eq!(world.settled(&sale).await.counted.ordered, 4);
        let mut redis = RawRedis::of(&world).await;
        let keys = world.servers.redis.keys.clone();
        assert_eq!(redis.call(&["DEL", &keys.meta(0, &sale)]).await.int(), 1);
        let closed = world.buy(&sale, "bob", 1, None).await;
        assert_eq!((closed.status, closed.code().as_str()), (423, "P1-S7"), "{closed:?}");
        assert!(closed.text("detail").contains("checked"), "{closed:?}");
        let refused = world.sale_control().warm(&sale).await;
        assert!(matches!(refused, Err(SaleControlError::KeysLost(_))), "{refused:?}");
        assert!(!redis.keys().await.contains(&keys.meta(0, &sale)), "nothing brings the key back");
        assert_eq!(redis.call(&["GET", &keys.stock(0, &sale)]).await.text(), "6", "nothing refills");
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 423);
        let audit = world.audit(&sale, Window::Now).await;
        assert!(!audit.consistent() && audit.findings[0].kind == FindingKind::KeysLost, "{audit:?}");
        world.stop().await;
    });
}

#[test]
fn each_single_lost_key_closes_the_sale_and_shows_in_the_audit() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let mut redis = RawRedis::of(&world).await;
        let keys = world.servers.redis.keys.clone();
        for name in ["meta", "stock", "buyers", "ledger", "grants"] {
            let sale = world.sale(&format!("lost-{name}"), 10, None).await;
            let key = match name {
                "meta" => keys.meta(0, &sale),
                "stock" => keys.stock(0, &sale),
                "buyers" => keys.buyers(0, &sale),
                "ledger" => keys.ledger(0, &sale),
                _ => keys.grants(0, &sale),
            };
            assert_eq!(redis.call(&["DEL", &key]).await.int(), 1);
            if name != "grants" {
                // Selling needs no grants; the other four it needs.
                let answer = world.buy(&sale, "alice", 1, None).await;
                assert_eq!((answer.status, answer.code().as_str()), (423, "P1-S7"), "{name}: {answer:?}");
            }
            assert!(!world.audit(&sale, Window::Now).await.consistent(), "the audit does not miss {name}");
        }
        world.stop().await;
    });
}

#[test]
fn a_sale_whose_keys_are_all_lost_is_not_loaded_again() {
    run(async {
        let world = World::with(&NO_REPAIR, &[]).await;
        let sale = world.sale("gone", 10, None).await;
        let other = world.sale("stays", 10, None).await;
        let mut redis = RawRedis::of(&world).await;
        let keys = world.servers.redis.keys.clone();
        for key in [
            keys.meta(0, &sale),
            keys.stock(0, &sale),
            keys.buyers(0, &sale),
            keys.ledger(0, &sale),
            keys.grants(0, &sale),
            keys.sale(&sale),
        ] {
            redis.call(&["DEL", &key]).await;
        }
        assert!(matches!(world.sale_control().warm(&sale).await, Err(SaleControlError::KeysLost(_))));
        let closed = world.buy(&sale, "alice", 1, None).await;
        assert_eq!((closed.status, closed.code().as_str()), (423, "P1-S7"), "{closed:?}");
        assert!(redis.call(&["EXISTS", &keys.stock(0, &sale)]).await.int() == 0, "nothing is loaded lazily");
        assert!(!world.audit(&sale, Window::Now).await.consistent());
        assert_eq!(world.buy(&other, "alice", 1, None).await.status, 202, "other sales go on");
        world.stop().await;
    });
}

#[test]
fn a_lost_outbox_loses_no_order() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("outbox", 10, None).await;
        let accepted = world.buy(&sale, "alice", 2, None).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        let mut redis = RawRedis::of(&world).await;
        assert_eq!(redis.call(&["DEL", &world.servers.redis.keys.outbox(0)]).await.int(), 1);
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 423, "no outbox, no sale");
        let rest =
            world.second_world(&[Role::Relay, Role::Consumer, Role::Reconcile], &["p5_reconcile.quiet_ms=1000"]).await;
        eventually("the sale sells again with the relay's new outbox", async || {
            world.buy(&sale, "bob", 1, None).await.status == 202
        })
        .await;
        let status = world.status(&sale, "alice", &accepted.text("request_id"), 25).await;
        assert_eq!(status.text("status"), "CONFIRMED", "the ledger still knows: {status:?}");
        assert_eq!(world.settled(&sale).await.counted.ordered, 3);
        rest.stop().await;
        world.finish().await;
    });
}
