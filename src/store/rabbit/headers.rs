//! Message headers: our few scalar ones, to and from the library's tables.

use super::error::RabbitError;
use amqprs::{BasicProperties, FieldTable, FieldValue, ShortStr};
use std::collections::BTreeMap;
use std::fmt;

/// Counts how often a message was tried before; written when it is sent again, absent the first time.
pub const ATTEMPT_HEADER: &str = "x-seckill-attempt";
/// Counts how often in a row a message was sent back for no fault of its own, such as a locked sale: it makes the pause longer
/// and parks nothing. Absent when it was tried.
pub const WAIT_HEADER: &str = "x-seckill-waits";
/// Names that start like this are ours; every other `x-` name is the broker's own.
const OURS: &str = "x-seckill-";
/// Largest body, in bytes. Ours are below 4 KiB; the limit bounds what a window of messages can take.
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of a header's name, a limit of the protocol; the same limit is kept for other short texts.
pub(super) const SHORT_BYTES_MAX: usize = 255;
/// Most bytes of a header's text: far below one frame, which is what a whole header table must fit into.
const TEXT_BYTES_MAX: usize = 4096;

/// Headers by name.
pub type Headers = BTreeMap<String, HeaderValue>;

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// A string of any length.
    Text(String),
    /// A whole number.
    Int(i64),
}

impl fmt::Display for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Int(number) => write!(f, "{number}"),
        }
    }
}

/// How often a message with these headers was tried before. 0 when the header is missing or unreadable.
#[must_use]
pub fn attempts(headers: &Headers) -> u32 {
    counted(headers, ATTEMPT_HEADER)
}

/// How often in a row a message with these headers was sent back for no fault of its own.
#[must_use]
pub fn waits(headers: &Headers) -> u32 {
    counted(headers, WAIT_HEADER)
}

fn counted(headers: &Headers, name: &str) -> u32 {
    match headers.get(name) {
        Some(HeaderValue::Int(number)) => u32::try_from(*number).unwrap_or(0),
        Some(HeaderValue::Text(text)) => text.parse().unwrap_or(0),
        None => 0,
    }
}

/// Refuses a text that the protocol's short strings cannot hold; the library would panic on it.
pub(super) fn short(field: &'static str, text: &str) -> Result<(), RabbitError> {
    fits(field, text.len(), SHORT_BYTES_MAX)
}

/// Refuses a field above its limit.
pub(super) fn fits(field: &'static str, bytes: usize, bytes_max: usize) -> Result<(), RabbitError> {
    if bytes > bytes_max { Err(RabbitError::TooLong { field, bytes, bytes_max }) } else { Ok(()) }
}

/// To the library's table, without the broker's own `x-` headers: a broker up to 3.13 believes an `x-death` that comes
/// with a publish, sees a dead-letter cycle in it and drops the message (loss window 57).
pub(super) fn to_table(headers: &Headers) -> Result<FieldTable, RabbitError> {
    let mut table = FieldTable::new();
    for (name, value) in headers {
        if name.starts_with("x-") && !name.starts_with(OURS) {
            continue;
        }
        let key = ShortStr::try_from(name.as_str()).map_err(|_| RabbitError::TooLong {
            field: "header name",
            bytes: name.len(),
            bytes_max: SHORT_BYTES_MAX,
        })?;
        let value = match value {
            HeaderValue::Int(number) => FieldValue::l(*number),
            HeaderValue::Text(text) => {
                fits("header text", text.len(), TEXT_BYTES_MAX)?;
                FieldValue::from(text.as_str())
            }
        };
        table.insert(key, value);
    }
    Ok(table)
}

/// From a received message; values that are neither text nor a whole number (the `x-death` list) are left out.
pub(super) fn from_properties(properties: &BasicProperties) -> Headers {
    let Some(table) = properties.headers() else { return Headers::new() };
    let entries: &std::collections::HashMap<ShortStr, FieldValue> = table.as_ref();
    entries.iter().filter_map(|(name, value)| Some((name.to_string(), scalar(value)?))).collect()
}

fn scalar(value: &FieldValue) -> Option<HeaderValue> {
    let number = match value {
        FieldValue::S(text) => return Some(HeaderValue::Text(text.to_string())),
        FieldValue::b(n) => i64::from(*n),
        FieldValue::B(n) => i64::from(*n),
        FieldValue::s(n) => i64::from(*n),
        FieldValue::u(n) => i64::from(*n),
        FieldValue::I(n) => i64::from(*n),
        FieldValue::i(n) => i64::from(*n),
        FieldValue::l(n) => *n,
        FieldValue::T(n) => i64::try_from(*n).ok()?,
        FieldValue::t(_) | FieldValue::f(_) | FieldValue::d(_) | FieldValue::D(_) => return None,
        FieldValue::A(_) | FieldValue::F(_) | FieldValue::V | FieldValue::x(_) => return None,
    };
    Some(HeaderValue::Int(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_the_table_and_the_brokers_own_are_left_behind() {
        let headers = Headers::from([
            (ATTEMPT_HEADER.to_owned(), HeaderValue::Int(3)),
            ("x-seckill-why".to_owned(), HeaderValue::Text("deadlock".to_owned())),
            ("x-death".to_owned(), HeaderValue::Text("cycle".to_owned())),
            ("x-delivery-count".to_owned(), HeaderValue::Int(9)),
        ]);
        let mut properties = BasicProperties::default();
        properties.with_headers(to_table(&headers).unwrap());
        let back = from_properties(&properties);
        assert_eq!(attempts(&back), 3);
        assert_eq!(back.keys().collect::<Vec<_>>(), [ATTEMPT_HEADER, "x-seckill-why"]);
    }

    #[test]
    fn an_unreadable_attempt_counts_as_none() {
        let with = |value| Headers::from([(ATTEMPT_HEADER.to_owned(), value)]);
        assert_eq!(attempts(&Headers::new()), 0);
        assert_eq!(attempts(&with(HeaderValue::Int(-1))), 0);
        assert_eq!(attempts(&with(HeaderValue::Text("4".to_owned()))), 4);
        assert_eq!(attempts(&with(HeaderValue::Text("x".to_owned()))), 0);
    }

    #[test]
    fn what_the_protocol_cannot_hold_is_an_error() {
        let headers = Headers::from([("n".repeat(256), HeaderValue::Int(1))]);
        assert!(matches!(to_table(&headers), Err(RabbitError::TooLong { field: "header name", .. })));
    }
}
