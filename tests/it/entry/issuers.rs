//! Access tokens of real issuers: each public-key algorithm is accepted at the entry, and a token that was verified before is
//! good for its own text and its own time only.

use crate::support::basics::time::eventually;
use crate::support::outside::issuer::Issuer;
use crate::support::outside::login_service::{ALGORITHMS, LoginService, base64_url, forged, set_of};
use crate::support::processes::programs::scratch;
use crate::support::world::{Answer, World, run};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use seckill::config::{Auth, Layers, Settings};
use seckill::domain::ids::SaleId;
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::roles::Role;
use seckill::runtime::now_ms;
use serde_json::json;
use std::path::Path;

/// `[auth]` with the public key of a service in a file of this folder.
fn settings(service: &LoginService, folder: &Path, key: &str, leeway_s: u64) -> Auth {
    let (name, text) = if key == "key_file" {
        ("key.pem", service.public_pem.clone())
    } else {
        ("jwks.json", service.key_set().to_string())
    };
    let file = folder.join(format!("{}-{name}", service.algorithm));
    std::fs::write(&file, text).unwrap();
    let set = vec![
        format!("auth.algorithm={}", service.algorithm),
        format!("auth.{key}={}", file.display()),
        format!("auth.leeway_s={leeway_s}"),
    ];
    Settings::load(&Layers { files: vec![], set }).unwrap().auth
}

async fn buy(world: &World, sale: &SaleId, token: &str) -> Answer {
    let request = world.http.post(format!("{}/v1/sales/{sale}/orders", world.api)).json(&json!({}));
    Answer::of(request.bearer_auth(token)).await
}

/// A world that knows public keys only, by these settings.
async fn world(set: &[String]) -> (World, SaleId) {
    let set: Vec<&str> = ["auth.secret="].into_iter().chain(set.iter().map(String::as_str)).collect();
    let world = World::with(&[Role::Api], &set).await;
    let sale = world.sale("issuers", 20, None).await;
    (world, sale)
}

#[test]
fn the_entry_takes_each_algorithm_by_a_key_set_with_keys_that_do_not_fit() {
    run(async {
        for algorithm in ALGORITHMS {
            let service = LoginService::new(algorithm);
            let file = settings(&service, &scratch(&format!("issuer-{algorithm}")), "jwks_file", 5).jwks_file;
            let set = [format!("auth.algorithm={algorithm}"), format!("auth.jwks_file={file}")];
            let (world, sale) = world(&set).await;
            let token = service.good("alice");
            for again in [false, true] {
                let answer = buy(&world, &sale, &token).await;
                assert_eq!(answer.status, 202, "{algorithm}, again: {again}: {answer:?}");
                let answer = buy(&world, &sale, &forged(&token)).await;
                assert_eq!(answer.status, 401, "{algorithm}, again: {again}: {answer:?}");
                assert!(answer.text("detail").contains("signature"), "{answer:?}");
            }
            let answer = buy(&world, &sale, &service.token("enc", "alice", now_ms() / 1000 + 600)).await;
            assert!(answer.status == 401 && answer.text("detail").contains("unknown key"), "{answer:?}");
            world.stop().await;
        }
    });
}

#[test]
fn the_entry_takes_each_algorithm_by_a_pem_file() {
    run(async {
        for algorithm in ALGORITHMS {
            let service = LoginService::new(algorithm);
            let file = settings(&service, &scratch(&format!("issuer-pem-{algorithm}")), "key_file", 5).key_file;
            // The one that its key is for, out of a list.
            let set = ["auth.algorithms=RS256,ES256,EdDSA".to_owned(), format!("auth.key_file={file}")];
            let (world, sale) = world(&set).await;
            let answer = buy(&world, &sale, &service.good("alice")).await;
            assert_eq!(answer.status, 202, "{algorithm}: {answer:?}");
            let answer = buy(&world, &sale, &forged(&service.good("bob"))).await;
            assert_eq!(answer.status, 401, "{algorithm}: {answer:?}");
            world.stop().await;
        }
    });
}

