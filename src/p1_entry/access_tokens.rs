//! Access tokens (A1): JWTs of the gateway's issuer, and in the same way passes (Q1). A key says which algorithm it checks, never a
//! token.
//!
//! Input: a token. Output: the buyer it speaks for, or why it is refused. A token of a public-key algorithm is checked once and
//! remembered in its time, and so is a refusal ([`super::key_set`]). HS256 is verified each time: its check is symmetric and costs
//! a fraction of a public-key operation, as much as the hash that would find it again. Usual tokens have a short way
//! ([`super::usual_tokens`]), the library judges the others. What needs a public key, and what the library checks, counts against
//! the time that forgeries may take ([`super::forgery_budget`]).

use super::forgery_budget::within_budget;
use super::key_set::{
    AccessKey, AuthKeyError, CurrentKeys, KeySet, KeySetRefresher, KeySource, TokenHash, VerifiedToken, in_tokens,
};
use super::refusals::{RefusalCounts, TokenRefusal};
use super::usual_tokens::{UsualFate, UsualTokens, accepted};
use crate::config::{Algorithm, Auth, KeySettings};
use crate::domain::ids::UserId;
use crate::jwt;
use crate::runtime::{Stopper, now_ms};
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Number;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use super::refusals::AccessDenied;

/// Longest access token, bytes. A larger one is refused before it costs a signature check.
pub(crate) const TOKEN_BYTES_MAX: usize = 8192;
/// The reason why there are no keys yet is logged this often.
const REMIND: Duration = Duration::from_secs(5);

/// Checks access tokens.
pub struct Authenticator {
    pub(super) keys: Arc<CurrentKeys>,
    /// Until the refresher is made of it.
    source: Mutex<Option<KeySource>>,
    validations: Vec<(Algorithm, Validation)>,
    refused: RefusalCounts,
    signature_checks: metrics::Counter,
    /// None where the library checks all, which tests compare with.
    pub(super) usual: Option<UsualTokens>,
}

/// Whether there are keys, and whether they can be read again.
#[derive(Clone)]
pub(crate) struct KeyHealth(Arc<CurrentKeys>);

impl KeyHealth {
    /// Whether tokens can be checked.
    pub(crate) fn has_keys(&self) -> bool {
        !self.0.now().all().is_empty()
    }

    /// Why there are no newer keys; none while the last reading was good.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.problem()
    }
}

/// What became of a token, and the keys that can have signed it; none where that is not known.
struct Checked<'k> {
    by: &'k [AccessKey],
    fate: Result<VerifiedToken, AccessDenied>,
}

#[derive(Clone, Deserialize)]
struct AccessClaims {
    sub: String,
    exp: Option<Number>,
    nbf: Option<Number>,
}

impl Authenticator {
    /// Reads the keys of `[auth]`; those of `auth.jwks_url` come with [`Self::refresher`].
    pub fn new(settings: &Auth) -> Result<Self, AuthKeyError> {
        let checks = Self::with(&settings.keys(), |algorithm| validation(algorithm, settings))?;
        Ok(Self { usual: Some(UsualTokens::new(settings)), ..checks })
    }

    /// The same for passes with these keys. What a pass is for is not judged here.
    pub(super) fn of_passes(keys: &KeySettings<'_>) -> Result<Self, AuthKeyError> {
        Self::with(keys, |algorithm| {
            let mut validation = validation_in_time(algorithm, keys.leeway_s);
            validation.validate_aud = false;
            validation.set_required_spec_claims(&["exp", "sub"]);
            validation
        })
    }

    fn with(settings: &KeySettings<'_>, validation: impl Fn(Algorithm) -> Validation) -> Result<Self, AuthKeyError> {
        jwt::install();
        let (keys, source) = CurrentKeys::read(settings)?;
        Ok(Self {
            keys: Arc::new(keys),
            source: Mutex::new(source),
            validations: settings.algorithms.iter().map(|algorithm| (*algorithm, validation(*algorithm))).collect(),
            refused: RefusalCounts::new(settings.section),
            signature_checks: metrics::counter!("seckill_p1_entry_signature_checks_total"),
            usual: None,
        })
    }

