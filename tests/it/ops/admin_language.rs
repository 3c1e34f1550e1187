//! The admin API describes a problem in the language of its caller, whatever the problem is.

use crate::support::buyers::orders::LONG;
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, run};
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::{Value, json};

/// A call that is refused: a path, and a body where it is a write.
async fn in_both(admin: &AdminPort, path: &str, body: Option<Value>) {
    let call = async |language: &str| match body.clone() {
        Some(body) => admin.post_in(language, path, body).await,
        None => admin.get_in(language, path).await,
    };
    let (english, chinese) = (call("en").await, call("zh-CN").await);
    assert!((400..500).contains(&english.status), "{path}: {english:?}");
    assert_eq!((chinese.status, chinese.code()), (english.status, english.code()), "{path}");
    assert_eq!((english.header("content-language"), chinese.header("content-language")), ("en", "zh"), "{path}");
    let is_chinese = |text: &str| text.chars().any(|letter| ('\u{4e00}'..='\u{9fff}').contains(&letter));
    let (english, chinese) = (english.text("detail"), chinese.text("detail"));
    assert!(!english.is_empty() && !is_chinese(&english) && is_chinese(&chinese), "{path}: {english} / {chinese}");
}

#[test]
fn a_problem_is_described_in_the_language_of_the_caller() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("words", 5, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        assert_eq!(admin.pay(alice, "p1").await.code(), "P6-F1");
        world.overdue(bob).await;
        for (path, body) in [
            (format!("/orders/{alice}/paying"), json!({})),
            (format!("/orders/{bob}/paying"), json!({})),
            ("/orders/7/paying".to_owned(), json!({})),
            ("/orders/x/paying".to_owned(), json!({})),
            (format!("/orders/{bob}/cancel"), json!({})),
            (format!("/orders/{bob}/cancel"), json!([])),
            ("/sales".to_owned(), json!({ "id": "x" })),
            ("/sales/words/edit".to_owned(), json!({ "version": 1, "what": 1 })),
            ("/dlq/replay".to_owned(), json!({ "all": true, "reason": "x" })),
            ("/nothing".to_owned(), json!({})),
            ("/acts".to_owned(), json!({})),
        ] {
            in_both(&admin, &path, Some(body)).await;
        }
        for path in [
            "/orders?what=1",
            "/orders/x",
            "/orders/export?limit=1",
            "/refunds?cursor=7",
            "/refunds?limit=1001",
            "/acts?limit=0",
            "/acts?before=0",
            "/acts?sale_id=no%20spaces",
            "/audits?limit=0",
            "/register?status=lost",
            "/register?limit=0",
            "/dlq?source=redis",
            "/webhooks/deliveries/x",
        ] {
            in_both(&admin, path, None).await;
        }
        world.stop_roles().await;
    });
}
