//! When a buyer is not forgotten: something is on its way, or the wish is none. Nothing is changed then.

use super::forget::BUYER;
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, run};
use seckill::domain::sale::MetaState;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;
use serde_json::json;

impl World {
    async fn forgetting_is_refused(&self, said: &str) {
        let before = self.occurrences(BUYER).await;
        let refused = self.forget(BUYER).exits(1);
        assert!(refused.err.contains("on its way") && refused.err.contains(said), "{said}: {refused:?}");
        assert!(!refused.err.contains(BUYER), "{refused:?}");
        assert_eq!(self.occurrences(BUYER).await, before, "{said}");
        assert_eq!(self.rows("forgotten_buyers", "TRUE").await + self.rows("blocked_buyers", "TRUE").await, 0);
    }
}

#[test]
fn what_is_on_its_way_is_named_and_nothing_is_changed() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("waits", 10, None, LONG).await;
        let order = world.ordered(&sale, BUYER).await;
        world.settled(&sale).await;
        world.is_quiet().await;
        world.forgetting_is_refused(&format!("order {order} is not paid")).await;
        let admin = world.admin_port();
        admin.pay(order, "right").await;
        admin.pay(order, "twice").await;
        world.is_quiet().await;
        world.forgetting_is_refused(&format!("money of order {order} has to go back")).await;
        world.sql("UPDATE payments SET state = 'REFUNDED' WHERE reason IS NOT NULL").await;

        let body = format!(r#"{{"v":1,"rid":"7","sale":"waits","user":"{BUYER}","qty":1,"status":"PAID"}}"#);
        for (insert, said, table) in [
            (
                format!(
                    "failed_request (request_id, sale_id, user_id, quantity, source, reason, payload, status) VALUES (7, 'waits', '{BUYER}', 1, 'audit', 'LOST', '', 'open')"
                ),
                "failed request 7 is open",
                "failed_request",
            ),
            (
                format!(
                    "webhook_deliveries (webhook, request_id, event_key, body) VALUES ('shop', 7, 'order.paid', '{body}')"
                ),
                "waits for webhook shop",
                "webhook_deliveries",
            ),
        ] {
            world.sql(&format!("INSERT INTO {insert}")).await;
            world.forgetting_is_refused(said).await;
            world.sql(&format!("DELETE FROM {table}")).await;
        }

        // It comes between the block and the decision.
        assert!(world.run_armed("F70=return", &["buyer", "forget", BUYER, "--reason", "asked"]));
        assert_eq!(world.rows("blocked_buyers", "lifted_at IS NULL AND ends_at > NOW(3)").await, 1);
        world.sql("UPDATE payments SET state = 'REFUND_NEEDED' WHERE reason IS NOT NULL").await;
        let refused = world.forget(BUYER).exits(1);
        assert!(refused.err.contains("has to go back"), "{refused:?}");
        assert_eq!(world.rows("forgotten_buyers", "state = 'REFUSED' AND user_id IS NULL").await, 1);
        assert_eq!(world.rows("blocked_buyers", "lifted_at IS NULL").await, 0, "the buyer may buy");
        assert_eq!(world.rows("operator_acts", "action = 'buyer.forget'").await, 0);
        world.sql("UPDATE payments SET state = 'REFUNDED' WHERE reason IS NOT NULL; DELETE FROM blocked_buyers; DELETE FROM forgotten_buyers").await;

        // Frozen: what its rebuild loads is not known yet.
        let keys = &world.servers.redis.sale_keys;
        keys.set_state(&sale, 0, MetaState::Frozen, &[MetaState::Open]).await.unwrap();
        world.forgetting_is_refused("sale waits is frozen").await;
        keys.set_state(&sale, 0, MetaState::Open, &[MetaState::Frozen]).await.unwrap();
        world.forget(BUYER).exits(0);
        assert_eq!(world.occurrences(BUYER).await, Vec::<String>::new());
        world.finish().await;
    });
}

