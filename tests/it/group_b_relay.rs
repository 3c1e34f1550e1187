//! Group B: the relay brings every entry to the broker, whatever dies on the way (P3).

use super::hands::{breakable, delete_order_queue, unbind_order_queue};
use super::world::{World, eventually, run};
use seckill::crowd;
use seckill::dev::ServerKind;
use seckill::domain::message;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{Consumer as QueueReader, declare};
use std::time::{Duration, Instant};

/// Reads entries for a consumer as a relay does that dies right afterwards.
async fn read_and_die(world: &World, consumer: &str, count: usize) {
    let entries = world.servers.redis.read_outbox(0, consumer, ">", count).await.expect("entries");
    assert_eq!(entries.len(), count);
}

async fn attempts_of(world: &World) -> i64 {
    let key = world.servers.redis.keys.attempts(0);
    world.redis(&["HLEN", &key]).await.as_i64().expect("a length")
}

async fn nothing_is_left(world: &World) {
    eventually("an empty outbox", async || world.outbox().await == (0, 0)).await;
    assert_eq!(attempts_of(world).await, 0, "attempts of entries that are gone");
}

#[test]
fn five_thousand_entries_reach_the_broker_in_order_and_land_exactly_once() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("many", 10_000, Some(1)).await;
        world.sell(&sale, 5_000).await;
        assert_eq!(world.outbox().await, (5_000, 0));
        declare(&world.servers.rabbit).await.unwrap();
        let relay = world.more(&[Relay], |_| {});
        nothing_is_left(&world).await;
        let mut reader = QueueReader::connect(&world.servers.rabbit, &[0], 10_000).await.unwrap();
        let mut numbers = Vec::new();
        while numbers.len() < 5_000 {
            let group = reader.recv_group(1_000, Duration::from_secs(10)).await.unwrap();
            assert!(!group.is_empty(), "only {} arrived", numbers.len());
            numbers.extend(group.iter().map(|delivery| message::decode(&delivery.body).unwrap().number));
        }
        assert!(numbers.iter().copied().eq(1..=5_000), "one relay keeps the order");
        drop(reader);
        let consumer = world.more(&[Consumer], |_| {});
        eventually("5,000 orders", async || world.orders(&sale).await == 5_000).await;
        assert_eq!(world.settled(&sale).await.counted.ordered, 5_000);
        consumer.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn entries_of_a_dead_relay_are_taken_over_after_the_claim_time() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("dead", 100, Some(1)).await;
        world.sell(&sale, 50).await;
        read_and_die(&world, "relay-of-another-machine", 30).await;
        let died = Instant::now();
        assert_eq!(world.outbox().await, (50, 30));
        let relay = world.more(&[Relay], |_| {});
        eventually("the 20 nobody had read", async || world.orders(&sale).await == 20).await;
        eventually("the 30 of the dead relay", async || world.orders(&sale).await == 50).await;
        let claim_idle = Duration::from_millis(world.settings.p3_relay.claim_idle_ms);
        assert!(died.elapsed() >= claim_idle, "not before the claim time: {:?}", died.elapsed());
        nothing_is_left(&world).await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_relay_that_comes_back_under_its_name_goes_on_at_once() {
    run(async {
        let set = ["p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000"];
        let world = World::with(&[Api, Consumer], &set).await;
        let sale = world.sale("back", 2_000, Some(1)).await;
        world.sell(&sale, 1_500).await;
        // More than one window of it, so that the drain of its own entries needs several steps.
        read_and_die(&world, &format!("relay-{}", world.settings.node()), 1_300).await;
        let relay = world.more(&[Relay], |_| {});
        eventually("all 1,500, long before the claim time", async || world.orders(&sale).await == 1_500).await;
        nothing_is_left(&world).await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn two_relays_share_the_work_and_one_killed_in_it_loses_nothing() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("two", 5_000, Some(1)).await;
        let first = world.more(&[Relay], |settings| settings.runtime.node = "first".into());
        let second = world.more(&[Relay], |settings| settings.runtime.node = "second".into());
        world.sell(&sale, 1_000).await;
        let selling = crowd::run(crowd::CrowdPlan { first_buyer: 1_000, ..world.crowd(&sale, 2_000) });
        let kill = async {
            eventually("work under way", async || world.orders(&sale).await > 1_000).await;
            first.kill().await;
        };
        let (sold, ()) = tokio::join!(selling, kill);
        assert_eq!(sold.unwrap().accepted, 2_000);
        eventually("all 3,000", async || world.orders(&sale).await == 3_000).await;
        nothing_is_left(&world).await;
        second.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_poison_entry_goes_to_the_relay_dlq_with_its_reason_and_blocks_nobody() {
    run(async {
        let world = World::with(&[Api, Consumer, Reconcile], &[]).await;
        let sale = world.sale("poison", 100, Some(1)).await;
        let outbox = world.servers.redis.keys.outbox(0);
        world.sell(&sale, 5).await;
        world.redis(&["XADD", &outbox, "*", "who", "knows"]).await;
        world.redis(&["XADD", &outbox, "*", "s", sale.as_str(), "r", "5"]).await;
        world.redis(&["XADD", &outbox, "*", "s", "not a sale", "r", "5", "p", "{}"]).await;
        let last = world.bought(&sale, "after").await;
        let relay = world.more(&[Relay], |_| {});
        eventually("the one behind the poison", async || world.told(&sale, "after", last).await.0 == "CONFIRMED").await;
        nothing_is_left(&world).await;
        let parked = world.servers.redis.parked_page(0, "-", 10).await.unwrap();
        let reasons: Vec<&str> = parked.iter().map(|entry| entry.reason.as_str()).collect();
        assert!(
            matches!(reasons[..], [a, b, c]
            if a.contains("field s is missing") && b.contains("field p is missing") && c.contains("sale_id")),
            "{reasons:?}"
        );
        assert!(parked.iter().all(|entry| entry.parked_at_ms > 0));
        assert_eq!(world.orders(&sale).await, 6);
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn an_unroutable_entry_is_retried_until_the_topology_is_back() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("noroute", 2_000, Some(1)).await;
        let first = world.bought(&sale, "first").await;
        eventually("a working system", async || world.told(&sale, "first", first).await.0 == "CONFIRMED").await;
        unbind_order_queue(&world.servers.rabbit).await;
        let lost = world.bought(&sale, "unroutable").await;
        eventually("counted attempts", async || attempts_of(&world).await == 1).await;
        assert_eq!(world.outbox().await, (1, 1), "it is still the outbox's");
        assert_eq!(world.told(&sale, "unroutable", lost).await.0, "QUEUED");
        declare(&world.servers.rabbit).await.unwrap();
        eventually("the order", async || world.told(&sale, "unroutable", lost).await.0 == "CONFIRMED").await;
        nothing_is_left(&world).await;
        // The queue goes with everything in it, in the middle of a load: what was confirmed is repaired from the ledger.
        let selling = crowd::run(world.crowd(&sale, 1_000));
        let harm = async {
            eventually("a load", async || world.orders(&sale).await > 100).await;
            delete_order_queue(&world.servers.rabbit).await;
        };
        let (sold, ()) = tokio::join!(selling, harm);
        assert_eq!(sold.unwrap().accepted, 1_000);
        eventually("everything", async || world.orders(&sale).await == 1_002).await;
        nothing_is_left(&world).await;
        world.finish().await;
    });
}

#[test]
fn a_broker_that_is_away_briefly_costs_nothing_and_one_away_for_long_only_time() {
    run(async {
        let mut servers = breakable().await;
        let world = World::on_breakable(&servers, "brief", &[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("brief", 10_000, Some(1)).await;
        let selling = crowd::run(crowd::CrowdPlan { rate_per_s: Some(800.0), ..world.crowd(&sale, 4_000) });
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

        let world = World::on_breakable(&servers, "long", &[Api, Relay, Consumer], &["p3_relay.attempts_max=3"]).await;
        let sale = world.sale("long", 100, Some(1)).await;
        let first = world.bought(&sale, "first").await;
        eventually("a working system", async || world.told(&sale, "first", first).await.0 == "CONFIRMED").await;
        servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
        let mut away = Vec::new();
        for user in ["a", "b", "c"] {
            away.push((user, world.bought(&sale, user).await));
        }
        eventually("the relay DLQ", async || world.servers.redis.parked_count(0).await.unwrap() == 3).await;
        nothing_is_left(&world).await;
        let parked = world.servers.redis.parked_page(0, "-", 10).await.unwrap();
        assert!(
            parked.iter().all(|entry| entry.attempts == 3 && entry.reason.contains("broker is away")),
            "{parked:?}"
        );
        for (user, id) in &away {
            assert_eq!(world.told(&sale, user, *id).await.0, "QUEUED", "a DLQ is no verdict");
        }
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.parked == 3, "{audit:#?}");
        // P5 lands them while the broker is still away: the ledger is enough.
        let reconcile = world.more(&[Reconcile], |_| {});
        eventually("three compensations", async || world.orders(&sale).await == 4).await;
        eventually("the register closed", async || {
            world.rows("failed_request", "source = 'relay_dlq' AND status = 'resolved'").await == 3
        })
        .await;
        for (user, id) in &away {
            assert_eq!(world.told(&sale, user, *id).await.0, "CONFIRMED");
        }
        assert_eq!(world.servers.redis.parked_count(0).await.unwrap(), 0);
        servers.server(ServerKind::Rabbitmq).unwrap().restart().await.unwrap();
        let last = world.bought(&sale, "last").await;
        eventually("selling goes on", async || world.told(&sale, "last", last).await.0 == "CONFIRMED").await;
        reconcile.stop().await;
        world.finish().await;
    });
}
