//! Redis in trouble under a crowd (windows 11, 12, 13, 14, 18): killed, slow, standing still, its connections cut, its file
//! rewritten. Each buyer with a 202 has an order in the end, no buyer has two, and exactly the stock is sold.

use crate::support::basics::resp::RawRedis;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, run, time_passes};
use seckill::dev::{PrivateServers, ServerKind};
use seckill::roles::Role;
use seckill::runtime::Stopper;
use seckill_bench::loadgen::{self, LoadPlan};
use std::time::Duration;

const STOCK: i64 = 2_000;
const BUYERS: u64 = 4_000;
/// Purchases a second: the crowd takes four seconds even when all goes well.
const RATE: f64 = 1_000.0;

/// A crowd of buyers who do not give up, while `nemesis` does harm until the end.
async fn storm<F>(servers: &mut PrivateServers, name: &str, nemesis: F)
where
    F: AsyncFnOnce(&mut PrivateServers, &World, &Stopper) -> u32,
{
    let set = ["redis.command_timeout_ms=500", "p2_reserve.deadline_ms=2000"];
    let world = World::on_breakable(servers, name, &Role::ALL, &set).await;
    let sale = world.sale(name, STOCK, Some(1)).await;
    let mut plan = LoadPlan::new(&world.api, sale.clone(), world.settings.auth.secret.clone());
    (plan.buyers, plan.connections, plan.tokens) = (BUYERS, 32, true);
    (plan.rate_per_s, plan.timeout_ms) = (Some(RATE), 30_000);
    (plan.max_retries, plan.retry_wait_max_ms) = (1_000, 200);
    let over = Stopper::new();
    let buying = async {
        let report = loadgen::run(plan.clone()).await.expect("a run");
        over.stop();
        report
    };
    let (report, harm) = tokio::join!(buying, nemesis(servers, &world, &over));
    assert!(harm >= 2, "{name}: harm was done {harm} times only");
    assert_eq!((report.unresolved, report.accepted_twice), (0, 0), "{name}: {report:?}");
    assert_eq!(report.accepted, STOCK.unsigned_abs(), "{name}: {:?}", report.by_status);
    for row in report.by_status.rows() {
        assert!(matches!(row.status, 201 | 202 | 409 | 410 | 423 | 503 | 504), "{name}: {row:?}");
    }
    world.redis_is_back().await;
    let outcomes = loadgen::await_outcomes(&plan, &report.accepted_requests, Duration::from_secs(60)).await.unwrap();
    assert!(outcomes.all_final(), "{name}: {outcomes:?}");
    assert_eq!((outcomes.confirmed, outcomes.failed_count()), (report.accepted, 0), "{name}: {outcomes:?}");
    let counted = world.settled(&sale).await.counted;
    assert_eq!((counted.ordered, counted.database_stock, counted.redis_stock), (STOCK, 0, 0), "{name}");
    world.finish().await;
}

/// A connection, as soon as the server takes one.
async fn raw(world: &World) -> RawRedis {
    world.redis_is_back().await;
    RawRedis::of(world).await
}

#[test]
fn killed_and_restarted_in_the_middle_of_a_crowd() {
    run(async {
        let mut servers = breakable_servers().await;
        storm(&mut servers, "killed", async |servers, _, over| {
            let mut times = 0;
            while times < 2 || !over.is_stopped() {
                time_passes(500).await;
                servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
                time_passes(200).await;
                servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
                times += 1;
            }
            times
        })
        .await;
    });
}

#[test]
fn slow_and_standing_still_in_the_middle_of_a_crowd() {
    run(async {
        let mut servers = breakable_servers().await;
        storm(&mut servers, "slow", async |servers, world, over| {
            let mut times = 0;
            while !over.is_stopped() {
                raw(world).await.call(&["CLIENT", "PAUSE", "300", "ALL"]).await;
                time_passes(500).await;
                // Longer than a command may take: answers are unknown.
                servers.server(ServerKind::Redis).unwrap().pause().unwrap();
                time_passes(if times % 2 == 0 { 300 } else { 900 }).await;
                servers.server(ServerKind::Redis).unwrap().resume().unwrap();
                time_passes(400).await;
                times += 1;
            }
            times
        })
        .await;
    });
}

#[test]
fn its_connections_are_cut_all_the_time() {
    run(async {
        let mut servers = breakable_servers().await;
        storm(&mut servers, "cut", async |_, world, over| {
            let mut times = 0;
            while !over.is_stopped() {
                raw(world).await.call(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
                time_passes(300).await;
                times += 1;
            }
            times
        })
        .await;
    });
}

#[test]
fn its_file_is_rewritten_and_its_scripts_are_forgotten_all_the_time_and_then_it_is_killed() {
    run(async {
        let mut servers = breakable_servers().await;
        storm(&mut servers, "rewrite", async |servers, world, over| {
            let mut times = 0;
            while !over.is_stopped() {
                let mut redis = raw(world).await;
                // A rewrite that still runs refuses another one; that is as good.
                drop(redis.try_call(&[b"BGREWRITEAOF"]).await);
                redis.call(&["SCRIPT", "FLUSH"]).await;
                time_passes(150).await;
                if times % 8 == 7 {
                    drop(redis.try_call(&[b"BGREWRITEAOF"]).await);
                    servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
                }
                times += 1;
            }
            times
        })
        .await;
    });
}