    /// What keeps the keys up to date; once. None with HS256, whose secrets are settings.
    pub(crate) fn refresher(&self, settings: &KeySettings<'_>, stopper: &Stopper) -> Option<KeySetRefresher> {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(KeySetRefresher::new(self.keys.clone(), source, settings, stopper.clone()))
    }

    /// For the probes of this process.
    pub(crate) fn key_health(&self) -> KeyHealth {
        KeyHealth(self.keys.clone())
    }

    /// Waits for the first keys, which may be another machine's to give; logs what it waits for.
    pub(crate) async fn wait_for_keys(&self, stopper: &Stopper) {
        let mut logged_at = Instant::now();
        while self.keys.now().all().is_empty() && !stopper.is_stopped() {
            if logged_at.elapsed() > REMIND {
                let problem = self.keys.problem().unwrap_or_else(|| "no answer yet".to_owned());
                tracing::warn!(problem, "no keys of auth.jwks_url yet, not serving until they are there");
                logged_at = Instant::now();
            }
            stopper.sleep(Duration::from_millis(50)).await;
        }
    }

    /// The buyer a token speaks for.
    pub fn check(&self, token: &str) -> Result<UserId, AccessDenied> {
        self.buyer(token).inspect_err(|denied| self.refused.count(denied.refusal))
    }

    fn buyer(&self, token: &str) -> Result<UserId, AccessDenied> {
        if token.len() > TOKEN_BYTES_MAX {
            let detail = format!("has more than {TOKEN_BYTES_MAX} bytes");
            return Err(AccessDenied::new(TokenRefusal::Malformed, detail));
        }
        let (keys, now_s) = (self.keys.now(), u64::try_from(now_ms() / 1000).unwrap_or_default());
        if !keys.remembers() {
            return self.checked(&keys, token, now_s).fate.map(|verified| verified.user);
        }
        let hash = TokenHash::of(token);
        if let Some(before) = keys.recall(&hash, now_s) {
            return before;
        }
        let Checked { by, fate } = self.checked(&keys, token, now_s);
        let verified = fate.inspect_err(|denied| {
            if denied.is_final() {
                keys.remember_refused(hash, by, denied.clone(), now_s);
            }
        })?;
        let user = verified.user.clone();
        if verified.valid_s.0 <= verified.valid_s.1 {
            keys.remember(hash, by, verified);
        }
        Ok(user)
    }

