//! What the admin API answers about orders, money, acts and webhooks is what its document says of it.

use crate::support::basics::answer::Answer;
use crate::support::basics::answer_schema::{misfits, of_answer};
use crate::support::buyers::orders::LONG;
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, run};
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// An admin port whose answers are held against its document.
struct HeldPort<'a> {
    admin: &'a AdminPort,
    document: Value,
    /// The templates that were answered.
    seen: RefCell<BTreeSet<String>>,
}

impl HeldPort<'_> {
    /// Variables of the template are in `path`, as is a query.
    async fn get(&self, template: &str, path: &str) -> Answer {
        self.held("get", template, self.admin.get(path).await)
    }

    async fn post(&self, template: &str, path: &str, body: Value) -> Answer {
        self.held("post", template, self.admin.post(path, body).await)
    }

    fn held(&self, method: &str, template: &str, answer: Answer) -> Answer {
        assert_eq!(answer.status, 200, "{template}: {answer:?}");
        let schema = of_answer(&self.document, method, &format!("/admin/v1{template}"), 200);
        assert!(schema["$ref"].is_string(), "{template} has no type of its own: {schema}");
        assert_eq!(
            misfits(&self.document, schema, &answer.json),
            Vec::<String>::new(),
            "{template}: {:#}",
            answer.json
        );
        self.seen.borrow_mut().insert(template.to_owned());
        answer
    }

    /// Every template of these kinds that answers with JSON.
    fn described(&self) -> BTreeSet<String> {
        let calls = self.document["paths"].as_object().unwrap().iter().filter(|(path, calls)| {
            let mut calls = calls.as_object().unwrap().values();
            path.ends_with("/acts")
                || calls.any(|call| call["tags"] == json!(["orders"]) || call["tags"] == json!(["webhooks"]))
        });
        let templates = calls.map(|(path, _)| path.strip_prefix("/admin/v1").unwrap().to_owned());
        templates.filter(|template| template != "/orders/export").collect()
    }
}

#[test]
fn orders_money_acts_and_webhooks_are_answered_as_the_document_says() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let (sale, plain) = (world.paying_sale("typed", 5, Some(1), LONG).await, world.sale("plain", 5, Some(1)).await);
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        let stateless = world.ordered(&plain, "alice").await;
        let document = admin.get("/openapi.json").await.json;
        let held = HeldPort { admin: &admin, document, seen: RefCell::default() };

        held.post("/orders/{request_id}/paying", &format!("/orders/{alice}/paying"), json!({})).await;
        let pay = async |id: &str, payment: &str| {
            let body = json!({ "payment_id": payment, "amount": 100, "currency": "CNY" });
            held.post("/orders/{request_id}/paid", &format!("/orders/{id}/paid"), body).await
        };
        assert_eq!(pay(&alice.to_string(), "first").await.code(), "P6-F1");
        assert_eq!(pay(&alice.to_string(), "second").await.text("reason"), "ALREADY_PAID");
        assert_eq!(pay("7", "nowhere").await.json["order"], Value::Null);
        let cancel = json!({ "reason": "out of stock" });
        held.post("/orders/{request_id}/cancel", &format!("/orders/{bob}/cancel"), cancel).await;
        for query in ["", "?sale=typed", "?limit=1", "?sale=none"] {
            held.get("/orders", &format!("/orders{query}")).await;
        }
        for id in [alice, bob, stateless] {
            held.get("/orders/{request_id}", &format!("/orders/{id}")).await;
        }
        for query in ["", "?limit=1", "?limit=0"] {
            held.get("/refunds", &format!("/refunds{query}")).await;
        }
        let second = json!({ "payment_id": "second" });
        held.post("/orders/{request_id}/refunded", &format!("/orders/{alice}/refunded"), second).await;
        assert!(held.get("/acts", "/acts").await.json["acts"].as_array().unwrap().len() > 4);

        world
            .sql(
                "INSERT INTO webhook_deliveries (webhook, request_id, event_key, body, state, problem) VALUES \
                 ('shop', 7, 'order.paid', '{\"request_id\":\"7\"}', 'DEAD', '503'), ('shop', 8, 'order.paid', '{}', 'DEAD', NULL)",
            )
            .await;
        held.get("/webhooks", "/webhooks").await;
        held.get("/webhooks/deliveries", "/webhooks/deliveries").await;
        let first = held.get("/webhooks/deliveries", "/webhooks/deliveries?limit=1").await;
        let id = &first.json["deliveries"][0]["delivery_id"];
        let shown = held.get("/webhooks/deliveries/{delivery_id}", &format!("/webhooks/deliveries/{id}")).await;
        assert_eq!(shown.json["delivery"]["data"], json!({ "request_id": "7" }));
        held.post("/webhooks/replay", "/webhooks/replay", json!({ "delivery_ids": [id, 4_711] })).await;
        assert_eq!(*held.seen.borrow(), held.described(), "every route of these kinds was held against the document");
        world.finish().await;
    });
}
