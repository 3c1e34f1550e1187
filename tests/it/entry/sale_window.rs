//! When a sale sells: its states, warm-ups and top-ups.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::refusals::refused;
use crate::support::world::{World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::domain::sale::SaleStatus;
use seckill::roles::Role;
use seckill::runtime::now_ms;
use seckill::sales::SaleControlError;
use seckill::store::redis::Activation;

/// No automatic warm-up: the tests say when.
const BY_HAND: [&str; 1] = ["p5_reconcile.warm_ahead_ms=0"];

#[test]
fn a_pause_stops_a_sale_at_once_and_a_resume_goes_on() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("pause", 5, Some(1)).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        world.sale_control().pause(&sale).await.unwrap();
        // The entry may not know it yet; the script does.
        for _ in 0..20 {
            refused(&world, &sale, 423, "P1-S7").await;
        }
        world.sale_control().warm(&sale).await.expect("a warm-up of a paused sale is no mistake");
        refused(&world, &sale, 423, "P1-S7").await;
        world.sale_control().resume(&sale).await.unwrap();
        eventually("selling again", async || world.buy(&sale, "bob", 1, None).await.status == 202).await;
        world.sale_control().close(&sale).await.unwrap();
        refused(&world, &sale, 410, "P1-S6").await;
        assert!(matches!(world.sale_control().resume(&sale).await, Err(SaleControlError::Closed(_))));
        assert!(matches!(world.sale_control().warm(&sale).await, Err(SaleControlError::Closed(_))));
        refused(&world, &sale, 410, "P1-S6").await;
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        world.finish().await;
    });
}

#[test]
fn a_draft_is_closed_and_an_unknown_sale_is_not_found() {
    run(async {
        let world = World::with(&[Role::Api], &BY_HAND).await;
        let draft = world.draft("draft", 5, |_| {}).await;
        refused(&world, &draft, 503, "P1-S4").await;
        assert!(world.servers.redis.sale_keys.meta(&draft, 0).await.unwrap().is_none(), "a purchase loads no stock");
        let unknown = SaleId::parse("unknown").unwrap();
        refused(&world, &unknown, 404, "P1-S3").await;
        for (path, method) in [("", Method::GET), ("/tokens", Method::POST)] {
            let request = world.request(method, &format!("/v1/sales/unknown{path}"), "a");
            let answer = crate::support::world::Answer::of(request).await;
            assert_eq!((answer.status, answer.code().as_str()), (404, "P1-S3"), "{answer:?}");
        }
        world.sale_control().warm(&draft).await.unwrap();
        eventually("selling", async || world.buy(&draft, "alice", 1, None).await.status == 202).await;
        world.stop().await;
    });
}

#[test]
fn a_top_up_reopens_a_sold_out_sale() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("topup", 1, Some(1)).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        assert!(world.buy(&sale, "bob", 1, None).await.is_sold_out());
        refused(&world, &sale, 410, "P1-S2").await;
        for _ in 0..3 {
            world.sale_control().top_up(&sale, "more-1", 2).await.unwrap();
        }
        eventually("a sale again", async || world.buy(&sale, "bob", 1, None).await.status == 202).await;
        assert_eq!(world.buy(&sale, "carol", 1, None).await.status, 202);
        assert_eq!(world.buy(&sale, "dave", 1, None).await.status, 410, "the same grant id counts once");
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.granted, counted.granted_in_redis, counted.ordered), (3, 3, 3));
        world.finish().await;
    });
}

#[test]
fn a_draft_warms_itself_ahead_of_its_start() {
    run(async {
        let world = World::start().await;
        let soon = world.draft("soon", 5, |sale| sale.starts_at_ms = now_ms() + 30_000).await;
        let later = world.draft("later", 5, |sale| sale.starts_at_ms = now_ms() + 3_000_000).await;
        let status = async |sale: &SaleId| world.servers.rows.sales.get(sale).await.unwrap().unwrap().status;
        eventually("a warmed sale", async || status(&soon).await == SaleStatus::Warmed).await;
        eventually("its stock", async || world.servers.redis.stock.units(&soon, 0).await.unwrap() == Some(5)).await;
        assert_eq!(status(&later).await, SaleStatus::Draft, "not yet");
        refused(&world, &soon, 425, "P1-S5").await;
        world.finish().await;
    });
}

#[test]
fn a_hundred_warm_ups_at_once_load_the_stock_once() {
    run(async {
        let world = World::with(&Role::ALL, &BY_HAND).await;
        let sale = world.draft("hundred", 50, |_| {}).await;
        let sale_control = world.sale_control();
        let warming = (0..100).map(|_| sale_control.warm(&sale));
        for done in futures::future::join_all(warming).await {
            done.expect("every one of them succeeds");
        }
        world.assert_untouched(&sale, 50).await;
        let mut redis = RawRedis::of(&world).await;
        let grants = redis.hash(&world.servers.redis.keys.grants(0, &sale)).await;
        assert_eq!(grants.values().collect::<Vec<_>>(), ["50"], "one grant, once");
        eventually("selling", async || world.buy(&sale, "alice", 1, None).await.status == 202).await;
        world.sale_control().warm(&sale).await.expect("and later");
        // A warm-up that read the draft before all this and was asleep since.
        let draft = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        let grant = grants.into_keys().next().unwrap();
        let late = world.servers.redis.sale_keys.activate(&draft, 0, 1_000, (&grant, 50)).await.unwrap();
        assert_eq!(late, Activation::Present);
        assert_eq!(world.settled(&sale).await.counted.redis_stock, 49, "a warm-up never refills");
        world.finish().await;
    });
}
