//! The keys that access tokens, or passes, are checked with, as they are now, and what is known about tokens under exactly these keys.
//!
//! Input: the settings, and what the refresher reads later. Output: one set, replaced as a whole and only by keys that differ. What is
//! remembered of a token names the key that it was checked with and counts while that key is in the set: the next key of an issuer
//! verifies no token again, and a check that ends after a replacement cannot bring a removed key's token back. A crash leaves
//! nothing; the next process reads the keys again.

mod issuer;
mod known_headers;
mod parse;
mod refresher;
mod remembered;
mod source;

#[cfg(test)]
pub(super) use known_headers::HEADERS_MAX;
pub(super) use parse::{AccessKey, in_tokens};
pub(crate) use refresher::KeySetRefresher;
pub(super) use remembered::{TokenHash, VerifiedToken};
pub(super) use source::KeySource;

use super::refusals::AccessDenied;
use crate::config::{Algorithm, KeySettings};
use crate::domain::ids::UserId;
use crate::store::tls::TlsError;
use arc_swap::{ArcSwap, Guard};
use known_headers::KnownHeaders;
use parse::{KeyNumber, ParsedKeys};
use remembered::{RefusedToken, RememberedTokens};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Refused tokens that a process remembers; about 4 MB. Apart from the verified ones, so that forgeries displace only each other.
const REFUSED_MAX: usize = 1 << 15;

/// Why keys cannot be used at the start.
#[derive(Debug, thiserror::Error)]
pub enum AuthKeyError {
    /// A file, or an address.
    #[error("{key}: {problem}")]
    Place {
        /// The configuration key.
        key: &'static str,
        /// What is wrong there.
        problem: String,
    },
    /// The certificates for the issuer.
    #[error(transparent)]
    Trust(#[from] TlsError),
}

/// What is known about tokens that were checked with the keys of this set and of those before it.
struct TokenMemory {
    verified: RememberedTokens<VerifiedToken>,
    refused: RememberedTokens<RefusedToken>,
}

/// A set of keys that does not change.
pub(super) struct KeySet {
    keys: Vec<AccessKey>,
    by_id: HashMap<String, usize>,
    headers: KnownHeaders,
    memory: Option<Arc<TokenMemory>>,
}

impl KeySet {
    /// None remembered with HS256: a hash of the token costs as much as its check.
    fn new(keys: Vec<AccessKey>, verified_max: usize) -> Self {
        let remembers = keys.iter().any(|key| key.algorithm != Algorithm::Hs256);
        let memory = remembers.then(|| {
            let (verified, refused) = (RememberedTokens::new(verified_max), RememberedTokens::new(REFUSED_MAX));
            Arc::new(TokenMemory { verified, refused })
        });
        let ids = keys.iter().enumerate().filter_map(|(at, key)| Some((key.id.clone()?, at)));
        Self { by_id: ids.collect(), keys, headers: KnownHeaders::default(), memory }
    }

    /// In place of an earlier set: keys that are in both stay what they are, and so does what is known of their tokens.
    fn after(mut self, earlier: &Self) -> Self {
        for key in &mut self.keys {
            if let Some(same) = earlier.keys.iter().find(|same| same.material() == key.material()) {
                key.number = same.number;
            }
        }
        self.memory = self.memory.map(|fresh| earlier.memory.clone().unwrap_or(fresh));
        self
    }

    /// Whether a token has to name its key.
    pub(super) fn is_by_id(&self) -> bool {
        !self.by_id.is_empty()
    }

    /// All keys.
    pub(super) fn all(&self) -> &[AccessKey] {
        &self.keys
    }

    /// The key of this `kid`.
    pub(super) fn by_id(&self, id: &str) -> Option<&AccessKey> {
        self.by_id.get(id).and_then(|at| self.keys.get(*at))
    }

    /// The keys that can have signed a token with this header, in base64; `None` for one that is not known.
    pub(super) fn by_header(&self, header: &str) -> Option<&[AccessKey]> {
        self.keys.get(self.headers.keys_of(header)?)
    }

    /// One of `signers`, keys of this set, signed a token with this header.
    pub(super) fn learn_header(&self, header: &str, signers: &[AccessKey]) {
        let first = signers.first().and_then(|first| self.keys.iter().position(|key| key.number == first.number));
        if let Some(first) = first {
            self.headers.learn(header, first..first + signers.len());
        }
    }

    /// Whether tokens that were checked are remembered: not where secrets check them.
    pub(super) fn remembers(&self) -> bool {
        self.memory.is_some()
    }

