//! Several order queues: trouble of one is trouble of its own sales only (H6).

use crate::support::links::link::Link;
use crate::support::world::fault_injection::{REFUSING_TRIGGER, port_of, unbind_order_queue};
use crate::support::world::relay_state::{limit_order_queue, parked, silence_order_queue};
use crate::support::world::{World, eventually, run, time_passes};
use seckill::config::ServerUrl;
use seckill::domain::ids::SaleId;
use seckill::domain::shard::order_queue_index;
use seckill::roles::Role::{Api, Consumer, Relay};

/// Few entries fill the window, each order is an entry and a message, no other relay takes them over, and they try for longer than a test.
const SET: [&str; 10] = [
    "rabbitmq.queues=2",
    "p2_reserve.group_max=1",
    "p3_relay.window_max=32",
    "p3_relay.probe_max=4",
    "p3_relay.bundle_max=1",
    "p3_relay.confirm_timeout_ms=1000",
    "p3_relay.attempts_max=1000",
    "p3_relay.backoff_max_ms=500",
    "p3_relay.claim_idle_ms=60000",
    "p5_reconcile.window_ms=120000",
];

/// Writers that do without the first order queue.
const LEFT_OUT: &str = "seckill_p4_persist_left_out_count{queue=\"seckill.orders.0\"}";

/// A sale of each of the two order queues.
async fn sale_of_each_queue(world: &World) -> [SaleId; 2] {
    let mut sales = Vec::new();
    for queue in 0..2 {
        let name = (0..).map(|n| format!("of-{queue}-{n}")).find(|name| order_queue_index(name, 2) == queue);
        sales.push(world.sale(&name.unwrap(), 10_000, Some(1)).await);
    }
    sales.try_into().unwrap()
}

async fn buy(world: &World, sale: &SaleId, buyers: std::ops::Range<usize>) {
    for n in buyers {
        world.bought(sale, &format!("buyer-{n}")).await;
    }
}

