//! Access tokens that were verified before, so that a further use of one costs a hash instead of a public-key operation.
//!
//! Input: a token and the buyer it speaks for. Output: that buyer again, within the token's own times. Only good tokens are
//! kept, each under its SHA-256 (an attacker cannot find a second text for one), in the memory of one process. After a
//! restart each token is verified once more.
//!
//! Two maps a part instead of moka: a hit takes one short lock and has nothing to record, where moka counts each use and
//! does its upkeep on the caller's time; and these entries need no clock of their own, their tokens' times are compared at
//! each use.

use crate::domain::ids::UserId;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Tokens a part has at least, so that few tokens have few parts.
const PART_MIN: usize = 1024;
/// Most parts; each has a lock.
const PARTS_MAX: usize = 64;

/// The SHA-256 of a whole token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(super) fn of(token: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(hash)
    }
}

/// What a verified token says, and when it may be believed.
#[derive(Debug, Clone)]
pub(super) struct VerifiedToken {
    pub(super) user: UserId,
    /// First and last second of its time (Unix), the tolerated clock difference included.
    pub(super) valid_s: (u64, u64),
}

/// The tokens used last. When `young` is full it becomes `old`, and what is in `old` is forgotten unless it is used again.
#[derive(Default)]
struct Generations {
    young: HashMap<TokenHash, VerifiedToken>,
    old: HashMap<TokenHash, VerifiedToken>,
}

impl Generations {
    fn keep(&mut self, hash: TokenHash, token: VerifiedToken, young_max: usize) {
        if self.young.len() >= young_max {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(hash, token);
    }
}

/// A bounded set of verified tokens.
pub(super) struct VerifiedTokens {
    parts: Vec<Mutex<Generations>>,
    young_max: usize,
}

impl VerifiedTokens {
    /// Keeps at most `tokens_max`; `None` when that is none.
    pub(super) fn new(tokens_max: usize) -> Option<Self> {
        let parts = (tokens_max / PART_MIN).clamp(1, PARTS_MAX);
        let young_max = tokens_max / parts / 2;
        (young_max > 0).then(|| Self { parts: (0..parts).map(|_| Mutex::default()).collect(), young_max })
    }

    /// The buyer of a token that was verified before and is in its time at `now_s`.
    pub(super) fn get(&self, hash: &TokenHash, now_s: u64) -> Option<UserId> {
        self.in_part(hash, |part| {
            if let Some(token) = part.young.get(hash) {
                return token.at(now_s);
            }
            let token = part.old.remove(hash)?;
            let user = token.at(now_s)?;
            part.keep(*hash, token, self.young_max);
            Some(user)
        })
    }

    /// Remembers a token that is good.
    pub(super) fn insert(&self, hash: TokenHash, token: VerifiedToken) {
        self.in_part(&hash, |part| {
            part.keep(hash, token, self.young_max);
            Some(())
        });
    }

    fn in_part<T>(&self, hash: &TokenHash, work: impl FnOnce(&mut Generations) -> Option<T>) -> Option<T> {
        let [first, ..] = hash.0;
        let part = self.parts.get(usize::from(first) % self.parts.len())?;
        work(&mut part.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl VerifiedToken {
    fn at(&self, now_s: u64) -> Option<UserId> {
        (self.valid_s.0..=self.valid_s.1).contains(&now_s).then(|| self.user.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(valid_s: (u64, u64)) -> VerifiedToken {
        VerifiedToken { user: UserId::parse("alice").unwrap(), valid_s }
    }

    fn count(tokens: &VerifiedTokens) -> usize {
        let parts = tokens.parts.iter().map(|part| part.lock().unwrap());
        parts.map(|part| part.young.len() + part.old.len()).sum()
    }

    #[test]
    fn never_more_tokens_than_allowed_and_those_in_use_stay() {
        for tokens_max in [2, 10, 1_000, 5_000, 100_000] {
            let tokens = VerifiedTokens::new(tokens_max).unwrap();
            let used = TokenHash::of("used");
            tokens.insert(used, token((0, 9)));
            for number in 0..tokens_max * 3 {
                assert!(tokens.get(&used, 5).is_some(), "{number} of {tokens_max}");
                tokens.insert(TokenHash::of(&number.to_string()), token((0, 9)));
            }
            let kept = count(&tokens);
            assert!(kept <= tokens_max && kept * 3 > tokens_max, "{kept} of {tokens_max}");
        }
        assert!(VerifiedTokens::new(0).is_none());
    }

    #[test]
    fn a_token_counts_in_its_time_only() {
        let tokens = VerifiedTokens::new(10).unwrap();
        let hash = TokenHash::of("a.b.c");
        tokens.insert(hash, token((5, 7)));
        assert_eq!([4, 5, 7, 8].map(|now_s| tokens.get(&hash, now_s).is_some()), [false, true, true, false]);
        assert!(tokens.get(&TokenHash::of("a.b.d"), 6).is_none());
    }
}
