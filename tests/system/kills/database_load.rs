//! The database dies while a crowd buys.

use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{ALONE, World, eventually, run};
use seckill::dev::ServerKind;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill_bench::loadgen;
use std::collections::BTreeMap;

/// Messages that wait, by kind of queue: orders, retry, dlq.
async fn waiting(world: &World) -> BTreeMap<&'static str, u64> {
    let mut all = BTreeMap::new();
    for kind in ["orders", "retry", "dlq"] {
        all.insert(kind, world.waiting_in(&format!("seckill.{kind}")).await);
    }
    all
}

#[test]
fn a_database_that_dies_in_a_load_opens_the_breaker_and_loses_and_doubles_nothing() {
    run(async {
        let mut servers = breakable_servers().await;
        let set = ["p4_persist.group_max=50", "p4_persist.prefetch=100", ALONE[0], ALONE[1]];
        let world = World::on_breakable(&servers, "database", &[Api, Relay, Consumer], &set).await;
        let sale = world.sale("database", 10_000, Some(1)).await;
        let selling =
            tokio::spawn(loadgen::run(loadgen::LoadPlan { rate_per_s: Some(600.0), ..world.crowd(&sale, 3_000) }));
        eventually("a load", async || world.orders(&sale).await > 200).await;
        servers.server(ServerKind::Mysql).unwrap().kill().await.unwrap();
        assert_eq!(selling.await.unwrap().unwrap().accepted, 3_000, "buyers do not notice the database");
        // An open breaker leaves the messages in their queue, and what is in the consumer's hand stays there uncounted.
        eventually("everything at the broker", async || world.outbox().await == (0, 0)).await;
        let held = waiting(&world).await;
        assert!(held["orders"] > 1_000 && held["retry"] == 0 && held["dlq"] == 0, "{held:?}");
        servers.server(ServerKind::Mysql).unwrap().restart().await.unwrap();
        eventually("everything", async || world.orders(&sale).await == 3_000).await;
        eventually("empty queues", async || waiting(&world).await.values().sum::<u64>() == 0).await;
        assert_eq!(world.rows("failed_request", "1 = 1").await, 0);
        assert_eq!(world.number("SELECT stock AS n FROM sales").await, 7_000);
        world.finish().await;
    });
}
