//! Makes access tokens (HS256) as the gateway's issuer would: for `seckill token mint`, the bench and the tests.
//!
//! Input: the HMAC key of `[auth]`. Output: JWTs that `p1_entry` accepts. Never used by a role.

use crate::config::Secret;
use crate::jwt;
use crate::runtime::now_ms;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::Serialize;

/// How long the crowd's tokens live, seconds: longer than any run.
pub const CROWD_TTL_S: u64 = 24 * 3600;

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum MintError {
    /// An empty key would sign for anybody.
    #[error("auth.secret is empty, give the key the service checks with")]
    NoSecret,
    /// The library refused.
    #[error("cannot sign an access token: {0}")]
    Sign(#[from] jsonwebtoken::errors::Error),
    /// A thread that signed is gone.
    #[error("a signing thread crashed, run it again")]
    Crashed,
}

#[derive(Serialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    sub: &'a str,
    iat: i64,
    exp: i64,
}

/// Signs tokens with one key.
pub struct Minter {
    key: EncodingKey,
    header: Header,
    issuer: String,
    audience: String,
}

impl Minter {
    /// A minter for one issuer and audience.
    ///
    /// # Errors
    /// [`MintError::NoSecret`].
    pub fn new(secret: &Secret, issuer: &str, audience: &str) -> Result<Self, MintError> {
        if secret.expose().is_empty() {
            return Err(MintError::NoSecret);
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
    ///
    /// # Errors
    /// [`MintError::Sign`].
    pub fn sign(&self, sub: &str, ttl_s: u64) -> Result<String, MintError> {
        let iat = now_ms() / 1000;
        let exp = iat.saturating_add_unsigned(ttl_s);
        let claims = Claims { iss: &self.issuer, aud: &self.audience, sub, iat, exp };
        Ok(encode(&self.header, &claims, &self.key)?)
    }
}

/// One access token for `sub` that lives `ttl_s` seconds.
///
/// # Errors
/// [`MintError`].
pub fn mint(secret: &Secret, issuer: &str, audience: &str, sub: &str, ttl_s: u64) -> Result<String, MintError> {
    Minter::new(secret, issuer, audience)?.sign(sub, ttl_s)
}

/// The access tokens of a run's buyers, in one piece of memory: signed before the clock starts.
#[derive(Default)]
pub struct Wallet {
    text: String,
    ends: Vec<usize>,
}

impl Wallet {
    /// Signs for `names`, on every core. Blocks; call it where that is allowed.
    ///
    /// # Errors
    /// [`MintError`].
    pub fn fill(minter: &Minter, names: &[String]) -> Result<Self, MintError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let share = names.len().div_ceil(cores).max(1);
        let parts = std::thread::scope(|scope| {
            let tasks: Vec<_> =
                names.chunks(share).map(|names| scope.spawn(move || Self::part(minter, names))).collect();
            tasks.into_iter().map(|task| task.join().unwrap_or(Err(MintError::Crashed))).collect::<Vec<_>>()
        });
        let mut all = Self { text: String::new(), ends: Vec::with_capacity(names.len()) };
        for part in parts {
            let part = part?;
            let offset = all.text.len();
            all.text.push_str(&part.text);
            all.ends.extend(part.ends.iter().map(|end| offset + end));
        }
        Ok(all)
    }

    fn part(minter: &Minter, names: &[String]) -> Result<Self, MintError> {
        let mut wallet = Self { text: String::new(), ends: Vec::with_capacity(names.len()) };
        for name in names {
            wallet.text.push_str(&minter.sign(name, CROWD_TTL_S)?);
            wallet.ends.push(wallet.text.len());
        }
        Ok(wallet)
    }

    /// The token of the buyer at `index`; empty when there is none.
    #[must_use]
    pub fn token(&self, index: usize) -> &str {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|end| self.text.get(start..*end)).unwrap_or_default()
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
        assert_eq!(sub(&mint(&secret, "seckill", "seckill", "买家", 60).unwrap()).unwrap(), "买家");
        assert!(sub(&mint(&secret, "other", "seckill", "a", 60).unwrap()).is_err());
        assert!(mint(&Secret::default(), "seckill", "seckill", "a", 60).is_err());
        let names: Vec<String> = (0..101).map(|n| format!("u{n}")).collect();
        let wallet = Wallet::fill(&Minter::new(&secret, "seckill", "seckill").unwrap(), &names).unwrap();
        for (index, name) in names.iter().enumerate() {
            assert_eq!(sub(wallet.token(index)).unwrap(), *name);
        }
        assert_eq!(wallet.token(101), "");
    }
}
