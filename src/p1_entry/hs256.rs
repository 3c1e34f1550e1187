//! The usual HS256 access token, checked in one pass. `jsonwebtoken` stays the judge of everything else.
//!
//! That crate reads a token's header twice, makes the key schedule of the HMAC for each token, and reads the claims twice. Here
//! the header is compared with those that it has accepted, the schedules are kept, and the claims are read once, in place.
//!
//! Input: a token. Output: its buyer, where the token is certainly good; that it is forged, where its header is known and no secret
//! signed it; else nothing, and then the judge says whether it is good and why not. So a refusal always has the judge's reason, and
//! whatever is unusual (an escaped character, an audience that is a list, seconds with a fraction) costs what it cost before. A
//! flood of forgeries in the usual form costs a MAC for each secret, and those in other forms are the judge's, which has a budget
//! for them ([`super::forgery_budget`]). A crash leaves nothing.

use crate::config::Auth;
use crate::domain::ids::UserId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Deserializer};
use std::sync::OnceLock;
use subtle::ConstantTimeEq;

/// Spellings of the header that are remembered. An issuer has one, and one more for each key while it changes keys.
const HEADERS_MAX: usize = 4;
/// Longest claims, bytes; longer ones are the judge's.
const CLAIMS_BYTES_MAX: usize = 1024;
/// Length of an HMAC-SHA256 in base64.
const SIGNATURE_BYTES: usize = 43;

/// Checks usual tokens. One a process.
pub(super) struct UsualTokens {
    keys: Vec<hmac::Key>,
    issuer: String,
    audience: String,
    leeway_s: u64,
    /// Headers of tokens that the judge accepted, still in base64. Filled one after the other, never changed: all threads read
    /// them with each request.
    headers: [OnceLock<Box<str>>; HEADERS_MAX],
}

/// What one pass says of a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UsualFate {
    /// It is good, and speaks for this buyer.
    Buyer(UserId),
    /// Its header is a known one, and its signature is of no secret.
    Forged,
    /// One of the secrets signed it; the rest is the judge's.
    Signed,
    /// The judge's.
    Unusual,
}

/// The claims of a usual token: plain texts and whole seconds, each once.
#[derive(Deserialize)]
struct UsualClaims<'a> {
    sub: &'a str,
    iss: &'a str,
    aud: &'a str,
    exp: u64,
    #[serde(default, deserialize_with = "present")]
    nbf: Option<u64>,
}

/// Tells `"nbf": null`, which the judge refuses, from no `nbf` at all.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(deserializer).map(Some)
}

/// The parts of a token, as the judge parts it: the last two dots count.
struct Parts<'a> {
    header: &'a str,
    claims: &'a str,
    signature: &'a str,
    signed: &'a str,
}

impl<'a> Parts<'a> {
    fn of(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.rsplit_once('.')?;
        Some(Self { header, claims, signature, signed })
    }
}

impl UsualTokens {
    /// For these settings; `None` for another algorithm.
    pub(super) fn new(settings: &Auth) -> Option<Self> {
        if !settings.uses_secrets() {
            return None;
        }
        let key = |secret: &crate::config::Secret| hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
        Some(Self {
            keys: settings.secrets_in_use().iter().map(key).collect(),
            issuer: settings.issuer.clone(),
            audience: settings.audience.clone(),
            leeway_s: settings.leeway_s,
            headers: Default::default(),
        })
    }

    /// What becomes of a token at `now_s`, where one pass can tell.
    pub(super) fn check(&self, token: &str, now_s: u64) -> UsualFate {
        let known = |parts: &Parts<'_>| self.headers.iter().filter_map(OnceLock::get).any(|one| **one == *parts.header);
        match Parts::of(token).filter(known) {
            Some(parts) if self.is_signed(&parts) => {
                self.buyer(&parts, now_s).map_or(UsualFate::Signed, UsualFate::Buyer)
            }
            // What is no base64 at all is malformed to the judge.
            Some(parts) if URL_SAFE_NO_PAD.decode(parts.signature).is_ok() => UsualFate::Forged,
            Some(_) | None => UsualFate::Unusual,
        }
    }

    /// The buyer of a signed token that is certainly good at `now_s`.
    fn buyer(&self, parts: &Parts<'_>, now_s: u64) -> Option<UserId> {
        let mut claims = [0; CLAIMS_BYTES_MAX];
        let length = URL_SAFE_NO_PAD.decode_slice(parts.claims, &mut claims).ok()?;
        let claims: UsualClaims<'_> = serde_json::from_slice(claims.get(..length)?).ok()?;
        let in_time = claims.exp >= now_s.saturating_sub(self.leeway_s)
            && claims.nbf.is_none_or(|nbf| nbf <= now_s.saturating_add(self.leeway_s));
        let ours = in_time && claims.iss == self.issuer && claims.aud == self.audience;
        UserId::parse(claims.sub).ok().filter(|_| ours)
    }

    /// Whether one of the keys signed it. Compared in base64, where each signature has one right spelling.
    fn is_signed(&self, parts: &Parts<'_>) -> bool {
        self.keys.iter().any(|key| {
            let (tag, mut right) = (hmac::sign(key, parts.signed.as_bytes()), [0; SIGNATURE_BYTES]);
            URL_SAFE_NO_PAD.encode_slice(tag.as_ref(), &mut right).is_ok()
                && bool::from(right.ct_eq(parts.signature.as_bytes()))
        })
    }

