//! Why an access token is refused: the reason, for the counters, and the words for the caller of the API.
//!
//! Input: an error of a check. Output: one reason of a fixed list, and a text. Keeps counters only.

use jsonwebtoken::errors::{Error, ErrorKind};
use metrics::Counter;
use std::borrow::Cow;

macro_rules! refusals {
    ($($refusal:ident = $label:literal,)*) => {
        /// The reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Refusal { $($refusal,)* }

        impl Refusal {
            const LABELS: [&'static str; [$($label),*].len()] = [$($label),*];
        }
    };
}

// Labels of a metric; a row is added, never renamed.
refusals! {
    Malformed = "malformed",
    Algorithm = "algorithm",
    UnknownKey = "unknown_key",
    Signature = "signature",
    Expired = "expired",
    NotYet = "not_yet",
    Claims = "claims",
    Busy = "busy",
}

/// Why an access token is refused; the text is for the caller of the API.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct AccessDenied {
    pub(super) refusal: Refusal,
    detail: Cow<'static, str>,
}

impl AccessDenied {
    pub(super) fn new(refusal: Refusal, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { refusal, detail: detail.into() }
    }

    pub(super) fn malformed() -> Self {
        Self::new(Refusal::Malformed, "access token is malformed")
    }

    pub(super) fn algorithm() -> Self {
        Self::new(Refusal::Algorithm, "access token uses another algorithm than this service accepts")
    }

    pub(super) fn unknown_key() -> Self {
        Self::new(Refusal::UnknownKey, "access token names an unknown key (kid)")
    }

    pub(super) fn busy() -> Self {
        Self::new(Refusal::Busy, "too many forged access tokens arrive, this one was not checked; try again")
    }

    /// Whether nothing is said about the token: the check did not take place.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.refusal == Refusal::Busy
    }

    /// Whether the same token is refused at any later moment under the same keys.
    pub(super) const fn is_final(&self) -> bool {
        match self.refusal {
            Refusal::Signature | Refusal::Expired | Refusal::Claims => true,
            // Cheap to refuse again, or not for ever.
            Refusal::Malformed | Refusal::Algorithm | Refusal::UnknownKey | Refusal::NotYet | Refusal::Busy => false,
        }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "not our enum and non-exhaustive; every other kind is a token that cannot be read"
)]
impl From<&Error> for AccessDenied {
    fn from(error: &Error) -> Self {
        match error.kind() {
            ErrorKind::ExpiredSignature => Self::new(Refusal::Expired, "access token has expired, get a new one"),
            ErrorKind::ImmatureSignature => Self::new(Refusal::NotYet, "access token is not valid yet (nbf)"),
            ErrorKind::InvalidSignature => Self::new(Refusal::Signature, "access token has a wrong signature"),
            ErrorKind::InvalidAudience => Self::new(Refusal::Claims, "access token is for another audience (aud)"),
            ErrorKind::InvalidIssuer => Self::new(Refusal::Claims, "access token is from another issuer (iss)"),
            ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => Self::algorithm(),
            ErrorKind::MissingRequiredClaim(claim) => {
                Self::new(Refusal::Claims, format!("access token lacks the claim {claim}"))
            }
            _ => Self::malformed(),
        }
    }
}

/// Counts refused tokens, those that were remembered too.
pub(super) struct RefusalCounts([Counter; Refusal::LABELS.len()]);

impl RefusalCounts {
    pub(super) fn new() -> Self {
        Self(Refusal::LABELS.map(|label| {
            let counter = metrics::counter!("seckill_p1_entry_tokens_refused_total", "why" => label);
            counter.increment(0);
            counter
        }))
    }

    pub(super) fn count(&self, refusal: Refusal) {
        if let Some(counter) = self.0.get(refusal as usize) {
            counter.increment(1);
        }
    }
}
