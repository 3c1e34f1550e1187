//! Proof of work: a purchase token of such a sale costs a solution of its own buyer and sale, and the purchase asks nothing of it.

use crate::support::buyers::challenges::{digits_behind, is_challenged, solution};
use crate::support::buyers::passes::{in_s, signed};
use crate::support::world::{Answer, World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::{Value, json};

#[test]
fn a_token_costs_a_solution_and_the_purchase_needs_the_token_only() {
    run(async {
        let world = World::start().await;
        let sale = world.challenged("worked", "pow:10").await;
        let bare = world.buy(&sale, "alice", 1, None).await;
        assert_eq!((bare.status, bare.code().as_str()), (428, "TOKEN_REQUIRED"), "{bare:?}");
        let refused = is_challenged(world.call_for_token(&sale, "alice", &[]).await, 10, "begins with 10 zero bits");
        assert!(refused.text("detail").contains("Seckill-Solution") && refused.header("retry-after").is_empty());
        assert!(refused.json["challenge"]["expires_at"].as_str().unwrap().ends_with('Z'), "{refused:?}");
        world.assert_untouched(&sale, 100).await;

        let solved = solution(&refused);
        let issued = world.ask_with(&sale, "alice", &solved).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        let bought = world.buy(&sale, "alice", 1, Some(&issued.text("token"))).await;
        assert_eq!((bought.status, bought.text("request_id")), (202, issued.text("request_id")), "{bought:?}");
        let again = world.ask_with(&sale, "alice", &solved).await;
        assert_eq!(again.status, 201, "the same buyer may ask again: {again:?}");
        assert_ne!(again.text("request_id"), issued.text("request_id"));
        assert_eq!(world.settled(&sale).await.counted.ordered, 1);
        world.finish().await;
    });
}

#[test]
fn a_solution_of_another_buyer_another_sale_another_key_or_another_time_is_refused_with_a_new_nonce() {
    run(async {
        let world = World::start().await;
        let (sale, other) = (world.challenged("mine", "pow:6").await, world.challenged("other", "pow:6").await);
        let harder = world.challenged("harder", "pow:12").await;
        let refused = world.call_for_token(&sale, "alice", &[]).await;
        let (nonce, solved) = (refused.json["challenge"]["nonce"].as_str().unwrap(), solution(&refused));
        let secret = world.settings.p1_entry.token_secrets_in_use()[0].expose().to_owned();
        let made = |secret: &str, change: &Value| {
            let mut claims =
                json!({ "aud": "seckill-challenge", "sub": "alice", "sale": "mine", "bits": 6, "exp": in_s(60) });
            for (name, value) in change.as_object().unwrap() {
                claims[name] = value.clone();
            }
            digits_behind(&signed(secret, &claims), |found| found >= 6)
        };
        let token = world.ask_with(&sale, "alice", &solved).await.text("token");
        let few = digits_behind(nonce, |found| found < 6);
        let long = format!("{}:1", "x".repeat(3_000));
        for (buyer, of, text, said) in [
            ("bob", &sale, &solved, "another buyer's"),
            ("alice", &other, &solved, "for another sale"),
            ("alice", &sale, &few, "6 are needed"),
            ("alice", &sale, &nonce.to_owned(), "malformed"),
            ("alice", &sale, &format!("{nonce}:"), "malformed"),
            ("alice", &sale, &format!("{nonce}:1x"), "malformed"),
            ("alice", &sale, &format!("{nonce}:{}", "1".repeat(21)), "malformed"),
            ("alice", &sale, &long, "malformed"),
            ("alice", &sale, &made("not-the-key-of-this-service-at-all", &json!({})), "not made here"),
            ("alice", &sale, &made(&secret, &json!({ "aud": "seckill-purchase" })), "not made here"),
            ("alice", &sale, &made(&secret, &json!({ "exp": in_s(-1) })), "has expired"),
            ("alice", &sale, &made(&secret, &json!({ "bits": 5 })), "another number of zero bits"),
            ("alice", &sale, &digits_behind(&token, |found| found >= 6), "not made here"),
        ] {
            let answer = is_challenged(world.ask_with(of, buyer, text).await, 6, said);
            let retried = world.ask_with(of, buyer, &solution(&answer)).await;
            assert_eq!(retried.status, 201, "the new nonce is good: {said}: {retried:?}");
        }
        assert_eq!(
            world.ask_with(&sale, "alice", &made(&secret, &json!({}))).await.status,
            201,
            "the test's own is like ours"
        );
        is_challenged(
            world.ask_with(&harder, "alice", &digits_behind(nonce, |found| found == 7)).await,
            12,
            "12 are needed",
        );
        let twice = [("Seckill-Solution", solved.as_str()), ("Seckill-Solution", solved.as_str())];
        let twice = world.call_for_token(&sale, "alice", &twice).await;
        assert_eq!((twice.status, twice.code().as_str()), (400, "BAD_REQUEST"), "{twice:?}");
        world.finish().await;
    });
}

#[test]
fn who_may_not_buy_is_not_asked_to_work_and_no_nonce_comes_before_the_start() {
    run(async {
        let world = World::start().await;
        let room = world.sale_with("room", 10, |sale| {
            (sale.waiting_room, sale.challenge) = (true, seckill::domain::challenge::Challenge::asked("pow:4"));
        });
        let room = room.await;
        let early = world.sale_with("early", 10, |sale| {
            sale.starts_at_ms = seckill::runtime::now_ms() + 60_000;
            sale.challenge = seckill::domain::challenge::Challenge::asked("pow:4");
        });
        let early = early.await;
        let answer = world.call_for_token(&early, "alice", &[]).await;
        assert_eq!((answer.status, &answer.json["challenge"]), (425, &Value::Null), "{answer:?}");
        let outside = world.call_for_token(&room, "alice", &[]).await;
        assert!(outside.status == 428 && outside.code() != "P1-Q4", "a place comes first: {outside:?}");
        let mut ticket = String::new();
        eventually("alice is released", async || {
            let path = format!("/v1/sales/{room}/places");
            let entered = Answer::of(world.request(Method::POST, &path, "alice")).await;
            ticket = entered.text("ticket");
            entered.text("state") == "released"
        })
        .await;
        let place = ("Seckill-Place", ticket.as_str());
        let refused = is_challenged(world.call_for_token(&room, "alice", &[place]).await, 4, "begins with 4 zero bits");
        let solved = solution(&refused);
        let issued = world.call_for_token(&room, "alice", &[place, ("Seckill-Solution", &solved)]).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        assert_eq!(world.buy(&room, "alice", 1, Some(&issued.text("token"))).await.status, 202);
        world.finish().await;
    });
}

#[test]
fn buyers_are_shown_the_challenge_and_a_plain_sale_reads_no_solution() {
    run(async {
        let world = World::start().await;
        let (plain, sale) = (world.sale("plain", 10, None).await, world.challenged("shown", "pow:9").await);
        assert_eq!(world.ask_with(&plain, "alice", "nonsense").await.status, 201);
        let shown = async |sale: &SaleId| {
            let shown = Answer::of(world.http.get(format!("{}/v1/sales/{sale}", world.api))).await;
            (shown.json["challenge"].clone(), shown.json["token_required"].clone())
        };
        assert_eq!(shown(&plain).await, (Value::Null, json!(false)));
        assert_eq!(shown(&sale).await, (json!("pow:9"), json!(true)));
        let chinese = world.call_for_token(&sale, "alice", &[("Accept-Language", "zh")]).await;
        assert!(chinese.text("detail").contains("9 个零位"), "{chinese:?}");
        world.finish().await;
    });
}

#[test]
fn neither_a_copy_of_an_older_version_nor_a_challenge_of_a_later_one_gives_tokens_away() {
    run(async {
        let world = World::with(&Role::ALL, &["p1_entry.cache_ttl_ms=50"]).await;
        let sale = world.challenged("kept", "pow:8").await;
        is_challenged(world.call_for_token(&sale, "alice", &[]).await, 8, "8 zero bits");
        // As a build that knew no challenges caches it: for a process that has not seen the sale.
        let mut old = serde_json::to_value(world.stored(&sale).await).unwrap();
        assert!(old.as_object_mut().unwrap().remove("challenge").is_some_and(|challenge| !challenge.is_null()));
        let cache = &world.servers.redis.sale_cache;
        let seen = cache.get(&sale).await.unwrap();
        cache.put(&sale, &old.to_string(), 60_000, &seen).await.unwrap();
        let other = world.second_world(&[Role::Api], &[]).await;
        is_challenged(other.call_for_token(&sale, "alice", &[]).await, 8, "8 zero bits");
        other.stop().await;

        world.sql("UPDATE sales SET challenge = 'captcha:v2' WHERE sale_id = 'kept'").await;
        world.servers.redis.sale_cache.forget(&sale).await.unwrap();
        let later = world.second_world(&[Role::Api], &[]).await;
        let refused = later.call_for_token(&sale, "alice", &[]).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"), "{refused:?}");
        assert!(refused.text("detail").contains("too old for the challenge"), "{refused:?}");
        later.stop().await;
        world.finish().await;
    });
}
