//! The broker dies under the consumer, takes no messages of it, or takes its messages back.

use crate::support::outside::downstream::Downstream;
use crate::support::world::fault_injection::{breakable_servers, consumer_timeout, memory_alarm};
use crate::support::world::{ALONE, World, eventually, run};
use seckill::dev::ServerKind;
use seckill::roles::Role::{Api, Consumer, Relay};

#[test]
fn a_broker_that_dies_in_a_load_is_answered_with_no_stale_ack() {
    run(async {
        let mut servers = breakable_servers().await;
        let set = ["p4_persist.group_max=50", "p4_persist.prefetch=100"];
        let world = World::on_breakable(&servers, "brokerdies", &[Api, Relay, Consumer], &set).await;
        let sale = world.sale("brokerdies", 10_000, Some(1)).await;
        let plan = seckill_bench::loadgen::LoadPlan { rate_per_s: Some(400.0), ..world.crowd(&sale, 2_000) };
        let selling = tokio::spawn(seckill_bench::loadgen::run(plan));
        eventually("a load", async || world.orders(&sale).await > 300).await;
        servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
        servers.server(ServerKind::Rabbitmq).unwrap().restart().await.unwrap();
        assert_eq!(selling.await.unwrap().unwrap().accepted, 2_000);
        // A stale ack would close the channel again and again, or settle a message that was not landed (window 77).
        eventually("everything", async || world.orders(&sale).await == 2_000).await;
        eventually("empty queues", async || world.waiting_in("seckill.").await == 0).await;
        world.finish().await;
    });
}

#[test]
fn a_broker_that_takes_no_messages_is_drained_all_the_same_and_gets_the_events_later() {
    run(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "mute", &[Api, Relay], &ALONE).await;
        let mut downstream = Downstream::listen(&world).await;
        let sale = world.sale("mute", 1_000, Some(1)).await;
        let first = world.bought(&sale, "first").await;
        world.sell(&sale, 200).await;
        eventually("everything in the queue", async || world.waiting_in("seckill.orders").await == 201).await;
        memory_alarm(&servers, true).await;
        // What frees the broker is the acks, so they must not wait for events it does not take.
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("201 orders", async || world.orders(&sale).await == 201).await;
        eventually("an empty queue", async || world.waiting_in("seckill.orders").await == 0).await;
        eventually("events written down", async || world.rows("outcome_event", "1 = 1").await == 201).await;
        memory_alarm(&servers, false).await;
        downstream.receives(first, "CONFIRMED", 1).await;
        eventually("events published", async || world.rows("outcome_event", "1 = 1").await == 0).await;
        downstream.read().await;
        assert_eq!(downstream.counts.len(), 201);
        consumer.stop().await;
        world.finish().await;
    });
}

/// Window 56. A consumer keeps what it has in hand while the database is away; after `consumer_timeout` the broker closes its
/// channel.
#[test]
fn a_broker_that_takes_messages_back_in_a_long_outage_loses_and_doubles_none() {
    run(async {
        let mut servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "takenback", &[Api, Relay], &ALONE).await;
        let sale = world.sale("takenback", 100, Some(1)).await;
        world.sell(&sale, 50).await;
        eventually("everything in the queue", async || world.waiting_in("seckill.orders").await == 50).await;
        consumer_timeout(&servers, 1_000).await;
        servers.server(ServerKind::Mysql).unwrap().pause().unwrap();
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let channels = async || {
            let program = "lists:usort([pid_to_list(P) || C <- rabbit_amqqueue:consumers_all(<<\"takenback\">>), \
                           {channel_pid, P} <- C]).\n";
            let answer = servers.ask_broker(program).await.expect("the broker answers");
            answer.split('"').filter(|part| part.starts_with('<')).map(str::to_owned).collect::<Vec<String>>()
        };
        let mut first = Vec::new();
        eventually("it consumes", async || {
            first = channels().await;
            !first.is_empty()
        })
        .await;
        eventually("a channel of it is closed", async || {
            let open = channels().await;
            first.iter().any(|channel| !open.contains(channel))
        })
        .await;
        servers.server(ServerKind::Mysql).unwrap().resume().unwrap();
        eventually("50 orders", async || world.orders(&sale).await == 50).await;
        eventually("empty queues", async || world.waiting_in("seckill.").await == 0).await;
        assert_eq!(world.rows("failed_request", "1 = 1").await, 0, "no attempts were spent");
        consumer.stop().await;
        consumer_timeout(&servers, 1_800_000).await;
        world.finish().await;
    });
}
