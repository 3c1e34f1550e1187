//! A sale that limits by person (Q2): a hundred accounts of one person buy as one, in Redis and in the database, and each account finds
//! what it bought.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::orders::LONG;
use crate::support::buyers::passes::{FACTS_AND_PASSES, ShowingBuyer, pass};
use crate::support::world::outbox_kinds::{LIST, STREAM};
use crate::support::world::{Answer, World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::policy::{LimitBy, PurchasePolicy};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{self, Api, Consumer, Reconcile, Relay};
use serde_json::{Value, json};
use std::num::NonZeroU32;

const QUICK: [&str; 2] = ["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];

async fn world(roles: &[Role], more: &[&str]) -> World {
    World::with(roles, &[&FACTS_AND_PASSES[..], &QUICK, more].concat()).await
}

async fn by_person(world: &World, id: &str, stock: i64, limit: Option<u32>) -> SaleId {
    let change = |sale: &mut seckill::domain::sale::Sale| {
        sale.limit_by = LimitBy::Person;
        sale.policy = PurchasePolicy::from_limit(limit);
    };
    world.sale_with(id, stock, change).await
}

fn account<'a>(world: &'a World, buyer: &'a str, person: &str) -> ShowingBuyer<'a> {
    ShowingBuyer::new(world, buyer).with_claims(json!({ "pid": person }))
}

/// What an account sees of a request.
async fn status(world: &World, sale: &SaleId, buyer: &str, id: &str) -> Answer {
    Answer::of(world.request(Method::GET, &format!("/v1/sales/{sale}/orders/{id}"), buyer)).await
}

#[test]
fn a_hundred_accounts_of_one_person_buy_as_one() {
    for outbox in [STREAM, LIST] {
        run(async {
            let world = world(&Role::ALL, &[outbox, "redis.shards=4"]).await;
            let (one, two) = (by_person(&world, "one", 60, Some(1)).await, by_person(&world, "two", 60, Some(2)).await);
            let (mut accepted, mut refused) = ([0, 0], Vec::new());
            for no in 0..100 {
                let name = format!("account-{no}");
                for (at, sale) in [&one, &two].into_iter().enumerate() {
                    let answer = account(&world, &name, "p 1").buy(sale).await;
                    if answer.status == 202 { accepted[at] += 1 } else { refused.push(answer) }
                }
            }
            assert_eq!(accepted, [1, 2]);
            for answer in refused {
                assert!(["P2-R1", "P2-R5"].contains(&answer.code().as_str()), "{answer:?}");
                assert_eq!(answer.json["request_id"], Value::Null, "it is another account's: {answer:?}");
            }
            assert_eq!(account(&world, "account-0", "p 2").buy(&one).await.status, 202, "for another person");
            for (sale, ordered) in [(&one, 2), (&two, 2)] {
                let audit = world.settled(sale).await;
                assert!(audit.consistent() && audit.counted.ordered == ordered, "{audit:?}");
            }
            assert_eq!(world.rows("purchases", "user_id = 'p 1' AND quantity = 2").await, 1);
            world.finish().await;
        });
    }
}

#[test]
fn without_a_person_nothing_is_bought_and_the_answer_says_what_is_missing() {
    run(async {
        let world = world(&[Api], &[]).await;
        let sale = by_person(&world, "who", 10, Some(1)).await;
        for (claims, said) in [
            (json!({}), "the fact person is needed"),
            (json!({ "person": "p" }), "the fact person is needed"),
            (json!({ "pid": "" }), "the fact person is needed"),
            (json!({ "pid": "a\tb" }), "the fact person is needed"),
            (json!({ "pid": ["a", "b"] }), "several values"),
        ] {
            let refused = ShowingBuyer::new(&world, "ann").with_claims(claims).is_refused(&sale, "P1-Q1").await;
            assert!(refused.text("detail").contains(said), "{refused:?}");
        }
        world.assert_untouched(&sale, 10).await;
        let by_pass = ShowingBuyer::new(&world, "ann").with_pass(pass("ann", &json!({ "sale": "who", "person": "p" })));
        assert_eq!(by_pass.buy(&sale).await.status, 202);
        assert_eq!(account(&world, "bob", "p").buy(&sale).await.code(), "P2-R1", "the same by the token");
        let shown = Answer::of(world.http.get(format!("{}/v1/sales/{sale}", world.api))).await;
        assert_eq!(shown.json["limit_by"], "person", "{shown:?}");
        world.stop().await;
    });
}

#[test]
fn an_account_finds_its_request_without_showing_the_person() {
    run(async {
        let mut world = world(&[Api], &["redis.shards=8"]).await;
        let sale = by_person(&world, "found", 100, Some(1)).await;
        let mut ids = Vec::new();
        for no in 0..12 {
            let (buyer, person) = (format!("b{no}"), format!("p{no}"));
            let answer = account(&world, &buyer, &person).buy(&sale).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            ids.push((buyer, answer.text("request_id")));
        }
        for (buyer, id) in &ids {
            let queued = status(&world, &sale, buyer, id).await;
            assert_eq!((queued.status, queued.text("status").as_str()), (200, "QUEUED"), "{buyer}: {queued:?}");
            assert_eq!(status(&world, &sale, "mallory", id).await.status, 404);
            let order = Answer::of(world.request(Method::GET, &format!("/v1/orders/{id}"), buyer)).await;
            assert_eq!(order.json["request_id"].as_str(), Some(id.as_str()), "it is on its way: {order:?}");
        }
        world.stop_roles().await;
        world.start_roles(&[Api, Relay, Consumer, Reconcile]).await;
        for (buyer, id) in &ids {
            eventually("confirmed", async || status(&world, &sale, buyer, id).await.text("status") == "CONFIRMED")
                .await;
        }
        world.finish().await;
    });
}

#[test]
fn a_purchase_token_is_for_one_person() {
    run(async {
        let world = world(&Role::ALL, &["redis.shards=8"]).await;
        let sale = by_person(&world, "bound", 10, Some(1)).await;
        let issued = account(&world, "ann", "p1").ask_token(&sale).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        let token = issued.text("token");
        let first = account(&world, "ann", "p1").with_token(&token).buy(&sale).await;
        assert_eq!(first.status, 202, "{first:?}");
        for person in ["p2", "p3", "p4", "p5", "p6"] {
            let again = account(&world, "ann", person).with_token(&token).buy(&sale).await;
            assert_eq!((again.status, again.text("request_id")), (202, first.text("request_id")), "{again:?}");
        }
        // The pass has expired since: the token knows the person.
        let without = ShowingBuyer::new(&world, "ann").with_token(&token).buy(&sale).await;
        assert_eq!((without.status, without.text("request_id")), (202, first.text("request_id")), "{without:?}");
        assert_eq!(world.settled(&sale).await.counted.ordered, 1);
        world.finish().await;
    });
}

#[test]
fn an_emptied_redis_knows_the_persons_again() {
    run(async {
        let mut world = world(&Role::ALL, &["redis.shards=4"]).await;
        let sale = by_person(&world, "lost", 50, Some(2)).await;
        for (buyer, person) in [("a1", "p1"), ("a2", "p1"), ("b1", "p2")] {
            assert_eq!(account(&world, buyer, person).buy(&sale).await.status, 202);
        }
        assert!(world.settled(&sale).await.consistent());
        RawRedis::of(&world).await.clear().await;
        eventually("it sells again", async || account(&world, "c", "p3").buy(&sale).await.status == 202).await;
        assert_eq!(account(&world, "a3", "p1").buy(&sale).await.code(), "P2-R5", "her two accounts have two");
        assert_eq!(account(&world, "b2", "p2").buy(&sale).await.status, 202);
        assert_eq!(account(&world, "b3", "p2").buy(&sale).await.code(), "P2-R5");
        let audit = world.settled(&sale).await;
        assert!(audit.consistent() && audit.counted.ordered == 5, "{audit:?}");
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.stop_roles().await;
        world.finish().await;
    });
}

#[test]
fn a_cancelled_order_gives_the_person_its_unit_back() {
    run(async {
        let world = world(&Role::ALL, &[]).await;
        let terms = PaymentTerms { limit_returns: true, ..LONG };
        let change = |sale: &mut seckill::domain::sale::Sale| {
            sale.limit_by = LimitBy::Person;
            sale.policy = PurchasePolicy::Cumulative(NonZeroU32::new(2).unwrap());
            sale.payment = Some(terms);
        };
        let sale = world.sale_with("back", 10, change).await;
        let first = account(&world, "a1", "p").buy(&sale).await.text("request_id");
        assert_eq!(account(&world, "a2", "p").buy(&sale).await.status, 202);
        assert_eq!(account(&world, "a3", "p").buy(&sale).await.code(), "P2-R5");
        eventually("written", async || world.rows("orders", "person = 'p'").await == 2).await;
        let cancelled = Answer::of(world.request(Method::DELETE, &format!("/v1/orders/{first}"), "a1")).await;
        assert_eq!(cancelled.text("state"), "CANCELLED", "{cancelled:?}");
        eventually("one more", async || account(&world, "a3", "p").buy(&sale).await.status == 202).await;
        assert_eq!(account(&world, "a4", "p").buy(&sale).await.code(), "P2-R5");
        assert!(world.settled(&sale).await.consistent());
        world.finish().await;
    });
}

#[test]
fn a_drop_limits_its_persons_over_all_its_sales() {
    run(async {
        let world = world(&Role::ALL, &["redis.shards=4"]).await;
        let sales = world.drop_of(1, &["m", "l"], |sale| sale.limit_by = LimitBy::Person).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        assert_eq!(account(&world, "a1", "p").buy(&sales[0]).await.status, 202);
        assert_eq!(account(&world, "a2", "p").buy(&sales[1]).await.code(), "P2-R5");
        assert_eq!(account(&world, "a2", "q").buy(&sales[1]).await.status, 202);
        for sale in &sales {
            assert!(world.settled(sale).await.consistent());
        }
        assert_eq!(world.rows("drop_purchases", "user_id IN ('p', 'q')").await, 2);
        world.finish().await;
    });
}

#[test]
fn a_block_of_a_person_holds_for_each_account() {
    run(async {
        let world = world(&[Api], &[]).await;
        let sale = by_person(&world, "blocked", 10, Some(2)).await;
        assert_eq!(account(&world, "a1", "p").buy(&sale).await.status, 202);
        world.cli(&["block", "add", "p", "--reason", "resells"]).exits(0);
        eventually("refused", async || account(&world, "a2", "p").buy(&sale).await.code() == "P1-Q2").await;
        assert_eq!(account(&world, "a3", "p").ask_token(&sale).await.code(), "P1-Q2");
        assert_eq!(account(&world, "a1", "q").buy(&sale).await.status, 202, "another person, by the account of before");
        world.stop().await;
    });
}
