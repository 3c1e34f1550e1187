//! Passes: which one is good for whom, for which sale and for how long, and who can make one.

use crate::support::buyers::passes::{
    FACTS_AND_PASSES, PASS_SECRET, ShowingBuyer, in_s, needs, pass, pass_claims, signed,
};
use crate::support::outside::issuer::Issuer;
use crate::support::outside::login_service::{ALGORITHMS, LoginService, base64_url, forged, set_of};
use crate::support::processes::programs::scratch;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::policy::PurchasePolicy;
use seckill::roles::Role;
use serde_json::{Value, json};

async fn needing(world: &World, id: &str) -> SaleId {
    let unlimited = PurchasePolicy::Unlimited;
    world.sale_with(id, 20, |sale| (sale.policy, sale.needs) = (unlimited, needs(&json!({ "pass": true })))).await
}

#[test]
fn a_pass_is_for_its_buyer_its_sale_and_its_time_and_no_client_can_make_one() {
    run(async {
        let world = World::with(&Role::ALL, &FACTS_AND_PASSES).await;
        let sale = needing(&world, "mine").await;
        let good = pass("alice", &json!({ "sale": "mine" }));
        let (signed_part, _) = good.rsplit_once('.').unwrap();
        let (_, claims) = signed_part.split_once('.').unwrap();
        let unsigned =
            |alg: &str| format!("{}.{claims}.", base64_url(format!(r#"{{"alg":"{alg}","typ":"JWT"}}"#).as_bytes()));
        let critical = base64_url(br#"{"alg":"HS256","crit":["b64"]}"#);
        let own = |change: Value| pass("alice", &change);
        let cases = [
            (pass("bob", &json!({ "sale": "mine" })), "of another buyer"),
            (pass("Alice", &json!({ "sale": "mine" })), "of another buyer"),
            (own(json!({ "sale": "Mine" })), "for another sale"),
            (own(json!({ "sale": ["mine"] })), "for another sale"),
            (own(json!({ "drop": "mine" })), "for another drop"),
            (own(json!({ "sale": "mine", "drop": "mine" })), "names a sale and a drop"),
            (own(json!({})), "names neither a sale nor a drop"),
            (own(json!({ "sale": "mine", "exp": in_s(-60) })), "has expired"),
            (own(json!({ "sale": "mine", "exp": null })), "lacks the claim exp"),
            (own(json!({ "sale": "mine", "sub": null })), "Seckill-Pass"),
            (own(json!({ "sale": "mine", "nbf": in_s(600) })), "not valid yet"),
            (
                signed(
                    "another-secret-of-more-than-thirty-two-bytes",
                    &pass_claims("alice", &json!({ "sale": "mine" })),
                ),
                "wrong signature",
            ),
            (
                signed(
                    world.settings.auth.signing_secret().expose(),
                    &pass_claims("alice", &json!({ "sale": "mine" })),
                ),
                "wrong signature",
            ),
            (forged(&good), "wrong signature"),
            (unsigned("none"), "malformed"),
            (unsigned("HS256"), "Seckill-Pass"),
            (unsigned("RS256"), "another algorithm"),
            (format!("{critical}.{claims}.x"), "crit"),
            (world.access("alice"), "wrong signature"),
            ("x".repeat(9_000), "more than 8192 bytes"),
            (String::new(), "malformed"),
            ("a.b.c".to_owned(), "malformed"),
        ];
        for (text, said) in cases {
            let refused =
                ShowingBuyer::new(&world, "alice").with_pass(text.as_str()).is_refused(&sale, "PASS_INVALID").await;
            let detail = refused.text("detail");
            assert!(detail.starts_with("Seckill-Pass ") && detail.contains(said), "{said}: {refused:?}");
        }
        world.assert_untouched(&sale, 20).await;
        let answer = ShowingBuyer::new(&world, "alice").with_pass(good).buy(&sale).await;
        assert_eq!(answer.status, 202, "the good one is still good: {answer:?}");
        world.finish().await;
    });
}

#[test]
fn a_pass_of_a_drop_is_for_all_its_sales_and_for_no_other() {
    run(async {
        let world = World::with(&Role::ALL, &FACTS_AND_PASSES).await;
        let sales = world.drop_of(0, &["m", "l"], |sale| sale.needs = needs(&json!({ "pass": true }))).await;
        world.sale_control().warm(&sales[0]).await.unwrap();
        let plain = needing(&world, "plain").await;
        let of_drop = pass("alice", &json!({ "drop": "drop" }));
        for sale in &sales {
            let answer = ShowingBuyer::new(&world, "alice").with_pass(of_drop.as_str()).buy(sale).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            let other = pass("bob", &json!({ "drop": "other" }));
            let refused = ShowingBuyer::new(&world, "bob").with_pass(other).is_refused(sale, "PASS_INVALID").await;
            assert!(refused.text("detail").contains("another drop"), "{refused:?}");
        }
        let of_one = pass("bob", &json!({ "sale": "m" }));
        ShowingBuyer::new(&world, "bob").with_pass(of_one.as_str()).is_refused(&sales[1], "PASS_INVALID").await;
        assert_eq!(ShowingBuyer::new(&world, "bob").with_pass(of_one).buy(&sales[0]).await.status, 202);
        ShowingBuyer::new(&world, "alice").with_pass(of_drop).is_refused(&plain, "PASS_INVALID").await;
        world.finish().await;
    });
}

#[test]
fn the_shop_signs_passes_with_any_public_key_beside_ours() {
    run(async {
        let services = ALGORITHMS.map(|algorithm| LoginService::named(algorithm, algorithm));
        let file = scratch("passes").join("set.json");
        std::fs::write(&file, set_of(&services.each_ref()).to_string()).unwrap();
        let set = format!("passes.jwks_file={}", file.display());
        let world = World::with(&Role::ALL, &[&FACTS_AND_PASSES[..], &[&set]].concat()).await;
        let sale = needing(&world, "shop").await;
        for service in &services {
            let (kid, claims) = (service.kid.as_str(), pass_claims(service.algorithm, &json!({ "sale": "shop" })));
            let buyer = || ShowingBuyer::new(&world, service.algorithm);
            let pass = service.signed(kid, &claims);
            for _ in 0..2 {
                assert_eq!(buyer().with_pass(pass.as_str()).buy(&sale).await.status, 202, "{kid}");
                buyer().with_pass(forged(&pass)).is_refused(&sale, "PASS_INVALID").await;
            }
            let unknown = buyer().with_pass(service.signed("other", &claims)).is_refused(&sale, "PASS_INVALID").await;
            assert!(unknown.text("detail").contains("unknown key (kid)"), "{unknown:?}");
            let confused = signed(&service.public_pem, &claims);
            buyer().with_pass(confused).is_refused(&sale, "PASS_INVALID").await;
        }
        let ours = pass("alice", &json!({ "sale": "shop" }));
        assert_eq!(ShowingBuyer::new(&world, "alice").with_pass(ours).buy(&sale).await.status, 202);
        world.finish().await;
    });
}

#[test]
fn a_shop_whose_keys_are_away_stops_only_its_own_passes() {
    run(async {
        let service = LoginService::new("ES256");
        let issuer = Issuer::start(&set_of(&[&service])).await;
        issuer.goes_away();
        let set = format!("passes.jwks_url={}", issuer.url);
        let world = World::with(&Role::ALL, &[&FACTS_AND_PASSES[..], &[&set, "auth.reread_s=1"]].concat()).await;
        let (sale, plain) = (needing(&world, "away").await, world.sale("not-away", 5, None).await);
        let of_shop = service.signed("now", &pass_claims("alice", &json!({ "sale": "away" })));
        let waiting = ShowingBuyer::new(&world, "alice").with_pass(of_shop.as_str()).buy(&sale).await;
        assert_eq!((waiting.status, waiting.code().as_str()), (503, "UNAVAILABLE"), "{waiting:?}");
        assert_eq!(world.buy(&plain, "alice", 1, None).await.status, 202);
        let ours = pass("bob", &json!({ "sale": "away" }));
        assert_eq!(ShowingBuyer::new(&world, "bob").with_pass(ours).buy(&sale).await.status, 202);
        issuer.publish(&set_of(&[&service]));
        eventually("its passes are read", async || {
            ShowingBuyer::new(&world, "alice").with_pass(of_shop.as_str()).buy(&sale).await.status == 202
        })
        .await;
        world.finish().await;
    });
}

#[test]
fn without_keys_no_pass_is_read_and_a_sale_that_needs_one_sells_nothing() {
    run(async {
        let world = World::start().await;
        let sale = needing(&world, "keyless").await;
        let forged = signed(PASS_SECRET, &pass_claims("alice", &json!({ "sale": "keyless" })));
        let refused = ShowingBuyer::new(&world, "alice").with_pass(forged).is_refused(&sale, "P1-Q1").await;
        assert!(refused.text("detail").contains("needs a pass"), "{refused:?}");
        world.assert_untouched(&sale, 20).await;
        world.finish().await;
    });
}

#[test]
fn a_header_that_is_given_twice_is_refused_where_it_is_read() {
    run(async {
        let world = World::with(&Role::ALL, &FACTS_AND_PASSES).await;
        let (sale, plain) = (needing(&world, "twice").await, world.sale("once", 5, None).await);
        let good = pass("alice", &json!({ "sale": "twice" }));
        for (sale, status) in [(&sale, 400), (&plain, 202)] {
            let request = world.request(reqwest::Method::POST, &format!("/v1/sales/{sale}/orders"), "alice");
            let request = request.header("Seckill-Pass", &good).header("Seckill-Pass", &good);
            let answer = crate::support::world::Answer::of(request.json(&json!({}))).await;
            assert_eq!(answer.status, status, "{answer:?}");
        }
        world.finish().await;
    });
}
