//! Several order queues: trouble of one is trouble of its own sales only (H6).

use crate::support::relay_state::{limit_order_queue, parked, silence_order_queue};
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::shard::order_queue_index;
use seckill::roles::Role::{Api, Consumer, Relay};

/// Few entries fill the window, each order is an entry and a message, nobody else takes them over, and they try for longer than a test.
const SET: [&str; 10] = [
    "rabbitmq.queues=2",
    "redis.outbox_format=1",
    "p3_relay.window_max=32",
    "p3_relay.probe_max=4",
    "p3_relay.bundle_max=1",
    "p3_relay.confirm_timeout_ms=1000",
    "p3_relay.attempts_max=1000",
    "p3_relay.backoff_max_ms=500",
    "p3_relay.claim_idle_ms=60000",
    "p5_reconcile.window_ms=120000",
];

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
