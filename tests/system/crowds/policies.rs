//! 2,000 buyers at once against a stock of 200, under each policy. Exactly the stock is ordered.

use crate::support::world::{World, run};
use seckill::roles::Role;
use seckill_bench::loadgen::{self, LoadPlan};
use std::time::Duration;

const STOCK: i64 = 200;

/// 2,000 buyers with `quantity` units each over 64 connections; checks everything that holds for every policy.
async fn storm(world: &World, limit: Option<u32>, quantity: u32, requests_per_buyer: u64) {
    let sale = world.sale(&format!("storm-{}-{quantity}", limit.unwrap_or(0)), STOCK, limit).await;
    let mut plan = LoadPlan::new(&world.api, sale.clone(), world.settings.auth.secret.clone());
    plan.buyers = 2_000;
    plan.quantity = quantity;
    plan.requests_per_buyer = requests_per_buyer;
    plan.timeout_ms = 30_000;
    let report = loadgen::run(plan.clone()).await.expect("a run");
    assert_eq!((report.unresolved, report.accepted_twice), (0, 0), "{report:?}");
    for row in report.by_status.rows() {
        let moving = row.status == 503 && row.code == "P2-R3";
        assert!(matches!(row.status, 202 | 409 | 410) || moving, "unexpected answer {row:?}");
    }
    assert_eq!(report.accepted_units, STOCK.unsigned_abs(), "accepted exactly the stock: {:?}", report.by_status);
    let outcomes = loadgen::await_outcomes(&plan, &report.accepted_requests, Duration::from_secs(60)).await.unwrap();
    assert!(outcomes.all_final(), "{outcomes:?}");
    assert_eq!((outcomes.confirmed, outcomes.failed_count()), (report.accepted, 0), "every 202 becomes an order");
    let counted = world.settled(&sale).await.counted;
    assert_eq!((counted.ordered, counted.database_stock, counted.redis_stock), (STOCK, 0, 0));
}

#[test]
fn a_storm_on_a_one_per_user_sale_orders_exactly_the_stock() {
    run(async {
        let world = World::start().await;
        storm(&world, Some(1), 1, 1).await;
        world.finish().await;
    });
}

#[test]
fn a_storm_on_a_cumulative_sale_orders_exactly_the_stock() {
    run(async {
        let world = World::start().await;
        storm(&world, Some(4), 2, 2).await;
        world.finish().await;
    });
}

#[test]
fn a_storm_on_an_unlimited_sale_orders_exactly_the_stock() {
    run(async {
        let world = World::start().await;
        storm(&world, None, 1, 2).await;
        storm(&world, None, 8, 1).await;
        world.finish().await;
    });
}

#[test]
fn storms_on_four_shards_order_exactly_the_stock() {
    run(async {
        let world = World::with(&Role::ALL, &["redis.shards=4"]).await;
        storm(&world, Some(1), 1, 1).await;
        storm(&world, Some(4), 2, 2).await;
        storm(&world, None, 8, 1).await;
        world.finish().await;
    });
}

#[test]
fn forty_buyers_who_press_fifty_times_each_have_one_order_each() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("press", 1_000, Some(1)).await;
        let mut plan = LoadPlan::new(&world.api, sale.clone(), world.settings.auth.secret.clone());
        (plan.buyers, plan.requests_per_buyer, plan.timeout_ms) = (40, 50, 30_000);
        let report = loadgen::run(plan).await.expect("a run");
        assert_eq!((report.accepted, report.by_status.code(409, "P2-R1")), (40, 40 * 49), "{:?}", report.by_status);
        assert_eq!(world.settled(&sale).await.counted.ordered, 40);
        world.finish().await;
    });
}

#[test]
fn a_crowd_that_repeats_its_tokens_buys_once_each() {
    run(async {
        let world = World::start().await;
        let sale = world.sale_with("replays", STOCK, |sale| sale.token_required = true).await;
        let mut plan = LoadPlan::new(&world.api, sale.clone(), world.settings.auth.secret.clone());
        (plan.buyers, plan.tokens, plan.duplicate_percent, plan.timeout_ms) = (1_000, true, 50, 30_000);
        let report = loadgen::run(plan).await.expect("a run");
        assert_eq!((report.accepted, report.accepted_twice, report.replays_broken), (200, 0, 0), "{report:?}");
        assert!(report.replays > 0, "{report:?}");
        assert_eq!(world.settled(&sale).await.counted.ordered, STOCK);
        world.finish().await;
    });
}
