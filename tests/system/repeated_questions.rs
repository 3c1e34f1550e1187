//! Questions that were answered before cost no server anything when their answer cannot change, and a read a second when it can
//! (A11, A13); by the servers' own counters.

use crate::support::basics::time::time_passes;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role;
use std::time::Instant;

const QUESTIONS: i64 = 200;

/// Reads of a table for this request since the log began.
async fn reads(world: &World, table: &str, id: RequestId) -> i64 {
    let like = format!("argument LIKE 'SELECT%{table}%{id}%' AND argument NOT LIKE '%general_log%'");
    world
        .number(&format!("SELECT COUNT(*) AS n FROM mysql.general_log WHERE command_type = 'Execute' AND {like}"))
        .await
}

async fn hmgets(world: &World) -> i64 {
    let stats = world.redis(&["INFO", "commandstats"]).await;
    let line = stats.as_str().unwrap().lines().find_map(|line| line.strip_prefix("cmdstat_hmget:calls=")).unwrap();
    line.split(',').next().unwrap().parse().unwrap()
}

async fn asks(world: &World, sale: &SaleId, user: &str, id: RequestId, order: &str) {
    let status = world.status(sale, user, &id.to_string(), 0).await;
    assert_eq!((status.status, status.text("status").as_str()), (200, "CONFIRMED"), "{status:?}");
    assert_eq!(status.json["order"]["state"].as_str().unwrap_or("none"), order, "{status:?}");
}

#[test]
fn who_asks_again_for_a_confirmed_order_costs_a_read_a_second_and_nothing_once_it_ended() {
    run(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "asked-again", &[Role::Api], &[]).await;
        let terms = crate::support::buyers::orders::LONG;
        let (paying, plain) = (world.paying_sale("paying", 5, None, terms).await, world.sale("plain", 5, None).await);
        let (alice, bob) = (world.bought(&paying, "alice").await, world.bought(&plain, "bob").await);
        let carol = world.bought(&plain, "carol").await;
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        for (sale, user, id) in [(&paying, "alice", alice), (&plain, "bob", bob)] {
            eventually("an order", async || world.status_of(sale, user, id).await.0 == "CONFIRMED").await;
        }
        eventually("another order", async || world.rows("orders", "1 = 1").await == 3).await;
        world.sql("SET GLOBAL log_output = 'TABLE'").await;
        world.sql("SET GLOBAL general_log = 1").await;

        let begun = Instant::now();
        for _ in 0..QUESTIONS {
            asks(&world, &paying, "alice", alice, "UNPAID").await;
        }
        let (seconds, unpaid) =
            (i64::try_from(begun.elapsed().as_secs()).unwrap(), reads(&world, "orders", alice).await);
        assert!(unpaid <= 2 + seconds, "{unpaid} reads in {seconds} s");
        assert_eq!(world.cancel_mine("alice", alice).await.status, 200);
        asks(&world, &paying, "alice", alice, "CANCELLED").await;
        let ended = reads(&world, "orders", alice).await;
        // Longer than what may change is kept.
        time_passes(1_500).await;
        asks(&world, &paying, "alice", alice, "CANCELLED").await;
        assert_eq!(reads(&world, "orders", alice).await, ended, "it cannot change any more");

        let before = hmgets(&world).await;
        for _ in 0..QUESTIONS {
            asks(&world, &plain, "bob", bob, "none").await;
        }
        let commands = hmgets(&world).await - before;
        assert!(commands < QUESTIONS / 2, "{commands} reads of the ledger");

        // Without the keys of its sale only the database knows of it.
        let keys = world.servers.redis.keys.of_warmed(0, &plain);
        world.redis(&[&["DEL"], keys.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat()).await;
        let read = || reads(&world, "request_outcome", carol);
        let before = read().await;
        for _ in 0..2 {
            asks(&world, &plain, "carol", carol, "none").await;
            assert_eq!(world.status(&plain, "mallory", &carol.to_string(), 0).await.status, 404);
            // Longer than a request that is not there is remembered as such.
            time_passes(2_500).await;
        }
        assert_eq!(read().await - before, 1, "what is final was read once");
        rest.stop().await;
        world.stop().await;
    });
}
