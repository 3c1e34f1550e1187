//! The sale's own life before its end: edited, rescheduled, hidden, published, cloned; with what is refused, and why.

use crate::support::basics::answer::Answer;
use crate::support::basics::resp::RawRedis;
use crate::support::world::admin_port::AdminPort;
use crate::support::world::{World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::runtime::now_ms;
use seckill::sales::rows::acts::{self, ActFilter};
use serde_json::{Value, json};

const HOUR_MS: i64 = 3_600_000;

/// A warmed sale that starts in an hour.
async fn early(world: &World, id: &str) -> SaleId {
    world
        .sale_with(id, 10, |sale| (sale.starts_at_ms, sale.ends_at_ms) = (now_ms() + HOUR_MS, now_ms() + 2 * HOUR_MS))
        .await
}

fn rfc3339(unix_ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(unix_ms).unwrap().to_rfc3339()
}

async fn shown(world: &World, sale: &SaleId) -> Answer {
    Answer::of(world.request(Method::GET, &format!("/v1/sales/{sale}"), "alice")).await
}

/// The sale as Redis obeys it: start, end, limit.
async fn obeyed(world: &World, sale: &SaleId) -> [String; 3] {
    let mut redis = RawRedis::of(world).await;
    let meta = redis.hash(&world.servers.redis.keys.meta(0, sale)).await;
    ["starts", "ends", "limit"].map(|field| meta.get(field).cloned().unwrap_or_default())
}

/// The sale begins now, as if an hour had passed.
async fn begins(world: &World, sale: &SaleId) {
    world.sql(&format!("UPDATE sales SET starts_at = NOW(3) - INTERVAL 1 SECOND WHERE sale_id = '{sale}'")).await;
    world.sale_control().warm(sale).await.unwrap();
    eventually("the start", async || shown(world, sale).await.text("state") == "READY").await;
}

#[test]
fn an_edit_before_the_start_reaches_buyers_redis_and_orders() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let (sale, admin) = (early(&world, "edited").await, world.admin_port());
        assert_eq!(shown(&world, &sale).await.text("title"), "t");
        let edit = json!({ "title": "better", "price_cents": 250, "limit": 3, "pay_within_s": 600, "version": 1, "by": "Li Wei" });
        let edited = admin.post("/sales/edited/edit", edit).await;
        assert_eq!(edited.status, 200, "{edited:?}");
        assert_eq!((&edited.json["sale"]["version"], &edited.json["sale"]["policy"]), (&json!(2), &json!(3)));
        assert_eq!(obeyed(&world, &sale).await[2], "3");
        eventually("the new title", async || shown(&world, &sale).await.text("title") == "better").await;
        // The command line, and back to no limit and no payment.
        world.cli(&["sale", "edit", "edited", "--limit", "none", "--pay-within-s", "none", "--version", "2"]).exits(0);
        assert_eq!(obeyed(&world, &sale).await[2], "0");
        world.cli(&["sale", "edit", "edited", "--limit", "2", "--pay-within-s", "900"]).exits(0);

        begins(&world, &sale).await;
        let id = world.ordered(&sale, "alice").await;
        let order = world.my_order("alice", id).await;
        assert_eq!((&order.json["amount"], &order.json["state"]), (&json!(250), &json!("UNPAID")), "{order:?}");
        assert_eq!(world.buy(&sale, "alice", 2, None).await.code(), "P2-R5", "the limit is 2");
        let after = |act: &acts::RecordedAct| serde_json::from_str::<Value>(act.after_json.as_ref().unwrap()).unwrap();
        let kept = world.servers.rows.acts.list(&ActFilter { limit: 10, ..ActFilter::default() }).await.unwrap();
        assert_eq!(kept.iter().map(|act| act.action.as_str()).collect::<Vec<_>>(), ["sale.edit"; 3]);
        let first = &kept[2];
        let before: Value = serde_json::from_str(first.before_json.as_ref().unwrap()).unwrap();
        assert_eq!((&before["title"], &after(first)["sale"]["title"]), (&json!("t"), &json!("better")));
        assert_eq!((after(first)["asked"]["price_cents"].as_i64(), first.actor_name.as_str()), (Some(250), "Li Wei"));
        assert_eq!(after(&kept[0])["asked"], json!({ "limit": 2, "pay_within_s": 900 }));
        world.finish().await;
    });
}

#[test]
fn a_new_time_holds_in_redis_at_once_and_the_end_moves_while_it_sells() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let (sale, admin) = (early(&world, "moved").await, world.admin_port());
        let (start, end) = ((now_ms() / 1000 + 1800) * 1000, (now_ms() / 1000 + 3600) * 1000);
        let times = json!({ "starts_at": rfc3339(start), "ends_at": rfc3339(end) });
        assert_eq!(admin.post("/sales/moved/reschedule", times).await.status, 200);
        assert_eq!(obeyed(&world, &sale).await, [start.to_string(), end.to_string(), "1".to_owned()]);
        begins(&world, &sale).await;
        world.ordered(&sale, "alice").await;
        let sooner = (now_ms() / 1000 + 60) * 1000;
        world.cli(&["sale", "reschedule", "moved", "--ends-at", &rfc3339(sooner)]).exits(0);
        assert_eq!(obeyed(&world, &sale).await[1], sooner.to_string());
        world.ordered(&sale, "bob").await;
        // A paused sale keeps its pause.
        world.cli(&["sale", "pause", "moved"]).exits(0);
        world.cli(&["sale", "reschedule", "moved", "--ends-at", &rfc3339(end)]).exits(0);
        assert_eq!(world.buy(&sale, "carol", 1, None).await.code(), "P1-S7");
        world.finish().await;
    });
}