#[test]
fn a_queue_that_refuses_stops_only_itself() {
    run(async {
        let world = World::with(&[Api], &SET).await;
        let [refused, other] = sale_of_each_queue(&world).await;
        let relay = world.extra_roles(&[Relay], |_| {});
        buy(&world, &refused, 0..1).await;
        eventually("an empty outbox", async || world.outbox().await.0 == 0).await;
        limit_order_queue(&world, 0, Some(1)).await;
        // Far more than the window.
        buy(&world, &refused, 1..101).await;
        buy(&world, &other, 0..60).await;
        eventually("the other sale's orders", async || world.waiting_in("seckill.orders.1").await == 60).await;
        buy(&world, &other, 60..120).await;
        eventually("and those after them", async || world.waiting_in("seckill.orders.1").await == 120).await;
        assert!(world.outbox().await.0 > 64, "the full queue cannot have taken them");
        limit_order_queue(&world, 0, None).await;
        eventually("an empty outbox", async || world.outbox().await == (0, 0)).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("all orders", async || (world.orders(&refused).await, world.orders(&other).await) == (101, 120))
            .await;
        assert_eq!(parked(&world).await, 0);
        consumer.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_queue_that_does_not_confirm_stops_only_itself() {
    run(async {
        let world = World::with(&[Api], &SET).await;
        let [silent, other] = sale_of_each_queue(&world).await;
        let relay = world.extra_roles(&[Relay], |_| {});
        buy(&world, &silent, 0..1).await;
        eventually("an empty outbox", async || world.outbox().await.0 == 0).await;
        silence_order_queue(&world, 0, true).await;
        buy(&world, &silent, 1..101).await;
        buy(&world, &other, 0..60).await;
        let of_silent = async || world.outbox().await.0 == 100;
        eventually("the other sale's orders", of_silent).await;
        buy(&world, &other, 60..120).await;
        eventually("and those after them", of_silent).await;
        silence_order_queue(&world, 0, false).await;
        eventually("an empty outbox", async || world.outbox().await == (0, 0)).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("all orders", async || (world.orders(&silent).await, world.orders(&other).await) == (101, 120))
            .await;
        assert_eq!(parked(&world).await, 0);
        consumer.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

/// Every step walks what a relay holds of a list, in the thread that sells.
#[test]
fn a_list_is_not_read_far_beyond_a_queue_that_does_not_confirm() {
    run(async {
        let world = World::with(&[Api], &[&SET[..], &["redis.outbox=list"]].concat()).await;
        let [silent, other] = sale_of_each_queue(&world).await;
        let relay = world.extra_roles(&[Relay], |_| {});
        buy(&world, &silent, 0..1).await;
        eventually("an empty outbox", async || world.outbox().await.0 == 0).await;
        silence_order_queue(&world, 0, true).await;
        buy(&world, &silent, 1..201).await;
        let held = async || world.outbox().await.1;
        eventually("a full window", async || held().await >= 32).await;
        buy(&world, &other, 0..10).await;
        // Longer than a relay waits for a confirm before it sets aside what it can.
        time_passes(4_000).await;
        assert!(held().await <= 64, "{}", held().await);
        silence_order_queue(&world, 0, false).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("all orders", async || (world.orders(&silent).await, world.orders(&other).await) == (201, 10)).await;
        consumer.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_queue_that_is_slow_to_declare_stops_only_itself() {
    run(async {
        let world = World::with(&[Api], &SET).await;
        let [unbound, other] = sale_of_each_queue(&world).await;
        let direct = world.settings.rabbitmq.url.expose();
        let link = Link::before(port_of(direct)).await;
        let relay = world.extra_roles(&[Relay], |s| {
            s.rabbitmq.url = ServerUrl::new(link.url(direct));
            // As long as a test waits for anything.
            s.rabbitmq.connect_timeout_ms = 60_000;
        });
        buy(&world, &unbound, 0..1).await;
        buy(&world, &other, 0..1).await;
        eventually("an empty outbox", async || world.outbox().await.0 == 0).await;
        unbind_order_queue(&world.servers.rabbit).await;
        let connections = link.connections();
        link.slows_new_connections(600_000);
        buy(&world, &unbound, 1..5).await;
        eventually("a connection to declare it again", async || link.connections() > connections).await;
        buy(&world, &other, 1..121).await;
        eventually("the other sale's orders", async || world.waiting_in("seckill.orders.1").await == 121).await;
        eventually("only those of the queue without a binding", async || world.outbox().await.0 == 4).await;
        relay.stop().await;
        let roles = world.extra_roles(&[Relay, Consumer], |_| {});
        eventually("all orders", async || (world.orders(&unbound).await, world.orders(&other).await) == (5, 121)).await;
        roles.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_queue_that_answers_no_consumer_keeps_none_from_the_others() {
    run(async {
        let world = World::with(&[Api], &SET).await;
        let [silent, other] = sale_of_each_queue(&world).await;
        let relay = world.extra_roles(&[Relay], |_| {});
        world.sql(REFUSING_TRIGGER).await;
        buy(&world, &silent, 0..30).await;
        world.bought(&other, "cursed").await;
        buy(&world, &other, 0..30).await;
        eventually("an empty outbox", async || world.outbox().await == (0, 0)).await;
        silence_order_queue(&world, 0, true).await;
        let consumer = world.process("consumer", "", &["rabbitmq.queues=2", "p4_persist.attempts_max=100"]);
        eventually("the other sale's orders", async || world.orders(&other).await == 30).await;
        consumer.until_metric(LEFT_OUT, |writers| writers >= 1.0).await;
        // What was refused came back by way of a retry queue: copies are sent although a queue does not answer.
        world.sql("DROP TRIGGER curse").await;
        eventually("the order that was refused at first", async || world.orders(&other).await == 31).await;
        assert_eq!(world.orders(&silent).await, 0);
        silence_order_queue(&world, 0, false).await;
        eventually("the orders of the queue", async || world.orders(&silent).await == 30).await;
        consumer.until_metric(LEFT_OUT, |writers| writers == 0.0).await;
        consumer.kill();
        relay.stop().await;
        world.finish().await;
    });
}
