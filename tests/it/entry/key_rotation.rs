//! Public keys that change while the process runs: by the issuer's set, by a file, and by what is wrong with either.

use crate::support::basics::time::eventually;
use crate::support::outside::certificates::Certificates;
use crate::support::outside::issuer::Issuer;
use crate::support::outside::login_service::{LoginService, set_of};
use crate::support::processes::programs::scratch;
use crate::support::world::{Answer, World, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::json;
use std::time::Instant;

const ALGORITHMS: &str = "auth.algorithms=ES256,EdDSA";
/// The shortest pause between two readings.
const REREAD: &str = "auth.reread_s=1";

async fn world(place: &str) -> (World, SaleId) {
    let world = World::with(&[Role::Api], &["auth.secret=", ALGORITHMS, REREAD, place]).await;
    let sale = world.sale("keys", 50, None).await;
    (world, sale)
}

/// A question that every buyer may ask, about an order that is not there.
async fn asks(world: &World, sale: &SaleId, token: &str) -> Answer {
    let url = format!("{}/v1/sales/{sale}/orders/4242", world.api);
    Answer::of(world.http.request(Method::GET, url).bearer_auth(token)).await
}

async fn is_let_in(world: &World, sale: &SaleId, token: &str) -> bool {
    let answer = asks(world, sale, token).await;
    assert!([401, 404].contains(&answer.status), "{answer:?}");
    answer.status == 404
}

#[test]
fn the_issuer_rotates_and_a_key_that_is_gone_takes_its_verified_tokens_with_it() {
    run(async {
        let (old, new) = (LoginService::named("ES256", "old"), LoginService::named("EdDSA", "new"));
        let issuer = Issuer::start(&set_of(&[&old])).await;
        let (world, sale) = world(&format!("auth.jwks_url={}", issuer.url)).await;
        let (alice, bob) = (old.good("alice"), new.good("bob"));
        assert!(is_let_in(&world, &sale, &alice).await && is_let_in(&world, &sale, &alice).await);
        let early = asks(&world, &sale, &bob).await;
        assert!(early.status == 401 && early.text("detail").contains("unknown key"), "{early:?}");

        issuer.publish(&set_of(&[&old, &new]));
        eventually("the new key", async || is_let_in(&world, &sale, &bob).await).await;
        assert!(is_let_in(&world, &sale, &alice).await, "both keys count while both are shown");

        issuer.publish(&set_of(&[&new]));
        let foreign = LoginService::named("EdDSA", "stranger").good("mallory");
        eventually("the old key goes", async || {
            assert!(!is_let_in(&world, &sale, &foreign).await, "what wakes the reading");
            !is_let_in(&world, &sale, &alice).await
        })
        .await;
        assert!(is_let_in(&world, &sale, &bob).await);
        let late = asks(&world, &sale, &alice).await;
        assert!(
            late.text("detail").contains("unknown key"),
            "verified before, and remembered by keys that are gone: {late:?}"
        );
        world.stop().await;
    });
}

#[test]
fn an_issuer_that_is_away_slow_or_wrong_leaves_the_keys_as_they_are() {
    run(async {
        let (old, new) = (LoginService::named("ES256", "old"), LoginService::named("EdDSA", "new"));
        let issuer = Issuer::start(&set_of(&[&old])).await;
        let (world, sale) = world(&format!("auth.jwks_url={}", issuer.url)).await;
        let bob = new.good("bob");
        let oversized = vec![b' '; 70_000];
        let elsewhere = format!("Location: {}\r\n", issuer.url);
        let of_others = set_of(&[&LoginService::named("RS256", "rsa")]).to_string();
        let wrongs: [(&str, &dyn Fn()); 8] = [
            ("away", &|| issuer.goes_away()),
            ("an error", &|| issuer.answer("500 Internal Server Error", "", b"{}")),
            ("elsewhere", &|| issuer.answer("302 Found", &elsewhere, b"")),
            ("too large", &|| issuer.answer("200 OK", "", &oversized)),
            ("without an end", &|| issuer.never_ends()),
            ("no set", &|| issuer.answer("200 OK", "", b"<html>")),
            ("no key that fits", &|| issuer.answer("200 OK", "", of_others.as_bytes())),
            ("silent", &|| issuer.falls_silent()),
        ];
        for (number, (what, goes_wrong)) in wrongs.into_iter().enumerate() {
            // The fetch before this one has ended when this one begins.
            goes_wrong();
            let before = issuer.fetches();
            eventually("a fetch", async || {
                assert!(!is_let_in(&world, &sale, &bob).await, "{what}");
                issuer.fetches() > before
            })
            .await;
            assert!(is_let_in(&world, &sale, &old.good(&format!("alice-{number}"))).await, "{what}: a new buyer");
        }
        issuer.publish(&set_of(&[&new]));
        eventually("the issuer is back", async || is_let_in(&world, &sale, &bob).await).await;
        world.stop().await;
    });
}

#[test]
fn tokens_with_invented_kids_have_the_set_fetched_once_in_a_while() {
    run(async {
        let service = LoginService::named("ES256", "one");
        let issuer = Issuer::start(&set_of(&[&service])).await;
        let (world, sale) = world(&format!("auth.jwks_url={}", issuer.url)).await;
        let begun = Instant::now();
        let mut invented = 0_u64;
        while issuer.fetches() < 4 || invented < 150 {
            let exp = seckill::runtime::now_ms() / 1000 + 600;
            let tokens =
                (0..50).map(|n| service.token(&format!("kid-{invented}-{n}"), "mallory", exp)).collect::<Vec<_>>();
            let asked = tokens.iter().map(|token| is_let_in(&world, &sale, token));
            assert!(!futures::future::join_all(asked).await.contains(&true));
            invented += 50;
        }
        let (fetches, seconds) = (issuer.fetches(), begun.elapsed().as_secs_f64());
        // The first one was before, and each of the others at least a second after the one before it.
        assert!(fetches as f64 <= 2.0 + seconds, "{fetches} in {seconds} s");
        world.stop().await;
    });
}

#[test]
fn a_file_is_read_again_and_one_that_is_broken_changes_nothing() {
    run(async {
        let (old, new) = (LoginService::named("ES256", "old"), LoginService::named("ES256", "new"));
        let file = scratch("keys-file").join("jwks.json");
        let write = |text: &str| std::fs::write(&file, text).unwrap();
        write(&set_of(&[&old]).to_string());
        let (world, sale) = world(&format!("auth.jwks_file={}", file.display())).await;
        let (alice, bob) = (old.good("alice"), new.good("bob"));
        assert!(is_let_in(&world, &sale, &alice).await && !is_let_in(&world, &sale, &bob).await);
        for broken in ["", "{", "{\"keys\":[]}", &" ".repeat(70_000)] {
            write(broken);
            let seen = Instant::now();
            while seen.elapsed().as_millis() < 1_500 {
                assert!(is_let_in(&world, &sale, &alice).await && !is_let_in(&world, &sale, &bob).await);
            }
        }
        std::fs::remove_file(&file).unwrap();
        assert!(is_let_in(&world, &sale, &alice).await);
        write(&set_of(&[&new]).to_string());
        eventually("the other file", async || !is_let_in(&world, &sale, &alice).await).await;
        assert!(is_let_in(&world, &sale, &bob).await);
        world.stop().await;
    });
}

#[test]
fn a_pem_file_is_read_again_without_being_asked_for() {
    run(async {
        let (old, new) = (LoginService::new("EdDSA"), LoginService::new("ES256"));
        let file = scratch("keys-pem").join("key.pem");
        std::fs::write(&file, &old.public_pem).unwrap();
        let (world, sale) = world(&format!("auth.key_file={}", file.display())).await;
        assert!(is_let_in(&world, &sale, &old.good("alice")).await);
        std::fs::write(&file, &new.public_pem).unwrap();
        eventually("the other key", async || is_let_in(&world, &sale, &new.good("bob")).await).await;
        let answer = asks(&world, &sale, &old.good("alice")).await;
        assert!(answer.status == 401 && answer.text("detail").contains("another algorithm"), "{answer:?}");
        world.stop().await;
    });
}

#[test]
fn the_set_comes_over_tls_from_an_issuer_whose_ca_is_known() {
    run(async {
        let certificates = Certificates::new("keys-tls");
        let service = LoginService::named("EdDSA", "one");
        let issuer = Issuer::start_tls(&set_of(&[&service]), &certificates).await;
        let (url, ca) =
            (format!("auth.jwks_url={}", issuer.url), format!("auth.tls_ca_file={}", certificates.path("ca.pem")));
        let world = World::with(&[Role::Api], &["auth.secret=", ALGORITHMS, &url, &ca]).await;
        let sale = world.sale("keys", 5, None).await;
        let request = world.http.post(format!("{}/v1/sales/{sale}/orders", world.api)).json(&json!({}));
        assert_eq!(Answer::of(request.bearer_auth(service.good("alice"))).await.status, 202);
        world.stop().await;
    });
}
