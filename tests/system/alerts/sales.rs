//! Alerts about single sales: one whose buyers the database refuses, and one that nobody closed.

use crate::support::prometheus::Prometheus;
use crate::support::world::{World, run_waiting};
use seckill::roles::Role::Api;
use seckill::runtime::now_ms;

#[test]
fn a_refusal_by_the_database_and_a_sale_that_nobody_closed_are_reported() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("refusing", 10, Some(1)).await;
        let (relay, consumer) = (world.process("relay", "", &[]), world.process("consumer", "", &[]));
        let p5 = world.process("reconcile", "", &["p5_reconcile.interval_ms=300"]);
        p5.until_metric("seckill_p5_reconcile_ended_not_closed_count", |count| count == 0.0).await;
        let tower = Prometheus::over("alerts-sales", &[&relay, &consumer, &p5]).await;

        let refused = tower.before("a buyer with an order that Redis does not know", &["SeckillDatabaseRefused"]).await;
        world.foreign_order(&sale, "bob", 7).await;
        let bob = world.bought(&sale, "bob").await;
        refused.fires().await;
        assert_eq!(world.status_of(&sale, "bob", bob).await, ("FAILED".into(), "DUPLICATE_BUYER".into()));
        refused.resolves().await;

        let forgotten = tower.before("a sale that ended two hours ago", &["SeckillEndedNotClosed"]).await;
        let hours_ago = |hours: i64| now_ms() - hours * 3_600_000;
        let over = world
            .sale_with("over", 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = (hours_ago(3), hours_ago(2)))
            .await;
        forgotten.fires().await;
        world.cli(&["sale", "close", over.as_str()]).exits(0);
        forgotten.resolves().await;
        world.finish().await;
    });
}
