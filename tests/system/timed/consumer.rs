//! Queues that go away and calls that are abandoned in the right moment: a slow machine would miss it.

use crate::support::world::database_sessions::Session;
use crate::support::world::fault_injection::delete_order_queue;
use crate::support::world::persist_controls::{afterwards, world};
use crate::support::world::{World, eventually, run, time_passes};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::rabbit::declare;

/// A trigger that refuses every order: a system error of every row.
const REFUSING_TRIGGER: &str =
    "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'";

#[test]
fn a_consumer_whose_queue_is_deleted_declares_it_and_consumes_again() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("deleted", 100, Some(1)).await;
        world.sell(&sale, 10).await;
        eventually("ten orders", async || world.orders(&sale).await == 10).await;
        for round in 0..3 {
            // Publishing events may open a connection, which declares the queues: in the moments of the deletion that could
            // starve the consumers for minutes (`a_queue_that_is_made_again_behind_its_consumer_does_not_starve_it`).
            eventually("events published", async || world.rows("outcome_event", "1 = 1").await == 0).await;
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
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
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
        world.sql(REFUSING_TRIGGER).await;
        let alice = world.bought(&sale, "alice").await;
        eventually("a retry", async || world.waiting_in("seckill.retry").await == 1).await;
        world.sql("DROP TRIGGER curse").await;
        // No process is there to declare the queue again when the message is due: the broker keeps what it cannot place
        // (window 52).
        world.stop_roles().await;
        delete_order_queue(&world.servers.rabbit).await;
        time_passes(4_000).await;
        let audit = world.audit(&sale, Window::Ms(60_000)).await;
        assert_eq!((audit.counted.leaked, world.orders(&sale).await), (0, 0));
        declare(&world.servers.rabbit).await.unwrap();
        world.start_roles(&[Api, Relay, Consumer]).await;
        eventually("an order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        world.finish().await;
    });
}

#[test]
fn a_connection_that_is_used_again_after_an_abandoned_call_breaks_the_sheet() {
    run(async {
        let (world, _) = world("discard").await;
        let sale = world.sale("limited", 100, Some(3)).await;
        // Each message is quicker than its own limit, all together are slower than the call's: it is abandoned inside the
        // transaction, before it has the stock, and BEGIN of the next one on this connection commits the half.
        for table in ["orders", "purchases"] {
            world
                .sql(&format!("CREATE TRIGGER slow_{table} BEFORE INSERT ON {table} FOR EACH ROW DO SLEEP(0.8)"))
                .await;
        }
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'limited'").await;
        world.bought(&sale, "alice").await;
        let set = ["mysql.statement_timeout_ms=1000", "mysql.pool_max=2", "p4_persist.attempts_max=1000"];
        let broken = world.process("consumer", "discard=return", &set);
        // Each attempt uses the pool's connections in turn, always in the same order: without others it may never meet the half
        // again but wait for its locks. One order of another sale after the other comes in between.
        let neighbour = world.sale("neighbour", 100, Some(3)).await;
        let mut buyers = 0;
        eventually("an order without its stock", async || {
            time_passes(1_000).await;
            buyers += 1;
            world.bought(&neighbour, &format!("buyer{buyers}")).await;
            world.orders(&sale).await == 1
        })
        .await;
        other.run("ROLLBACK").await;
        for table in ["orders", "purchases"] {
            world.sql(&format!("DROP TRIGGER slow_{table}")).await;
        }
        let audit = afterwards(&world, &sale, Some(broken)).await;
        assert!(!audit.consistent() && audit.counted.database_stock == 100, "{audit:#?}");
        world.stop().await;
    });
}
