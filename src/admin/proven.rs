//! Tokens that were right a while ago, each with the address that it came from.
//!
//! Input: right tokens, as their SHA-256. Output: whether this one was right from this address before. The address belongs to it: what
//! its owner proved must not answer the guesses of others at once. A process begins without any, so the first call of each takes
//! its time. A crash loses them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Pairs that are remembered; the one used longest ago goes first. Some 100 bytes each.
const PROVEN_MAX: usize = 1_024;
/// How long after its last use.
const PROVEN_FOR: Duration = Duration::from_secs(3_600);

/// A token as its SHA-256, with the address that it came from.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TokenFrom {
    pub(super) address: Option<IpAddr>,
    pub(super) digest: [u8; 32],
}

/// What is remembered.
#[derive(Default)]
pub(super) struct ProvenTokens {
    used_at: Mutex<HashMap<TokenFrom, Instant>>,
}

impl ProvenTokens {
    /// Whether it is known; then it was used now.
    pub(super) fn is_known(&self, token: TokenFrom) -> bool {
        self.is_known_at(Instant::now(), token)
    }

    fn is_known_at(&self, now: Instant, proven: TokenFrom) -> bool {
        let mut all = self.used_at.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(used_at) = all.get_mut(&proven) else { return false };
        let fresh = now.saturating_duration_since(*used_at) < PROVEN_FOR;
        if fresh {
            *used_at = now;
        }
        fresh
    }

    /// It was right.
    pub(super) fn remember(&self, token: TokenFrom) {
        self.remember_at(Instant::now(), token);
    }

    fn remember_at(&self, now: Instant, proven: TokenFrom) {
        let mut all = self.used_at.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= PROVEN_MAX
            && !all.contains_key(&proven)
            && let Some(oldest) = all.iter().min_by_key(|(_, used_at)| **used_at).map(|(oldest, _)| *oldest)
        {
            all.remove(&oldest);
        }
        all.insert(proven, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_used_is_forgotten_and_the_memory_is_bounded() {
        let (tokens, begun) = (ProvenTokens::default(), Instant::now());
        let from = |n: u16| TokenFrom {
            address: Some(IpAddr::from([10, 0, n.to_be_bytes()[0], n.to_be_bytes()[1]])),
            digest: [7; 32],
        };
        tokens.remember_at(begun, from(0));
        assert!(tokens.is_known_at(begun + PROVEN_FOR / 2, from(0)));
        assert!(tokens.is_known_at(begun + PROVEN_FOR, from(0)), "used in between");
        assert!(!tokens.is_known_at(begun + PROVEN_FOR * 3, from(0)));
        for n in 1..=u16::try_from(PROVEN_MAX).unwrap() {
            tokens.remember_at(begun + PROVEN_FOR + Duration::from_secs(n.into()), from(n));
        }
        let last = begun + PROVEN_FOR + Duration::from_secs(PROVEN_MAX as u64);
        assert!(!tokens.is_known_at(last, from(0)), "the one used longest ago made room");
        assert!(tokens.is_known_at(last, from(1)) && tokens.is_known_at(last, from(1_024)));
    }
}
