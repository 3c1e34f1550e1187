//! Named tokens have roles; what a role does not allow is refused and on record; wrong tokens are answered late (F10).

use crate::support::admin_port::{AdminPort, TOKEN};
use crate::support::orders::LONG;
use crate::support::world::{World, run};
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::json;

/// SHA-256 of `viewer-token`, `operator-token` and `shop-token`.
const TOKENS: &str = "admin.tokens=viewer:view:VIEWER,li:operate:OPERATOR,shop:money:SHOP";

fn hex(token: &str) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn tokens() -> String {
    TOKENS
        .replace("VIEWER", &hex("viewer-token"))
        .replace("OPERATOR", &hex("operator-token"))
        .replace("SHOP", &hex("shop-token"))
}

async fn post(admin: &AdminPort, token: &str, path: &str, body: &str) -> u16 {
    admin.call("post", path, Some(token), Some(("application/json", body))).await.status
}

#[test]
fn a_named_token_may_do_what_its_role_says_and_everything_is_on_record() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[&tokens()]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("roles", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        let paid = format!("/orders/{alice}/paid");
        let body = r#"{"payment_id":"p1","amount":100,"currency":"CNY"}"#;
        for token in ["viewer-token", "operator-token", "shop-token", TOKEN] {
            assert_eq!(admin.call("get", "/sales", Some(token), None).await.status, 200, "{token} reads");
        }
        let pause = r#"{"by":"Li Wei"}"#;
        assert_eq!(post(&admin, "viewer-token", "/sales/roles/pause", "{}").await, 403);
        assert_eq!(post(&admin, "shop-token", "/sales/roles/pause", "{}").await, 403);
        assert_eq!(post(&admin, "operator-token", "/sales/roles/pause", pause).await, 200);
        assert_eq!(post(&admin, "operator-token", &paid, body).await, 403);
        assert_eq!(post(&admin, "shop-token", &paid, body).await, 200);
        let who = admin.call("get", "/whoami", Some("shop-token"), None).await;
        assert_eq!((who.text("name"), who.text("may")), ("shop".to_owned(), "money".to_owned()));

        let acts = admin.get("/acts").await.json;
        let all = acts["acts"].as_array().unwrap();
        let act = |action: &str, outcome: &str| {
            all.iter().filter(|act| act["action"] == action && act["outcome"] == outcome).collect::<Vec<_>>()
        };
        assert_eq!(act("admin.write", "denied").len(), 3, "{acts:#}");
        let pause = act("sale.pause", "ok");
        assert_eq!(
            (&pause[0]["actor_id"], &pause[0]["actor_name"], &pause[0]["roles"]),
            (&json!("li"), &json!("Li Wei"), &json!("operate"))
        );
        let paid = act("order.paid", "ok");
        assert_eq!((&paid[0]["actor_id"], &paid[0]["auth_method"]), (&json!("shop"), &json!("named_token")));
        world.cli(&["sale", "resume", "roles", "--by", "Zhang"]).exits(0);
        let last = &admin.get("/acts?limit=1").await.json["acts"][0];
        assert_eq!((&last["action"], &last["actor_name"]), (&json!("sale.resume"), &json!("Zhang")));
        world.finish().await;
    });
}

/// Tokens that are right and that nobody has used yet.
const UNUSED: usize = 40;

#[test]
fn a_flood_of_wrong_tokens_is_refused_and_a_proven_one_gets_in() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let admin = world.admin_port();
        assert_eq!(admin.get("/sales").await.status, 200, "proven");
        let guesses = (0..60).map(|n| {
            let (admin, token) = (&admin, format!("guess-{n}"));
            async move { admin.call("get", "/sales", Some(&token), None).await.status }
        });
        let (answers, right) = tokio::join!(futures::future::join_all(guesses), admin.get("/sales"));
        assert_eq!(right.status, 200);
        assert!(answers.iter().all(|status| [401, 429].contains(status)), "{answers:?}");
        assert!(answers.contains(&429), "only some are waited on");
        assert_eq!(admin.call("get", "/sales", None, None).await.status, 401);
        world.finish().await;
    });
}

#[test]
fn a_right_token_that_was_not_used_yet_is_answered_no_sooner_than_a_guess() {
    run(async {
        let named = (0..UNUSED).map(|n| format!("t{n}:view:{}", hex(&format!("right-{n}")))).collect::<Vec<_>>();
        let world = World::with(&[Api], &[&format!("admin.tokens={}", named.join(","))]).await;
        let admin = world.admin_port();
        assert_eq!(admin.get("/sales").await.status, 200, "proven");
        let ask = async |token: String| admin.call("get", "/sales", Some(&token), None).await.status;
        let guesses = (0..UNUSED).map(|n| ask(format!("guess-{n}")));
        let unused = (0..UNUSED).map(|n| ask(format!("right-{n}")));
        let (wrong, right, proven) =
            tokio::join!(futures::future::join_all(guesses), futures::future::join_all(unused), admin.get("/sales"),);
        assert_eq!(proven.status, 200);
        assert!(wrong.iter().all(|status| [401, 429].contains(status)), "{wrong:?}");
        assert!(right.iter().all(|status| [200, 429].contains(status)), "{right:?}");
        // Without a place it is told what a guess is told.
        let late = right.iter().position(|status| *status == 429).expect("some without a place");
        assert_eq!(ask(format!("right-{late}")).await, 200, "when nobody guesses any more");
        world.finish().await;
    });
}
