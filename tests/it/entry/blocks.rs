//! A blocked buyer buys nowhere any more, and keeps what was accepted before.

use crate::support::buyers::replays::{first, same};
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::Api;
use serde_json::{Value, json};

async fn is_blocked(world: &World, sale: &SaleId, buyer: &str) -> bool {
    let answer = world.buy(sale, buyer, 1, None).await;
    (answer.status, answer.code().as_str()) == (403, "P1-Q2")
}

#[test]
fn a_blocked_buyer_is_refused_by_every_process_and_keeps_what_was_accepted() {
    run(async {
        let world = World::start().await;
        let other = world.second_world(&[Api], &[]).await;
        let (sale, room) = (world.sale("blocks", 10, Some(1)).await, world.room("blocks-room", 10).await);
        let (token, answer) = first(&world, &sale).await;

        let add = ["block", "add", "alice", "--reason", "resells"];
        assert!(world.cli(&add).exits(0).out.contains("alice is blocked"));
        assert!(world.cli(&add).exits(0).out.contains("was blocked before"));
        for at in [&world, &other] {
            eventually("refused", async || is_blocked(at, &sale, "alice").await).await;
            for refused in [at.token_for(&sale, "alice", None).await, at.enter_room(&room, "alice").await] {
                assert_eq!((refused.status, refused.code().as_str()), (403, "P1-Q2"), "{refused:?}");
                assert!(!refused.text("title").contains("resells"), "the reason is no buyer's: {refused:?}");
            }
            same(at, &sale, &token, &answer, "accepted before the block").await;
        }
        let status = world.status(&sale, "alice", &answer.text("request_id"), 20).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
        assert_eq!(other.buy(&sale, "bob", 1, None).await.status, 202, "another buyer");

        assert!(world.cli(&["block", "list"]).exits(0).out.contains("resells"));
        assert!(world.cli(&["block", "remove", "alice"]).exits(0).out.contains("may buy again"));
        assert!(world.cli(&["block", "remove", "alice"]).exits(0).out.contains("is not blocked"));
        for at in [&world, &other] {
            eventually("let in", async || !is_blocked(at, &sale, "alice").await).await;
        }
        for (action, reason) in [("buyer.block", "reason = 'resells'"), ("buyer.unblock", "reason IS NULL")] {
            let act = format!("action = '{action}' AND target_type = 'buyer' AND target_id = 'alice' AND {reason}");
            assert_eq!(world.rows("operator_acts", &act).await, 1, "{action}: repeats change nothing");
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        other.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_process_that_starts_knows_the_blocks_and_one_that_ended_lets_the_buyer_in() {
    run(async {
        let world = World::start().await;
        let (sale, admin) = (world.sale("blocks-before", 10, Some(1)).await, world.admin_port());
        let at =
            |ms: i64| chrono::DateTime::from_timestamp_millis(seckill::runtime::now_ms() + ms).unwrap().to_rfc3339();
        let block = |buyer: &str, ends_at: Value| json!({ "buyer": buyer, "reason": "r", "ends_at": ends_at });
        for (buyer, ends_at) in [("ann", Value::Null), ("bob", at(1_000).into()), ("eve", at(3_600_000).into())] {
            let added = admin.post("/blocks", block(buyer, ends_at)).await;
            assert_eq!((added.status, &added.json["changed"]), (200, &json!(true)), "{added:?}");
        }
        let other = world.second_world(&[Api], &[]).await;
        for buyer in ["ann", "eve"] {
            eventually("refused", async || is_blocked(&other, &sale, buyer).await).await;
        }
        eventually("it ended by itself", async || other.buy(&sale, "bob", 1, None).await.status == 202).await;
        let page = admin.get("/blocks?limit=1&after=ann").await;
        assert_eq!(page.json["blocks"][0]["buyer"], "eve", "{page:?}");
        other.stop().await;
        world.finish().await;
    });
}

#[test]
fn what_is_no_block_is_refused_by_its_field() {
    run(async {
        let world = World::start().await;
        let admin = world.admin_port();
        for (body, field) in [
            (json!({ "buyer": "", "reason": "r" }), "buyer"),
            (json!({ "buyer": "b".repeat(65), "reason": "r" }), "buyer"),
            (json!({ "buyer": "ann", "reason": " " }), "reason"),
            (json!({ "buyer": "ann", "reason": "r".repeat(201) }), "reason"),
            (json!({ "buyer": "ann", "reason": "r", "ends_at": "2020-01-01T00:00:00Z" }), "ends_at"),
        ] {
            let refused = admin.post("/blocks", body).await;
            assert_eq!(refused.status, 422, "{refused:?}");
            assert!(refused.text("detail").starts_with(field), "{refused:?}");
        }
        let flag = world.cli(&["block", "add", "ann", "--reason", "r", "--ends-at", "tomorrow"]).exits(64);
        assert!(flag.err.contains("RFC 3339"), "{}", flag.err);
        assert_eq!(world.rows("blocked_buyers", "1 = 1").await, 0);
        world.finish().await;
    });
}
