//! Alerts about single sales: one whose buyers the database refuses, one that was not closed, and the orders of one with payments.

use crate::support::buyers::orders::LONG;
use crate::support::outside::prometheus::Prometheus;
use crate::support::world::{World, run_waiting};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::order_life::PaymentTerms;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::runtime::now_ms;

#[test]
fn a_refusal_by_the_database_and_a_sale_that_was_not_closed_are_reported() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("refusing", 10, Some(1)).await;
        let (relay, consumer) = (world.process("relay", "", &[]), world.process("consumer", "", &[]));
        let by_hand = ["p5_reconcile.interval_ms=300", "p5_reconcile.auto_close_after_s=0"];
        let p5 = world.process("reconcile", "", &by_hand);
        p5.until_metric("seckill_p5_reconcile_ended_not_closed_count", |count| count == 0.0).await;
        let tower = Prometheus::over("alerts-sales", &[&relay, &consumer, &p5]).await;

        let refused = tower.before("a buyer with an order that Redis does not know", &["SeckillDatabaseRefused"]).await;
        world.foreign_order(&sale, "bob", 7).await;
        let bob = world.bought(&sale, "bob").await;
        refused.fires().await;
        assert_eq!(world.status_of(&sale, "bob", bob).await, ("FAILED".into(), "DUPLICATE_BUYER".into()));
        refused.resolves().await;

        let forgotten = tower.before("a sale that ended two hours ago", &["SeckillEndedNotClosed"]).await;
        let hours_ago = |hours: i64| now_ms() - hours * 3_600_000;
        let over = world
            .sale_with("over", 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = (hours_ago(3), hours_ago(2)))
            .await;
        forgotten.fires().await;
        world.cli(&["sale", "close", over.as_str()]).exits(0);
        forgotten.resolves().await;
        world.finish().await;
    });
}

#[test]
fn money_that_has_to_go_back_and_orders_that_do_not_expire_are_reported() {
    run_waiting(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("unpaid", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        let p5 = world.process("reconcile", "", &[]);
        p5.until_metric("seckill_p6_fulfil_refunds_needed_count", |count| count == 0.0).await;
        let tower = Prometheus::over("alerts-payments", &[&p5]).await;

        let guessed = tower.before("wrong tokens", &["SeckillSignInsFail"]).await;
        let guess =
            || reqwest::Client::new().get(format!("http://{}/admin/v1/whoami", p5.admin())).bearer_auth("guess").send();
        futures::future::join_all((0..15).map(|_| guess())).await;
        guessed.fires().await;

        let refund = tower.before("a payment of another amount", &["SeckillRefundNeeded"]).await;
        admin.pay_amount(alice, "too-little", 1).await;
        refund.fires().await;
        let body = serde_json::json!({ "payment_id": "too-little" });
        assert_eq!(admin.post(&format!("/orders/{alice}/refunded"), body).await.status, 200);
        refund.resolves().await;

        // Its row is locked, so its orders cannot expire.
        let overdue = tower.before("a deadline long past", &["SeckillOrdersOverdue"]).await;
        let mut other = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap();
        other.batch_execute("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'unpaid'").await.unwrap();
        let past = "expire_at = NOW(3) - INTERVAL 1 HOUR";
        world.sql(&format!("UPDATE orders SET {past} WHERE request_id = {bob}")).await;
        overdue.fires().await;
        other.batch_execute("ROLLBACK").await.unwrap();
        overdue.resolves().await;
        world.finish().await;
    });
}

#[test]
fn an_order_that_cannot_expire_as_it_is_on_record_is_reported() {
    run_waiting(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("aside", 10, Some(3), PaymentTerms { limit_returns: true, ..LONG }).await;
        let carol = world.ordered(&sale, "carol").await;
        let p5 = world.process("reconcile", "", &[]);
        p5.until_metric("seckill_p6_fulfil_set_aside_count", |count| count == 0.0).await;
        let tower = Prometheus::over("alerts-aside", &[&p5]).await;

        let aside = tower.before("a buyer's count that is below its order", &["SeckillOrderSetAside"]).await;
        world.sql("UPDATE purchases SET quantity = 0 WHERE user_id = 'carol'").await;
        world.sql("UPDATE orders SET expire_at = NOW(3) - INTERVAL 1 SECOND").await;
        aside.fires().await;
        assert!(world.order_in("UNPAID", carol).await);
        world.sql("UPDATE purchases SET quantity = 1 WHERE user_id = 'carol'").await;
        aside.resolves().await;
        world.finish().await;
    });
}
