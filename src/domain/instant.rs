//! A moment as people and programs write it: RFC 3339 with an offset. Without one it would be another moment in each time zone, so it is
//! refused, with what would be accepted. Pure.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, de::Error};

/// Why a text is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time: expected RFC 3339 with an offset, e.g. 2026-11-27T20:00:00+08:00 or 2026-11-27T12:00:00Z")]
pub(crate) struct NoInstant(String);

/// Reads a moment.
pub(crate) fn instant(text: &str) -> Result<DateTime<Utc>, NoInstant> {
    let shown = || NoInstant(text.chars().take(40).collect());
    DateTime::parse_from_rfc3339(text).map(|time| time.to_utc()).map_err(|_| shown())
}

/// For a field of serde.
pub(crate) fn read<'de, D: Deserializer<'de>>(value: D) -> Result<DateTime<Utc>, D::Error> {
    instant(&String::deserialize(value)?).map_err(D::Error::custom)
}

/// For a field of serde that may be left out; with `#[serde(default)]`.
pub(crate) fn read_optional<'de, D: Deserializer<'de>>(value: D) -> Result<Option<DateTime<Utc>>, D::Error> {
    let text = Option::<String>::deserialize(value)?;
    text.map(|text| instant(&text).map_err(D::Error::custom)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_an_offset_and_what_has_none_is_refused() {
        let ms = |text| instant(text).map(|time| time.timestamp_millis());
        assert_eq!(ms("2026-11-27T20:00:00+08:00"), ms("2026-11-27T12:00:00Z"));
        for text in ["2026-11-27T20:00:00", "2026-11-27", "20:00", "", "2026-11-27T20:00:00 08:00"] {
            let why = ms(text).unwrap_err().to_string();
            assert!(why.contains("RFC 3339 with an offset") && why.contains("+08:00"), "{why}");
        }
    }
}
