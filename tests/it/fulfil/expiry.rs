//! Overdue orders expire, and their units are sold again, once (L2).

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::order_life::PaymentTerms;
use seckill::roles::Role;
use serde_json::json;

#[test]
fn units_of_orders_that_nobody_paid_are_sold_to_others() {
    run(async {
        let world = World::with(&Role::ALL, &["redis.shards=2", "p1_entry.cache_ttl_ms=50"]).await;
        let terms = PaymentTerms { pay_within_s: 1, pay_grace_s: 0, limit_returns: false };
        let sale = world.paying_sale("expire", 3, Some(1), terms).await;
        let mut first = Vec::new();
        for user in ["alice", "bob", "carol"] {
            first.push(world.bought(&sale, user).await);
        }
        // The units come back while these wait for nothing else.
        eventually("sold to others", async || {
            for user in ["dave", "erin", "frank"] {
                world.buy(&sale, user, 1, None).await;
            }
            world.rows("orders", "state = 'EXPIRED'").await >= 4
        })
        .await;
        for (user, id) in ["alice", "bob", "carol"].into_iter().zip(first) {
            let status = world.status(&sale, user, &id.to_string(), 0).await;
            assert_eq!(
                (status.text("status").as_str(), &status.json["order"]["state"]),
                ("CONFIRMED", &json!("EXPIRED"))
            );
            assert_eq!(world.buy(&sale, user, 1, None).await.status, 409, "the limit stays used");
        }
        eventually("everything expired", async || world.rows("orders", "state = 'UNPAID'").await == 0).await;
        world.finish().await;
    });
}

