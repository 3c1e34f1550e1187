//! Numbers that a person closed: what comes late with one of them fails for good, and its unit is sold once.

use super::rebuild_and_grants::{QUICK, epoch, lose_the_keys, stock};
use crate::support::processes::programs::call;
use crate::support::world::database_sessions::{Session, connections};
use crate::support::world::fault_injection::purge_mq_dlq;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::message::{OrderMessage, encode};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// Three numbers, of which the second one has no outcome and no known request: Redis, broker and register have lost it, and the sale
/// is rebuilt. Returns the message.
async fn lost_number(world: &mut World, sale: &SaleId) -> OrderMessage {
    world
        .sql(
            "CREATE TRIGGER hold BEFORE INSERT ON orders FOR EACH ROW BEGIN IF NEW.user_id = 'lost' THEN \
            SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'held'; END IF; END",
        )
        .await;
    world.bought(sale, "a").await;
    let id = world.bought(sale, "lost").await;
    world.bought(sale, "c").await;
    let lost = world.accepted(sale, id).await;
    assert_eq!((lost.epoch, lost.number), (1, 2));
    eventually("two of three", async || world.orders(sale).await == 2).await;
    eventually("the third is parked", async || !world.mq_dlq().await.is_empty()).await;
    lose_the_keys(world, sale).await;
    purge_mq_dlq(&world.servers.rabbit).await;
    world.sql("DELETE FROM failed_request; DROP TRIGGER hold").await;
    world.start_roles(&[Reconcile]).await;
    eventually("rebuilt", async || epoch(world).await > 1 && stock(world, sale).await == Some(7)).await;
    eventually("it is reported", async || world.rows("audit_findings", "code = 'P5-RC4'").await > 0).await;
    lost
}

const CLOSE: [&str; 6] = ["finding", "close", "late", "--gap", "1:0:2", "--reason=refunded"];

#[test]
fn a_message_that_comes_after_its_number_was_closed_fails_and_its_unit_is_sold_once() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("late", 10, Some(1)).await;
        let lost = lost_number(&mut world, &sale).await;
        world.cli(&CLOSE).exits(0);
        world.cli(&["sale", "reclaim", "late"]).exits(0);
        assert_eq!(stock(&world, &sale).await, Some(8));

        world.publish(&[encode(&lost).into_bytes()]).await;
        let outcome = format!("request_id = {}", lost.purchase.request_id);
        eventually("an outcome", async || world.rows("request_outcome", &outcome).await == 1).await;
        let failed = format!("{outcome} AND reason = 'NUMBER_REUSED' AND number IS NULL");
        assert_eq!(world.rows("request_outcome", &failed).await, 1);
        for user in 0..8 {
            world.bought(&sale, &format!("u{user}")).await;
        }
        let audit = world.settled(&sale).await;
        assert!(audit.consistent(), "{:#?}", audit.findings);
        assert_eq!((world.orders(&sale).await, audit.counted.refused), (10, 0), "each unit once");
        world.finish().await;
    });
}

/// A person closes the number while its order is being written: either it is closed, or it is an order.
#[test]
fn a_number_that_is_closed_while_its_order_is_written_is_closed_or_an_order_and_never_both() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("late", 10, Some(1)).await;
        let lost = lost_number(&mut world, &sale).await;
        let outcome = format!("request_id = {}", lost.purchase.request_id);
        // Both wait for the row of the sale.
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'late'").await;
        world.publish(&[encode(&lost).into_bytes()]).await;
        let args: Vec<String> = world.sets().into_iter().chain(CLOSE.map(str::to_owned)).collect();
        let closing = tokio::task::spawn_blocking(move || call(&args.iter().map(String::as_str).collect::<Vec<_>>()));
        let waiting = "(info LIKE '%sales%FOR UPDATE' OR info LIKE 'UPDATE%sales%')";
        eventually("one of them waits", async || connections(&world, waiting).await != 0).await;
        other.run("ROLLBACK").await;
        let (code, ..) = closing.await.unwrap();
        eventually("an outcome", async || world.rows("request_outcome", &outcome).await == 1).await;
        let ordered = world.rows("orders", &outcome).await == 1;
        let closed = world.rows("closed_findings", "first_number = 2").await == 1;
        assert_eq!((ordered, closed), (code != Some(0), code == Some(0)), "{code:?}");
        let audit = world.settled(&sale).await;
        assert!(audit.consistent(), "{:#?}", audit.findings);
        assert_eq!(world.audit(&sale, Window::Now).await.counted.gaps_held, i64::from(closed));
        world.finish().await;
    });
}
