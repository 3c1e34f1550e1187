//! The OpenAPI document against the server that answers: every call in it is there, and nothing else is.

use crate::support::world::{Answer, World, run};
use reqwest::Method;
use seckill::p1_entry::http::document;
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn the_document_describes_the_server_that_serves_it() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("contract", 10, Some(1)).await;
        let id = world.bought(&sale, "alice").await.to_string();
        let (token, promised) = world.token(&sale, "bob").await;
        let bought = world.buy(&sale, "bob", 1, Some(&token)).await;
        assert_eq!((bought.status, bought.text("request_id")), (202, promised), "the id is known before the purchase");
        let served = Answer::of(world.http.get(format!("{}/openapi.json", world.api))).await;
        assert_eq!((served.status, &served.json), (200, &serde_json::to_value(document()).unwrap()));
        assert_eq!(Answer::of(world.http.get(format!("{}/docs/", world.api))).await.status, 200);

        let paths = served.json["paths"].as_object().unwrap();
        for (template, calls) in paths {
            let path = template.replace("{sale_id}", sale.as_str()).replace("{request_id}", &id);
            let path = path.replace("{drop_id}", "none");
            for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                let call = &calls[method.as_str().to_ascii_lowercase()];
                let request = world.request(method.clone(), &path, "alice").json(&serde_json::json!({}));
                let answer = Answer::of(request).await;
                if call == &Value::Null {
                    assert_eq!((answer.status, answer.code().as_str()), (405, "METHOD_NOT_ALLOWED"), "{method} {path}");
                    let offered: Vec<String> = calls.as_object().unwrap().keys().map(|m| m.to_uppercase()).collect();
                    let allowed: BTreeSet<&str> = answer.header("allow").split(", ").collect();
                    assert_eq!(allowed, offered.iter().map(String::as_str).collect(), "{path}");
                } else {
                    let listed = &call["responses"][answer.status.to_string()];
                    assert!(
                        listed.is_object(),
                        "{method} {template}: {} is not listed: {}",
                        answer.status,
                        answer.body
                    );
                }
            }
        }
        for unknown in ["/", "/v1", "/v1/orders/", "/v1/sales/", "/v2/sales", "/metrics", "/admin/v1/sales", "/livez"] {
            let answer = Answer::of(world.request(Method::GET, unknown, "alice")).await;
            assert_eq!((answer.status, answer.code().as_str()), (404, "NO_SUCH_ROUTE"), "{unknown}");
            assert_eq!(answer.header("content-type"), "application/problem+json");
        }
        world.stop_roles().await;
    });
}
