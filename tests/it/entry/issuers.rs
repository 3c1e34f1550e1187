//! Access tokens of real issuers: each public-key algorithm is accepted at the entry, and a token that was verified before is
//! good for its own text and its own time only.

use crate::support::programs::scratch;
use crate::support::time::eventually;
use crate::support::world::{Answer, World, run};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use seckill::config::{Auth, Layers, Settings};
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::runtime::now_ms;
use serde_json::{Value, json};
use std::path::Path;

const ALGORITHMS: [&str; 3] = ["RS256", "ES256", "EdDSA"];

enum PrivateKey {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

/// Signs as a login service does.
struct LoginService {
    algorithm: &'static str,
    key: PrivateKey,
    public_pem: String,
}

impl LoginService {
    fn new(algorithm: &'static str) -> Self {
        let pair = match algorithm {
            "RS256" => {
                let pem = include_str!("../../support/client.rsa.pem");
                KeyPair::from_pkcs8_pem_and_sign_algo(pem, &PKCS_RSA_SHA256).unwrap()
            }
            "ES256" => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(),
            _ => KeyPair::generate_for(&PKCS_ED25519).unwrap(),
        };
        let der = pair.serialize_der();
        let key = match algorithm {
            "RS256" => PrivateKey::Rsa(RsaKeyPair::from_pkcs8(&der).unwrap()),
            "ES256" => {
                let random = SystemRandom::new();
                PrivateKey::Ec(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &random).unwrap())
            }
            _ => PrivateKey::Ed(Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der).unwrap()),
        };
        Self { algorithm, key, public_pem: pair.public_key_pem() }
    }

    fn jwk(&self) -> Value {
        let mut jwk = match &self.key {
            PrivateKey::Rsa(pair) => {
                let parts = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({ "kty": "RSA", "n": base64_url(&parts.n), "e": base64_url(&parts.e) })
            }
            PrivateKey::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": base64_url(x), "y": base64_url(y) })
            }
            PrivateKey::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": base64_url(pair.public_key().as_ref()) })
            }
        };
        jwk["kid"] = json!("now");
        jwk["use"] = json!("sig");
        jwk
    }

    /// A set as issuers publish it: with keys that are of no use here.
    fn key_set(&self) -> Value {
        let nameless = {
            let mut jwk = self.jwk();
            jwk.as_object_mut().unwrap().remove("kid");
            jwk
        };
        let mut encrypting = LoginService::new(self.algorithm).jwk();
        (encrypting["use"], encrypting["kid"]) = (json!("enc"), json!("enc"));
        let others = ALGORITHMS.into_iter().filter(|other| *other != self.algorithm).map(|other| {
            let mut jwk = LoginService::new(other).jwk();
            jwk["kid"] = json!(other);
            jwk
        });
        let mut keys = vec![
            json!({ "kty": "OKP", "crv": "X25519", "kid": "x25519", "x": "AAAA" }),
            json!({ "kty": "EC", "crv": "secp256k1", "kid": "k1", "x": "AAAA", "y": "AAAA" }),
            json!({ "kid": "nothing" }),
            nameless,
            encrypting,
        ];
        keys.extend(others);
        keys.push(self.jwk());
        json!({ "keys": keys })
    }

    fn token(&self, kid: &str, sub: &str, exp: i64) -> String {
        let header = json!({ "alg": self.algorithm, "typ": "JWT", "kid": kid });
        let claims = json!({ "iss": "seckill", "aud": "seckill", "sub": sub, "exp": exp });
        let [header, claims] = [header, claims].map(|part| base64_url(part.to_string().as_bytes()));
        let text = format!("{header}.{claims}");
        let random = SystemRandom::new();
        let signature = match &self.key {
            PrivateKey::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature).unwrap();
                signature
            }
            PrivateKey::Ec(pair) => pair.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec(),
            PrivateKey::Ed(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
        };
        format!("{text}.{}", base64_url(&signature))
    }

    fn good(&self, sub: &str) -> String {
        self.token("now", sub, now_ms() / 1000 + 600)
    }

    /// `[auth]` with the public key in a file of this folder.
    fn settings(&self, folder: &Path, key: &str, leeway_s: u64) -> Auth {
        let (name, text) = if key == "key_file" {
            ("key.pem", self.public_pem.clone())
        } else {
            ("jwks.json", self.key_set().to_string())
        };
        let file = folder.join(format!("{}-{name}", self.algorithm));
        std::fs::write(&file, text).unwrap();
        let set = vec![
            format!("auth.algorithm={}", self.algorithm),
            format!("auth.{key}={}", file.display()),
            format!("auth.leeway_s={leeway_s}"),
        ];
        Settings::load(&Layers { files: vec![], set }).unwrap().auth
    }
}

fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let group = |group: &[u8]| {
        let bits = group.iter().chain(&[0; 2]).take(3).fold(0_usize, |bits, byte| bits << 8 | usize::from(*byte));
        (0..=group.len()).map(|at| char::from(ALPHABET[bits >> (18 - 6 * at) & 63])).collect::<String>()
    };
    bytes.chunks(3).map(group).collect()
}

/// The same token with another bit in its signature.
fn forged(token: &str) -> String {
    let at = token.rfind('.').unwrap() + 10;
    let other = if token.as_bytes()[at] == b'A' { "B" } else { "A" };
    format!("{}{other}{}", &token[..at], &token[at + 1..])
}

#[test]
fn the_entry_takes_each_algorithm_by_a_key_set_with_keys_that_do_not_fit() {
    run(async {
        for algorithm in ALGORITHMS {
            let service = LoginService::new(algorithm);
            let settings = service.settings(&scratch(&format!("issuer-{algorithm}")), "jwks_file", 5);
            let set = [
                "auth.secret=".to_owned(),
                format!("auth.algorithm={algorithm}"),
                format!("auth.jwks_file={}", settings.jwks_file),
            ];
            let set: Vec<&str> = set.iter().map(String::as_str).collect();
            let world = World::with(&[seckill::roles::Role::Api], &set).await;
            let sale = world.sale("issuers", 5, None).await;
            let buy = async |token: &str| {
                let request = world.http.post(format!("{}/v1/sales/{sale}/orders", world.api)).json(&json!({}));
                Answer::of(request.bearer_auth(token)).await
            };
            let token = service.good("alice");
            for again in [false, true] {
                let answer = buy(&token).await;
                assert_eq!(answer.status, 202, "{algorithm}, again: {again}: {answer:?}");
                let answer = buy(&forged(&token)).await;
                assert_eq!(answer.status, 401, "{algorithm}, again: {again}: {answer:?}");
                assert!(answer.text("detail").contains("signature"), "{answer:?}");
            }
            let answer = buy(&service.token("enc", "alice", now_ms() / 1000 + 600)).await;
            assert!(answer.status == 401 && answer.text("detail").contains("unknown key"), "{answer:?}");
            world.stop().await;
        }
    });
}

#[test]
fn a_public_key_in_pem_form_checks_what_its_private_half_signed() {
    for algorithm in ALGORITHMS {
        let service = LoginService::new(algorithm);
        let auth = Authenticator::new(&service.settings(&scratch("issuer-pem"), "key_file", 5)).unwrap();
        assert_eq!(auth.check(&service.good("alice")).unwrap().as_str(), "alice", "{algorithm}");
        if algorithm != "RS256" {
            let stranger = LoginService::new(algorithm).good("alice");
            assert!(auth.check(&stranger).unwrap_err().to_string().contains("signature"), "{algorithm}");
        }
    }
}

#[test]
fn a_set_without_a_key_that_fits_says_why() {
    let service = LoginService::new("EdDSA");
    let folder = scratch("issuer-misfit");
    let file = service.settings(&folder, "jwks_file", 5).jwks_file;
    std::fs::write(&file, LoginService::new("ES256").key_set().to_string().replace("Ed25519", "Ed448")).unwrap();
    let settings = service.settings(&folder, "key_file", 5);
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
        let auth = Authenticator::new(&service.settings(&scratch("issuer-expiry"), "key_file", 0)).unwrap();
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
