//! Values of commands and answers: how they are written and read.

use super::fault::RedisFault;
use fred::types::Value;

/// Shorthand for argument lists.
pub(in crate::store::redis) fn text(value: impl Into<String>) -> Value {
    Value::String(value.into().into())
}

/// Reads an integer, whether it came as a number or as digits.
pub(in crate::store::redis) fn integer(value: &Value) -> Result<i64, RedisFault> {
    value.as_i64().ok_or_else(|| RedisFault::Contract(format!("expected a number, got {value:?}")))
}

/// Reads a list; null is an empty one.
pub(in crate::store::redis) fn list(value: Value) -> Result<Vec<Value>, RedisFault> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(Vec::new()),
        other @ (Value::Boolean(_)
        | Value::Integer(_)
        | Value::Double(_)
        | Value::String(_)
        | Value::Bytes(_)
        | Value::Queued
        | Value::Map(_)) => Err(RedisFault::Contract(format!("expected a list, got {other:?}"))),
    }
}

/// Reads a text; `None` for null.
pub(in crate::store::redis) fn optional_text(value: &Value) -> Option<String> {
    if value.is_null() { None } else { value.as_string() }
}
