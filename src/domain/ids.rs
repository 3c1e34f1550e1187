//! Identifiers as they cross the system's edge: parsed once, compared byte for byte ever after.
//!
//! No normalising happens anywhere: two ids are the same only when their bytes are. Databases that fold case or trailing
//! spaces would merge two buyers into one (loss window 72), so the columns are `VARBINARY`.

use std::fmt;
use std::sync::Arc;

/// Why a text is not an identifier; the message names the value's problem and what would be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing was given.
    #[error("{what} is empty, expected {expected}")]
    Empty {
        /// Which identifier was read.
        what: &'static str,
        /// What would be accepted.
        expected: &'static str,
    },
    /// Longer than the column that stores it.
    #[error("{what} has {bytes} bytes, expected {expected}")]
    TooLong {
        /// Which identifier was read.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// What would be accepted.
        expected: &'static str,
    },
    /// A character outside the accepted set.
    #[error("{what} is malformed, expected {expected}")]
    Malformed {
        /// Which identifier was read.
        what: &'static str,
        /// What would be accepted.
        expected: &'static str,
    },
}

/// A sale: 1–64 characters of `[A-Za-z0-9_-]`, so it can stand in a URL, a Redis key and a metric label as it is.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SaleId(Arc<str>);

impl SaleId {
    /// Longest accepted id, in bytes.
    pub(crate) const BYTES_MAX: usize = 64;
    const EXPECTED: &'static str = "1 to 64 characters of A-Z a-z 0-9 _ -";

    /// Reads a sale id.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        Self::parse_as("sale_id", text)
    }

    /// The same; an error names it `what`.
    fn parse_as(what: &'static str, text: &str) -> Result<Self, IdError> {
        if text.is_empty() {
            return Err(IdError::Empty { what, expected: Self::EXPECTED });
        }
        if text.len() > Self::BYTES_MAX {
            return Err(IdError::TooLong { what, bytes: text.len(), expected: Self::EXPECTED });
        }
        if !Self::accepts(text) {
            return Err(IdError::Malformed { what, expected: Self::EXPECTED });
        }
        Ok(Self(Arc::from(text)))
    }

    /// Whether [`parse`](Self::parse) accepts it.
    pub(crate) fn accepts(text: &str) -> bool {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        (1..=Self::BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A drop: 1 to 64 sales that belong together. Spelled as a sale id is.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DropId(Arc<str>);

impl DropId {
    /// Reads a drop id.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        SaleId::parse_as("drop_id", text).map(|id| Self(id.0))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A buyer: the `sub` of the access token, 1–64 bytes of UTF-8, otherwise opaque.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(Arc<str>);

impl UserId {
    /// Longest accepted id, in bytes.
    pub(crate) const BYTES_MAX: usize = 64;
    const EXPECTED: &'static str = "1 to 64 bytes of UTF-8 without control characters";

    /// Reads a user id.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let what = "sub";
        if text.is_empty() {
            return Err(IdError::Empty { what, expected: Self::EXPECTED });
        }
        if text.len() > Self::BYTES_MAX {
            return Err(IdError::TooLong { what, bytes: text.len(), expected: Self::EXPECTED });
        }
        if text.chars().any(char::is_control) {
            return Err(IdError::Malformed { what, expected: Self::EXPECTED });
        }
        Ok(Self(Arc::from(text)))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A purchase request: a [Snowflake](super::snowflake), 1 … 2⁶³−1. Written as a decimal string wherever JSON is involved,
/// because browsers lose digits above 2⁵³.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId(u64);

impl RequestId {
    /// The lowest that there is.
    pub(crate) const LOWEST: Self = Self(1);
    const EXPECTED: &'static str = "a decimal number from 1 to 9223372036854775807 without sign or leading zeros";

    /// Wraps a number made by the generator or read from a store; `None` when it is out of range.
    #[must_use]
    pub const fn new(value: u64) -> Option<Self> {
        if value == 0 || value > i64::MAX.unsigned_abs() { None } else { Some(Self(value)) }
    }

    /// Reads the canonical decimal form; anything else is refused so that one id has exactly one spelling.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let malformed = IdError::Malformed { what: "request_id", expected: Self::EXPECTED };
        if text.is_empty() || text.len() > 19 || text.starts_with('0') || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(malformed);
        }
        text.parse().ok().and_then(Self::new).ok_or(malformed)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// An entry of a line: made by the same generator, spelled as a request id is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(u64);

impl EntryId {
    /// The entry that gets a number of the generator.
    #[must_use]
    pub const fn of(id: RequestId) -> Self {
        Self(id.get())
    }

    /// Wraps a number read from a store; `None` when it is out of range.
    #[must_use]
    pub const fn new(value: u64) -> Option<Self> {
        match RequestId::new(value) {
            Some(id) => Some(Self::of(id)),
            None => None,
        }
    }

    /// Reads the canonical decimal form.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let malformed = IdError::Malformed { what: "entry_id", expected: RequestId::EXPECTED };
        RequestId::parse(text).map(Self::of).map_err(|_ignored| malformed)
    }

    /// The number itself.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

macro_rules! text_forms {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&self.0)
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
    )*};
}
text_forms!(SaleId, DropId, UserId, RequestId, EntryId);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_request_id_has_exactly_one_spelling() {
        for bad in ["", "0", "01", "+1", "-1", " 1", "1 ", "1.0", "9223372036854775808", "18446744073709551616", "１"]
        {
            assert!(RequestId::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(RequestId::parse("9223372036854775807").unwrap().get(), 9_223_372_036_854_775_807);
    }

    #[test]
    fn sale_and_user_ids_have_their_bounds() {
        assert!(SaleId::parse(&"a".repeat(64)).is_ok());
        assert!(SaleId::parse(&"a".repeat(65)).is_err());
        assert!(SaleId::parse("a b").is_err());
        assert!(SaleId::parse("{0}").is_err());
        assert!(DropId::parse("a b").unwrap_err().to_string().starts_with("drop_id is malformed"));
        assert!(UserId::parse("ä".repeat(32).as_str()).is_ok());
        assert!(UserId::parse("ä".repeat(33).as_str()).is_err());
        assert!(UserId::parse("a\nb").is_err());
        assert!(UserId::parse("").is_err());
    }

    proptest! {
        #[test]
        fn request_ids_round_trip(n in 1u64..=i64::MAX.unsigned_abs()) {
            let id = RequestId::new(n).unwrap();
            prop_assert_eq!(RequestId::parse(&id.to_string()).unwrap(), id);
            let json = serde_json::to_string(&id).unwrap();
            prop_assert_eq!(&json, &format!("\"{n}\""));
            prop_assert_eq!(serde_json::from_str::<RequestId>(&json).unwrap(), id);
        }
    }
}
