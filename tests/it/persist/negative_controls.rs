//! Negative controls of the consumer: with one mechanism left out, the audit must show the loss. A test that stays green
//! without what it tests proves nothing.

use crate::support::world::persist_controls::{afterwards, world};
use crate::support::world::{eventually, run};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::roles::Role::Consumer;

const REFUSING_TRIGGER: &str =
    "CREATE TRIGGER curse BEFORE INSERT ON orders FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'cursed'";

async fn lost_by(mechanism: &str, prepare: &str, dies_at: Option<&str>) {
    let (world, sale) = world(mechanism).await;
    if prepare == "foreign" {
        world.foreign_order(&sale, "alice", 7).await;
    } else if !prepare.is_empty() {
        world.sql(prepare).await;
    }
    world.bought(&sale, "alice").await;
    let point = dies_at.map_or(String::new(), |point| format!(";{point}=return"));
    let broken = world.process("consumer", &format!("{mechanism}=return{point}"), &[]);
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
    if prepare == REFUSING_TRIGGER {
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
    run(lost_by("confirmed_retry", REFUSING_TRIGGER, Some("F18")));
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
        let broken = world.process("consumer", "rollback=return", &[]);
        eventually("an order without its stock", async || world.orders(&sale).await == 1).await;
        other.batch_execute("ROLLBACK").await.unwrap();
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
        let folds = "VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci";
        world
            .sql(&format!("ALTER TABLE orders MODIFY user_id {folds} NOT NULL, MODIFY one_per_user_id {folds} NULL"))
            .await;
        let (lower, upper) = (world.bought(&sale, "bob").await, world.bought(&sale, "BOB").await);
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let mut statuses = Vec::new();
        for (user, id) in [("bob", lower), ("BOB", upper)] {
            eventually("an outcome", async || world.status_of(&sale, user, id).await.0 != "QUEUED").await;
            statuses.push(world.status_of(&sale, user, id).await.0);
        }
        statuses.sort();
        assert_eq!(statuses, ["CONFIRMED", "FAILED"], "two buyers were not taken for one");
        consumer.stop().await;
        world.stop().await;
    });
}