    /// What becomes of a token that is not remembered.
    fn checked<'k>(&self, keys: &'k KeySet, token: &str, now_s: u64) -> Checked<'k> {
        let usual = self.usual.as_ref().map_or(UsualFate::Unusual, |usual| usual.check(keys, token, now_s));
        if matches!(usual, UsualFate::Good { .. } | UsualFate::Forged { .. }) && keys.remembers() {
            self.signature_checks.increment(1);
        }
        let is_signed = match usual {
            UsualFate::Good { token, by } => return Checked { by, fate: Ok(token) },
            UsualFate::Forged { by } => return Checked { by, fate: Err(AccessDenied::signature()) },
            UsualFate::Unchecked => return Checked { by: &[], fate: Err(AccessDenied::busy()) },
            UsualFate::Signed => true,
            UsualFate::Unusual => false,
        };
        let by = match self.signers(keys, token) {
            Ok(by) => by,
            Err(denied) => return Checked { by: &[], fate: Err(denied) },
        };
        let fate = self.verify(by, token, is_signed);
        if fate.is_ok() && self.usual.is_some() {
            accepted(keys, token, by);
        }
        Checked { by, fate }
    }

    /// The keys that can have signed this token: the one that it names, or the secrets, which have no names.
    fn signers<'a>(&self, keys: &'a KeySet, token: &str) -> Result<&'a [AccessKey], AccessDenied> {
        if !keys.is_by_id() {
            return Ok(keys.all());
        }
        let header = decode_header(token).map_err(|error| AccessDenied::from(&error))?;
        let Some(id) = header.kid else {
            return Err(AccessDenied::new(TokenRefusal::UnknownKey, "names no key (kid)"));
        };
        let Some(key) = keys.by_id(&id) else {
            self.keys.want();
            return Err(AccessDenied::unknown_key());
        };
        Ok(std::slice::from_ref(key))
    }

    /// A token that was not verified before. The keys are of one algorithm; each may have signed. One that `is_signed` is no
    /// forgery and needs no budget.
    fn verify(&self, signers: &[AccessKey], token: &str, is_signed: bool) -> Result<VerifiedToken, AccessDenied> {
        let first = signers.first().ok_or_else(AccessDenied::unknown_key)?;
        let validation = self.validations.iter().find(|(algorithm, _)| *algorithm == first.algorithm);
        let (_, validation) = validation.ok_or_else(AccessDenied::algorithm)?;
        // Before the dear part: what no signature could make good. The library says the same of a header, and says it first.
        let header = decode_header(token).map_err(|error| AccessDenied::from(&error))?;
        if !validation.algorithms.contains(&header.alg) {
            return Err(AccessDenied::algorithm());
        }
        // RFC 7515 4.1.11: a token whose issuer wants something understood that is not is refused; nothing is here. The library
        // reads the member and leaves it at that. A header that was refused is never known to the short way.
        if header.crit.is_some() {
            return Err(AccessDenied::critical());
        }
        if first.algorithm != Algorithm::Hs256 {
            insecure_decode_claims::<AccessClaims>(token).map_err(|_| AccessDenied::malformed())?;
        }
        let check = || self.claims(signers, validation, token);
        let claims = if is_signed { Some(check()) } else { within_budget(check, is_forged) };
        self.verified(claims.unwrap_or_else(|| Err(AccessDenied::busy()))?)
    }

    /// The claims of a token that one of the keys signed. One check, however many keys it takes.
    fn claims(&self, signers: &[AccessKey], by: &Validation, token: &str) -> Result<AccessClaims, AccessDenied> {
        self.signature_checks.increment(1);
        let mut claims = Err(AccessDenied::unknown_key());
        for signer in signers {
            claims =
                decode(token, &signer.key, by).map(|token| token.claims).map_err(|error| AccessDenied::from(&error));
            // Only then another one may have signed.
            if !is_forged(&claims) {
                break;
            }
        }
        claims
    }

    /// The buyer, and the first and last second of the token's time; one whose times are no whole seconds has none in which it is
    /// believed without another check.
    fn verified(&self, claims: AccessClaims) -> Result<VerifiedToken, AccessDenied> {
        let wrong = |error| AccessDenied::new(TokenRefusal::Claims, format!("names no buyer: {error}"));
        let user = UserId::parse(&claims.sub).map_err(wrong)?;
        let leeway_s = self.validations.first().map_or(0, |(_, validation)| validation.leeway);
        let nbf = claims.nbf.map_or(Some(None), |nbf| nbf.as_u64().map(Some));
        Ok(match nbf.zip(claims.exp.and_then(|exp| exp.as_u64())) {
            Some((nbf, exp)) => VerifiedToken::new(user, nbf, exp, leeway_s),
            None => VerifiedToken { user, valid_s: (1, 0) },
        })
    }
}

/// Whether the keys did not sign it.
fn is_forged<T>(checked: &Result<T, AccessDenied>) -> bool {
    checked.as_ref().is_err_and(|denied| denied.refusal == TokenRefusal::Signature)
}

fn validation_in_time(algorithm: Algorithm, leeway_s: u64) -> Validation {
    let mut validation = Validation::new(in_tokens(algorithm));
    validation.leeway = leeway_s;
    validation.validate_nbf = true;
    validation
}

fn validation(algorithm: Algorithm, settings: &Auth) -> Validation {
    let mut validation = validation_in_time(algorithm, settings.leeway_s);
    validation.set_audience(&[&settings.audience]);
    validation.set_issuer(&[&settings.issuer]);
    // `aud` and `iss` are only checked when present unless they are required.
    validation.set_required_spec_claims(&["exp", "aud", "iss", "sub"]);
    validation
}
