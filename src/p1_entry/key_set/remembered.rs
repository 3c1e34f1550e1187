//! Access tokens that were checked before, so that a further use of one costs a hash instead of a public-key operation.
//!
//! Input: a token and what became of it. Output: the same again: the buyer within the token's own times, or why it is refused.
//! Each is kept under its SHA-256 (an attacker cannot find a second text for one), in the memory of one process, with the key that
//! it was checked with, and counts while that key is in use. After a restart each token is checked once more.
//!
//! Two maps a part instead of moka: a hit takes one short lock and has nothing to record, where moka counts each use and
//! does its upkeep on the caller's time; and these entries need no clock of their own, their tokens' times are compared at
//! each use. Their hash function is a quick one with a secret of the process: SHA-256 has done the work, and no client can choose
//! tokens for one place of the map.

use super::parse::KeyNumber;
use crate::domain::ids::UserId;
use crate::p1_entry::refusals::AccessDenied;
use aws_lc_rs::digest::{SHA256, digest};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Mutex, PoisonError};

/// Tokens a part has at least, so that few tokens have few parts.
const PART_MIN: usize = 1024;
/// Most parts; each has a lock.
const PARTS_MAX: usize = 64;

/// The SHA-256 of a whole token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::p1_entry) struct TokenHash([u8; 32]);

impl Hash for TokenHash {
    /// A part of it is as good as all of it for finding a place in a map, where equality is asked about afterwards.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        state.write_u64(u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
    }
}

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

impl VerifiedToken {
    /// One that is good from `nbf` to `exp` (Unix seconds), by a clock that may differ by `leeway_s`.
    pub(in crate::p1_entry) fn new(user: UserId, nbf: Option<u64>, exp: u64, leeway_s: u64) -> Self {
        let first = nbf.map_or(0, |nbf| nbf.saturating_sub(leeway_s));
        Self { user, valid_s: (first, exp.saturating_add(leeway_s)) }
    }
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

/// A token's fate and the key that it depends on.
struct KeptFate<F> {
    key: KeyNumber,
    fate: F,
}

impl<F: TokenFate> KeptFate<F> {
    fn at(&self, now_s: u64, is_key: impl FnOnce(KeyNumber) -> bool) -> Option<F::Answer> {
        self.fate.at(now_s).filter(|_| is_key(self.key))
    }
}

/// The tokens used last. When `young` is full it becomes `old`, and what is in `old` is forgotten unless it is used again.
struct Generations<F> {
    young: HashMap<TokenHash, KeptFate<F>>,
    old: HashMap<TokenHash, KeptFate<F>>,
}

impl<F> Generations<F> {
    fn keep(&mut self, hash: TokenHash, token: KeptFate<F>, young_max: usize) {
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

    /// What became of a token, if it would be the same at `now_s`; `is_key` says whether a key is in use.
    pub(super) fn recall(
        &self,
        hash: &TokenHash,
        now_s: u64,
        is_key: impl FnOnce(KeyNumber) -> bool,
    ) -> Option<F::Answer> {
        self.in_part(hash, |part| {
            if let Some(token) = part.young.get(hash) {
                return token.at(now_s, is_key);
            }
            let token = part.old.remove(hash)?;
            let answer = token.at(now_s, is_key)?;
            part.keep(*hash, token, self.young_max);
            Some(answer)
        })
    }

    /// Remembers what became of a token that this key checked.
    pub(super) fn insert(&self, hash: TokenHash, key: KeyNumber, fate: F) {
        if self.young_max > 0 {
            self.in_part(&hash, |part| {
                part.keep(hash, KeptFate { key, fate }, self.young_max);
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
            let (used, key) = (TokenHash::of("used"), KeyNumber::next());
            tokens.insert(used, key, token((0, 9)));
            for number in 0..tokens_max * 3 {
                assert!(tokens.recall(&used, 5, |_| true).is_some(), "{number} of {tokens_max}");
                tokens.insert(TokenHash::of(&number.to_string()), key, token((0, 9)));
            }
            let kept = count(&tokens);
            assert!(kept <= tokens_max && kept * 3 > tokens_max, "{kept} of {tokens_max}");
        }
        let none = RememberedTokens::new(0);
        none.insert(TokenHash::of("used"), KeyNumber::next(), token((0, 9)));
        assert_eq!(count(&none), 0);
    }

    #[test]
    fn a_token_counts_in_its_time_only() {
        let tokens = RememberedTokens::new(10);
        let (hash, key) = (TokenHash::of("a.b.c"), KeyNumber::next());
        tokens.insert(hash, key, token((5, 7)));
        let recalled = |now_s| tokens.recall(&hash, now_s, |of| of == key).is_some();
        assert_eq!([4, 5, 7, 8].map(recalled), [false, true, true, false]);
        assert!(tokens.recall(&hash, 6, |of| of == KeyNumber::next()).is_none(), "its key is gone");
        assert!(tokens.recall(&TokenHash::of("a.b.d"), 6, |_| true).is_none());
    }

    #[test]
    fn a_refusal_counts_from_its_moment_on() {
        let (tokens, hash) = (RememberedTokens::new(10), TokenHash::of("a.b.c"));
        tokens.insert(hash, KeyNumber::next(), RefusedToken { denied: AccessDenied::unknown_key(), from_s: 5 });
        assert_eq!([4, 5, 900].map(|now_s| tokens.recall(&hash, now_s, |_| true).is_some()), [false, true, true]);
    }
}
