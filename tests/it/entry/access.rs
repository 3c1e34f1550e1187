//! Access tokens. Without a valid token there is no purchase, and the answer names the wrong claim.

use crate::support::processes::programs::scratch;
use crate::support::world::{Answer, World, run};
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use seckill::config::Algorithm;
use seckill::p1_entry::access_tokens::Authenticator;
use seckill::runtime::now_ms;
use serde_json::{Value, json};

/// `{"alg":"none","typ":"JWT"}` and `{"alg":"RS256","typ":"JWT"}`, base64url.
const NONE: &str = "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0";
const RS256: &str = "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCJ9";

fn claims(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = json!({ "iss": "seckill", "aud": "seckill", "sub": "alice", "exp": now_ms() / 1000 + 600 });
    change(&mut claims);
    claims
}

/// A token with a good signature, by another program than ours, which cannot sign HS512.
fn signed(key: &[u8], algorithm: &str, claims: &Value) -> String {
    let hash = match algorithm {
        "HS256" => hmac::HMAC_SHA256,
        "HS512" => hmac::HMAC_SHA512,
        other => panic!("no test signs {other}"),
    };
    let [header, claims] = [json!({ "typ": "JWT", "alg": algorithm }), claims.clone()]
        .map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
    let text = format!("{header}.{claims}");
    let signature = hmac::sign(&hmac::Key::new(hash, key), text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn with(key: &[u8], name: &str, value: Value) -> String {
    signed(key, "HS256", &claims(|claims| claims[name] = value))
}

fn without(key: &[u8], name: &str) -> String {
    let claims = claims(|claims| drop(claims.as_object_mut().unwrap().remove(name)));
    signed(key, "HS256", &claims)
}

/// Authorization headers that must be refused, and what the detail has to say.
fn refused(key: &[u8]) -> Vec<(String, &'static str)> {
    let good = signed(key, "HS256", &claims(|_| {}));
    let (head, rest) = good.split_once('.').unwrap();
    let (body, signature) = rest.split_once('.').unwrap();
    let now = now_ms() / 1000;
    let bearer = |token: String| format!("Bearer {token}");
    vec![
        (String::new(), "Authorization"),
        (good.clone(), "Authorization"),
        (format!("Basic {good}"), "Authorization"),
        ("Bearer".to_owned(), "Authorization"),
        ("Bearer ".to_owned(), "Authorization"),
        (bearer("not.a.token".to_owned()), "malformed"),
        (bearer(format!("{head}.{body}")), "malformed"),
        (bearer(format!("{head}.{body}.")), "signature"),
        (bearer(format!("{NONE}.{body}.")), "access token"),
        (bearer(format!("{NONE}.{body}.{signature}")), "access token"),
        (bearer(format!("{RS256}.{body}.{signature}")), "algorithm"),
        (bearer(signed(key, "HS512", &claims(|_| {}))), "algorithm"),
        (bearer(signed(&[b'x'; 40], "HS256", &claims(|_| {}))), "signature"),
        (bearer(with(key, "exp", json!(now - 60))), "expired"),
        (bearer(with(key, "nbf", json!(now + 60))), "nbf"),
        (bearer(with(key, "aud", json!("elsewhere"))), "aud"),
        (bearer(with(key, "iss", json!("someone"))), "iss"),
        (bearer(with(key, "sub", json!(""))), "sub"),
        (bearer(with(key, "sub", json!("x".repeat(65)))), "sub"),
        (bearer(with(key, "sub", json!("ä".repeat(33)))), "sub"),
        (bearer(with(key, "sub", json!("a\nb"))), "sub"),
        (bearer(with(key, "sub", json!("a\u{0}b"))), "sub"),
        (bearer(with(key, "sub", json!("a\u{85}b"))), "sub"),
        (bearer(with(key, "sub", json!(17))), "access token"),
        (bearer(without(key, "exp")), "exp"),
        (bearer(without(key, "aud")), "aud"),
        (bearer(without(key, "iss")), "iss"),
        (bearer(without(key, "sub")), "access token"),
        (bearer("x".repeat(8_193)), "8192"),
    ]
}

#[test]
fn no_client_buys_asks_or_gets_a_token_without_a_good_access_token() {
    run(async {
        let world = World::with(&[seckill::roles::Role::Api], &[]).await;
        let sale = world.sale("access", 5, None).await;
        let key = world.settings.auth.secret.expose().as_bytes().to_vec();
        let routes = [(Method::POST, "orders"), (Method::POST, "tokens"), (Method::GET, "orders/7")];
        for (header, detail) in refused(&key) {
            for (method, path) in &routes {
                let mut request = world.http.request(method.clone(), format!("{}/v1/sales/{sale}/{path}", world.api));
                if !header.is_empty() {
                    request = request.header("Authorization", &header);
                }
                let answer = Answer::of(request.json(&json!({}))).await;
                assert_eq!((answer.status, answer.code().as_str()), (401, "UNAUTHORIZED"), "{header}: {answer:?}");
                assert_eq!(answer.json["status"], 401);
                assert_eq!(answer.header("content-type"), "application/problem+json");
                assert_eq!(answer.header("www-authenticate"), "Bearer");
                assert!(answer.text("detail").contains(detail), "{header} wants {detail}: {answer:?}");
            }
        }
        world.assert_untouched(&sale, 5).await;
        for sub in ["x".repeat(64), "ä".repeat(32)] {
            let good = with(&key, "sub", json!(sub));
            let request = world.http.post(format!("{}/v1/sales/{sale}/orders", world.api)).json(&json!({}));
            let answer = Answer::of(request.bearer_auth(good)).await;
            assert_eq!(answer.status, 202, "64 bytes are allowed: {answer:?}");
        }
        world.stop().await;
    });
}

/// Only ever used to be confused about: its private half was thrown away.
const PUBLIC_KEY: &str = "\
-----BEGIN PUBLIC KEY-----\n\
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAwtc9Wl7TxK9GW73Ok5zM\n\
ZSHfNDPoadl9O11hQqAeAOUfHPLcwr/R/m8eJtbJXW3Xgr5sn7PAjJffngtnAk2f\n\
84GCQl4tLwRQAsbTmC46erzfGVMAf6y9sB4MVMWgu3fPC25J8+GWSJJJieiZq6og\n\
EDQnALeOb4vksS82AXct0thSIWHvSP/idRiMSYLr17GT9y/X4xglJ+DgIvM4EIPU\n\
pdQlJRu2FJhChEFgLr4BMPuQkbu9s7MB2X+l6OoISfWgizoEn+mcNBuWfz720N/h\n\
YBK3SpW7WGpqDs6ru2S5wDqet8xVh6Vx9ZzjzW9j1gqL7vlPO1UIePEo1xwvP0bz\n\
FwIDAQAB\n\
-----END PUBLIC KEY-----\n";

#[test]
fn a_public_key_is_no_shared_secret() {
    let file = scratch("access").join("public.pem");
    std::fs::write(&file, PUBLIC_KEY).unwrap();
    let mut settings = seckill::config::Settings::load(&seckill::config::Layers::default()).unwrap().auth;
    settings.algorithm = Algorithm::Rs256;
    settings.key_file = file.to_string_lossy().into_owned();
    let auth = Authenticator::new(&settings).unwrap();
    for key in [PUBLIC_KEY.as_bytes(), PUBLIC_KEY.trim().as_bytes()] {
        for algorithm in ["HS256", "HS512"] {
            let denied = auth.check(&signed(key, algorithm, &claims(|_| {}))).expect_err("refused");
            assert!(denied.to_string().contains("another algorithm"), "{denied}");
        }
    }
}
