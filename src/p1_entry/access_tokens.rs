//! Access tokens (A1): JWTs of the gateway's issuer. The algorithm is pinned by configuration, never read from the token.
//!
//! Input: a token. Output: the buyer it speaks for, or why it is refused. A token of a public-key algorithm is verified once
//! and remembered in its time ([`super::verified_tokens`]). HS256 is verified each time: its check is symmetric and costs a
//! fraction of a public-key operation ([`super::hs256`]).

use super::access_keys::{AccessKeys, AuthKeyError};
use super::hs256::UsualTokens;
use super::verified_tokens::{TokenHash, VerifiedToken, VerifiedTokens};
use crate::config::{Algorithm, Auth};
use crate::domain::ids::UserId;
use crate::jwt;
use crate::runtime::now_ms;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Number;

/// Longest access token, bytes. A larger one is refused before it costs a signature check.
pub(crate) const TOKEN_BYTES_MAX: usize = 8192;

/// Why an access token is refused; the text is for the caller of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct AccessDenied(pub String);

/// Checks access tokens.
pub struct Authenticator {
    keys: AccessKeys,
    validation: Validation,
    verified: Option<VerifiedTokens>,
    pub(super) usual: Option<UsualTokens>,
}

#[derive(Clone, Deserialize)]
struct AccessClaims {
    sub: String,
    exp: Option<Number>,
    nbf: Option<Number>,
}

impl Authenticator {
    /// Reads the keys of `[auth]`.
    pub fn new(settings: &Auth) -> Result<Self, AuthKeyError> {
        jwt::install();
        let mut validation = Validation::new(match settings.algorithm {
            Algorithm::Hs256 => jsonwebtoken::Algorithm::HS256,
            Algorithm::Rs256 => jsonwebtoken::Algorithm::RS256,
            Algorithm::Es256 => jsonwebtoken::Algorithm::ES256,
            Algorithm::EdDsa => jsonwebtoken::Algorithm::EdDSA,
        });
        validation.leeway = settings.leeway_s;
        validation.validate_nbf = true;
        validation.set_audience(&[&settings.audience]);
        validation.set_issuer(&[&settings.issuer]);
        // `aud` and `iss` are only checked when present unless they are required.
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        let verified_max = if settings.algorithm == Algorithm::Hs256 { 0 } else { settings.verified_max };
        Ok(Self {
            keys: AccessKeys::read(settings)?,
            validation,
            verified: VerifiedTokens::new(verified_max),
            usual: UsualTokens::new(settings),
        })
    }

    /// The buyer a token speaks for.
    pub fn check(&self, token: &str) -> Result<UserId, AccessDenied> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(AccessDenied(format!("access token has more than {TOKEN_BYTES_MAX} bytes")));
        }
        let now_s = u64::try_from(now_ms() / 1000).unwrap_or_default();
        if let Some(usual) = &self.usual {
            if let Some(user) = usual.buyer(token, now_s) {
                return Ok(user);
            }
            let (user, _) = self.verify(token)?;
            usual.accepted(token);
            return Ok(user);
        }
        let Some(verified) = &self.verified else { return self.verify(token).map(|(user, _)| user) };
        let hash = TokenHash::of(token);
        if let Some(user) = verified.get(&hash, now_s) {
            return Ok(user);
        }
        // Out of its time, too: the reason is named here.
        let (user, valid_s) = self.verify(token)?;
        if let Some(valid_s) = valid_s {
            verified.insert(hash, VerifiedToken { user: user.clone(), valid_s });
        }
        Ok(user)
    }

    /// The buyer, and the first and last second of the token's time where its claims are whole seconds.
    fn verify(&self, token: &str) -> Result<(UserId, Option<(u64, u64)>), AccessDenied> {
        let keys = match &self.keys {
            AccessKeys::Any(keys) => keys.as_slice(),
            AccessKeys::ById(keys) => {
                let header = decode_header(token).map_err(|error| denied(&error))?;
                let id = header.kid.ok_or_else(|| AccessDenied("access token names no key (kid)".to_owned()))?;
                let key = keys.get(&id).map(std::slice::from_ref);
                key.ok_or_else(|| AccessDenied("access token names an unknown key (kid)".to_owned()))?
            }
        };
        let claims = self.claims(token, keys).map_err(|error| denied(&error))?;
        let user = UserId::parse(&claims.sub).map_err(|error| AccessDenied(format!("access token: {error}")))?;
        let leeway_s = self.validation.leeway;
        let first = claims.nbf.map_or(Some(0), |nbf| nbf.as_u64().map(|nbf| nbf.saturating_sub(leeway_s)));
        let last = claims.exp.and_then(|exp| exp.as_u64()).map(|exp| exp.saturating_add(leeway_s));
        Ok((user, first.zip(last)))
    }

    /// The claims; a signature that is of none of the keys is wrong.
    fn claims(&self, token: &str, keys: &[DecodingKey]) -> jsonwebtoken::errors::Result<AccessClaims> {
        let mut refused = ErrorKind::InvalidSignature.into();
        for key in keys {
            match decode::<AccessClaims>(token, key, &self.validation) {
                Ok(token) => return Ok(token.claims),
                Err(error) => refused = error,
            }
            if !matches!(refused.kind(), ErrorKind::InvalidSignature) {
                break;
            }
        }
        Err(refused)
    }
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
