//! The shop's risk service judges buyers of a sale with the challenge `hook`, once each, before they get a purchase token.

use crate::support::outside::hook_receiver::SECRET;
use crate::support::outside::risk_shop::RiskShop;
use crate::support::world::{World, run};
use futures::future::join_all;
use seckill::roles::Role;
use serde_json::{Value, json};

/// Every role, asking this service.
pub async fn asking(shop: &RiskShop, set: &[&str]) -> World {
    let settings = shop.settings();
    let settings: Vec<&str> = settings.iter().map(String::as_str).chain(set.iter().copied()).collect();
    World::with(&Role::ALL, &settings).await
}

#[test]
fn an_allowed_buyer_gets_a_token_and_a_refused_one_learns_that_the_shop_said_no() {
    run(async {
        let shop = RiskShop::start().await;
        let world = asking(&shop, &[]).await;
        let sale = world.challenged("judged", "hook").await;
        shop.refuses("mallory");
        let issued = world.call_for_token(&sale, "alice", &[]).await;
        assert_eq!(issued.status, 201, "{issued:?}");
        assert_eq!(world.buy(&sale, "alice", 1, Some(&issued.text("token"))).await.status, 202);
        let refused = world.call_for_token(&sale, "mallory", &[]).await;
        assert_eq!((refused.status, refused.code().as_str()), (403, "P1-Q5"), "{refused:?}");
        let bare = world.buy(&sale, "mallory", 1, None).await;
        assert_eq!((bare.status, bare.code().as_str()), (428, "TOKEN_REQUIRED"), "{bare:?}");
        assert_eq!(shop.calls().len(), 2, "a purchase asks nothing");
        assert_eq!(world.settled(&sale).await.counted.ordered, 1);
        world.finish().await;
    });
}

#[test]
fn the_question_is_signed_and_says_what_is_known() {
    run(async {
        let shop = RiskShop::start().await;
        let world = asking(&shop, &[]).await;
        let sale = world.challenged("signed", "hook").await;
        let long = "x".repeat(600);
        let known = [("User-Agent", "Buyer/1.0"), ("X-Forwarded-For", "198.51.100.7, 192.0.2.1")];
        assert_eq!(world.call_for_token(&sale, "买家", &known).await.status, 201);
        assert_eq!(world.call_for_token(&sale, "bob", &[("User-Agent", long.as_str())]).await.status, 201);
        let calls = shop.calls();
        let [first, second] = &calls[..] else { panic!("two calls") };
        assert!(first.line.starts_with("POST /risk?shop=7 ") && first.is_signed_by(SECRET), "{first:?}");
        assert_eq!(first.headers["content-type"], "application/json");
        let body = first.json();
        assert!(body["type"] == "token.asked" && body["timestamp"].as_str().unwrap().ends_with('Z'), "{body}");
        let data = json!({
            "sale_id": "signed", "user": "买家", "address": "127.0.0.1", "forwarded_for": "198.51.100.7, 192.0.2.1",
            "user_agent": "Buyer/1.0"
        });
        assert_eq!(body["data"], data);
        let data = &second.json()["data"];
        assert_eq!((&data["forwarded_for"], data["user_agent"].as_str().unwrap().len()), (&Value::Null, 512));
        assert_ne!(first.id(), second.id());
        world.finish().await;
    });
}

#[test]
fn a_verdict_is_remembered_for_its_buyer_and_sale_and_asked_for_once() {
    run(async {
        let shop = RiskShop::start().await;
        let world = asking(&shop, &[]).await;
        let (sale, other) = (world.challenged("once", "hook").await, world.challenged("twice", "hook").await);
        shop.refuses("mallory");
        for (buyer, status) in [("alice", 201), ("mallory", 403)] {
            let answers = join_all((0..10).map(|_| world.call_for_token(&sale, buyer, &[]))).await;
            assert!(answers.iter().all(|answer| answer.status == status), "{buyer}: {answers:?}");
            assert_eq!(world.call_for_token(&sale, buyer, &[]).await.status, status);
        }
        assert_eq!(shop.calls().len(), 2, "one a buyer, also of many at a time");
        assert_eq!(world.call_for_token(&other, "alice", &[]).await.status, 201);
        assert_eq!(shop.calls().len(), 3, "another sale is another question");
        world.finish().await;
    });
}

#[test]
fn a_verdict_counts_no_longer_than_it_is_remembered() {
    run(async {
        let shop = RiskShop::start().await;
        let world = asking(&shop, &["risk.remember_s=1"]).await;
        let sale = world.challenged("short", "hook").await;
        assert_eq!(world.call_for_token(&sale, "alice", &[]).await.status, 201);
        shop.refuses("alice");
        crate::support::world::eventually("it is asked again", async || {
            world.call_for_token(&sale, "alice", &[]).await.status == 403
        })
        .await;
        world.finish().await;
    });
}

#[test]
fn a_buyer_above_the_rate_asks_nothing() {
    run(async {
        let shop = RiskShop::start().await;
        let world = asking(&shop, &["p1_entry.user_rate_per_s=1"]).await;
        let mut sales = Vec::new();
        for n in 0..10 {
            sales.push(world.challenged(&format!("rated-{n}"), "hook").await);
        }
        let mut limited = 0;
        for sale in &sales {
            limited += usize::from(world.call_for_token(sale, "alice", &[]).await.status == 429);
        }
        assert!(limited > 0 && shop.calls().len() + limited == sales.len(), "{limited} of {}", shop.calls().len());
        world.finish().await;
    });
}

#[test]
fn without_a_service_such_a_sale_issues_no_token_and_the_doctor_says_why() {
    run(async {
        let world = World::start().await;
        let (sale, plain) = (world.challenged("lonely", "hook").await, world.sale("plain", 10, None).await);
        let refused = world.call_for_token(&sale, "alice", &[]).await;
        assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"), "{refused:?}");
        assert_eq!(world.call_for_token(&plain, "alice", &[]).await.status, 201);
        let said = world.cli(&["doctor"]).exits(2).out;
        assert!(said.contains("sale lonely has the challenge hook"), "{said}");

        let mut shop = RiskShop::start().await;
        let settings = shop.settings();
        let doctor = || world.cli(&["--set", settings[0].as_str(), "--set", settings[1].as_str(), "doctor"]);
        let said = doctor().out;
        assert!(said.contains("risk.url") && !said.contains("does not answer"), "{said}");
        assert_eq!(shop.calls()[0].json()["type"], "risk.probed");
        shop.close();
        let said = doctor().out;
        assert!(said.contains("AWAY risk") && said.contains("risk.on_failure decides"), "{said}");
        world.finish().await;
    });
}
