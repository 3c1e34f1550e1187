//! A broker that is slow is no broker that is gone: consumers keep what they have, and persisting goes on (window 59).

use crate::support::links::link::Link;
use crate::support::world::fault_injection::{REFUSING_TRIGGER, channel, port_of};
use crate::support::world::{World, eventually, run, shared, time_passes};
use amqprs::channel::ExchangeDeleteArguments;
use seckill::config::ServerUrl;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::{RabbitConfig, Topology, declare};
use std::time::{Duration, Instant};

/// Persisting goes on within this time after a consumer was replaced; twice of it is for a machine that does other things.
const GOES_ON: Duration = Duration::from_secs(6);

impl World {
    /// The channels that consume, by the broker's own names.
    async fn consuming(&self) -> String {
        let vhost = &self.settings.runtime.node;
        let program = format!(
            "lists:sort([proplists:get_value(channel_pid, C) || C <- rabbit_amqqueue:consumers_all(<<\"{vhost}\">>)]).\n"
        );
        shared().await.ask_broker(&program).await.expect("the broker answers")
    }

    /// The same, once every writer consumes: each connects by itself.
    async fn all_consuming(&self) -> String {
        let mut consuming = String::new();
        eventually("three writers", async || {
            consuming = self.consuming().await;
            consuming.matches('<').count() == 3
        })
        .await;
        consuming
    }

    /// The order queue's process does nothing for a while, as when it gets no processor time.
    async fn queue_stands_still(&self, ms: u64) {
        let vhost = &self.settings.runtime.node;
        let program = format!(
            "P = whereis('{vhost}_seckill.orders.0'), true = erlang:suspend_process(P), receive after {ms} -> ok end, \
             erlang:resume_process(P).\n"
        );
        let answer = shared().await.ask_broker(&program).await.expect("the broker answers");
        assert!(answer.contains("{ok, true}"), "{answer}");
    }
}

#[test]
fn a_queue_that_stands_still_for_a_moment_costs_no_consumer() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("still", 100, Some(1)).await;
        let first = world.bought(&sale, "first").await;
        eventually("an order", async || world.status_of(&sale, "first", first).await.0 == "CONFIRMED").await;
        let before = world.all_consuming().await;
        // RabbitMQ 3.10 says "no message, no consumer" for a queue that does not answer within 250 ms; and a reading that is not
        // answered at all is no news.
        for ms in [1_300, 2_600, 4_000] {
            world.queue_stands_still(ms).await;
            // The readings that were under way are answered now.
            time_passes(1_500).await;
            assert_eq!(world.consuming().await, before, "after {ms} ms");
        }
        let last = world.bought(&sale, "last").await;
        eventually("an order", async || world.status_of(&sale, "last", last).await.0 == "CONFIRMED").await;
        world.finish().await;
    });
}

#[test]
fn a_consumer_that_is_replaced_beside_a_slow_broker_persists_at_once() {
    run(async {
        let world = World::with(&[Api, Relay], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("slow", 100, Some(1)).await;
        let direct = world.settings.rabbitmq.url.expose().to_owned();
        // Declaring everything takes some twenty answers: six seconds here, and more than `connect_timeout_ms`.
        let link = Link::slow(port_of(&direct), 300).await;
        for round in 0..3 {
            let user = format!("buyer-{round}");
            let id = world.bought(&sale, &user).await;
            let consumer = world.extra_roles(&[Consumer], |s| s.rabbitmq.url = ServerUrl::new(link.url(&direct)));
            let started = Instant::now();
            eventually("an order", async || world.orders(&sale).await == round + 1).await;
            assert!(started.elapsed() < GOES_ON, "landing stood still for {:?}", started.elapsed());
            consumer.stop().await;
            eventually("confirmed", async || world.status_of(&sale, &user, id).await.0 == "CONFIRMED").await;
        }
        let consumer = world.extra_roles(&[Consumer], |_| {});
        world.finish().await;
        consumer.stop().await;
    });
}

#[test]
fn a_broker_that_takes_no_copies_holds_up_only_what_is_to_be_sent_back() {
    run(async {
        let mut world = World::with(&[], &["rabbitmq.declare=false"]).await;
        let declaring = RabbitConfig { declare: true, ..world.servers.rabbit.clone() };
        declare(&declaring).await.unwrap();
        world.start_roles(&[Api, Relay, Consumer]).await;
        let sale = world.sale("copies", 100, Some(1)).await;
        world.sql(REFUSING_TRIGGER).await;
        let first = world.bought(&sale, "first").await;
        eventually("an order", async || world.status_of(&sale, "first", first).await.0 == "CONFIRMED").await;
        let (connection, operator) = channel(&declaring).await;
        let retry = Topology::new(&declaring).retry_exchange(1);
        operator.exchange_delete(ExchangeDeleteArguments::new(&retry)).await.unwrap();
        let before = world.all_consuming().await;
        let cursed = world.bought(&sale, "cursed").await;
        for round in 0..3 {
            let user = format!("fine-{round}");
            let fine = world.bought(&sale, &user).await;
            eventually("an order", async || world.status_of(&sale, &user, fine).await.0 == "CONFIRMED").await;
            // Longer than until the next try to send the copy.
            time_passes(1_200).await;
        }
        assert_eq!(world.consuming().await, before, "no consumer was given up over it");
        assert_eq!(world.status_of(&sale, "cursed", cursed).await.0, "QUEUED");
        world.sql("DROP TRIGGER curse").await;
        declare(&declaring).await.unwrap();
        eventually("the last order", async || world.status_of(&sale, "cursed", cursed).await.0 == "CONFIRMED").await;
        connection.close().await.unwrap();
        world.finish().await;
    });
}