#[test]
fn the_entry_takes_all_algorithms_of_the_issuers_set_and_each_key_for_its_own_only() {
    run(async {
        let services = ALGORITHMS.map(|algorithm| LoginService::named(algorithm, algorithm));
        let mut set = set_of(&services.each_ref());
        // What a set must not bring: a secret that anybody who reads it could sign with.
        let secret = base64_url(b"a-secret-that-everybody-can-read-in-the-set");
        set["keys"].as_array_mut().unwrap().push(json!({ "kty": "oct", "kid": "oct", "alg": "HS256", "k": secret }));
        let issuer = Issuer::start(&set).await;
        let set = ["auth.algorithms=RS256,ES256,EdDSA".to_owned(), format!("auth.jwks_url={}", issuer.url)];
        let (world, sale) = world(&set).await;
        for service in &services {
            let algorithm = service.algorithm;
            let answer = buy(&world, &sale, &service.good(algorithm)).await;
            assert_eq!(answer.status, 202, "{algorithm}: {answer:?}");
            for other in ALGORITHMS.into_iter().filter(|other| *other != algorithm) {
                let confused = buy(&world, &sale, &service.token(other, "mallory", now_ms() / 1000 + 600)).await;
                assert_eq!(confused.status, 401, "{algorithm} with the key of {other}");
                assert!(confused.text("detail").contains("another algorithm"), "{confused:?}");
            }
        }
        let public = [services[0].public_pem.as_bytes(), services[1].public_pem.as_bytes(), secret.as_bytes()];
        let secret = b"a-secret-that-everybody-can-read-in-the-set".as_slice();
        for (kid, key) in ["RS256", "ES256", "oct", "oct"].into_iter().zip(public.into_iter().chain([secret])) {
            let header = Header { kid: Some(kid.to_owned()), ..Header::new(Algorithm::HS256) };
            let claims = json!({ "iss": "seckill", "aud": "seckill", "sub": "m", "exp": now_ms() / 1000 + 600 });
            let token = encode(&header, &claims, &EncodingKey::from_secret(key)).unwrap();
            let answer = buy(&world, &sale, &token).await;
            assert_eq!(answer.status, 401, "{kid}: {answer:?}");
        }
        assert_eq!(issuer.fetches(), 1);
        world.stop().await;
    });
}

#[test]
fn a_key_that_could_check_nothing_is_refused_when_it_is_read() {
    let folder = scratch("issuer-weak");
    let service = LoginService::new("EdDSA");
    let settings = settings(&service, &folder, "jwks_file", 5);
    let weak = json!({ "kty": "RSA", "kid": "weak", "n": base64_url(&[0xab; 128]), "e": "AQAB" });
    let short = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "short", "x": base64_url(&[1; 31]) });
    let off =
        json!({ "kty": "EC", "crv": "P-256", "kid": "off", "x": base64_url(&[1; 32]), "y": base64_url(&[1; 32]) });
    let algorithms = ["RS256", "EdDSA", "ES256"].map(|name| serde_json::from_value(json!(name)).unwrap());
    let algorithms = algorithms.to_vec().into();
    let settings = Auth { algorithms, ..settings };
    let refused = |settings: &Auth| Authenticator::new(settings).err().unwrap().to_string();
    std::fs::write(&settings.jwks_file, json!({ "keys": [weak, short, off] }).to_string()).unwrap();
    let error = refused(&settings);
    for why in ["weak: is an RSA key of 1024 bits", "short: is not a public key", "off: is not a usable public key"] {
        assert!(error.contains(why), "{error}");
    }
    // The private half is no key to check with, and does not belong on this machine.
    let private = folder.join("private.pem");
    std::fs::write(&private, include_str!("../../support/outside/client.rsa.pem")).unwrap();
    let settings = Auth { key_file: private.display().to_string(), jwks_file: String::new(), ..settings };
    assert!(
        refused(&settings).contains("auth.key_file: not a public key for RS256 or EdDSA or ES256"),
        "{}",
        refused(&settings)
    );
}

#[test]
fn a_public_key_in_pem_form_checks_what_its_private_half_signed() {
    for algorithm in ALGORITHMS {
        let service = LoginService::new(algorithm);
        let auth = Authenticator::new(&settings(&service, &scratch("issuer-pem"), "key_file", 5)).unwrap();
        assert_eq!(auth.check(&service.good("alice")).unwrap().as_str(), "alice", "{algorithm}");
        if algorithm != "RS256" {
            let foreign = LoginService::new(algorithm).good("alice");
            assert!(auth.check(&foreign).unwrap_err().to_string().contains("signature"), "{algorithm}");
        }
    }
}

#[test]
fn a_set_without_a_key_that_fits_says_why() {
    let service = LoginService::new("EdDSA");
    let folder = scratch("issuer-misfit");
    let file = settings(&service, &folder, "jwks_file", 5).jwks_file;
    std::fs::write(&file, LoginService::new("ES256").key_set().to_string().replace("Ed25519", "Ed448")).unwrap();
    let settings = settings(&service, &folder, "key_file", 5);
    let error = Authenticator::new(&Auth { key_file: String::new(), jwks_file: file, ..settings }).err().unwrap();
    let error = error.to_string();
    for word in ["auth.jwks_file", "no key that fits", "now: ", "RS256: ", "x25519: "] {
        assert!(error.contains(word), "{word}: {error}");
    }
}

#[test]
fn a_token_that_was_verified_before_ends_with_its_own_time() {
    run(async {
        let service = LoginService::new("EdDSA");
        let auth = Authenticator::new(&settings(&service, &scratch("issuer-expiry"), "key_file", 0)).unwrap();
        let token = service.token("now", "alice", now_ms() / 1000 + 2);
        for _ in 0..3 {
            auth.check(&token).unwrap();
        }
        assert!(auth.check(&forged(&token)).unwrap_err().to_string().contains("signature"));
        eventually("the token expires", async || match auth.check(&token) {
            Ok(_) => false,
            Err(denied) => denied.to_string().contains("expired"),
        })
        .await;
    });
}