    /// What became of this token before, if it would be the same at `now_s`.
    pub(super) fn recall(&self, hash: &TokenHash, now_s: u64) -> Option<Result<UserId, AccessDenied>> {
        let memory = self.memory.as_ref()?;
        let is_key = |number: KeyNumber| self.keys.iter().any(|key| key.number == number);
        if let Some(user) = memory.verified.recall(hash, now_s, is_key) {
            return Some(Ok(user));
        }
        memory.refused.recall(hash, now_s, is_key).map(Err)
    }

    /// Remembers a token that is good for as long as its key is there.
    pub(super) fn remember(&self, hash: TokenHash, signers: &[AccessKey], token: VerifiedToken) {
        if let Some((memory, signer)) = self.memory.as_ref().zip(signers.first()) {
            memory.verified.insert(hash, signer.number, token);
        }
    }

    /// Remembers a token that is refused from `now_s` on for as long as its key is there.
    pub(super) fn remember_refused(&self, hash: TokenHash, signers: &[AccessKey], denied: AccessDenied, now_s: u64) {
        if let Some((memory, signer)) = self.memory.as_ref().zip(signers.first()) {
            memory.refused.insert(hash, signer.number, RefusedToken { denied, from_s: now_s });
        }
    }

    /// Whether these keys check the same tokens as `other`'s.
    fn is_same(&self, other: &Self) -> bool {
        let sorted = |set: &Self| {
            let mut all: Vec<_> = set
                .keys
                .iter()
                .map(AccessKey::material)
                .map(|(id, name, bytes)| (id.map(str::to_owned), name, bytes))
                .collect();
            all.sort_unstable();
            all
        };
        sorted(self) == sorted(other)
    }
}

/// The present set, shared by the checks and the refresher.
pub(super) struct CurrentKeys {
    set: ArcSwap<KeySet>,
    /// A token named a key that is not in the set.
    wanted: AtomicBool,
    /// Why there are no newer keys; none while the last reading was good.
    problem: Mutex<Option<String>>,
    verified_max: usize,
}

impl CurrentKeys {
    /// The keys of the settings, and where they are read again; a set that is fetched is empty until then.
    pub(super) fn read(settings: &KeySettings<'_>) -> Result<(Self, Option<KeySource>), AuthKeyError> {
        let source = KeySource::of(settings)?;
        let keys = match &source {
            None => parse::secrets(settings.secrets),
            Some(source) => source.read_at_start(settings.algorithms)?,
        };
        let set = ArcSwap::from_pointee(KeySet::new(keys, settings.verified_max));
        let (wanted, problem) = (AtomicBool::new(false), Mutex::default());
        Ok((Self { set, wanted, problem, verified_max: settings.verified_max }, source))
    }

    /// The present set.
    pub(super) fn now(&self) -> Guard<Arc<KeySet>> {
        self.set.load()
    }

    /// A token names a key that is not there: the refresher fetches it, as soon as it may.
    pub(super) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Tokens from here on ask anew.
    fn begin_reading(&self) {
        self.wanted.store(false, Ordering::Relaxed);
    }

    /// Takes other keys in place of the present ones; false when they are the same.
    fn replace(&self, parsed: ParsedKeys, from: &'static str) -> bool {
        let set = KeySet::new(parsed.keys, self.verified_max);
        if self.set.load().is_same(&set) {
            return false;
        }
        log_keys(&set, &parsed.skipped, from);
        // There is one refresher, so no other set comes in between.
        let earlier = self.set.load_full();
        self.set.store(Arc::new(set.after(&earlier)));
        true
    }

    fn set_problem(&self, problem: Option<String>) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = problem;
    }

    /// Why there are no newer keys.
    pub(super) fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn log_keys(set: &KeySet, skipped: &[String], from: &'static str) {
    let named = |key: &AccessKey| format!("{} ({})", key.id.as_deref().unwrap_or("without kid"), key.algorithm.name());
    let names: Vec<String> = set.keys.iter().map(named).collect();
    tracing::info!(from, keys = names.join(", "), "tokens are checked with these keys");
    for skipped in skipped {
        tracing::warn!(from, key = skipped, "key skipped");
    }
}

/// What is found where the keys come from, for a person who checks before anything runs: the name of the setting and the keys.
/// `None` with HS256.
pub(crate) async fn check(settings: &KeySettings<'_>) -> Option<(&'static str, Result<String, String>)> {
    let source = match KeySource::of(settings) {
        Ok(source) => source?,
        Err(error) => return Some((settings.section.name(), Err(error.to_string()))),
    };
    let read = source.read().await;
    let parsed = read.and_then(|read| source.parse(&read.text, settings.algorithms));
    let names = |parsed: ParsedKeys| {
        let keys: Vec<&str> = parsed.keys.iter().map(|key| key.id.as_deref().unwrap_or(key.algorithm.name())).collect();
        keys.join(", ")
    };
    Some((source.name(), parsed.map(names)))
}
