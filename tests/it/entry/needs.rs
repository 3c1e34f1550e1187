//! A sale that needs something sells to buyers who show it, by both ways to buy, and to no other one.

use crate::support::buyers::passes::{FACTS_AND_PASSES, ShowingBuyer, in_s, needs, pass};
use crate::support::world::{Answer, World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::{Value, json};

async fn world() -> World {
    World::with(&Role::ALL, &FACTS_AND_PASSES).await
}

async fn needing(world: &World, id: &str, stock: i64, needed: Value) -> SaleId {
    world.sale_with(id, stock, |sale| sale.needs = needs(&needed)).await
}

#[test]
fn facts_of_the_access_token_are_enough_and_wrong_ones_are_not() {
    run(async {
        let world = world().await;
        let needed = json!({ "tier": ["gold", "7", "true"], "person": ["p1"] });
        let sale = needing(&world, "facts", 20, needed.clone()).await;
        let with = |claims: Value| ShowingBuyer::new(&world, "alice").with_claims(claims);
        for claims in [
            json!({}),
            json!({ "membership": "silver", "pid": "p1" }),
            json!({ "membership": "gold" }),
            // Named as the fact, not as its claim.
            json!({ "tier": "gold", "person": "p1" }),
            json!({ "membership": "Gold", "pid": "p1" }),
            json!({ "membership": { "gold": true }, "pid": "p1" }),
            json!({ "membership": [["gold"]], "pid": "p1" }),
            json!({ "membership": 7.0, "pid": "p1" }),
            json!({ "membership": "gold,7", "pid": "p1" }),
        ] {
            let refused = with(claims).is_refused(&sale, "P1-Q1").await;
            assert!(
                refused.text("detail").contains("this sale needs person p1, and tier gold or 7 or true"),
                "{refused:?}"
            );
            assert_eq!(refused.json["needs"], needed, "{refused:?}");
        }
        world.assert_untouched(&sale, 20).await;
        for (number, membership) in [json!("gold"), json!(["silver", "gold"]), json!(7), json!(true)].iter().enumerate()
        {
            let buyer = format!("buyer-{number}");
            let buyer = ShowingBuyer::new(&world, &buyer).with_claims(json!({ "membership": membership, "pid": "p1" }));
            assert_eq!(buyer.ask_token(&sale).await.status, 201, "{membership}");
            let answer = if number % 2 == 0 { buyer.buy(&sale).await } else { buyer.buy_by_the_app(&sale).await };
            assert_eq!(answer.status, 202, "{membership}: {answer:?}");
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 4);
        world.finish().await;
    });
}

#[test]
fn a_pass_gives_facts_and_is_needed_where_the_sale_says_so() {
    run(async {
        let world = world().await;
        let (tier, any) = (
            needing(&world, "by-tier", 10, json!({ "tier": ["gold"] })).await,
            needing(&world, "by-pass", 10, json!({ "pass": true, "person": ["p1"] })).await,
        );
        let gold = |buyer: &str| pass(buyer, &json!({ "sale": "by-tier", "tier": ["bronze", "gold"] }));
        let answer = ShowingBuyer::new(&world, "alice").with_pass(gold("alice")).buy(&tier).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let answer = ShowingBuyer::new(&world, "bob").with_pass(gold("bob")).buy_by_the_app(&tier).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let silver = pass("carol", &json!({ "sale": "by-tier", "tier": "silver" }));
        ShowingBuyer::new(&world, "carol").with_pass(silver).is_refused(&tier, "P1-Q1").await;

        let person = || ShowingBuyer::new(&world, "dave").with_claims(json!({ "pid": "p1" }));
        let refused = person().is_refused(&any, "P1-Q1").await;
        assert!(refused.text("detail").ends_with("needs person p1, and a pass"), "{refused:?}");
        let bare = || pass("dave", &json!({ "sale": "by-pass" }));
        ShowingBuyer::new(&world, "dave").with_pass(bare()).is_refused(&any, "P1-Q1").await;
        assert_eq!(person().with_pass(bare()).buy(&any).await.status, 202, "a fact of the token, and a pass");
        world.finish().await;
    });
}

#[test]
fn a_sale_without_needs_reads_no_pass_and_shows_none() {
    run(async {
        let world = world().await;
        let plain = world.sale("plain", 10, None).await;
        let sale = needing(&world, "shown", 10, json!({ "tier": ["gold"], "pass": true })).await;
        for pass in ["", "a.b.c", "x"] {
            let answer = ShowingBuyer::new(&world, "alice").with_pass(pass).buy(&plain).await;
            assert_eq!(answer.status, 202, "{answer:?}");
        }
        for (sale, shown) in [(&plain, Value::Null), (&sale, json!({ "pass": true, "tier": ["gold"] }))] {
            let answer = Answer::of(world.http.get(format!("{}/v1/sales/{sale}", world.api))).await;
            assert_eq!(answer.json["needs"], shown, "{answer:?}");
            let listed = Answer::of(world.http.get(format!("{}/v1/sales", world.api))).await;
            let listed = listed.json["sales"].as_array().unwrap().iter().find(|of| of["sale_id"] == sale.as_str());
            assert!(listed.is_none_or(|listed| listed["needs"] == shown), "{listed:?}");
        }
        let chinese = world.request(Method::POST, "/v1/sales/shown/orders", "alice").header("Accept-Language", "zh");
        let chinese = Answer::of(chinese.json(&json!({}))).await;
        assert!(chinese.text("detail").contains("该活动需要：tier gold，且 通行证"), "{chinese:?}");
        world.finish().await;
    });
}

#[test]
fn what_was_accepted_stays_accepted_without_the_pass() {
    run(async {
        let world = world().await;
        let sale = needing(&world, "replayed", 1, json!({ "pass": true })).await;
        let good = || ShowingBuyer::new(&world, "alice").with_pass(pass("alice", &json!({ "sale": "replayed" })));
        let token = good().ask_token(&sale).await;
        assert_eq!(token.status, 201, "{token:?}");
        let without = ShowingBuyer::new(&world, "alice").with_token(token.text("token")).buy(&sale).await;
        assert_eq!(
            (without.status, without.code().as_str()),
            (403, "P1-Q1"),
            "a purchase token is no pass: {without:?}"
        );
        let first = good().with_token(token.text("token")).buy(&sale).await;
        assert_eq!((first.status, first.text("request_id")), (202, token.text("request_id")), "{first:?}");
        let late = pass("alice", &json!({ "sale": "replayed", "exp": in_s(-600) }));
        for buyer in [ShowingBuyer::new(&world, "alice"), ShowingBuyer::new(&world, "alice").with_pass(late), good()] {
            let again = buyer.with_token(token.text("token"));
            for answer in [again.buy(&sale).await, again.buy_by_the_app(&sale).await] {
                assert_eq!((answer.status, &answer.body), (202, &first.body), "{answer:?}");
            }
        }
        let status = world.status(&sale, "alice", &first.text("request_id"), 20).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
        world.finish().await;
    });
}

/// P2 decides about tokens after a sell-out: units may have come back.
#[test]
fn a_purchase_token_of_before_the_sell_out_does_not_get_past_the_needs() {
    run(async {
        let world = world().await;
        let sale = needing(&world, "sold", 1, json!({ "tier": ["gold"] })).await;
        let gold = |buyer| ShowingBuyer::new(&world, buyer).with_claims(json!({ "membership": "gold" }));
        let token = gold("bob").ask_token(&sale).await.text("token");
        assert_eq!(gold("alice").buy(&sale).await.status, 202);
        eventually("known as sold out", async || gold("carol").buy(&sale).await.code() == "P1-S2").await;
        world.sale_control().top_up(&sale, "more", 1).await.unwrap();
        for _ in 0..20 {
            let without = ShowingBuyer::new(&world, "bob").with_token(token.as_str()).buy(&sale).await;
            assert_eq!((without.status, without.code().as_str()), (403, "P1-Q1"), "{without:?}");
        }
        eventually("units are back", async || gold("bob").with_token(token.as_str()).buy(&sale).await.status == 202)
            .await;
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        world.finish().await;
    });
}

#[test]
fn a_waiting_room_takes_in_those_who_may_buy() {
    run(async {
        let world = world().await;
        let sale = world.sale_with("needy-room", 10, |sale| {
            (sale.waiting_room, sale.needs) = (true, needs(&json!({ "tier": ["gold"] })));
        });
        let sale = sale.await;
        let refused = ShowingBuyer::new(&world, "alice").enter(&sale).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "P1-Q1"), "{refused:?}");
        let gold = ShowingBuyer::new(&world, "alice").with_claims(json!({ "membership": "gold" }));
        let entered = gold.enter(&sale).await;
        assert_eq!(entered.status, 200, "{entered:?}");
        world.finish().await;
    });
}

