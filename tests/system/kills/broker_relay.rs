//! A broker that is down, silent, frozen or blocked, and connections and exchanges that go away under the relay.

use crate::support::world::fault_injection::{breakable_servers, delete_order_exchange, memory_alarm, run_in_broker};
use crate::support::world::outbox_kinds::OUTBOX_KINDS;
use crate::support::world::relay_state::{attempts, nothing_is_left, parked};
use crate::support::world::{World, eventually, run_waiting};
use seckill::dev::ServerKind;
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill_bench::loadgen;
use std::time::{Duration, Instant};

/// A sale of which one unit has gone all the way.
async fn working_sale(world: &World, id: &str) -> SaleId {
    let sale = world.sale(id, 10_000, Some(1)).await;
    let first = world.bought(&sale, "first").await;
    eventually("a working system", async || world.status_of(&sale, "first", first).await.0 == "CONFIRMED").await;
    sale
}

/// A setting as a part of a name.
fn name(setting: &str) -> String {
    setting.replace(['.', '='], "-")
}

#[test]
fn a_broker_that_is_away_briefly_costs_nothing_and_one_away_for_long_only_time() {
    run_waiting(async {
        for outbox in OUTBOX_KINDS {
            let mut servers = breakable_servers().await;
            let world =
                World::on_breakable(&servers, &format!("brief-{}", name(outbox)), &[Api, Relay, Consumer], &[outbox])
                    .await;
            let sale = world.sale("brief", 10_000, Some(1)).await;
            let selling = loadgen::run(loadgen::LoadPlan { rate_per_s: Some(800.0), ..world.crowd(&sale, 4_000) });
            let harm = async {
                eventually("a load", async || world.orders(&sale).await > 300).await;
                servers.kill_and_restart(ServerKind::Rabbitmq).await.unwrap();
            };
            let (sold, ()) = tokio::join!(selling, harm);
            assert_eq!(sold.unwrap().accepted, 4_000, "buyers do not notice the broker");
            eventually("everything", async || world.orders(&sale).await == 4_000).await;
            nothing_is_left(&world).await;
            assert_eq!(world.rows("failed_request", "1 = 1").await, 0, "nothing was given up");
            world.finish().await;

            let world = World::on_breakable(
                &servers,
                &format!("long-{}", name(outbox)),
                &[Api, Relay, Consumer],
                &["p3_relay.attempts_max=3", outbox],
            )
            .await;
            let sale = working_sale(&world, "long").await;
            servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
            let mut away = Vec::new();
            for user in ["a", "b", "c"] {
                away.push((user, world.bought(&sale, user).await));
            }
            eventually("the relay DLQ", async || world.servers.redis.relay_dlq.count(0).await.unwrap() == 3).await;
            nothing_is_left(&world).await;
            let parked = world.servers.redis.relay_dlq.page(0, "-", 10).await.unwrap();
            assert!(
                parked.iter().all(|entry| entry.attempts == 3 && entry.reason.contains("broker is away")),
                "{parked:?}"
            );
            for (user, id) in &away {
                assert_eq!(world.status_of(&sale, user, *id).await.0, "QUEUED", "a DLQ is no verdict");
            }
            let audit = world.audit(&sale, Window::Now).await;
            assert!(audit.consistent() && audit.counted.parked == 3, "{audit:#?}");
            // P5 persists them while the broker is still down: the ledger is enough.
            let reconcile = world.extra_roles(&[Reconcile], |_| {});
            eventually("three compensations", async || world.orders(&sale).await == 4).await;
            eventually("the register closed", async || {
                world.rows("failed_request", "source = 'relay_dlq' AND status = 'resolved'").await == 3
            })
            .await;
            for (user, id) in &away {
                assert_eq!(world.status_of(&sale, user, *id).await.0, "CONFIRMED");
            }
            assert_eq!(world.servers.redis.relay_dlq.count(0).await.unwrap(), 0);
            servers.server(ServerKind::Rabbitmq).unwrap().restart().await.unwrap();
            let last = world.bought(&sale, "last").await;
            eventually("selling goes on", async || world.status_of(&sale, "last", last).await.0 == "CONFIRMED").await;
            reconcile.stop().await;
            world.finish().await;
        }
    });
}

