//! A request whose sale the database does not know: a lost row or a wrong database, never a reason to fail a buyer (window 92).

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::{HeaderValue, browse_dlq, declare};

/// A world that sold to alice, whose order was persisted, and to bob, after the sale's row was lost.
async fn without_its_row(name: &str) -> (World, SaleId, RequestId) {
    let world = World::with(&[Api, Relay, Consumer], &["p4_persist.attempts_max=2"]).await;
    declare(&world.servers.rabbit).await.unwrap();
    let sale = world.sale(name, 100, Some(1)).await;
    let alice = world.bought(&sale, "alice").await;
    eventually("an order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
    world.sql(&format!("UPDATE sales SET sale_id = 'away' WHERE sale_id = '{sale}'")).await;
    let bob = world.bought(&sale, "bob").await;
    eventually("a dead letter", async || world.waiting_in("seckill.dlq").await == 1).await;
    (world, sale, bob)
}

async fn row_is_back(world: &World, sale: &SaleId) {
    world.sql(&format!("UPDATE sales SET sale_id = '{sale}' WHERE sale_id = 'away'")).await;
}

#[test]
fn it_is_parked_with_its_reason_and_is_persisted_when_the_sale_is_known_again() {
    run(async {
        let (world, sale, bob) = without_its_row("vanished").await;
        let dead = browse_dlq(&world.servers.rabbit, 10).await.unwrap().remove(0);
        let header = |name: &str| dead.headers.get(name).cloned();
        assert_eq!(header("x-seckill-reason"), Some(HeaderValue::Text("UNKNOWN_SALE".to_owned())));
        assert!(header("x-seckill-detail").unwrap().to_string().contains("does not know sale vanished"));
        assert_eq!(world.status_of(&sale, "bob", bob).await.0, "QUEUED");
        assert_eq!(world.rows("request_outcome", "kind = 'FAILED'").await, 0, "a lost row is no verdict");

        let replay = world.cli(&["dlq", "replay", "--json", &bob.to_string()]).exits(1).json();
        assert_eq!(replay["done"][0]["result"], "unknown_sale", "{replay:#}");
        assert!(replay["done"][0]["detail"].as_str().unwrap().contains("does not know sale vanished"), "{replay:#}");
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        let open = "status = 'open' AND reason = 'UNKNOWN_SALE'";
        eventually("a row in the register", async || world.rows("failed_request", open).await == 1).await;

        row_is_back(&world, &sale).await;
        eventually("an order", async || world.status_of(&sale, "bob", bob).await.0 == "CONFIRMED").await;
        eventually("an empty DLQ", async || world.waiting_in("seckill.dlq").await == 0).await;
        reconcile.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_person_may_give_it_up() {
    run(async {
        let (world, sale, bob) = without_its_row("given-up-unknown").await;
        world.cli(&["dlq", "give-up", &bob.to_string(), "--reason", "the sale was a test"]).exits(0);
        assert_eq!(world.rows("request_outcome", "kind = 'FAILED' AND reason = 'GIVEN_UP'").await, 1);
        row_is_back(&world, &sale).await;
        assert_eq!(world.status_of(&sale, "bob", bob).await, ("FAILED".into(), "GIVEN_UP".into()));
        world.finish().await;
    });
}