#[test]
fn requests_on_the_way_and_dead_letters_are_named() {
    run(async {
        let mut world = World::with(&[Api], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("queued", 10, Some(3)).await;
        let id = world.bought(&sale, BUYER).await;
        for said in ["1 requests of sale queued have no outcome yet", "the outbox has entry 0/"] {
            world.forgetting_is_refused(said).await;
        }
        let others = world.extra_roles(&[Relay, Consumer], |_| {});
        assert!(world.settled(&sale).await.consistent());
        world.is_quiet().await;
        // A copy of a decided message is in the DLQ.
        world.park_request_in_mq(&sale, id).await;
        world.forgetting_is_refused(&format!("the MQ DLQ has message {id}")).await;
        crate::support::world::fault_injection::purge_mq_dlq(&world.servers.rabbit).await;
        // Events that no consumer publishes.
        others.stop().await;
        world.stop_roles().await;
        let body = format!(r#"{{"v":1,"rid":"7","sale":"queued","user":"{BUYER}","qty":1,"status":"PAID"}}"#);
        for table in ["outcome_event", "order_events"] {
            world
                .sql(&format!("INSERT INTO {table} (request_id, event_key, body) VALUES (7, 'order.paid', '{body}')"))
                .await;
            world.forgetting_is_refused(" 7 is not published").await;
            world.sql(&format!("DELETE FROM {table}")).await;
        }
        // A grant that no process gives.
        let returned = format!(r#"[["{BUYER}","7",1]]"#);
        world
            .sql(&format!(
                "INSERT INTO stock_grants (sale_id, grant_id, kind, quantity, buyers) VALUES ('queued', 'g', 'reclaim', 1, '{returned}')"
            ))
            .await;
        world.forgetting_is_refused("grant g of sale queued is not in Redis").await;
        world.sql("DELETE FROM stock_grants WHERE grant_id = 'g'").await;
        world.forget(BUYER).exits(0);
        assert_eq!(world.occurrences(BUYER).await, Vec::<String>::new());
        world.finish().await;
    });
}

#[test]
fn what_is_no_buyer_is_refused_by_its_field_or_as_unknown() {
    run(async {
        let world = World::with(&[], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let admin = world.admin_port();
        for (body, status, said) in [
            (json!({ "buyer": "", "reason": "r" }), 422, "buyer: expected 1 to 64 bytes"),
            (json!({ "buyer": "b".repeat(65), "reason": "r" }), 422, "buyer: expected 1 to 64 bytes"),
            (json!({ "buyer": "a\u{7}b", "reason": "r" }), 422, "buyer: expected 1 to 64 bytes"),
            (json!({ "buyer": "ann", "reason": " " }), 422, "reason: expected 1 to 200 characters"),
            (json!({ "buyer": "ann", "reason": "r".repeat(201) }), 422, "reason: expected 1 to 200 characters"),
            (json!({ "buyer": "ann", "reason": "r", "pseudonym": "x" }), 400, "pseudonym"),
            (json!({ "buyer": "ann", "reason": "r" }), 404, "nothing is on record of this buyer"),
        ] {
            let refused = admin.post("/buyers/forget", body.clone()).await;
            assert_eq!(refused.status, status, "{body}: {refused:?}");
            assert!(refused.text("detail").contains(said), "{body}: {refused:?}");
        }
        let chinese = admin.post_in("zh-CN", "/buyers/forget", json!({ "buyer": "ann", "reason": "r" })).await;
        assert_eq!((chinese.code().as_str(), chinese.text("title").as_str()), ("BUYER_NOT_FOUND", "没有该买家的记录"));
        for (args, said) in
            [(["", "r"], "--buyer: expected 1 to 64 bytes"), (["ann", ""], "--reason: expected 1 to 200")]
        {
            let refused = world.cli(&["buyer", "forget", args[0], "--reason", args[1]]).exits(64);
            assert!(refused.err.contains(said), "{refused:?}");
        }
        let unknown = world.cli(&["buyer", "forget", "ann", "--reason", "r"]).exits(1);
        assert!(unknown.err.contains("nothing is on record of this buyer"), "{unknown:?}");
        let rows = world.rows("forgotten_buyers", "TRUE").await + world.rows("blocked_buyers", "TRUE").await;
        assert_eq!(rows + world.rows("operator_acts", "TRUE").await, 0);
        world.finish().await;
    });
}
