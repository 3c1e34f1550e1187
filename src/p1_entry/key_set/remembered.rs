//! Access tokens that were checked before, so that a further use of one costs a hash instead of a public-key operation.
//!
//! Input: a token and what became of it. Output: the same again: the buyer within the token's own times, or why it is refused.
//! Each is kept under its SHA-256 (an attacker cannot find a second text for one), in the memory of one process and for one set
//! of keys. After a restart each token is checked once more.
//!
//! Two maps a part instead of moka: a hit takes one short lock and has nothing to record, where moka counts each use and
//! does its upkeep on the caller's time; and these entries need no clock of their own, their tokens' times are compared at
//! each use.

use crate::domain::ids::UserId;
use crate::p1_entry::refusals::AccessDenied;
use ring::digest::{SHA256, digest};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Tokens a part has at least, so that few tokens have few parts.
const PART_MIN: usize = 1024;
/// Most parts; each has a lock.
const PARTS_MAX: usize = 64;

/// The SHA-256 of a whole token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::p1_entry) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(in crate::p1_entry) fn of(token: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
        Self(hash)
    }
}

/// What a verified token says, and when it may be believed.
#[derive(Debug, Clone)]
pub(in crate::p1_entry) struct VerifiedToken {
    pub(in crate::p1_entry) user: UserId,
    /// First and last second of its time (Unix), the tolerated clock difference included.
    pub(in crate::p1_entry) valid_s: (u64, u64),
}

/// Why a token is refused. From a moment on, because a clock that is set back makes an expired token good again.
#[derive(Debug, Clone)]
pub(super) struct RefusedToken {
    pub(super) denied: AccessDenied,
    pub(super) from_s: u64,
}

/// What became of a token.
pub(super) trait TokenFate: Clone {
    /// What it means for a use of the token.
    type Answer;
    /// The answer at `now_s`, if it is still the same.
    fn at(&self, now_s: u64) -> Option<Self::Answer>;
}

impl TokenFate for VerifiedToken {
    type Answer = UserId;
    fn at(&self, now_s: u64) -> Option<UserId> {
        (self.valid_s.0..=self.valid_s.1).contains(&now_s).then(|| self.user.clone())
    }
}

impl TokenFate for RefusedToken {
    type Answer = AccessDenied;
    fn at(&self, now_s: u64) -> Option<AccessDenied> {
        (now_s >= self.from_s).then(|| self.denied.clone())
    }
}

/// The tokens used last. When `young` is full it becomes `old`, and what is in `old` is forgotten unless it is used again.
struct Generations<F> {
    young: HashMap<TokenHash, F>,
    old: HashMap<TokenHash, F>,
}

impl<F> Generations<F> {
    fn keep(&mut self, hash: TokenHash, token: F, young_max: usize) {
        if self.young.len() >= young_max {
            std::mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(hash, token);
    }
}

/// A bounded set of tokens.
pub(super) struct RememberedTokens<F> {
    parts: Vec<Mutex<Generations<F>>>,
    /// 0: nothing is kept.
    young_max: usize,
}

impl<F: TokenFate> RememberedTokens<F> {
    /// Keeps at most `tokens_max`.
    pub(super) fn new(tokens_max: usize) -> Self {
        let parts = (tokens_max / PART_MIN).clamp(1, PARTS_MAX);
        let part = || Mutex::new(Generations { young: HashMap::new(), old: HashMap::new() });
        Self { parts: (0..parts).map(|_| part()).collect(), young_max: tokens_max / parts / 2 }
    }

    /// What became of a token, if it would be the same at `now_s`.
    pub(super) fn recall(&self, hash: &TokenHash, now_s: u64) -> Option<F::Answer> {
        self.in_part(hash, |part| {
            if let Some(token) = part.young.get(hash) {
                return token.at(now_s);
            }
            let token = part.old.remove(hash)?;
            let answer = token.at(now_s)?;
            part.keep(*hash, token, self.young_max);
            Some(answer)
        })
    }

    /// Remembers a token.
    pub(super) fn insert(&self, hash: TokenHash, token: F) {
        if self.young_max > 0 {
            self.in_part(&hash, |part| {
                part.keep(hash, token, self.young_max);
                Some(())
            });
        }
    }

    fn in_part<T>(&self, hash: &TokenHash, work: impl FnOnce(&mut Generations<F>) -> Option<T>) -> Option<T> {
        let [first, ..] = hash.0;
        let part = self.parts.get(usize::from(first) % self.parts.len())?;
        work(&mut part.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(valid_s: (u64, u64)) -> VerifiedToken {
        VerifiedToken { user: UserId::parse("alice").unwrap(), valid_s }
    }

    fn count(tokens: &RememberedTokens<VerifiedToken>) -> usize {
        let parts = tokens.parts.iter().map(|part| part.lock().unwrap());
        parts.map(|part| part.young.len() + part.old.len()).sum()
    }

    #[test]
    fn never_more_tokens_than_allowed_and_those_in_use_stay() {
        for tokens_max in [2, 10, 1_000, 5_000, 100_000] {
            let tokens = RememberedTokens::new(tokens_max);
            let used = TokenHash::of("used");
            tokens.insert(used, token((0, 9)));
            for number in 0..tokens_max * 3 {
                assert!(tokens.recall(&used, 5).is_some(), "{number} of {tokens_max}");
                tokens.insert(TokenHash::of(&number.to_string()), token((0, 9)));
            }
            let kept = count(&tokens);
            assert!(kept <= tokens_max && kept * 3 > tokens_max, "{kept} of {tokens_max}");
        }
        let none = RememberedTokens::new(0);
        none.insert(TokenHash::of("used"), token((0, 9)));
        assert_eq!(count(&none), 0);
    }

    #[test]
    fn a_token_counts_in_its_time_only() {
        let tokens = RememberedTokens::new(10);
        let hash = TokenHash::of("a.b.c");
        tokens.insert(hash, token((5, 7)));
        assert_eq!([4, 5, 7, 8].map(|now_s| tokens.recall(&hash, now_s).is_some()), [false, true, true, false]);
        assert!(tokens.recall(&TokenHash::of("a.b.d"), 6).is_none());
    }
    #[test]
    fn a_refusal_counts_from_its_moment_on() {
        let (tokens, hash) = (RememberedTokens::new(10), TokenHash::of("a.b.c"));
        tokens.insert(hash, RefusedToken { denied: AccessDenied::unknown_key(), from_s: 5 });
        assert_eq!([4, 5, 900].map(|now_s| tokens.recall(&hash, now_s).is_some()), [false, true, true]);
    }
}
