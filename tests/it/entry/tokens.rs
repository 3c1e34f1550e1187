//! Purchase tokens — who gets one when, and whose, which and how old a token is accepted.

use crate::support::world::{Answer, World, eventually, run};
use reqwest::Method;
use seckill::config::Secret;
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::sale::SaleStatus;
use seckill::p1_entry::purchase_tokens::PurchaseTokens;
use seckill::runtime::now_ms;

async fn ask(world: &World, sale: &SaleId, user: &str) -> Answer {
    Answer::of(world.request(Method::POST, &format!("/v1/sales/{sale}/tokens"), user)).await
}

/// A token of the product's own key, as if it had been issued at another time.
fn issued_at(world: &World, sale: &SaleId, user: &str, at_ms: i64) -> String {
    let tokens = PurchaseTokens::new(world.settings.p1_entry.token_secrets_in_use(), 900);
    let id = RequestId::new(77).unwrap();
    tokens.issue(id, (&UserId::parse(user).unwrap(), None), sale, at_ms).unwrap().0
}

#[test]
fn a_token_is_for_its_buyer_and_its_sale_and_no_client_can_make_one() {
    run(async {
        let world = World::start().await;
        let (sale, other) = (world.sale("mine", 10, None).await, world.sale("other", 10, None).await);
        let (token, _) = world.token(&sale, "alice").await;
        let forged = PurchaseTokens::new(&[Secret::new("not-the-key-of-this-service-at-all".to_owned())], 900)
            .issue(RequestId::new(5).unwrap(), (&UserId::parse("alice").unwrap(), None), &sale, now_ms())
            .unwrap()
            .0;
        let mut tampered = token.clone();
        let middle = token.len() / 2;
        tampered.replace_range(middle..=middle, if &token[middle..=middle] == "A" { "B" } else { "A" });
        let (head, rest) = token.split_once('.').unwrap();
        assert!(!head.is_empty());
        // {"alg":"none","typ":"JWT"}
        let unsigned = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{}.", rest.split_once('.').unwrap().0);
        let long = "x".repeat(2_000);
        let access = world.access("alice");
        let cases = [
            ("bob", &sale, &token),
            ("alice ", &sale, &token),
            ("Alice", &sale, &token),
            ("alice", &other, &token),
            ("alice", &sale, &forged),
            ("alice", &sale, &tampered),
            ("alice", &sale, &unsigned),
            ("alice", &sale, &long),
            ("alice", &sale, &access),
        ];
        for (user, sale, token) in cases {
            let answer = world.buy(sale, user, 1, Some(token)).await;
            assert_eq!((answer.status, answer.code().as_str()), (403, "TOKEN_INVALID"), "{user} {sale} {token}");
            assert!(answer.text("detail").contains("Idempotency-Key"), "{answer:?}");
        }
        let empty = world.buy(&sale, "alice", 1, Some("")).await;
        assert_eq!((empty.status, empty.code().as_str()), (403, "TOKEN_INVALID"), "{empty:?}");
        world.assert_untouched(&sale, 10).await;
        world.assert_untouched(&other, 10).await;
        assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202, "the good one is still good");
        world.finish().await;
    });
}

#[test]
fn an_expired_token_says_where_its_purchase_can_be_looked_up() {
    run(async {
        let world = World::with(&seckill::roles::Role::ALL, &["p1_entry.token_ttl_s=1"]).await;
        let sale = world.sale("expires", 10, Some(1)).await;
        let (unused, unused_id) = world.token(&sale, "alice").await;
        crate::support::world::time_passes(2_100).await;
        let late = world.buy(&sale, "alice", 1, Some(&unused)).await;
        assert_eq!((late.status, late.code().as_str()), (403, "TOKEN_EXPIRED"), "{late:?}");
        assert_eq!(late.text("request_id"), unused_id, "{late:?}");
        assert_eq!(late.header("location"), format!("/v1/sales/expires/orders/{unused_id}"));
        assert_eq!(world.status(&sale, "alice", &unused_id, 0).await.status, 404, "it was not used");
        let foreign = world.buy(&sale, "bob", 1, Some(&unused)).await;
        assert_eq!((foreign.status, foreign.code().as_str()), (403, "TOKEN_INVALID"), "others learn nothing");
        world.assert_untouched(&sale, 10).await;
        world.finish().await;
    });
}

