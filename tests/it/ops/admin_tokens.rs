//! Named tokens have roles; what a role does not allow is refused and on record; wrong tokens get nowhere (F10).

use crate::support::buyers::orders::LONG;
use crate::support::world::admin_port::{AdminPort, OPERATOR, SHOP, TOKEN, VIEWER, digest, named_tokens};
use crate::support::world::{World, run};
use seckill::roles::Role::{Api, Consumer, Relay};
use serde_json::json;

async fn post(admin: &AdminPort, token: &str, path: &str, body: &str) -> u16 {
    admin.call("post", path, Some(token), Some(("application/json", body))).await.status
}

#[test]
fn a_named_token_may_do_what_its_role_says_and_everything_is_on_record() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[&named_tokens()]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("roles", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        let paid = format!("/orders/{alice}/paid");
        let body = r#"{"payment_id":"p1","amount":100,"currency":"CNY"}"#;
        for token in [VIEWER, OPERATOR, SHOP, TOKEN] {
            assert_eq!(admin.call("get", "/sales", Some(token), None).await.status, 200, "{token} reads");
        }
        let pause = r#"{"by":"Li Wei"}"#;
        assert_eq!(post(&admin, VIEWER, "/sales/roles/pause", "{}").await, 403);
        assert_eq!(post(&admin, SHOP, "/sales/roles/pause", "{}").await, 403);
        assert_eq!(post(&admin, OPERATOR, "/sales/roles/pause", pause).await, 200);
        assert_eq!(post(&admin, OPERATOR, &paid, body).await, 403);
        assert_eq!(post(&admin, SHOP, &paid, body).await, 200);
        let who = admin.call("get", "/whoami", Some(SHOP), None).await;
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

#[test]
fn another_spelling_of_a_path_is_no_way_around_a_role() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[&named_tokens()]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("spelt", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        let body = r#"{"payment_id":"p1","amount":100,"currency":"CNY"}"#;
        for spelling in [format!("/orders/{alice}/p%61id"), format!("/order%73/{alice}/paid")] {
            assert_eq!(post(&admin, OPERATOR, &spelling, body).await, 404, "{spelling}");
        }
        assert!(world.order_in("UNPAID", alice).await, "nothing was paid");
        assert_eq!(post(&admin, SHOP, &format!("/orders/{alice}/paid"), body).await, 200);
        assert_eq!(post(&admin, SHOP, &format!("/orders/{alice}/cancel"), r#"{"reason":"sent back"}"#).await, 200);
        let body = r#"{"payment_id":"p1"}"#;
        assert_eq!(post(&admin, OPERATOR, &format!("/orders/{alice}/refund%65d"), body).await, 404);
        assert_eq!(world.rows("payments", "state = 'REFUND_NEEDED'").await, 1, "no money is marked as gone");
        world.finish().await;
    });
}

#[test]
fn a_wrong_or_short_token_is_refused_at_once_and_the_right_one_passes_beside_a_flood_of_them() {
    run(async {
        let short = "0123456789abcdef0123456789abcde";
        let named = format!("{},short:operate:{}", named_tokens(), digest(short));
        let world = World::with(&[Api], &[&named]).await;
        let admin = world.admin_port();
        let guesses = (0..60).map(|n| {
            let (admin, token) = (&admin, format!("{TOKEN}-guess-{n}"));
            async move { admin.call("get", "/sales", Some(&token), None).await.status }
        });
        let (answers, right) = tokio::join!(futures::future::join_all(guesses), admin.get("/sales"));
        assert_eq!(right.status, 200, "no caller waits for those who guess");
        assert!(answers.iter().all(|status| *status == 401), "{answers:?}");
        assert_eq!(admin.call("get", "/sales", None, None).await.status, 401);
        let refused = admin.call("get", "/sales", Some(short), None).await;
        assert_eq!(refused.status, 401, "its digest is configured, and still it is too short");
        let detail = refused.text("detail");
        assert!(detail.contains("31 bytes") && detail.contains("openssl rand"), "{refused:?}");
        world.finish().await;
    });
}

#[test]
fn a_hundred_refused_writes_are_one_row_at_once() {
    run(async {
        let world = World::with(&[Api], &[&named_tokens()]).await;
        let admin = world.admin_port();
        for _ in 0..50 {
            assert_eq!(post(&admin, VIEWER, "/sales/none/pause", "{}").await, 403);
            assert_eq!(post(&admin, SHOP, "/sales/none/close", "{}").await, 403);
        }
        // A loaded machine may need more than a minute for them.
        let denied = world.rows("operator_acts", "action = 'admin.write' AND outcome = 'denied'").await;
        assert!((2..10).contains(&denied), "one of each token; the rest is a number when the minute is over: {denied}");
        world.finish().await;
    });
}