    /// The judge accepted this token: its header says nothing against one.
    pub(super) fn accepted(&self, token: &str) {
        let Some(parts) = Parts::of(token) else { return };
        for known in &self.headers {
            // Another thread may fill it with another header in between.
            if **known.get_or_init(|| parts.header.into()) == *parts.header {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::access_tokens::{AccessDenied, Authenticator};
    use super::*;
    use crate::config::{Layers, Settings};
    use crate::runtime::now_ms;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    const SECRET: &str = "a secret of the gateway, long enough";

    fn settings() -> Auth {
        let set = [("secret", SECRET), ("issuer", "gateway"), ("audience", "seckill"), ("leeway_s", "5")];
        let set = set.into_iter().map(|(key, value)| format!("auth.{key}={value}")).collect();
        Settings::load(&Layers { files: Vec::new(), set }).unwrap().auth
    }

    fn signed(header: &str, claims: &str, secret: &str) -> String {
        let part = |text: &str| URL_SAFE_NO_PAD.encode(text);
        let message = format!("{}.{}", part(header), part(claims));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()))
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

    /// With the pass, which knows the usual header, and without.
    static BOTH: LazyLock<(Authenticator, Authenticator)> = LazyLock::new(|| {
        let (passed, mut judge) = (Authenticator::new(&settings()).unwrap(), Authenticator::new(&settings()).unwrap());
        judge.usual = None;
        let usual = format!(r#"{{"sub":"alice","iss":"gateway","aud":"seckill","exp":{}}}"#, now_s() + 60);
        assert!(passed.check(&signed(HEADERS[0], &usual, SECRET)).is_ok());
        (passed, judge)
    });

    /// The buyer or the reason. Of several missing claims the judge names any. Forgeries that had their share of this thread's time
    /// are left unchecked, so those are asked about again.
    fn told(auth: &Authenticator, token: &str) -> Result<UserId, String> {
        let checked = std::iter::repeat_with(|| auth.check(token));
        let mut checked = checked.filter(|checked| !checked.as_ref().is_err_and(AccessDenied::is_busy));
        checked.next().unwrap().map_err(|denied| {
            let why = denied.to_string();
            why.split_once("lacks the claim").map_or(why.clone(), |(before, _)| before.to_owned())
        })
    }

    const HEADERS: &[&str] = &[
        r#"{"typ":"JWT","alg":"HS256"}"#,
        r#"{"alg":"HS256","kid":"1"}"#,
        r#"{"alg":"none"}"#,
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
            header in prop_oneof![4 => Just(HEADERS[0].to_owned()), 1 => one_of(HEADERS)],
            claims in claims(),
            secret in prop_oneof![5 => Just(SECRET), 1 => Just("another secret, of somebody else too")],
            damage in prop_oneof![4 => Just(None), 1 => (0..400_usize, any::<u8>()).prop_map(Some)],
        ) {
            let (passed, judge) = &*BOTH;
            let mut token = signed(&header, &claims, secret);
            if let Some((at, with)) = damage {
                let at = at % token.len();
                token.replace_range(at..=at, char::from(with % 128).encode_utf8(&mut [0; 4]));
            }
            let judged = told(judge, &token);
            for _ in 0..2 {
                prop_assert_eq!(&told(passed, &token), &judged, "{} {}", header, claims);
            }
        }
    }

    #[test]
    fn the_usual_token_needs_no_judge_and_any_other_one_does() {
        let (tokens, now_s) = (UsualTokens::new(&settings()).unwrap(), now_s());
        let claims = |exp: u64| format!(r#"{{"sub":"alice","iss":"gateway","aud":"seckill","exp":{exp},"iat":1}}"#);
        let good = signed(HEADERS[0], &claims(now_s), SECRET);
        let forged = signed(HEADERS[0], &claims(now_s), "another");
        for token in [&good, &forged] {
            assert_eq!(tokens.check(token, now_s), UsualFate::Unusual, "its header is not known yet");
        }
        tokens.accepted(&good);
        let alice = UsualFate::Buyer(UserId::parse("alice").unwrap());
        assert_eq!(tokens.check(&good, now_s), alice);
        assert_eq!(tokens.check(&good, now_s + 5), alice);
        assert_eq!(tokens.check(&good, now_s + 6), UsualFate::Signed, "its time is over");
        assert_eq!(tokens.check(&forged, now_s), UsualFate::Forged);
        // The judge has other words for these.
        for damaged in [format!("{good}!"), format!("{}=", &good[..good.len() - 40])] {
            assert_eq!(tokens.check(&damaged, now_s), UsualFate::Unusual, "{damaged}");
        }
        let listed = r#"{"sub":"alice","iss":"gateway","aud":["seckill"],"exp":9999999999}"#;
        assert_eq!(tokens.check(&signed(HEADERS[0], listed, SECRET), now_s), UsualFate::Signed);
        for n in 0..2 * HEADERS_MAX {
            let other = signed(&format!(r#"{{"alg":"HS256","kid":"{n}"}}"#), &claims(now_s), SECRET);
            tokens.accepted(&other);
            assert_eq!(tokens.check(&other, now_s) == alice, n + 1 < HEADERS_MAX, "{n}");
        }
        let denied = Authenticator::new(&settings()).unwrap().check("a.b");
        assert!(denied.is_err());
    }
}
