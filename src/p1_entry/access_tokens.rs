//! Access tokens (A1): JWTs of the gateway's issuer. The algorithm is pinned by configuration, never read from the token.

use crate::config::{Algorithm, Auth};
use crate::domain::ids::UserId;
use crate::jwt;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use std::collections::HashMap;

/// Longest access token, bytes. A larger one is refused before it costs a signature check.
pub(crate) const TOKEN_BYTES_MAX: usize = 8192;

/// Why a key file cannot be used; stops the start.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct AuthKeyError {
    key: &'static str,
    problem: String,
}

/// Why an access token is refused; the text is for the caller of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessDenied(pub String);

enum AccessKeys {
    One(DecodingKey),
    ById(HashMap<String, DecodingKey>),
}

/// Checks access tokens.
pub struct Authenticator {
    keys: AccessKeys,
    validation: Validation,
}

#[derive(Deserialize)]
struct AccessClaims {
    sub: String,
}

impl Authenticator {
    /// Reads the keys of `[auth]`.
    pub fn new(settings: &Auth) -> Result<Self, AuthKeyError> {
        jwt::install();
        let mut validation = Validation::new(match settings.algorithm {
            Algorithm::Hs256 => jsonwebtoken::Algorithm::HS256,
            Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
            Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        });
        validation.leeway = settings.leeway_s;
        validation.validate_nbf = true;
        validation.set_audience(&[&settings.audience]);
        validation.set_issuer(&[&settings.issuer]);
        // `aud` and `iss` are only checked when present unless they are required.
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        Ok(Self { keys: keys(settings)?, validation })
    }

    /// The buyer a token speaks for.
    pub fn check(&self, token: &str) -> Result<UserId, AccessDenied> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AccessDenied(format!("access token has more than {TOKEN_BYTES_MAX} bytes")));
        }
        let key = match &self.keys {
            AccessKeys::One(key) => key,
            AccessKeys::ById(keys) => {
                let header = decode_header(token).map_err(|error| denied(&error))?;
                let id = header.kid.ok_or_else(|| AccessDenied("access token names no key (kid)".to_owned()))?;
                keys.get(&id).ok_or_else(|| AccessDenied("access token names an unknown key (kid)".to_owned()))?
            }
        };
        let claims = decode::<AccessClaims>(token, key, &self.validation).map_err(|error| denied(&error))?.claims;
        UserId::parse(&claims.sub).map_err(|error| AccessDenied(format!("access token: {error}")))
    }
}

fn keys(settings: &Auth) -> Result<AccessKeys, AuthKeyError> {
    if settings.algorithm == Algorithm::Hs256 {
        return Ok(AccessKeys::One(DecodingKey::from_secret(settings.secret.expose().as_bytes())));
    }
    let read = |key: &'static str, file: &str| {
        std::fs::read(file).map_err(|error| AuthKeyError { key, problem: format!("cannot read {file}: {error}") })
    };
    if !settings.key_file.is_empty() {
        let key = "auth.key_file";
        let pem = read(key, &settings.key_file)?;
        let parsed = match settings.algorithm {
            Algorithm::EdDsa => DecodingKey::from_ed_pem(&pem),
            Algorithm::Rs256 | Algorithm::Hs256 => DecodingKey::from_rsa_pem(&pem),
        };
        let problem = |error| AuthKeyError { key, problem: format!("not a public key in PEM form: {error}") };
        return parsed.map(AccessKeys::One).map_err(problem);
    }
    let key = "auth.jwks_file";
    let set: JwkSet = serde_json::from_slice(&read(key, &settings.jwks_file)?)
        .map_err(|error| AuthKeyError { key, problem: format!("not a JWK set: {error}") })?;
    let mut by_id = HashMap::new();
    for jwk in &set.keys {
        let id = jwk.common.key_id.clone().ok_or(AuthKeyError { key, problem: "a key has no kid".to_owned() })?;
        let parsed =
            DecodingKey::from_jwk(jwk).map_err(|error| AuthKeyError { key, problem: format!("key {id}: {error}") })?;
        by_id.insert(id, parsed);
    }
    if by_id.is_empty() {
        return Err(AuthKeyError { key, problem: "holds no key".to_owned() });
    }
    Ok(AccessKeys::ById(by_id))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "not our enum and non-exhaustive; every other kind is a token that cannot be read"
)]
fn denied(error: &jsonwebtoken::errors::Error) -> AccessDenied {
    AccessDenied(match error.kind() {
        ErrorKind::ExpiredSignature => "access token has expired, get a new one".to_owned(),
        ErrorKind::ImmatureSignature => "access token is not valid yet (nbf)".to_owned(),
        ErrorKind::InvalidSignature => "access token has a wrong signature".to_owned(),
        ErrorKind::InvalidAudience => "access token is for another audience (aud)".to_owned(),
        ErrorKind::InvalidIssuer => "access token is from another issuer (iss)".to_owned(),
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => {
            "access token uses another algorithm than this service accepts".to_owned()
        }
        ErrorKind::MissingRequiredClaim(claim) => format!("access token lacks the claim {claim}"),
        _ => "access token is malformed".to_owned(),
    })
}
