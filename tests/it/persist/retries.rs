//! Attempts are counted, and the last one leads to the DLQ, which is there before anything is acknowledged.

use crate::support::world::fault_injection::channel;
use crate::support::world::{World, eventually, run};
use amqprs::channel::QueueDeleteArguments;
use seckill::domain::message;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{HeaderValue, Topology, browse_dlq, declare};

/// A trigger that refuses every order: a system error of every row.
const REFUSING_TRIGGER: &str =
    "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'";

#[test]
fn attempts_are_counted_and_the_last_one_leads_to_the_dlq_with_the_reason() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &["p4_persist.attempts_max=4"]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("counted", 100, Some(1)).await;
        world.sql(REFUSING_TRIGGER).await;
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
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        eventually("an order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
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
        eventually("an order", async || world.status_of(&sale, "bob", bob).await.0 == "CONFIRMED").await;
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
