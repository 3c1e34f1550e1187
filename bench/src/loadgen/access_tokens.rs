//! The access tokens of a run's buyers.

use super::load_error::LoadError;
use super::rs256::Rs256Issuer;
use seckill::token_issuer::TokenIssuer;

/// How long the crowd's tokens live, seconds: longer than any run.
pub const ACCESS_TTL_S: u64 = 24 * 3600;

/// Who signs access tokens.
pub trait SignsTokens: Send + Sync {
    /// A token for `sub` that lives `ttl_s` seconds.
    ///
    /// # Errors
    /// [`LoadError::Mint`].
    fn token(&self, sub: &str, ttl_s: u64) -> Result<String, LoadError>;
}

impl SignsTokens for TokenIssuer {
    fn token(&self, sub: &str, ttl_s: u64) -> Result<String, LoadError> {
        Ok(self.sign(sub, ttl_s)?)
    }
}

impl SignsTokens for Rs256Issuer {
    fn token(&self, sub: &str, ttl_s: u64) -> Result<String, LoadError> {
        self.sign(sub, ttl_s)
    }
}

/// The access tokens of a run's buyers, in one piece of memory: signed before the clock starts.
#[derive(Default)]
pub struct AccessTokens {
    text: String,
    ends: Vec<usize>,
}

impl AccessTokens {
    /// Signs for `names`, on every core, beside the runtime.
    ///
    /// # Errors
    /// [`LoadError`].
    pub async fn signed(issuer: impl SignsTokens + 'static, names: Vec<String>) -> Result<Self, LoadError> {
        tokio::task::spawn_blocking(move || Self::fill(&issuer, &names)).await.map_err(|_| LoadError::Crashed)?
    }

    /// Signs for `names`, on every core. Blocks; call it where that is allowed.
    ///
    /// # Errors
    /// [`LoadError`].
    pub fn fill(issuer: &impl SignsTokens, names: &[String]) -> Result<Self, LoadError> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let share = names.len().div_ceil(cores).max(1);
        let parts = std::thread::scope(|scope| {
            let tasks: Vec<_> =
                names.chunks(share).map(|names| scope.spawn(move || Self::part(issuer, names))).collect();
            tasks.into_iter().map(|task| task.join().unwrap_or(Err(LoadError::Crashed))).collect::<Vec<_>>()
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

    fn part(issuer: &impl SignsTokens, names: &[String]) -> Result<Self, LoadError> {
        let mut wallet = Self { text: String::new(), ends: Vec::with_capacity(names.len()) };
        for name in names {
            wallet.text.push_str(&issuer.token(name, ACCESS_TTL_S)?);
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
    use seckill::config::Secret;

    #[test]
    fn every_buyer_has_a_token_of_its_own() {
        let issuer = TokenIssuer::new(&Secret::new("k".repeat(32)), "seckill", "seckill").unwrap();
        let names: Vec<String> = (0..101).map(|n| format!("u{n}")).collect();
        let wallet = AccessTokens::fill(&issuer, &names).unwrap();
        let tokens: std::collections::BTreeSet<&str> = (0..names.len()).map(|index| wallet.token(index)).collect();
        assert_eq!(tokens.len(), names.len());
        assert!(tokens.iter().all(|token| token.split('.').count() == 3));
        assert_eq!(wallet.token(101), "");
    }
}
