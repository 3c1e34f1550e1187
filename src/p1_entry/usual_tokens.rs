//! The usual access token, checked in one pass. `jsonwebtoken` stays the judge of everything else.
//!
//! That crate reads a token's header twice and its claims two or three times, and makes the key ready for each token. Here the
//! header is compared with those that it has accepted ([`super::key_set`]), the keys are ready, and the claims are read once, in
//! place.
//!
//! Input: a token. Output: what it says, where it is certainly good; that it is forged, where its header is known and no key
//! signed it; else nothing, and then the judge says whether it is good and why not. So a refusal always has the judge's reason, and
//! whatever is unusual (an escaped character, an audience that is a list, seconds with a fraction) costs what it cost before. A
//! flood of forgeries in the usual form costs a MAC for each secret; public-key operations, here as with the judge, have a budget
//! ([`super::forgery_budget`]). A crash leaves nothing.

use super::forgery_budget::within_budget;
use super::key_set::{AccessKey, KeySet, VerifiedToken};
use crate::config::Auth;
use crate::domain::ids::UserId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Deserializer};

/// Longest claims, bytes; longer ones are the judge's.
const CLAIMS_BYTES_MAX: usize = 1024;
/// Length of the longest signature, bytes: of an RSA key of 8192 bits.
const SIGNATURE_BYTES_MAX: usize = 1024;

/// Checks usual tokens. One a process.
pub(super) struct UsualTokens {
    issuer: String,
    audience: String,
    leeway_s: u64,
}

/// What one pass says of a token.
pub(super) enum UsualFate<'k> {
    /// It is good. Of a public-key algorithm, `by` is the key that it was checked with.
    Good { token: VerifiedToken, by: &'k [AccessKey] },
    /// Its header is a known one, and its signature is of none of these keys.
    Forged { by: &'k [AccessKey] },
    /// One of the secrets signed it; the rest is the judge's.
    Signed,
    /// Forgeries had their share of the time: it was not checked.
    Unchecked,
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

/// Distinguishes `"nbf": null`, which the judge refuses, from no `nbf` at all.
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

/// The judge accepted this token, which one of `signers` signed: its header says nothing against one.
pub(super) fn accepted(keys: &KeySet, token: &str, signers: &[AccessKey]) {
    if let Some(parts) = Parts::of(token) {
        keys.learn_header(parts.header, signers);
    }
}

/// What this base64 says, in `room`.
fn decoded<'r>(text: &str, room: &'r mut [u8]) -> Option<&'r [u8]> {
    let length = URL_SAFE_NO_PAD.decode_slice(text, room).ok()?;
    room.get(..length)
}

impl UsualTokens {
    /// For these settings.
    pub(super) fn new(settings: &Auth) -> Self {
        Self { issuer: settings.issuer.clone(), audience: settings.audience.clone(), leeway_s: settings.leeway_s }
    }

    /// What becomes of a token at `now_s`, where one pass decides.
    pub(super) fn check<'k>(&self, keys: &'k KeySet, token: &str, now_s: u64) -> UsualFate<'k> {
        let known = Parts::of(token).and_then(|parts| Some((keys.by_header(parts.header)?, parts)));
        let Some((by, parts)) = known else { return UsualFate::Unusual };
        // What is no base64 at all is malformed to the judge.
        let mut signature = [0; SIGNATURE_BYTES_MAX];
        let Some(signature) = decoded(parts.signature, &mut signature) else { return UsualFate::Unusual };
        let is_signed = || by.iter().any(|key| key.ready.has_signed(parts.signed.as_bytes(), signature));
        // The cheaper part first.
        if !keys.remembers() {
            return match is_signed() {
                true => self.claims(&parts, now_s).map_or(UsualFate::Signed, |token| UsualFate::Good { token, by }),
                false => UsualFate::Forged { by },
            };
        }
        let Some(token) = self.claims(&parts, now_s) else { return UsualFate::Unusual };
        match within_budget(is_signed, |is_signed| !is_signed) {
            Some(true) => UsualFate::Good { token, by },
            Some(false) => UsualFate::Forged { by },
            None => UsualFate::Unchecked,
        }
    }

    /// What a token says that is certainly good at `now_s` if it is signed.
    fn claims(&self, parts: &Parts<'_>, now_s: u64) -> Option<VerifiedToken> {
        let mut claims = [0; CLAIMS_BYTES_MAX];
        let claims: UsualClaims<'_> = serde_json::from_slice(decoded(parts.claims, &mut claims)?).ok()?;
        let in_time = claims.exp >= now_s.saturating_sub(self.leeway_s)
            && claims.nbf.is_none_or(|nbf| nbf <= now_s.saturating_add(self.leeway_s));
        let ours = in_time && claims.iss == self.issuer && claims.aud == self.audience;
        let user = UserId::parse(claims.sub).ok().filter(|_| ours)?;
        Some(VerifiedToken::new(user, claims.nbf, claims.exp, self.leeway_s))
    }
}

#[cfg(test)]
mod tests;
