//! Why an access token, or a pass, is refused: the reason, for the counters, and the words for the caller of the API.
//!
//! Input: an error of a check. Output: one reason of a fixed list, and a text. Keeps counters only.

use crate::config::KeySection;
use jsonwebtoken::errors::{Error, ErrorKind};
use metrics::Counter;
use std::borrow::Cow;

macro_rules! refusals {
    ($($refusal:ident = $label:literal,)*) => {
        /// The reason.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum TokenRefusal { $($refusal,)* }

        impl TokenRefusal {
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
#[error("access token {detail}")]
pub struct AccessDenied {
    pub(super) refusal: TokenRefusal,
    /// What it is, lacks or has, so that the name of the token goes before it.
    pub(super) detail: Cow<'static, str>,
}

impl AccessDenied {
    pub(super) fn new(refusal: TokenRefusal, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { refusal, detail: detail.into() }
    }

    pub(super) fn malformed() -> Self {
        Self::new(TokenRefusal::Malformed, "is malformed")
    }

    pub(super) fn critical() -> Self {
        Self::new(TokenRefusal::Malformed, "names an extension as critical (crit), which this service does not know")
    }

    pub(super) fn algorithm() -> Self {
        Self::new(TokenRefusal::Algorithm, "uses another algorithm than this service accepts")
    }

    pub(super) fn signature() -> Self {
        Self::new(TokenRefusal::Signature, "has a wrong signature")
    }

    pub(super) fn unknown_key() -> Self {
        Self::new(TokenRefusal::UnknownKey, "names an unknown key (kid)")
    }

    pub(super) fn busy() -> Self {
        Self::new(TokenRefusal::Busy, "was not checked, because too many forged ones arrive; try again")
    }

    /// Whether nothing is said about the token: the check did not take place.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.refusal == TokenRefusal::Busy
    }

    /// Whether the same token is refused at any later moment under the same keys.
    pub(super) const fn is_final(&self) -> bool {
        match self.refusal {
            TokenRefusal::Signature | TokenRefusal::Expired | TokenRefusal::Claims => true,
            // Cheap to refuse again, or not for ever.
            TokenRefusal::Malformed
            | TokenRefusal::Algorithm
            | TokenRefusal::UnknownKey
            | TokenRefusal::NotYet
            | TokenRefusal::Busy => false,
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
            ErrorKind::ExpiredSignature => Self::new(TokenRefusal::Expired, "has expired, get a new one"),
            ErrorKind::ImmatureSignature => Self::new(TokenRefusal::NotYet, "is not valid yet (nbf)"),
            ErrorKind::InvalidSignature => Self::signature(),
            ErrorKind::InvalidAudience => Self::new(TokenRefusal::Claims, "is for another audience (aud)"),
            ErrorKind::InvalidIssuer => Self::new(TokenRefusal::Claims, "is from another issuer (iss)"),
            ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => Self::algorithm(),
            ErrorKind::MissingRequiredClaim(claim) => {
                Self::new(TokenRefusal::Claims, format!("lacks the claim {claim}"))
            }
            _ => Self::malformed(),
        }
    }
}

/// Counts refused tokens, those that were remembered too.
pub(super) struct RefusalCounts([Counter; TokenRefusal::LABELS.len()]);

impl RefusalCounts {
    /// Of this kind of token.
    pub(super) fn new(section: KeySection) -> Self {
        Self(TokenRefusal::LABELS.map(|label| {
            let counter = match section {
                KeySection::Auth => metrics::counter!("seckill_p1_entry_tokens_refused_total", "why" => label),
                KeySection::Passes => metrics::counter!("seckill_p1_entry_passes_refused_total", "why" => label),
            };
            counter.increment(0);
            counter
        }))
    }

    pub(super) fn count(&self, refusal: TokenRefusal) {
        if let Some(counter) = self.0.get(refusal as usize) {
            counter.increment(1);
        }
    }
}
