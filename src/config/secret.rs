//! Values that never reach a log, an error text or `config show`.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

const SHOWN: &str = "***";

/// A secret text; its memory is wiped when it is dropped. Printing or serialising it shows `***`, and nothing when it is empty,
/// so that a missing secret is seen.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a secret.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(text.into())
    }

    /// The secret itself; the caller must not log it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether a blank or a newline stands at one of its ends: of a file that was made with `echo`, nearly always.
    #[must_use]
    pub(super) fn has_stray_ends(&self) -> bool {
        self.expose().trim() != self.expose()
    }

    fn shown(&self) -> &'static str {
        if self.expose().is_empty() { "" } else { SHOWN }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newline_at_an_end_is_noticed() {
        for (text, stray) in [("x\n", true), (" x", true), ("x\r\n", true), ("x y", false), ("", false)] {
            assert_eq!(Secret::new(text.into()).has_stray_ends(), stray, "{text:?}");
        }
    }

    #[test]
    fn a_secret_never_shows() {
        assert_eq!(format!("{:?}", Secret::new("x".into())), "***");
        assert_eq!(format!("{:?}", Secret::default()), "");
        assert_eq!(serde_json::to_string(&Secret::new("x".into())).unwrap(), "\"***\"");
    }
}