#[test]
fn while_the_broker_is_away_a_few_entries_try_it_and_the_others_stay_untouched() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let set = ["p3_relay.attempts_max=1000", "p3_relay.backoff_max_ms=200"];
        let world = World::on_breakable(&servers, "probe", &[Api, Relay, Consumer], &set).await;
        let sale = working_sale(&world, "probe").await;
        servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
        world.sell(&sale, 300).await;
        eventually("attempts", async || attempts(&world).await.iter().any(|count| *count >= 8)).await;
        // Those that were on their way when it died, and the probes: both are far from everything.
        let tried = attempts(&world).await;
        let again = tried.iter().filter(|count| **count >= 3).count();
        assert!(again <= world.settings.p3_relay.probe_max, "{tried:?}");
        let (length, pending) = world.outbox().await;
        assert!(length == 300 && pending < 150, "{length} entries, {pending} read: the rest is still new");
        servers.server(ServerKind::Rabbitmq).unwrap().restart().await.unwrap();
        eventually("everything", async || world.orders(&sale).await == 301).await;
        nothing_is_left(&world).await;
        assert_eq!(parked(&world).await, 0);
        world.finish().await;
    });
}

#[test]
fn a_blocked_broker_burns_no_attempts_and_is_used_again_when_it_is_free() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "alarm", &[Api, Relay, Consumer], &[]).await;
        let sale = working_sale(&world, "alarm").await;
        memory_alarm(&servers, true).await;
        let alarms = servers.ask_broker("rabbit_alarm:get_alarms().\n").await.unwrap();
        assert!(alarms.contains("memory"), "{alarms}");
        let begun = Instant::now();
        world.sell(&sale, 100).await;
        let most = async || attempts(&world).await.into_iter().max().unwrap_or(0);
        eventually("a confirm that stays out, twice", async || most().await >= 2).await;
        let tried = attempts(&world).await;
        let again = tried.iter().filter(|count| **count >= 2).count();
        assert!(again <= world.settings.p3_relay.probe_max, "{tried:?}");
        // One attempt takes a confirm time-out, not a back-off of 100 ms: minutes, not seconds, until they are spent.
        let confirm_timeout = Duration::from_millis(world.settings.p3_relay.confirm_timeout_ms);
        assert!(begun.elapsed() >= confirm_timeout * 2, "{tried:?} after {:?}", begun.elapsed());
        assert_eq!((world.orders(&sale).await, parked(&world).await), (1, 0));
        memory_alarm(&servers, false).await;
        eventually("everything", async || world.orders(&sale).await == 101).await;
        nothing_is_left(&world).await;
        assert_eq!(parked(&world).await, 0);
        world.finish().await;
    });
}

#[test]
fn a_frozen_broker_is_left_and_found_again() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let set = ["rabbitmq.connect_timeout_ms=1000"];
        let world = World::on_breakable(&servers, "frozen", &[Api, Relay, Consumer], &set).await;
        let sale = working_sale(&world, "frozen").await;
        servers.server(ServerKind::Rabbitmq).unwrap().pause().unwrap();
        let frozen = Instant::now();
        world.sell(&sale, 50).await;
        let heartbeats = Duration::from_secs(2 * u64::from(world.settings.rabbitmq.heartbeat_s));
        eventually("attempts, and two heartbeats missed", async || {
            !attempts(&world).await.is_empty() && frozen.elapsed() > heartbeats
        })
        .await;
        servers.server(ServerKind::Rabbitmq).unwrap().resume().unwrap();
        eventually("everything", async || world.orders(&sale).await == 51).await;
        nothing_is_left(&world).await;
        assert_eq!(parked(&world).await, 0);
        world.finish().await;
    });
}

#[test]
fn connections_closed_and_an_exchange_deleted_in_a_load_lose_nothing() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "closed", &[Api, Relay, Consumer], &[]).await;
        let sale = working_sale(&world, "closed").await;
        let selling = loadgen::run(loadgen::LoadPlan { rate_per_s: Some(400.0), ..world.crowd(&sale, 2_000) });
        let harm = async {
            for so_far in [100, 300, 500] {
                eventually("a load", async || world.orders(&sale).await > so_far).await;
                let close = "rabbit_networking:close_connections(rabbit_networking:connections(), <<\"test\">>).\n";
                run_in_broker(&servers, close).await;
            }
            eventually("a load", async || world.orders(&sale).await > 700).await;
            // Publishing to it closes the channel (404); the next connection declares it again.
            delete_order_exchange(&world.servers.rabbit).await;
        };
        let (sold, ()) = tokio::join!(selling, harm);
        assert_eq!(sold.unwrap().accepted, 2_000);
        eventually("everything", async || world.orders(&sale).await == 2_001).await;
        nothing_is_left(&world).await;
        assert_eq!(parked(&world).await, 0);
        world.finish().await;
    });
}
