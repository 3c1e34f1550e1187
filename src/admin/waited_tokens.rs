//! Tokens that are waited on before they are looked at, each with the address that it came from.
//!
//! Input: a token that is not proven, as its SHA-256. Output: a place, or none when too many have one. The places of one address are
//! few, so that one guesser leaves some to others. Calls with the same token from the same address share one: the many calls of a
//! backend after a restart are no guesses. Nothing here depends on whether the token is right. A crash loses the places.

use super::proven::TokenFrom;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Tokens that are waited on at a time.
const WAITED_MAX: usize = 16;
/// Of these, tokens of one address.
const WAITED_OF_ADDRESS_MAX: usize = 4;

/// The tokens of a process, with the number of their calls.
#[derive(Default)]
pub(super) struct WaitedTokens {
    calls: Mutex<HashMap<TokenFrom, usize>>,
}

/// A call whose token is waited on. Its place is free again when this is dropped.
pub(super) struct WaitedPlace<'t> {
    tokens: &'t WaitedTokens,
    token: TokenFrom,
}

impl WaitedTokens {
    fn calls(&self) -> MutexGuard<'_, HashMap<TokenFrom, usize>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a token from an address; `None`: too many others have one.
    pub(super) fn place(&self, token: TokenFrom) -> Option<WaitedPlace<'_>> {
        let mut calls = self.calls();
        let of_address = calls.keys().filter(|other| other.address == token.address).count();
        let is_full = calls.len() >= WAITED_MAX || of_address >= WAITED_OF_ADDRESS_MAX;
        if is_full && !calls.contains_key(&token) {
            return None;
        }
        *calls.entry(token).or_default() += 1;
        drop(calls);
        Some(WaitedPlace { tokens: self, token })
    }
}

impl Drop for WaitedPlace<'_> {
    fn drop(&mut self) {
        let mut calls = self.tokens.calls();
        if let Some(count) = calls.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                calls.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn an_address_has_a_few_of_the_places_and_the_same_token_shares_one() {
        let tokens = WaitedTokens::default();
        let of = |from: u8, token: u8| {
            tokens.place(TokenFrom { address: Some(IpAddr::from([10, 0, 0, from])), digest: [token; 32] })
        };
        let first: Vec<_> = (0..4).map(|token| of(1, token).unwrap()).collect();
        assert!(of(1, 4).is_none(), "this address has its places");
        let again: Vec<_> = (0..100).map(|_| of(1, 0).unwrap()).collect();
        let others: Vec<_> = (0..12).map(|n| of(2 + n / 4, n).unwrap()).collect();
        assert!(of(9, 0).is_none(), "all are taken");
        drop(first);
        assert_eq!(tokens.calls().len(), 13, "one is shared");
        drop((again, others));
        assert!(tokens.calls().is_empty());
    }
}
