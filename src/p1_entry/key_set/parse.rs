//! Reads keys: secrets, a PEM file with one public key, or a JWK set.
//!
//! Input: the settings, or the bytes of a file or an answer. Output: keys, each with the one algorithm that it serves for. The
//! algorithm is the key's own kind and is one of those that are accepted; no token has a say in it. A key of a set that does not fit is
//! skipped and named, because issuers publish keys for other purposes in the same set.

use crate::config::{Algorithm, Secret};
use crate::jwt::ReadyKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{DecodingKey, DecodingKeyKind};
use serde::Deserialize;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Largest file or answer, bytes: a set of some hundred keys.
pub(super) const BYTES_MAX: usize = 64 * 1024;

/// What was read, before its keys are.
pub(super) struct ReadText {
    pub(super) text: Vec<u8>,
    /// For how long the issuer calls it fresh.
    pub(super) max_age: Option<Duration>,
}

/// Distinguishes the keys of one process: a key that is read again is the same one, and one that went and came back is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyNumber(u64);

impl KeyNumber {
    /// Of a new key.
    pub(super) fn next() -> Self {
        static KEYS: AtomicU64 = AtomicU64::new(0);
        Self(KEYS.fetch_add(1, Ordering::Relaxed))
    }
}

/// One key, and the only algorithm that it checks.
pub(in crate::p1_entry) struct AccessKey {
    /// Its `kid`; a key of a file without a set has none.
    pub(super) id: Option<String>,
    pub(super) number: KeyNumber,
    pub(in crate::p1_entry) algorithm: Algorithm,
    /// For the library.
    pub(in crate::p1_entry) key: DecodingKey,
    /// The same for many checks.
    pub(in crate::p1_entry) ready: ReadyKey,
}

/// What tokens call the algorithm.
pub(in crate::p1_entry) const fn in_tokens(algorithm: Algorithm) -> jsonwebtoken::Algorithm {
    match algorithm {
        Algorithm::Hs256 => jsonwebtoken::Algorithm::HS256,
        Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
        Algorithm::Es256 => jsonwebtoken::Algorithm::ES256,
        Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
    }
}

/// What a text of keys holds.
pub(super) struct ParsedKeys {
    /// At least one.
    pub(super) keys: Vec<AccessKey>,
    /// Those that do not fit, each with its name and why.
    pub(super) skipped: Vec<String>,
}

#[derive(Deserialize)]
struct RawKeySet {
    keys: Vec<Value>,
}

impl AccessKey {
    /// Equal for keys that check the same tokens.
    pub(super) fn material(&self) -> (Option<&str>, &'static str, Vec<u8>) {
        let bytes = match self.key.kind() {
            DecodingKeyKind::SecretOrDer(bytes) => bytes.clone(),
            DecodingKeyKind::RsaModulusExponent { n, e } => [n.as_slice(), b"/", e.as_slice()].concat(),
        };
        (self.id.as_deref(), self.algorithm.name(), bytes)
    }
}

/// The secrets of HS256; each may have signed.
pub(super) fn secrets(secrets: &[Secret]) -> Vec<AccessKey> {
    let secrets = secrets.iter().map(|secret| secret.expose().as_bytes());
    let key = |secret| {
        let (key, ready) = (DecodingKey::from_secret(secret), ReadyKey::of_secret(secret));
        AccessKey { id: None, number: KeyNumber::next(), algorithm: Algorithm::Hs256, key, ready }
    };
    secrets.map(key).collect()
}

/// The one key of a PEM file.
pub(super) fn pem(text: &[u8], algorithms: &[Algorithm]) -> Result<ParsedKeys, String> {
    let mut why = String::new();
    for algorithm in algorithms {
        let parsed = match algorithm {
            Algorithm::Rs256 => DecodingKey::from_rsa_pem(text),
            Algorithm::Es256 => DecodingKey::from_ec_pem(text),
            Algorithm::EdDsa => DecodingKey::from_ed_pem(text),
            Algorithm::Hs256 => continue,
        };
        let usable = parsed.map_err(|error| error.to_string()).and_then(|key| usable(None, *algorithm, key));
        match usable {
            Ok(key) => return Ok(ParsedKeys { keys: vec![key], skipped: Vec::new() }),
            Err(problem) => why = problem,
        }
    }
    let accepted: Vec<&str> = algorithms.iter().map(|algorithm| algorithm.name()).collect();
    Err(format!("not a public key for {} in PEM form: {why}", accepted.join(" or ")))
}