/// Status, what is said in English, and in Chinese.
async fn refused(admin: &AdminPort, path: &str, body: Value) -> (u16, String, String) {
    let english = admin.post(path, body.clone()).await;
    let chinese = admin.post_in("zh-CN", path, body).await;
    (english.status, english.text("detail"), chinese.text("detail"))
}

#[test]
fn what_is_refused_says_what_would_be_accepted_and_changes_nothing() {
    run(async {
        let world = World::with(&[], &[]).await;
        let admin = world.admin_port();
        let (early, running) = (early(&world, "early").await, world.sale("running", 10, Some(1)).await);
        let past = || json!(rfc3339(now_ms() - 1_000));
        let cases = [
            ("early/edit", json!({}), 422, "body: expected at least one field", "至少一个"),
            ("early/edit", json!({ "title": "" }), 422, "title: expected 1 to 200 characters", "title：应为"),
            ("early/edit", json!({ "stock": 7 }), 422, "add units with top-up", "top-up"),
            ("early/edit", json!({ "title": "x", "version": 7 }), 409, "it has version 1 now", "版本 1"),
            ("early/reschedule", json!({ "starts_at": past() }), 422, "at least 30 seconds from now", "30 秒"),
            ("early/reschedule", json!({ "ends_at": past() }), 422, "ends_at: expected", "ends_at：应为"),
            (
                "early/edit",
                json!({ "price_cents": 0, "pay_within_s": 60 }),
                422,
                "price_cents: expected 1 to 1,000,000,000,000 where the sale has a payment step",
                "price_cents：应为",
            ),
            ("running/edit", json!({ "title": "x" }), 409, "until 30 s before that", "30 秒"),
            (
                "running/reschedule",
                json!({ "starts_at": rfc3339(now_ms() + HOUR_MS) }),
                409,
                "its end still changes",
                "结束时间仍可修改",
            ),
            ("running/hide", json!({}), 409, "pause it first", "请先暂停"),
            ("none/edit", json!({ "title": "x" }), 404, "there is no sale none", ""),
        ];
        for (path, body, status, english, chinese) in cases {
            let said = refused(&admin, &format!("/sales/{path}"), body.clone()).await;
            let fits = said.1.to_lowercase().contains(&english.to_lowercase()) && said.2.contains(chinese);
            assert!(said.0 == status && fits, "{path} {body}: {said:?}");
        }
        let unknown = admin.post("/sales/early/edit", json!({ "titel": "x" })).await;
        assert!(unknown.status == 400 && unknown.text("detail").contains("`title`"), "{unknown:?}");
        let usage = world.cli(&["sale", "edit", "early", "--price-cents", "-1"]).exits(64);
        assert!(usage.err.contains("--price-cents: expected 0 to"), "{usage:?}");
        let free = world.cli(&["sale", "edit", "early", "--price-cents", "0", "--pay-within-s", "60"]).exits(64);
        assert!(free.err.contains("--price-cents: expected 1 to") && free.err.contains("pay_within_s"), "{free:?}");
        assert!(world.cli(&["sale", "edit", "early"]).exits(64).err.contains("at least one field"));
        assert!(world.cli(&["sale", "hide", "running"]).exits(1).err.contains("pause it first"));
        for (sale, version) in [(&early, 1), (&running, 1)] {
            let holds = admin.get(&format!("/sales/{sale}")).await;
            assert_eq!((&holds.json["sale"]["version"], &holds.json["sale"]["title"]), (&json!(version), &json!("t")));
        }
        world.cli(&["sale", "close", "early"]).exits(0);
        let closed = refused(&admin, "/sales/early/edit", json!({ "title": "x" })).await;
        assert!(closed.0 == 409 && closed.1.contains("clone it") && closed.2.contains("复制"), "{closed:?}");
        let failed = world.servers.rows.acts.list(&ActFilter { limit: 50, ..ActFilter::default() }).await.unwrap();
        let code = |code: &str| failed.iter().any(|act| act.outcome == "failed" && act.code.as_deref() == Some(code));
        assert!(["VALUE", "OVERTAKEN", "START_SETTLED", "ON_SALE", "CLOSED", "NO_SUCH_SALE"].into_iter().all(code));
        world.finish().await;
    });
}

