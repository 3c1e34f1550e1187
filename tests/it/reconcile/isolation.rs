//! One bad sale, message or row stops itself only (row S8): what P5 does for one sale does not wait for others.

use super::rebuild_and_grants::{QUICK, lose_the_keys, stock};
use crate::support::world::database_sessions::Session;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// The epoch of one of several sales.
async fn epoch_of(world: &World, sale: &SaleId) -> i64 {
    world.number(&format!("SELECT CAST(epoch AS SIGNED) AS n FROM sales WHERE sale_id = '{sale}'")).await
}

/// Until it sells again under its second epoch, with these units.
async fn sells_again(world: &World, sale: &SaleId, units: i64) {
    eventually("the rebuild", async || epoch_of(world, sale).await == 2 && stock(world, sale).await == Some(units))
        .await;
}

#[test]
fn a_sale_is_rebuilt_while_the_orders_of_another_one_circle_in_the_retry_queues() {
    run(async {
        let set = [QUICK, &["rabbitmq.queues=1", "p4_persist.attempts_max=100"]].concat();
        let world = World::with(&[Api, Relay, Consumer], &set).await;
        let (broken, busy) = (world.sale("broken", 10, Some(1)).await, world.sale("busy", 100, Some(1)).await);
        world.bought(&broken, "alice").await;
        eventually("an order", async || world.orders(&broken).await == 1).await;
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'busy'").await;
        world.sell(&busy, 20).await;
        eventually("they circle", async || world.waiting_in("seckill.retry").await > 0).await;
        lose_the_keys(&world, &broken).await;
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        sells_again(&world, &broken, 9).await;
        assert_eq!(world.orders(&busy).await, 0, "they circle all the time");
        eventually("it sells", async || world.buy(&broken, "bob", 1, None).await.status == 202).await;
        other.run("ROLLBACK").await;
        eventually("the other sale's orders", async || world.orders(&busy).await == 20).await;
        reconcile.stop().await;
        world.finish().await;
    });
}

#[test]
fn what_a_rebuild_waits_for_is_in_the_log_and_in_a_gauge() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &["p4_persist.attempts_max=100"]).await;
        let sale = world.sale("waits", 10, Some(1)).await;
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'waits'").await;
        world.bought(&sale, "alice").await;
        eventually("it was sent back", async || world.waiting_in("seckill.retry").await == 1).await;
        // The ledger is lost: only the broker knows of alice.
        lose_the_keys(&world, &sale).await;
        let mut reconcile = world.busy_reconciler(&["p5_reconcile.quiet_ms=100"]);
        reconcile.program.until_logged("its rebuild waits for a message of it in retry queue").await;
        let gauge = "seckill_p5_reconcile_rebuild_waits_count{for=\"retry_queue\"}";
        eventually(gauge, async || reconcile.metric(gauge).await == Some(1.0)).await;
        assert_eq!(epoch_of(&world, &sale).await, 1, "her unit would be sold twice");
        other.run("ROLLBACK").await;
        sells_again(&world, &sale, 9).await;
        assert_eq!(world.orders(&sale).await, 1);
        eventually("nothing waits", async || reconcile.metric(gauge).await == Some(0.0)).await;
        assert_eq!(reconcile.program.stderr().matches("in retry queue").count(), 1, "logged once");
        drop(reconcile);
        world.finish().await;
    });
}

/// A new leader has to count each closed sale once more.
#[test]
fn a_new_leader_rebuilds_a_live_sale_before_it_counts_the_closed_ones() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        for number in 0..5 {
            let over = world.sale(&format!("over-{number}"), 10, Some(1)).await;
            world.bought(&over, "alice").await;
            eventually("an order", async || world.orders(&over).await == 1).await;
            world.cli(&["sale", "close", over.as_str()]).exits(0);
        }
        let live = world.sale("the-live-one", 10, Some(1)).await;
        world.bought(&live, "alice").await;
        eventually("an order", async || world.orders(&live).await == 1).await;
        lose_the_keys(&world, &live).await;
        // An audit takes its time, as one of a large sale does.
        let leader = world.start_armed("slow_audit=return(1000)", "reconcile").await;
        sells_again(&world, &live, 9).await;
        let counted = world.rows("audit_runs", "sale_id LIKE 'over-%'").await;
        assert!(counted <= 3, "{counted} closed sales were counted before the live one was whole");
        eventually("their turns come", async || world.rows("audit_runs", "sale_id LIKE 'over-%'").await >= 5).await;
        leader.kill();
        world.start_roles(&[Reconcile]).await;
        world.finish().await;
    });
}

#[test]
fn a_relay_dlq_entry_that_the_database_refuses_or_that_is_too_long_holds_up_no_other() {
    run(async {
        let mut world = World::with(&[Api], QUICK).await;
        let (sale, other) = (world.sale("named", 10, Some(1)).await, world.sale("other", 10, Some(1)).await);
        let mut requests = Vec::new();
        for user in ["refused", "long", "short", "elsewhere"] {
            requests.push(world.bought(&sale, user).await.to_string());
        }
        world.lose_the_outbox().await;
        let dlq = world.servers.redis.keys.relay_dlq(0);
        let long = "x".repeat(70_000);
        let damaged = [("named", "{"), ("named", long.as_str()), ("named", "{"), ("other", "{")];
        for (request, (named, payload)) in requests.iter().zip(damaged) {
            world.redis(&["XADD", &dlq, "*", "r", request, "s", named, "p", payload, "reason", "damaged"]).await;
        }
        world
            .sql(
                "CREATE TRIGGER refuse BEFORE INSERT ON failed_request FOR EACH ROW BEGIN IF NEW.user_id = 'refused' THEN \
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF; END",
            )
            .await;
        world.start_roles(&[Reconcile]).await;
        eventually("a cut row", async || world.rows("failed_request", "LENGTH(payload) = 60000").await == 1).await;
        eventually("the one behind it", async || world.rows("failed_request", "user_id = 'short'").await == 1).await;
        assert_eq!(world.rows("failed_request", "user_id = 'refused'").await, 0);
        // Only the ledger of the sale that the entry names is asked, one call instead of one for each sale and shard.
        assert_eq!(world.rows("failed_request", "user_id = 'elsewhere'").await, 0, "it names {other}");
        world.sql("DROP TRIGGER refuse").await;
        eventually("the refused one", async || world.rows("failed_request", "user_id = 'refused'").await == 1).await;
        eventually("all orders, from the ledger", async || world.orders(&sale).await == 4).await;
        world.redis(&["DEL", &dlq]).await;
        world.finish().await;
    });
}
