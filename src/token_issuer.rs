//! Signs access tokens (HS256) as the gateway's issuer does: for `seckill token mint`, the demo shop, `bench/` and the tests.
//!
//! Input: the HMAC key of `[auth]`. Output: JWTs that `p1_entry` accepts. Never used by a role.

use crate::config::Secret;
use crate::jwt;
use crate::runtime::now_ms;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;
use serde_json::{Map, Value};

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    /// An empty key would sign for anybody.
    #[error("auth.secret is empty, give the key the service checks with")]
    NoSecret,
    /// The library refused.
    #[error("cannot sign an access token: {0}")]
    Sign(#[from] jsonwebtoken::errors::Error),
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    iat: i64,
    exp: i64,
    #[serde(flatten)]
    facts: &'a Map<String, Value>,
}

/// Signs tokens with one key.
pub struct TokenIssuer {
    key: EncodingKey,
    header: Header,
    issuer: String,
    audience: String,
}

impl TokenIssuer {
    /// An issuer for one issuer and audience.
    pub fn new(secret: &Secret, issuer: &str, audience: &str) -> Result<Self, IssueError> {
        if secret.expose().is_empty() {
            return Err(IssueError::NoSecret);
        }
        jwt::install();
        Ok(Self {
            key: EncodingKey::from_secret(secret.expose().as_bytes()),
            header: Header::new(Algorithm::HS256),
            issuer: issuer.to_owned(),
            audience: audience.to_owned(),
        })
    }

    /// A token for `sub` that lives `ttl_s` seconds.
    pub fn sign(&self, sub: &str, ttl_s: u64) -> Result<String, IssueError> {
        self.sign_with(sub, ttl_s, &Map::new())
    }

    /// The same, with claims that are facts of the buyer beside the others.
    pub(crate) fn sign_with(&self, sub: &str, ttl_s: u64, facts: &Map<String, Value>) -> Result<String, IssueError> {
        let iat = now_ms() / 1000;
        let exp = iat.saturating_add_unsigned(ttl_s);
        let claims = Claims { iss: &self.issuer, aud: &self.audience, sub, iat, exp, facts };
        Ok(encode(&self.header, &claims, &self.key)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonwebtoken::{DecodingKey, Validation, decode};

    #[test]
    fn tokens_carry_the_claims_the_entry_requires() {
        let secret = Secret::new("k".repeat(32));
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&["seckill"]);
        validation.set_issuer(&["seckill"]);
        validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
        let key = DecodingKey::from_secret(secret.expose().as_bytes());
        let sub = |token: &str| {
            decode::<serde_json::Value>(token, &key, &validation)
                .map(|data| data.claims["sub"].as_str().unwrap().to_owned())
        };
        let token = |issuer: &str| TokenIssuer::new(&secret, issuer, "seckill").unwrap().sign("买家", 60).unwrap();
        assert_eq!(sub(&token("seckill")).unwrap(), "买家");
        assert!(sub(&token("other")).is_err());
        assert!(TokenIssuer::new(&Secret::default(), "seckill", "seckill").is_err());
    }
}