#[test]
fn a_sale_that_requires_tokens_sells_nothing_without() {
    run(async {
        let world = World::start().await;
        let sale = world.sale_with("hidden", 10, |sale| sale.token_required = true).await;
        let without = world.buy(&sale, "alice", 1, None).await;
        assert_eq!((without.status, without.code().as_str()), (428, "TOKEN_REQUIRED"), "{without:?}");
        assert!(without.text("detail").contains("/v1/sales/hidden/tokens"), "{without:?}");
        world.assert_untouched(&sale, 10).await;
        let (token, _) = world.token(&sale, "alice").await;
        assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202);
        world.finish().await;
    });
}

#[test]
fn no_token_is_issued_before_the_start_after_the_end_after_the_sell_out_or_in_a_pause() {
    run(async {
        let world = World::with(&seckill::roles::Role::ALL, &["p1_entry.cache_ttl_ms=50"]).await;
        let early = world.sale_with("early", 5, |sale| sale.starts_at_ms = now_ms() + 60_000).await;
        let ended = world.sale_with("ended", 5, |sale| sale.ends_at_ms = now_ms() - 1).await;
        let draft = world.draft("draft", 5, |_| {}).await;
        let paused = world.sale("paused", 5, None).await;
        world.sale_control().pause(&paused).await.unwrap();
        for (sale, status, code) in [(&early, 425, "P1-S5"), (&ended, 410, "P1-S6"), (&paused, 423, "P1-S7")] {
            let answer = ask(&world, sale, "alice").await;
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{sale}: {answer:?}");
        }
        eventually("a token for a draft that warms itself", async || ask(&world, &draft, "a").await.status == 201)
            .await;
        let none = ask(&world, &SaleId::parse("nowhere").unwrap(), "alice").await;
        assert_eq!((none.status, none.code().as_str()), (404, "P1-S3"), "{none:?}");
        let sold = world.sale("sold", 1, None).await;
        assert_eq!(world.buy(&sold, "alice", 1, None).await.status, 202);
        assert_eq!(world.buy(&sold, "bob", 1, None).await.status, 410);
        let answer = ask(&world, &sold, "bob").await;
        assert_eq!((answer.status, answer.code().as_str()), (410, "P1-S2"), "{answer:?}");
        // The mark is cached with a time limit; the sale stays sold out without it.
        for _ in 0..20 {
            crate::support::world::time_passes(100).await;
            let answer = ask(&world, &sold, "bob").await;
            assert_eq!(answer.status, 410, "a sold-out sale stays sold out: {answer:?}");
        }
        world.finish().await;
    });
}

#[test]
fn after_the_sell_out_the_ledger_judges_each_token_whatever_its_age() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("winner", 1, None).await;
        let (winner, id) = world.token(&sale, "alice").await;
        let (loser, _) = world.token(&sale, "bob").await;
        assert_eq!(world.buy(&sale, "alice", 1, Some(&winner)).await.status, 202);
        let lost = world.buy(&sale, "bob", 1, Some(&loser)).await;
        assert_eq!((lost.status, lost.code().as_str()), (410, "P2-R2"), "{lost:?}");
        let mark = world.servers.redis.sale_cache.get(&sale).await.unwrap().sold_out.expect("a sold-out mark");
        assert_eq!((mark.epoch, mark.granted), (1, 1));
        let again = world.buy(&sale, "alice", 1, Some(&winner)).await;
        assert_eq!((again.status, again.text("request_id")), (202, id), "{again:?}");
        for issued_at_ms in [mark.at_ms - 10_000, mark.at_ms + 10_000] {
            let token = issued_at(&world, &sale, "carol", issued_at_ms);
            let refused = world.buy(&sale, "carol", 1, Some(&token)).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (410, "P2-R2"),
                "it could be a winner's: {refused:?}"
            );
        }
        world.finish().await;
    });
}

#[test]
fn a_closed_sale_issues_no_tokens() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("closed", 5, None).await;
        world.sale_control().close(&sale).await.unwrap();
        let stored = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        assert_eq!(stored.status, SaleStatus::Closed);
        let answer = ask(&world, &sale, "alice").await;
        assert_eq!((answer.status, answer.code().as_str()), (410, "P1-S6"), "{answer:?}");
        world.finish().await;
    });
}
