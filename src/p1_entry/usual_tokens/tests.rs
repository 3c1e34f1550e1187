//! The pass and the judge say the same of every token, for secrets and for public keys.

use super::*;
use crate::config::{Layers, Settings};
use crate::p1_entry::access_tokens::{AccessDenied, Authenticator};
use crate::p1_entry::key_set::HEADERS_MAX;
use crate::p1_entry::refusals::TokenRefusal;
use crate::runtime::now_ms;
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use proptest::prelude::*;
use std::sync::LazyLock;

const SECRET: &str = "a secret of the gateway, long enough";

/// Makes the signature of a text.
type Sign = Box<dyn Fn(&[u8]) -> Vec<u8> + Send + Sync>;

/// An issuer, who it is not, and the entry that believes it: with the pass, which knows the usual header, and without.
struct Gateway {
    header: String,
    sign: Sign,
    forge: Sign,
    passed: Authenticator,
    judge: Authenticator,
}

fn authenticator(set: &[(&str, &str)]) -> Authenticator {
    let usual = [("issuer", "gateway"), ("audience", "seckill"), ("leeway_s", "5")];
    let set = usual.iter().chain(set).map(|(key, value)| format!("auth.{key}={value}")).collect();
    Authenticator::new(&Settings::load(&Layers { files: Vec::new(), set }).unwrap().auth).unwrap()
}

fn mac(secret: &'static str) -> Sign {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    Box::new(move |text| hmac::sign(&key, text).as_ref().to_vec())
}

impl Gateway {
    fn with_secret() -> Self {
        let made = || authenticator(&[("secret", SECRET)]);
        Self::new("HS256", [mac(SECRET), mac("another secret, of somebody else too")], made)
    }

    /// `pairs`: what signs, and the public half.
    fn with_key(algorithm: &'static str, pair: impl Fn() -> (Sign, Vec<u8>)) -> Self {
        let ((sign, public), (forge, _)) = (pair(), pair());
        let file = std::env::temp_dir().join(format!("seckill-usual-{:x}.pem", rand::random::<u64>()));
        let key = base64::engine::general_purpose::STANDARD.encode(public);
        std::fs::write(&file, format!("-----BEGIN PUBLIC KEY-----\n{key}\n-----END PUBLIC KEY-----\n")).unwrap();
        let made = || authenticator(&[("algorithm", algorithm), ("key_file", file.to_str().unwrap())]);
        let gateway = Self::new(algorithm, [sign, forge], made);
        std::fs::remove_file(file).unwrap();
        gateway
    }

    fn ed() -> Self {
        Self::with_key("EdDSA", || {
            let pair = Ed25519KeyPair::generate().unwrap();
            let public = der(pair.public_key());
            (Box::new(move |text| pair.sign(text).as_ref().to_vec()), public)
        })
    }

    fn ec() -> Self {
        Self::with_key("ES256", || {
            let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
            let public = der(pair.public_key());
            (Box::new(move |text| pair.sign(&SystemRandom::new(), text).unwrap().as_ref().to_vec()), public)
        })
    }

    fn rsa() -> Self {
        Self::with_key("RS256", || {
            let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
            let public = der(pair.public_key());
            let sign = move |text: &[u8]| {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).unwrap();
                signature
            };
            (Box::new(sign), public)
        })
    }

    fn new(algorithm: &str, [sign, forge]: [Sign; 2], made: impl Fn() -> Authenticator) -> Self {
        let header = format!(r#"{{"typ":"JWT","alg":"{algorithm}"}}"#);
        let mut judge = made();
        judge.usual = None;
        Self { header, sign, forge, passed: made(), judge }
    }

    /// A token for Alice that is good until then.
    fn token(&self, exp: u64) -> String {
        let claims = format!(r#"{{"sub":"alice","iss":"gateway","aud":"seckill","exp":{exp},"iat":1}}"#);
        signed(&self.header, &claims, &self.sign)
    }

    /// The same token with a signature of somebody else.
    fn forged(&self, token: &str) -> String {
        let (signed, _signature) = token.rsplit_once('.').unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode((self.forge)(b"x")))
    }

    /// What the pass says of a token at `now_s`.
    fn fate(&self, token: &str, now_s: u64) -> String {
        let keys = self.passed.keys.now();
        match self.passed.usual.as_ref().unwrap().check(&keys, token, now_s) {
            UsualFate::Good { token, .. } => token.user.to_string(),
            UsualFate::Forged { .. } => "forged".to_owned(),
            UsualFate::Signed => "signed".to_owned(),
            UsualFate::Unchecked => "unchecked".to_owned(),
            UsualFate::Unusual => "unusual".to_owned(),
        }
    }
}