#[test]
fn to_buyers_a_hidden_sale_is_not_there_and_their_orders_are() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let (sale, admin) = (world.sale("shy", 10, Some(1)).await, world.admin_port());
        let id = world.ordered(&sale, "alice").await;
        assert_eq!(admin.post("/sales/shy/pause", json!({})).await.status, 200);
        for _ in 0..2 {
            let hidden = admin.post("/sales/shy/hide", json!({})).await;
            assert_eq!((hidden.status, &hidden.json["sale"]["hidden"]), (200, &json!(true)), "{hidden:?}");
            assert_eq!(hidden.json["sale"]["version"], 2, "a repeat changes nothing");
        }
        let listed = async || {
            let list = Answer::of(world.request(Method::GET, "/v1/sales", "alice")).await;
            list.json["sales"].as_array().unwrap().iter().any(|sale| sale["sale_id"] == "shy")
        };
        eventually("not there", async || shown(&world, &sale).await.code() == "P1-S3").await;
        eventually("not listed", async || !listed().await).await;
        assert_eq!(world.buy(&sale, "bob", 1, None).await.code(), "P1-S3");
        for path in ["tokens", "places"] {
            let answer = Answer::of(world.request(Method::POST, &format!("/v1/sales/shy/{path}"), "bob")).await;
            assert_eq!((answer.status, answer.code()), (404, "P1-S3".to_owned()), "{path}");
        }
        // What was bought is answered, and operators see the sale.
        assert_eq!(world.status_of(&sale, "alice", id).await.0, "CONFIRMED");
        assert_eq!(world.my_order("alice", id).await.status, 200);
        assert!(admin.get("/sales").await.body.contains("\"shy\""));
        assert!(world.cli(&["sale", "list"]).exits(0).out.contains("paused, hidden"));
        world.cli(&["sale", "resume", "shy"]).exits(0);
        assert_eq!(world.buy(&sale, "bob", 1, None).await.code(), "P1-S3", "to resume is not to publish");
        world.cli(&["sale", "publish", "shy"]).exits(0);
        eventually("there again", async || listed().await && world.buy(&sale, "bob", 1, None).await.status == 202)
            .await;
        // It sells while it is not hidden.
        assert_eq!(admin.post("/sales/shy/hide", json!({})).await.status, 409);
        world.finish().await;
    });
}

#[test]
fn a_clone_is_a_draft_with_the_same_terms_and_a_new_id() {
    run(async {
        let world = World::with(&[Api], &["p5_reconcile.warm_ahead_ms=0"]).await;
        let (sale, admin) = (world.sale("first", 7, Some(2)).await, world.admin_port());
        world.cli(&["sale", "top-up", "first", "3", "--grant", "more"]).exits(0);
        world.cli(&["sale", "close", "first"]).exits(0);
        let (starts, ends) = (rfc3339(now_ms() + HOUR_MS), rfc3339(now_ms() + 2 * HOUR_MS));
        let form = json!({ "id": "second", "starts_at": starts, "ends_at": ends, "hidden": true, "by": "ann" });
        let made = admin.post("/sales/first/clone", form.clone()).await;
        assert_eq!(made.status, 200, "{made:?}");
        let second = &made.json["sale"];
        assert_eq!(
            (&second["status"], &second["granted"], &second["policy"]),
            (&json!("draft"), &json!(10), &json!(2))
        );
        assert_eq!((&second["hidden"], &second["version"], &second["title"]), (&json!(true), &json!(1), &json!("t")));
        assert_eq!(admin.post("/sales/first/clone", form).await.status, 409, "the id is taken");
        let (_, backwards) = (&starts, json!({ "id": "third", "starts_at": ends, "ends_at": starts }));
        let refused = admin.post("/sales/first/clone", backwards).await;
        assert!(refused.status == 422 && refused.text("detail").starts_with("ends_at"), "{refused:?}");
        let third =
            ["sale", "clone", "first", "--id", "third", "--starts-at", &starts, "--ends-at", &ends, "--stock", "4"];
        assert!(world.cli(&third).exits(0).out.contains("created third with 4 units"));
        let published = Answer::of(world.request(Method::GET, "/v1/sales", "a")).await;
        assert!(!published.body.contains("second"), "hidden until it is published");
        assert_eq!(shown(&world, &sale).await.text("state"), "ENDED", "the other sale is as it was");
        world.finish().await;
    });
}

#[test]
fn a_waiting_room_stays_until_a_day_after_the_new_end() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.early_room("moved-room", 10).await;
        for user in ["alice", "bob"] {
            assert_eq!(world.enter_room(&sale, user).await.status, 200);
        }
        let room = world.servers.redis.keys.room(0, &sale);
        let left_ms = async || world.redis(&["PTTL", &room]).await.as_i64().unwrap();
        let days = |n: i64| n * 24 * HOUR_MS;
        assert!(left_ms().await < days(2));
        let (starts, ends) = (rfc3339(now_ms() + days(5)), rfc3339(now_ms() + days(6)));
        world.cli(&["sale", "reschedule", "moved-room", "--starts-at", &starts, "--ends-at", &ends]).exits(0);
        eventually("kept", async || left_ms().await > days(6)).await;
        assert_eq!(world.redis(&["ZCARD", &room]).await, 2, "who came before the old start keeps the place");
        world.finish().await;
    });
}
