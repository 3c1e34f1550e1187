//! Times as both APIs, webhooks and the command line show them.

use chrono::{DateTime, SecondsFormat};

/// Unix milliseconds as RFC 3339, with its milliseconds.
#[must_use]
pub(crate) fn shown_time(unix_ms: i64) -> String {
    DateTime::from_timestamp_millis(unix_ms).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
}
