//! Every message has its one exact outcome, however often it comes and whatever is in it (P4).

use crate::support::world::fault_injection::REFUSING_TRIGGER;
use crate::support::world::outbox_kinds::bodies;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::message;
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{self, Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{HeaderValue, ParkedMessage, attempts};
use seckill_bench::loadgen;

fn reason(parked: &ParkedMessage) -> &str {
    match parked.headers.get("x-seckill-reason") {
        Some(HeaderValue::Text(reason)) => reason,
        other => panic!("no reason: {other:?}"),
    }
}

async fn confirmed(world: &World, sale: &SaleId, user: &str, id: RequestId) {
    eventually("an order", async || world.status_of(sale, user, id).await.0 == "CONFIRMED").await;
}

#[test]
fn a_message_that_comes_again_and_again_is_one_order() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("again", 100, Some(1)).await;
        eventually("a consumer that declared the queues", async || {
            seckill::store::rabbit::queue_depths(&world.servers.rabbit).await.is_ok()
        })
        .await;
        let alice = world.bought(&sale, "alice").await;
        world.bought(&sale, "bob").await;
        let bodies = bodies(&world).await;
        // Three times in a row, then all of it once more after the first was persisted, then from the relay as well.
        world.publish(&[bodies[0].clone(), bodies[0].clone(), bodies[0].clone()]).await;
        confirmed(&world, &sale, "alice", alice).await;
        world.publish(&[bodies.clone(), bodies].concat()).await;
        let relay = world.extra_roles(&[Relay], |_| {});
        eventually("everything through", async || {
            world.outbox().await == (0, 0) && world.waiting_in("seckill.").await == 0
        })
        .await;
        eventually("two orders", async || world.orders(&sale).await == 2).await;
        assert_eq!(world.rows("request_outcome", "kind = 'ORDER'").await, 2);
        assert_eq!(world.number("SELECT stock AS n FROM sales").await, 98);
        assert!(world.mq_dlq_messages().await.is_empty(), "a repeat is no error");
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn messages_nobody_can_read_are_parked_with_a_reason_and_their_neighbours_are_persisted() {
    run(async {
        let world = World::with(&Role::ALL, &["p4_persist.attempts_max=3"]).await;
        let sale = world.sale("parked", 1_000, Some(1)).await;
        world.sell(&sale, 20).await;
        let garbage =
            [b"not json".to_vec(), br#"{"v":2,"order":"of tomorrow"}"#.to_vec(), b"\xff\xfe".to_vec(), vec![]];
        world.publish(&garbage).await;
        let later = world.bought(&sale, "later").await;
        confirmed(&world, &sale, "later", later).await;
        eventually("20 neighbours", async || world.orders(&sale).await == 21).await;
        eventually("four dead letters", async || world.waiting_in("seckill.dlq").await == 4).await;
        // P5 holds them unseen while it reads them; so they are listed until they are all there.
        let mut dead = Vec::new();
        eventually("all four in one list", async || {
            dead = world.mq_dlq_messages().await;
            dead.len() == 4
        })
        .await;
        let (later, noise): (Vec<_>, Vec<_>) = dead.iter().partition(|parked| parked.body == garbage[1]);
        assert!(noise.len() == 3 && noise.iter().all(|parked| reason(parked) == "UNDECODABLE"), "{dead:?}");
        // A later version might have been read by a later consumer, so it had all its attempts first (window 24).
        let detail = format!("{:?}", later[0].headers.get("x-seckill-detail"));
        assert!(reason(later[0]) == "UNKNOWN_VERSION" && detail.contains("version 2"), "{dead:?}");
        assert_eq!((attempts(&later[0].headers), attempts(&noise[0].headers)), (3, 1), "{dead:?}");
        world.finish().await;
    });
}

#[test]
fn a_business_refusal_is_recorded_before_it_is_acknowledged() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("refused", 100, Some(1)).await;
        world.foreign_order(&sale, "alice", 7).await;
        // As long as the failure cannot be written down, the message must not be gone.
        world
            .sql("CREATE TRIGGER refuse BEFORE INSERT ON failed_request FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'")
            .await;
        let alice = world.bought(&sale, "alice").await;
        let bob = world.bought(&sale, "bob").await;
        confirmed(&world, &sale, "bob", bob).await;
        eventually("a retry", async || world.waiting_in("seckill.retry").await == 1).await;
        assert_eq!(world.rows("request_outcome", "kind = 'FAILED'").await, 0, "half of a failure");
        assert_eq!(world.status_of(&sale, "alice", alice).await.0, "QUEUED");
        world.sql("DROP TRIGGER refuse").await;
        eventually("the failure", async || world.status_of(&sale, "alice", alice).await.0 == "FAILED").await;
        assert_eq!(world.status_of(&sale, "alice", alice).await.1, "DUPLICATE_BUYER");
        let row = format!("request_id = {alice} AND status = 'failed_final' AND reason = 'DUPLICATE_BUYER'");
        assert_eq!(world.rows("failed_request", &row).await, 1);
        assert_eq!(world.rows("request_outcome", &format!("request_id = {alice} AND kind = 'FAILED'")).await, 1);
        assert!(world.mq_dlq_messages().await.is_empty());
        assert_eq!(world.rows("orders", "user_id = 'alice'").await, 1);
        let audit = world.settled(&sale).await;
        assert_eq!((audit.counted.accepted_failed, audit.counted.redis_stock), (1, 98), "nothing goes back to redis");
        world.finish().await;
    });
}

