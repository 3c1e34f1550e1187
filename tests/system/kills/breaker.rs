//! The breaker around the database (D6) protects it and decides nothing: closed, open, half-open, as a supervisor
//! sees them on a real consumer process.

use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{ALONE, World, eventually, run, time_passes};
use seckill::dev::ServerKind;
use seckill::roles::Role::{Api, Relay};
use std::time::Duration;

const OPEN: &str = "seckill_p4_persist_breaker_open";
const OPENED: &str = "seckill_p4_persist_breaker_opened_total";

#[test]
fn an_outage_opens_the_breaker_burns_no_attempt_and_its_end_closes_it() {
    run(async {
        let mut servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "breaker", &[Api, Relay], &ALONE).await;
        let sale = world.sale("breaker", 1_000, Some(1)).await;
        // Three writers with ten each.
        let set = ["p4_persist.group_max=10", "p4_persist.prefetch=10", "p4_persist.attempts_max=2"];
        let mut consumer = world.process("consumer", "", &set);
        world.sell(&sale, 50).await;
        eventually("50 orders", async || world.orders(&sale).await == 50).await;
        consumer.until_metric(OPEN, |open| open == 0.0).await;
        servers.server(ServerKind::Mysql).unwrap().kill().await.unwrap();
        let sold = seckill_bench::loadgen::run(seckill_bench::loadgen::LoadPlan {
            first_buyer: 100,
            ..world.crowd(&sale, 100)
        });
        assert_eq!(sold.await.unwrap().accepted, 100);
        eventually("everything at the broker", async || world.outbox().await == (0, 0)).await;
        consumer.until_metric(OPEN, |open| open == 1.0).await;
        // Half-open again and again: tried, failed, and still not one message sent back, parked or given up.
        let tried = consumer.metric("seckill_p4_persist_seconds_count").await.unwrap();
        consumer.until_metric("seckill_p4_persist_seconds_count", |count| count >= tried + 3.0).await;
        assert_eq!(consumer.metric(OPEN).await, Some(1.0));
        assert_eq!(consumer.metric(OPENED).await, Some(1.0), "one outage");
        consumer.until_metric("seckill_p4_persist_held_count", |held| (1.0..=30.0).contains(&held)).await;
        eventually("a queue less the prefetch", async || world.waiting_in("seckill.orders").await == 70).await;
        assert_eq!(world.waiting_in("seckill.retry").await + world.waiting_in("seckill.dlq").await, 0);
        servers.server(ServerKind::Mysql).unwrap().restart().await.unwrap();
        consumer.until_metric(OPEN, |open| open == 0.0).await;
        eventually("everything", async || world.orders(&sale).await == 150).await;
        consumer.until_metric("seckill_p4_persist_held_count", |held| held == 0.0).await;
        consumer.program.must_run();
        world.finish().await;
    });
}

#[test]
fn a_database_that_stands_still_is_noticed_by_calls_on_idle_connections() {
    run(async {
        let mut servers = breakable_servers().await;
        let quick = ["mysql.statement_timeout_ms=300", "mysql.connect_timeout_ms=300", "mysql.pool_wait_ms=300"];
        let world = World::on_breakable(&servers, "idle-frozen", &[], &quick).await;
        let db = &world.servers.db;
        let (one, two, three) = tokio::join!(db.ping(), db.ping(), db.ping());
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        // So long idle that they are asked for a sign of life before they are used.
        time_passes(1_000).await;
        servers.server(ServerKind::Mysql).unwrap().pause().unwrap();
        for _ in 0..4 {
            let answer = tokio::time::timeout(Duration::from_secs(20), db.ping()).await.expect("a deadline");
            assert!(answer.is_err(), "it stands still");
        }
        servers.server(ServerKind::Mysql).unwrap().resume().unwrap();
        eventually("it answers again", async || db.ping().await.is_ok()).await;
        world.finish().await;
    });
}
