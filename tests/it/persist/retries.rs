//! Group C, the broker's side: queues that go away, connections that end, retries that wait.

use super::hands::{breakable, channel, delete_order_queue};
use super::world::{World, eventually, run, time_passes};
use amqprs::channel::QueueDeleteArguments;
use seckill::dev::ServerKind;
use seckill::domain::message;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{HeaderValue, Topology, browse_dlq, declare};

/// A trigger that refuses every order: a system error of every row.
const CURSE: &str =
    "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'";

#[test]
fn a_consumer_whose_queue_is_deleted_declares_it_and_consumes_again() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("deleted", 100, Some(1)).await;
        world.sell(&sale, 10).await;
        eventually("ten orders", async || world.orders(&sale).await == 10).await;
        for round in 0..3 {
            // Telling events may open a connection, which declares the queues: in the moments of the deletion that could
            // starve the consumers for minutes (`a_queue_that_is_made_anew_behind_its_consumer_does_not_starve_it`).
            eventually("events told", async || world.rows("outcome_event", "1 = 1").await == 0).await;
            // Window 59: the broker cancels the consumer, which must not wait for ever for a queue that is gone.
            delete_order_queue(&world.servers.rabbit).await;
            // What is published while a queue goes may go with it and is for P5; some later one goes the way it should.
            let mut tries = 0;
            eventually("an order", async || {
                tries += 1;
                let user = format!("after{round}-{tries}");
                let id = world.bought(&sale, &user).await;
                world.status(&sale, &user, &id.to_string(), 3).await.text("status") == "CONFIRMED"
            })
            .await;
        }
        let reconcile = world.more(&[Reconcile], |_| {});
        world.settled(&sale).await;
        reconcile.stop().await;
        world.finish().await;
    });
}

#[test]
fn retries_survive_the_queue_they_are_to_go_back_to() {
    run(async {
        let set = ["p4_persist.retry_delay_ms=3000", "p4_persist.retry_delay_max_ms=3000"];
        let mut world = World::with(&[Api, Relay, Consumer], &set).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("homeless", 100, Some(1)).await;
        world.sql(CURSE).await;
        let alice = world.bought(&sale, "alice").await;
        eventually("a retry", async || world.waiting_in("seckill.retry").await == 1).await;
        world.sql("DROP TRIGGER curse").await;
        // Nobody is there to declare the queue again when the message is due: the broker keeps what it cannot place
        // (window 52).
        world.stop_roles().await;
        delete_order_queue(&world.servers.rabbit).await;
        time_passes(4_000).await;
        let audit = world.audit(&sale, Window::Ms(60_000)).await;
        assert_eq!((audit.counted.leaked, world.orders(&sale).await), (0, 0));
        declare(&world.servers.rabbit).await.unwrap();
        world.start_roles(&[Api, Relay, Consumer]).await;
        eventually("an order", async || world.told(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        world.finish().await;
    });
}

#[test]
fn attempts_are_counted_and_the_last_one_leads_to_the_dlq_with_the_reason() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &["p4_persist.attempts_max=4"]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("counted", 100, Some(1)).await;
        world.sql(CURSE).await;
        let alice = world.bought(&sale, "alice").await;
        eventually("a dead letter", async || world.waiting_in("seckill.dlq").await == 1).await;
        let dead = browse_dlq(&world.servers.rabbit, 10).await.unwrap().remove(0);
        let header = |name: &str| dead.headers.get(name).cloned();
        assert_eq!(header("x-seckill-attempt"), Some(HeaderValue::Int(4)));
        assert_eq!(header("x-seckill-reason"), Some(HeaderValue::Text("ATTEMPTS_SPENT".to_owned())));
        assert!(header("x-seckill-detail").unwrap().to_string().contains("cursed"), "{:?}", dead.headers);
        assert_eq!(message::decode(&dead.body).unwrap().purchase.request_id, alice);
        assert_eq!(dead.message_id.as_deref(), Some(alice.to_string().as_str()), "whose it is can be seen");
        assert_eq!(world.rows("request_outcome", "1 = 1").await, 0, "a dead letter is no verdict");
        world.sql("DROP TRIGGER curse").await;
        let reconcile = world.more(&[Reconcile], |_| {});
        eventually("an order", async || world.told(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        reconcile.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_dlq_that_is_gone_is_made_again_before_anything_is_acknowledged() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &["p4_persist.attempts_max=1"]).await;
        let sale = world.sale("nodlq", 100, Some(1)).await;
        let bob = world.bought(&sale, "bob").await;
        eventually("an order", async || world.told(&sale, "bob", bob).await.0 == "CONFIRMED").await;
        let (connection, operator) = channel(&world.servers.rabbit).await;
        let dlq = Topology::new(&world.servers.rabbit).dlq();
        operator.queue_delete(QueueDeleteArguments::new(&dlq)).await.unwrap();
        world.publish(&[b"not json".to_vec()]).await;
        eventually("the dead letter", async || {
            // The queue is missing until the consumer has made it again.
            browse_dlq(&world.servers.rabbit, 10).await.is_ok_and(|dead| dead.len() == 1)
        })
        .await;
        connection.close().await.unwrap();
        world.finish().await;
    });
}

#[test]
fn a_broker_that_dies_in_a_load_is_answered_with_no_stale_ack() {
    run(async {
        let mut servers = breakable().await;
        let set = ["p4_persist.group_max=50", "p4_persist.prefetch=100"];
        let world = World::on_breakable(&servers, "brokerdies", &[Api, Relay, Consumer], &set).await;
        let sale = world.sale("brokerdies", 10_000, Some(1)).await;
        let plan = seckill::crowd::CrowdPlan { rate_per_s: Some(400.0), ..world.crowd(&sale, 2_000) };
        let selling = tokio::spawn(seckill::crowd::run(plan));
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
