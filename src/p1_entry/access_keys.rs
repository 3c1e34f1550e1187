//! The keys access tokens are checked with: a secret, a PEM file with one public key, or a file with a JWK set.
//!
//! Input: `[auth]`. Output: keys of the one configured algorithm. A key of the set that does not fit is skipped and named in
//! the log, because issuers publish keys for other purposes in the same set.

use crate::config::{Algorithm, Auth};
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Why a key file cannot be used; stops the start.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct AuthKeyError {
    key: &'static str,
    problem: String,
}

/// Keys, and how a token's one is found.
pub(super) enum AccessKeys {
    /// Each may have signed; the secrets of a rotation, or the one key of a file.
    Any(Vec<DecodingKey>),
    ById(HashMap<String, DecodingKey>),
}

#[derive(Deserialize)]
struct RawKeySet {
    keys: Vec<Value>,
}

impl AccessKeys {
    pub(super) fn read(settings: &Auth) -> Result<Self, AuthKeyError> {
        let algorithm = settings.algorithm;
        if algorithm == Algorithm::Hs256 {
            let secrets = settings.secrets_in_use().iter();
            return Ok(Self::Any(secrets.map(|secret| DecodingKey::from_secret(secret.expose().as_bytes())).collect()));
        }
        let read = |key: &'static str, file: &str| {
            std::fs::read(file).map_err(|error| AuthKeyError { key, problem: format!("cannot read {file}: {error}") })
        };
        if !settings.key_file.is_empty() {
            let key = "auth.key_file";
            let pem = read(key, &settings.key_file)?;
            let parsed = match algorithm {
                Algorithm::EdDsa => DecodingKey::from_ed_pem(&pem),
                Algorithm::Es256 => DecodingKey::from_ec_pem(&pem),
                Algorithm::Rs256 | Algorithm::Hs256 => DecodingKey::from_rsa_pem(&pem),
            };
            let problem = |error| AuthKeyError { key, problem: format!("not a public key in PEM form: {error}") };
            return parsed.map(|key| Self::Any(vec![key])).map_err(problem);
        }
        let key = "auth.jwks_file";
        let set = read(key, &settings.jwks_file)?;
        key_set(&set, algorithm).map(Self::ById).map_err(|problem| AuthKeyError { key, problem })
    }
}

/// The keys of a set that fit, by their `kid`; at least one.
fn key_set(text: &[u8], algorithm: Algorithm) -> Result<HashMap<String, DecodingKey>, String> {
    let set: RawKeySet = serde_json::from_slice(text).map_err(|error| format!("not a JWK set: {error}"))?;
    let mut by_id = HashMap::new();
    let mut skipped = Vec::new();
    for (index, raw) in set.keys.iter().enumerate() {
        let name =
            raw.get("kid").and_then(Value::as_str).map_or_else(|| format!("number {}", index + 1), str::to_owned);
        let kept = fitting(raw, algorithm).and_then(|(id, key)| match by_id.entry(id) {
            Entry::Vacant(free) => {
                free.insert(key);
                Ok(())
            }
            Entry::Occupied(_) => Err("an earlier key has its kid".to_owned()),
        });
        if let Err(why) = kept {
            tracing::warn!(key = name, why, "key of auth.jwks_file skipped");
            skipped.push(format!("{name}: {why}"));
        }
    }
    match by_id.is_empty() {
        true if skipped.is_empty() => Err("holds no key".to_owned()),
        true => Err(format!("holds no key that fits ({})", skipped.join("; "))),
        false => Ok(by_id),
    }
}

/// A key of a set with its `kid`, or why it is of no use here. Its algorithm is the key's own, never a token's.
fn fitting(raw: &Value, algorithm: Algorithm) -> Result<(String, DecodingKey), String> {
    let jwk: Jwk = serde_json::from_value(raw.clone()).map_err(|error| format!("cannot be read: {error}"))?;
    let known = match (algorithm, &jwk.algorithm) {
        (Algorithm::Rs256, AlgorithmParameters::RSA(_)) => KeyAlgorithm::RS256,
        (Algorithm::Es256, AlgorithmParameters::EllipticCurve(key)) if key.curve == EllipticCurve::P256 => {
            KeyAlgorithm::ES256
        }
        (Algorithm::EdDsa, AlgorithmParameters::OctetKeyPair(key)) if key.curve == EllipticCurve::Ed25519 => {
            KeyAlgorithm::EdDSA
        }
        _ => return Err("is of another kind than auth.algorithm".to_owned()),
    };
    if jwk.common.key_algorithm.is_some_and(|named| named != known) {
        return Err("is for another algorithm (alg)".to_owned());
    }
    if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
        return Err("is not for signatures (use)".to_owned());
    }
    let key = DecodingKey::from_jwk(&jwk).map_err(|error| error.to_string())?;
    jwk.common.key_id.map(|id| (id, key)).ok_or_else(|| "has no kid".to_owned())
}