fn der(public: &impl AsDer<PublicKeyX509Der<'static>>) -> Vec<u8> {
    public.as_der().unwrap().as_ref().to_vec()
}

fn signed(header: &str, claims: &str, sign: &Sign) -> String {
    let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let message = format!("{}.{}", part(header), part(claims));
    let signature = sign(message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn now_s() -> u64 {
    u64::try_from(now_ms() / 1000).unwrap()
}

fn one_of(texts: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(texts).prop_map(str::to_owned)
}

/// Seconds as a JSON value, around now where a whole minute more or less does not matter.
fn seconds() -> impl Strategy<Value = String> {
    let around = proptest::sample::select(vec![-3600_i64, -60, 60, 3600]);
    let around = around.prop_map(|more| (i64::try_from(now_s()).unwrap() + more).to_string());
    prop_oneof![
        6 => around,
        1 => one_of(&["null", "-1", "1.5", "1e10", "9999999999.5", "\"9999999999\"", "18446744073709551616", "true"]),
    ]
}

fn claims() -> impl Strategy<Value = String> {
    let sub = one_of(&["\"alice\"", "\"a\\u006cice\"", "\"\"", "\"\\u0007\"", "7", "null", "\"\u{5356}\""]);
    let iss = one_of(&["\"gateway\"", "\"gatew\\u0061y\"", "\"other\"", "[\"gateway\"]", "null"]);
    let aud = one_of(&["\"seckill\"", "\"other\"", "[\"seckill\",\"other\"]", "[]", "null"]);
    let usual = prop_oneof![4 => Just(true), 1 => Just(false)];
    let more = one_of(&["", "", ",\"iat\":1", ",\"sub\":\"bob\"", ",\"x\":{\"sub\":[]}", "}", ",", ",\"nbf\":1"]);
    let some = |values: BoxedStrategy<String>| prop_oneof![5 => values.prop_map(Some), 1 => Just(None)];
    let parts = (usual, some(sub.boxed()), some(iss.boxed()), some(aud.boxed()), some(seconds().boxed()));
    (parts, prop_oneof![3 => Just(None), 1 => seconds().prop_map(Some)], more).prop_map(
        |((usual, sub, iss, aud, exp), nbf, more)| {
            let or = |value: Option<String>, good: &str| if usual { Some(good.to_owned()) } else { value };
            let named = [
                ("sub", or(sub, "\"alice\"")),
                ("iss", or(iss, "\"gateway\"")),
                ("aud", or(aud, "\"seckill\"")),
                ("exp", exp),
                ("nbf", nbf),
            ];
            let given = named.into_iter().filter_map(|(name, value)| Some(format!("\"{name}\":{}", value?)));
            format!("{{{}{more}}}", given.collect::<Vec<_>>().join(","))
        },
    )
}

/// Secret and public key, both with the usual header known.
static GATEWAYS: LazyLock<[Gateway; 2]> = LazyLock::new(|| {
    let gateways = [Gateway::with_secret(), Gateway::ed()];
    for gateway in &gateways {
        assert!(gateway.passed.check(&gateway.token(now_s() + 60)).is_ok());
    }
    gateways
});

/// The buyer or the reason. Of several missing claims the judge names any. Forgeries that had their share of this thread's time
/// are left unchecked, so those are asked about again.
fn verdict(auth: &Authenticator, token: &str) -> Result<UserId, String> {
    let checked = std::iter::repeat_with(|| auth.check(token));
    let mut checked = checked.filter(|checked| !checked.as_ref().is_err_and(AccessDenied::is_busy));
    checked.next().unwrap().map_err(|denied| {
        let why = denied.to_string();
        why.split_once("lacks the claim").map_or(why.clone(), |(before, _)| before.to_owned())
    })
}

const HEADERS: &[&str] = &[
    r#"{"alg":"HS256","kid":"1"}"#,
    r#"{"alg":"EdDSA","kid":"1"}"#,
    r#"{"alg":"none"}"#,
    r#"{"alg":"HS256","crit":["exp2"],"exp2":1}"#,
    r#"{"alg":"EdDSA","crit":["exp2"],"exp2":1}"#,
    r#"{"alg":"HS256","crit":[]}"#,
    r#"{"alg":"EdDSA","crit":7}"#,
    r#"{"alg":"HS512"}"#,
    r#"{"alg":"RS256"}"#,
    "{}",
    "x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Each token twice: the second time its header is known, if it can be.
    #[test]
    fn the_pass_and_the_judge_accept_the_same_tokens_and_refuse_the_others_for_the_same_reason(
        gateway in 0..2_usize,
        header in prop_oneof![4 => Just(None), 1 => one_of(HEADERS).prop_map(Some)],
        claims in claims(),
        is_forged in prop_oneof![5 => Just(false), 1 => Just(true)],
        damage in prop_oneof![4 => Just(None), 1 => (0..400_usize, any::<u8>()).prop_map(Some)],
    ) {
        let Gateway { header: usual, sign, forge, passed, judge } = &GATEWAYS[gateway];
        let header = header.unwrap_or_else(|| usual.clone());
        let mut token = signed(&header, &claims, if is_forged { forge } else { sign });
        if let Some((at, with)) = damage {
            let at = at % token.len();
            token.replace_range(at..=at, char::from(with % 128).encode_utf8(&mut [0; 4]));
        }
        let judged = verdict(judge, &token);
        for _ in 0..2 {
            prop_assert_eq!(&verdict(passed, &token), &judged, "{} {}", header, claims);
        }
    }
}

#[test]
fn the_usual_token_needs_no_judge_and_any_other_one_does() {
    let now_s = now_s();
    for (gateway, of_good_signature) in
        [(Gateway::with_secret(), "signed"), (Gateway::rsa(), "unusual"), (Gateway::ec(), "unusual")]
    {
        let (good, name) = (gateway.token(now_s + 60), gateway.header.clone());
        let forged = gateway.forged(&good);
        for token in [&good, &forged] {
            assert_eq!(gateway.fate(token, now_s), "unusual", "its header is not known yet: {name}");
        }
        gateway.passed.check(&good).unwrap();
        let fates = [now_s, now_s + 65, now_s + 66].map(|now_s| gateway.fate(&good, now_s));
        assert_eq!(fates, ["alice", "alice", of_good_signature], "{name}");
        assert_eq!(gateway.fate(&forged, now_s), "forged", "{name}");
        // The judge has other words for these.
        for damaged in [format!("{good}!"), format!("{}=", &good[..good.len() - 40])] {
            assert_eq!(gateway.fate(&damaged, now_s), "unusual", "{damaged}");
        }
        let listed = r#"{"sub":"alice","iss":"gateway","aud":["seckill"],"exp":9999999999}"#;
        let listed = signed(&gateway.header, listed, &gateway.sign);
        assert_eq!(gateway.fate(&listed, now_s), of_good_signature, "{name}");
        assert!(gateway.passed.check("a.b").is_err());
    }
}

#[test]
fn a_token_that_names_a_critical_extension_is_refused_for_the_same_reason_each_time() {
    let exp = now_s() + 60;
    let claims = format!(r#"{{"sub":"alice","iss":"gateway","aud":"seckill","exp":{exp}}}"#);
    for (gateway, algorithm) in [(Gateway::with_secret(), "HS256"), (Gateway::ed(), "EdDSA")] {
        for crit in [r#""crit":["exp2"],"exp2":1"#, r#""b64":false,"crit":["b64"]"#, r#""crit":[]"#] {
            let token = signed(&format!(r#"{{"alg":"{algorithm}",{crit}}}"#), &claims, &gateway.sign);
            for _ in 0..2 {
                let refused = gateway.passed.check(&token).unwrap_err();
                assert!(
                    refused.refusal == TokenRefusal::Malformed && refused.to_string().contains("crit"),
                    "{crit}: {refused}"
                );
            }
        }
        gateway.passed.check(&gateway.token(exp)).unwrap();
    }
}

#[test]
fn forgeries_with_a_public_key_have_a_share_of_the_time_and_no_more() {
    let (gateway, now_s) = (Gateway::ec(), now_s());
    let good = gateway.token(now_s + 60);
    gateway.passed.check(&good).unwrap();
    let forged = gateway.forged(&good);
    let mut fates = std::iter::repeat_with(|| gateway.fate(&forged, now_s)).take(100_000);
    assert!(fates.any(|fate| fate == "unchecked"));
}

#[test]
fn few_headers_are_known_at_a_time() {
    let (gateway, now_s) = (Gateway::with_secret(), now_s());
    for n in 0..2 * HEADERS_MAX {
        let claims = format!(r#"{{"sub":"alice","iss":"gateway","aud":"seckill","exp":{}}}"#, now_s + 60);
        let token = signed(&format!(r#"{{"alg":"HS256","kid":"{n}"}}"#), &claims, &gateway.sign);
        gateway.passed.check(&token).unwrap();
        assert_eq!(gateway.fate(&token, now_s) == "alice", n < HEADERS_MAX, "{n}");
    }
}