#[test]
fn needs_survive_a_redis_that_is_emptied_and_a_copy_that_an_older_version_made() {
    run(async {
        let world = World::with(
            &Role::ALL,
            &[
                &FACTS_AND_PASSES[..],
                &["p1_entry.cache_ttl_ms=50", "p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"],
            ]
            .concat(),
        )
        .await;
        let sale = needing(&world, "kept", 10, json!({ "tier": ["gold"] })).await;
        let (none, gold) = (
            ShowingBuyer::new(&world, "alice"),
            ShowingBuyer::new(&world, "bob").with_claims(json!({ "membership": "gold" })),
        );
        none.is_refused(&sale, "P1-Q1").await;

        // As a build that knew no needs caches it: for a process that has not seen the sale.
        let mut old = serde_json::to_value(world.stored(&sale).await).unwrap();
        assert!(old.as_object_mut().unwrap().remove("needs").is_some_and(|needs| !needs.is_null()));
        let cache = &world.servers.redis.sale_cache;
        let seen = cache.get(&sale).await.unwrap();
        cache.put(&sale, &old.to_string(), 60_000, &seen).await.unwrap();
        let other = world.second_world(&[Role::Api], &FACTS_AND_PASSES).await;
        ShowingBuyer::new(&other, "alice").is_refused(&sale, "P1-Q1").await;
        other.stop().await;

        world.servers.redis.sale_cache.forget(&sale).await.unwrap();
        for key in (0..world.settings.redis.shards).flat_map(|shard| world.servers.redis.keys.of_warmed(shard, &sale)) {
            world.redis(&["DEL", &key]).await;
        }
        eventually("the sale is rebuilt", async || {
            let refused = none.buy(&sale).await;
            assert!(refused.status >= 400, "{refused:?}");
            gold.buy(&sale).await.status == 202
        })
        .await;
        none.is_refused(&sale, "P1-Q1").await;
        world.finish().await;
    });
}
