//! Negative controls of group C: with one mechanism left out, the audit must show the loss. A test that stays green without
//! what it tests proves nothing.

use super::mortal::Mortal;
use super::world::{World, eventually, run};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::{SaleAudit, Window};
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;

const CURSE: &str =
    "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'";

async fn world(name: &str) -> (World, SaleId) {
    let world = World::with(&[Api, Relay], &[]).await;
    declare(&world.servers.rabbit).await.unwrap();
    let sale = world.sale(name, 100, Some(1)).await;
    (world, sale)
}

/// Lets an intact consumer do what it can, and returns the audit once no message is left. Nobody compensates.
async fn afterwards(world: &World, sale: &SaleId, broken: Option<Mortal>) -> SaleAudit {
    eventually("everything at the broker", async || world.outbox().await == (0, 0)).await;
    if let Some(mut broken) = broken {
        // In order, so that it sends its acks.
        assert_eq!(broken.program.terminate().await.0, Some(0), "{}", broken.program.said());
    }
    // Stopped in order, what it had in hand is landed or back in the queue: then another one lands it.
    eventually("no message left, in no hand either", async || {
        let intact = world.more(&[Consumer], |_| {});
        eventually("an empty queue", async || world.waiting_in("seckill.").await == 0).await;
        intact.stop().await;
        world.waiting_in("seckill.").await == 0
    })
    .await;
    world.audit(sale, Window::Now).await
}

async fn lost_by(mechanism: &str, prepare: &str, dies_at: Option<&str>) {
    let (world, sale) = world(mechanism).await;
    if prepare == "foreign" {
        world.foreign_order(&sale, "alice", 7).await;
    } else if !prepare.is_empty() {
        world.sql(prepare).await;
    }
    world.bought(&sale, "alice").await;
    let point = dies_at.map_or(String::new(), |point| format!(";{point}=return"));
    let broken = world.mortal("consumer", &format!("{mechanism}=return{point}"), &[]);
    let broken = match dies_at {
        Some(point) => {
            broken.dies_at(point).await;
            None
        }
        None => {
            broken.until_metric("seckill_p4_persist_seconds_count", |count| count >= 1.0).await;
            Some(broken)
        }
    };
    if prepare == CURSE {
        world.sql("DROP TRIGGER curse").await;
    }
    let audit = afterwards(&world, &sale, broken).await;
    assert!(audit.counted.leaked == 1 && !audit.consistent(), "{mechanism} left out and nothing lost: {audit:#?}");
    world.stop().await;
}

#[test]
fn an_ack_before_the_commit_loses_an_order() {
    run(lost_by("ack_after_commit", "", Some("F12")));
}

#[test]
fn an_ack_before_the_retry_is_confirmed_loses_an_order() {
    run(lost_by("confirmed_retry", CURSE, Some("F18")));
}

#[test]
fn any_duplicate_key_taken_for_success_loses_a_request() {
    run(lost_by("own_outcome", "foreign", None));
}

#[test]
fn a_refusal_that_is_not_recorded_loses_a_request() {
    run(lost_by("recorded_refusal", "foreign", None));
}

#[test]
fn a_half_transaction_that_is_committed_breaks_the_sheet() {
    run(async {
        let (world, sale) = world("rollback").await;
        let mut other = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap();
        other.batch_execute("BEGIN; UPDATE sales SET title = 'x'").await.unwrap();
        world.bought(&sale, "alice").await;
        let broken = world.mortal("consumer", "rollback=return", &[]);
        eventually("an order without its stock", async || world.orders(&sale).await == 1).await;
        other.batch_execute("ROLLBACK").await.unwrap();
        let audit = afterwards(&world, &sale, Some(broken)).await;
        assert!(!audit.consistent() && audit.counted.database_stock == 100, "{audit:#?}");
        world.stop().await;
    });
}

#[test]
fn a_connection_that_is_used_again_after_an_abandoned_call_breaks_the_sheet() {
    run(async {
        let (world, sale) = world("discard").await;
        // Each statement is quicker than its own limit, all together are slower than the call's: it is abandoned inside the
        // transaction, and BEGIN of the next one on this connection commits the half.
        for table in ["request_outcome", "orders", "stock_flow"] {
            world
                .sql(&format!("CREATE TRIGGER slow_{table} BEFORE INSERT ON {table} FOR EACH ROW DO SLEEP(0.8)"))
                .await;
        }
        world.bought(&sale, "alice").await;
        let set = ["mysql.statement_timeout_ms=1000", "mysql.pool_max=2"];
        let broken = world.mortal("consumer", "discard=return", &set);
        eventually("an order without its stock", async || world.orders(&sale).await == 1).await;
        for table in ["request_outcome", "orders", "stock_flow"] {
            world.sql(&format!("DROP TRIGGER slow_{table}")).await;
        }
        let audit = afterwards(&world, &sale, Some(broken)).await;
        assert!(!audit.consistent() && audit.counted.database_stock == 100, "{audit:#?}");
        world.stop().await;
    });
}

#[test]
fn a_column_that_folds_case_refuses_a_buyer_who_was_accepted() {
    run(async {
        // Window 72. As a server's default collation would have it; the schema's VARBINARY does not.
        let (world, sale) = world("folding").await;
        let folding = "ALTER TABLE orders MODIFY one_per_user_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci NULL";
        world.sql(folding).await;
        let (lower, upper) = (world.bought(&sale, "bob").await, world.bought(&sale, "BOB").await);
        let consumer = world.more(&[Consumer], |_| {});
        let mut told = Vec::new();
        for (user, id) in [("bob", lower), ("BOB", upper)] {
            eventually("a fate", async || world.told(&sale, user, id).await.0 != "QUEUED").await;
            told.push(world.told(&sale, user, id).await.0);
        }
        told.sort();
        assert_eq!(told, ["CONFIRMED", "FAILED"], "two buyers were not taken for one");
        consumer.stop().await;
        world.stop().await;
    });
}