#[test]
fn a_payment_that_was_started_moves_the_deadline_once() {
    run(async {
        let world = World::with(&Role::ALL, &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("paying", 3, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        let deadline =
            async || {
                world.number(&format!(
            "SELECT TIMESTAMPDIFF(SECOND, created_at, expire_at) AS n FROM orders WHERE request_id = {alice}"
        )).await
            };
        assert_eq!(deadline().await, 600);
        let path = format!("/orders/{alice}/paying");
        assert_eq!(admin.post(&path, json!({})).await.status, 200);
        assert_eq!(deadline().await, 1_200);
        assert_eq!(admin.post(&path, json!({})).await.status, 200, "a repeat");
        assert_eq!(deadline().await, 1_200, "never past twice the time");
        assert_eq!(world.rows("operator_acts", "action = 'order.paying' AND before_json LIKE '%UNPAID%'").await, 1);
        world.overdue(alice).await;
        eventually("expired", async || world.order_in("EXPIRED", alice).await).await;
        let late = admin.post(&path, json!({})).await;
        assert_eq!(late.status, 409, "{late:?}");
        assert_eq!(admin.pay(alice, "late").await.text("reason"), "EXPIRED");
        let bob = world.ordered(&sale, "bob").await;
        let plain = world.sale("plain", 1, Some(1)).await;
        let stateless = world.ordered(&plain, "bob").await;
        assert_eq!(admin.post(&format!("/orders/{stateless}/paying"), json!({})).await.status, 409);
        assert_eq!(admin.post("/orders/7/paying", json!({})).await.status, 404);
        assert_eq!(world.cancel_mine("bob", bob).await.text("state"), "CANCELLED");
        assert_eq!(world.cancel_mine("bob", bob).await.text("state"), "CANCELLED", "a repeat");
        world.finish().await;
    });
}

#[test]
fn a_sale_whose_row_is_locked_does_not_keep_the_orders_of_another_from_expiring() {
    run(async {
        use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
        let world = World::with(&Role::ALL, &[]).await;
        let (held, free) =
            (world.paying_sale("held", 3, Some(1), LONG).await, world.paying_sale("free", 3, Some(1), LONG).await);
        let (alice, bob) = (world.ordered(&held, "alice").await, world.ordered(&free, "bob").await);
        let mut other = AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap();
        other.batch_execute("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'held'").await.unwrap();
        world.overdue(alice).await;
        world.overdue(bob).await;
        eventually("the other sale's", async || world.order_in("EXPIRED", bob).await).await;
        assert!(world.order_in("UNPAID", alice).await);
        other.batch_execute("ROLLBACK").await.unwrap();
        eventually("later", async || world.order_in("EXPIRED", alice).await).await;
        world.finish().await;
    });
}

#[test]
fn sales_with_overdue_orders_take_turns() {
    run(async {
        // A turn is one order.
        let world = World::with(&Role::ALL, &["p6_fulfil.group_max=1"]).await;
        let (many, one) =
            (world.paying_sale("many", 50, None, LONG).await, world.paying_sale("one", 3, Some(1), LONG).await);
        for _ in 0..30 {
            world.bought(&many, "alice").await;
        }
        let bob = world.ordered(&one, "bob").await;
        eventually("landed", async || world.rows("orders", "sale_id = 'many'").await == 30).await;
        world.sql("UPDATE orders SET expire_at = IF(sale_id = 'many', '2025-01-01', NOW(3) - INTERVAL 1 HOUR)").await;
        eventually("all", async || world.rows("orders", "state = 'EXPIRED'").await == 31).await;
        let earlier = format!(
            "sale_id = 'many' AND state_at < (SELECT state_at FROM (SELECT * FROM orders) AS all_of_them WHERE request_id = {bob})"
        );
        let before = world.rows("orders", &earlier).await;
        assert!(before <= 2, "{before} orders of the other sale, which are overdue for longer, expired before it");
        world.finish().await;
    });
}

#[test]
fn orders_that_moved_after_they_were_read_are_published_as_they_are_and_hold_up_no_other() {
    run(async {
        let mut world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &[]).await;
        let sale = world.paying_sale("moved", 200, None, LONG).await;
        let mut ids = Vec::new();
        for _ in 0..120 {
            ids.push(world.bought(&sale, "alice").await);
        }
        eventually("landed", async || world.rows("orders", "TRUE").await == 120).await;
        // Events wait.
        world.stop_roles().await;
        world.start_roles(&[Role::Api]).await;
        world.sql("UPDATE orders SET expire_at = NOW(3) - INTERVAL 1 SECOND").await;
        let read = world.servers.rows.orders.overdue(&sale, None, 500).await.unwrap();
        assert_eq!(read.len(), 120);
        let admin = world.admin_port();
        assert_eq!(admin.pay(ids[3], "in-time").await.status, 200);
        assert_eq!(admin.pay_amount(ids[5], "another-amount", 7).await.status, 200);
        world.sql("DELETE FROM order_events").await;
        let (one_paid, one_older): (Vec<_>, Vec<_>) =
            read.clone().into_iter().partition(|order| [ids[3], ids[7]].contains(&order.request_id));
        let batch = world.servers.rows.orders.expire(&sale, one_older).await.unwrap().expect("a batch");
        assert_eq!((batch.orders, batch.units), (118, 118));
        let batch = world.servers.rows.orders.expire(&sale, one_paid).await.unwrap().expect("a batch");
        assert_eq!((batch.orders, batch.units), (1, 1), "not the paid one");
        let rows = world.servers.rows.order_events.waiting(0).await.unwrap().events;
        assert_eq!(rows.iter().map(|row| row.count).collect::<Vec<_>>(), [100, 18, 1], "a row is a message");
        let status = |id: RequestId| {
            let lists = rows.iter().map(|row| format!("[{}]", String::from_utf8_lossy(&row.bodies)));
            let mut events = lists.flat_map(|list| serde_json::from_str::<Vec<serde_json::Value>>(&list).unwrap());
            events.find(|event| event["rid"] == id.to_string().as_str()).map(|event| event["version"].clone())
        };
        assert_eq!(
            [ids[2], ids[3], ids[5]].map(status),
            [Some(json!(2)), None, Some(json!(3))],
            "the version that the row has now"
        );
        assert!(world.servers.rows.orders.expire(&sale, read).await.unwrap().is_none(), "a repeat");
        world.finish().await;
    });
}
