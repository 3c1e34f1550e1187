//! What a buyer passes before a purchase token of a sale is issued (Q4): proof of work, or the shop's risk service. Values only.
//!
//! The purchase itself asks nothing of it: a sale with a challenge takes purchases with a token only, and the token is the proof.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Most zero bits of a proof of work: about 17 million hashes, half a minute or more on a phone.
pub(crate) const POW_BITS_MAX: u8 = 24;
const POW_PREFIX: &str = "pow:";
const HOOK: &str = "hook";
const UNKNOWN: &str = "unknown";

/// The challenge of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Challenge {
    /// Proof of work: a text of which SHA-256 begins with this many zero bits, 1 to [`POW_BITS_MAX`].
    Pow(u8),
    /// The shop's risk service judges the buyer.
    Hook,
    /// A later version's: this one cannot put it to a buyer, so it issues no token.
    Unknown,
}

impl Challenge {
    /// Reads what an operator asks for: `pow:N` or `hook`.
    #[must_use]
    pub fn asked(text: &str) -> Option<Self> {
        if text == HOOK {
            return Some(Self::Hook);
        }
        let bits = text.strip_prefix(POW_PREFIX)?;
        // No sign, no leading zero: one challenge has one text.
        let plain = bits.bytes().all(|byte| byte.is_ascii_digit()) && !bits.starts_with('0');
        let bits = bits.parse().ok().filter(|bits| plain && (1..=POW_BITS_MAX).contains(bits))?;
        Some(Self::Pow(bits))
    }

    /// Reads what is stored.
    #[must_use]
    pub(crate) fn of_text(text: &str) -> Self {
        Self::asked(text).unwrap_or(Self::Unknown)
    }
}

impl fmt::Display for Challenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pow(bits) => write!(f, "{POW_PREFIX}{bits}"),
            Self::Hook => f.write_str(HOOK),
            Self::Unknown => f.write_str(UNKNOWN),
        }
    }
}

impl Serialize for Challenge {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Challenge {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        String::deserialize(text).map(|text| Self::of_text(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_has_one_text_and_what_is_none_is_refused() {
        for text in ["pow:1", "pow:16", "pow:24", "hook"] {
            assert_eq!(Challenge::asked(text).unwrap().to_string(), text);
        }
        for text in [
            "", "pow", "pow:", "pow:0", "pow:25", "pow:256", "pow:016", "pow:+16", "pow: 16", "Pow:16", "hook ",
            "unknown",
        ] {
            assert_eq!(Challenge::asked(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_a_later_version_stored_is_a_challenge_that_none_passes() {
        for text in ["captcha:v2", "pow:40", ""] {
            assert_eq!(Challenge::of_text(text), Challenge::Unknown, "{text:?}");
        }
        let json = serde_json::to_string(&Some(Challenge::Pow(18))).unwrap();
        assert_eq!((json.as_str(), serde_json::from_str(&json).unwrap()), ("\"pow:18\"", Some(Challenge::Pow(18))));
    }
}