#[test]
fn the_same_request_id_with_another_content_is_parked_as_a_conflict() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("forged", 100, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        let body = bodies(&world).await.remove(0);
        let mut forged = message::decode(&body).unwrap();
        forged.purchase.user_id = UserId::parse("mallory").unwrap();
        let relay = world.extra_roles(&[Relay], |_| {});
        confirmed(&world, &sale, "alice", alice).await;
        world.publish(&[message::encode(&forged).into_bytes()]).await;
        eventually("a dead letter", async || world.waiting_in("seckill.dlq").await == 1).await;
        assert_eq!(reason(&world.mq_dlq_messages().await[0]), "CONFLICT");
        assert_eq!((world.orders(&sale).await, world.rows("orders", "user_id = 'alice'").await), (1, 1));
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn one_row_the_database_refuses_ends_in_the_dlq_its_neighbours_are_persisted_and_p5_settles_it() {
    run(async {
        let set = ["p4_persist.attempts_max=3"];
        let world = World::with(&[Api, Relay, Consumer], &set).await;
        let sale = world.sale("cursed", 1_000, Some(1)).await;
        world.sql(REFUSING_TRIGGER).await;
        let selling = loadgen::run(world.crowd(&sale, 200));
        let (sold, cursed) = tokio::join!(selling, world.bought(&sale, "cursed"));
        assert_eq!(sold.unwrap().accepted, 200);
        eventually("200 neighbours", async || world.orders(&sale).await == 200).await;
        eventually("a dead letter", async || world.waiting_in("seckill.dlq").await == 1).await;
        let dead = world.mq_dlq_messages().await;
        assert_eq!(reason(&dead[0]), "ATTEMPTS_SPENT");
        assert_eq!(message::decode(&dead[0].body).unwrap().purchase.request_id, cursed);
        assert_eq!(world.status_of(&sale, "cursed", cursed).await.0, "QUEUED", "a DLQ is no verdict");
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.parked == 1, "{audit:#?}");
        // The cause is gone: P5 persists it from the ledger, and the dead letter is harmless from then on.
        world.sql("DROP TRIGGER curse").await;
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        confirmed(&world, &sale, "cursed", cursed).await;
        world.publish(&[dead[0].body.clone()]).await;
        eventually("the replay through", async || world.waiting_in("seckill.orders").await == 0).await;
        assert_eq!(world.orders(&sale).await, 201);
        reconcile.stop().await;
        world.finish().await;
    });
}