/// The keys of a JWK set that fit, each with its own `kid`.
pub(super) fn jwk_set(text: &[u8], algorithms: &[Algorithm]) -> Result<ParsedKeys, String> {
    let set: RawKeySet = serde_json::from_slice(text).map_err(|error| format!("not a JWK set: {error}"))?;
    let (mut keys, mut skipped) = (Vec::<AccessKey>::new(), Vec::new());
    for (index, raw) in set.keys.iter().enumerate() {
        let name =
            raw.get("kid").and_then(Value::as_str).map_or_else(|| format!("number {}", index + 1), str::to_owned);
        match fitting(raw, algorithms) {
            Ok(key) if keys.iter().any(|earlier| earlier.id == key.id) => {
                skipped.push(format!("{name}: an earlier key has its kid"));
            }
            Ok(key) => keys.push(key),
            Err(why) => skipped.push(format!("{name}: {why}")),
        }
    }
    match keys.is_empty() {
        true if skipped.is_empty() => Err("holds no key".to_owned()),
        true => Err(format!("holds no key that fits ({})", skipped.join("; "))),
        false => Ok(ParsedKeys { keys, skipped }),
    }
}

/// A key of a set, or why it is of no use here.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "not our enum and non-exhaustive; every other kind is of no use here"
)]
fn fitting(raw: &Value, algorithms: &[Algorithm]) -> Result<AccessKey, String> {
    let jwk: Jwk = serde_json::from_value(raw.clone()).map_err(|error| format!("cannot be read: {error}"))?;
    let (algorithm, known) = match &jwk.algorithm {
        AlgorithmParameters::RSA(_) => (Algorithm::Rs256, KeyAlgorithm::RS256),
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
            (Algorithm::Es256, KeyAlgorithm::ES256)
        }
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
            (Algorithm::EdDsa, KeyAlgorithm::EdDSA)
        }
        _ => return Err("is of another kind than the algorithms that are accepted".to_owned()),
    };
    if !algorithms.contains(&algorithm) {
        return Err(format!("is for {}, which is not among the algorithms that are accepted", algorithm.name()));
    }
    if jwk.common.key_algorithm.is_some_and(|named| named != known) {
        return Err("is for another algorithm (alg)".to_owned());
    }
    if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
        return Err("is not for signatures (use)".to_owned());
    }
    let key = DecodingKey::from_jwk(&jwk).map_err(|error| error.to_string())?;
    let key = usable(jwk.common.key_id, algorithm, key)?;
    if key.id.is_none() { Err("has no kid".to_owned()) } else { Ok(key) }
}

/// A key that can check something; another one would call every token forged.
fn usable(id: Option<String>, algorithm: Algorithm, key: DecodingKey) -> Result<AccessKey, String> {
    let length = |wanted: usize, what: &str| match key.try_get_as_bytes() {
        Ok(bytes) if bytes.len() == wanted => Ok(()),
        Ok(_) | Err(_) => Err(format!("is not a public key of {what}")),
    };
    match algorithm {
        Algorithm::Hs256 => {}
        Algorithm::Es256 => length(65, "P-256")?,
        Algorithm::EdDsa => length(32, "Ed25519")?,
        Algorithm::Rs256 => {
            let bits = match key.kind() {
                DecodingKeyKind::RsaModulusExponent { n, .. } => 8 * n.iter().skip_while(|byte| **byte == 0).count(),
                DecodingKeyKind::SecretOrDer(der) => 8 * modulus_bytes(der).ok_or("is not a public RSA key")?,
            };
            if !(2048..=8192).contains(&bits) {
                return Err(format!("is an RSA key of {bits} bits, expected 2048 to 8192"));
            }
        }
    }
    let ready = ReadyKey::new(in_tokens(algorithm), &key).map_err(|_| "is not a usable public key".to_owned())?;
    Ok(AccessKey { id, number: KeyNumber::next(), algorithm, key, ready })
}

/// Bytes of the modulus of a public key (PKCS #1: a sequence of the modulus and the exponent, and nothing else).
fn modulus_bytes(der: &[u8]) -> Option<usize> {
    let (sequence, rest) = element(der, 0x30)?;
    let (modulus, exponent) = element(sequence, 0x02)?;
    let (_, behind) = element(exponent, 0x02)?;
    (rest.is_empty() && behind.is_empty()).then(|| modulus.iter().skip_while(|byte| **byte == 0).count())
}

/// The contents of the first element, which has this tag, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (_, der) = der.split_first().filter(|(first, _)| **first == tag)?;
    let (&short, der) = der.split_first()?;
    let (length, der) = match short {
        0..=0x7f => (usize::from(short), der),
        0x81 | 0x82 => {
            let (bytes, der) = der.split_at_checked(usize::from(short & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), der)
        }
        _ => return None,
    };
    der.split_at_checked(length)
}
