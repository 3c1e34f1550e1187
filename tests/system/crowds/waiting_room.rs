//! A crowd through a waiting room.

use crate::support::world::{World, eventually, run};
use seckill::roles::Role;
use seckill::runtime::now_ms;
use seckill_bench::loadgen::{self, LoadPlan};
use std::time::Duration;

#[test]
fn two_thousand_buyers_through_a_room_order_exactly_the_stock() {
    run(async {
        const STOCK: i64 = 200;
        let world = World::with(&Role::ALL, &["redis.shards=2", "p1_entry.room_release_per_s=2000"]).await;
        let starts_at_ms = now_ms() + 4_000;
        let early = |sale: &mut seckill::domain::sale::Sale| {
            (sale.waiting_room, sale.starts_at_ms) = (true, starts_at_ms);
        };
        let sale = world.sale_with("room-crowd", STOCK, early).await;
        let names: Vec<String> = (0..2_000).step_by(4).map(loadgen::buyer_name).collect();
        world.all_enter(&sale, &names).await;
        eventually("the start", async || now_ms() > starts_at_ms).await;
        let mut plan = LoadPlan::new(&world.api, sale.clone(), world.settings.auth.secret.clone());
        (plan.buyers, plan.tokens, plan.room, plan.duplicate_percent) = (2_000, true, true, 20);
        (plan.retry_wait_max_ms, plan.timeout_ms, plan.max_retries) = (100, 30_000, 100);
        let report = loadgen::run(plan.clone()).await.expect("a run");
        assert_eq!((report.unresolved, report.accepted_twice, report.replays_broken), (0, 0, 0), "{report:?}");
        assert_eq!(report.accepted_units, STOCK.unsigned_abs(), "{:?} {:?}", report.by_status, report.places_by_status);
        assert!(report.places_by_status.status(200) >= 200, "{:?}", report.places_by_status);
        let outcomes =
            loadgen::await_outcomes(&plan, &report.accepted_requests, Duration::from_secs(60)).await.unwrap();
        assert!(outcomes.all_final() && outcomes.failed_count() == 0, "{outcomes:?}");
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.ordered, counted.database_stock), (STOCK, 0));
        world.finish().await;
    });
}
