//! Facts of a buyer: texts with a name, e.g. `tier` is `gold`. The access token has them, or a pass.
//!
//! A fact may have several values: a claim that is a list. A number without a fraction, and true or false, count as their texts.

use serde_json::Value;

/// Longest name of a fact, bytes.
pub(crate) const FACT_NAME_BYTES_MAX: usize = 32;
/// Longest value of a fact, bytes. A longer one is none.
pub(crate) const FACT_VALUE_BYTES_MAX: usize = 64;
/// Most facts that the settings, a sale or a pass may name.
pub(crate) const FACTS_MAX: usize = 16;
/// Most values of one fact.
pub(crate) const FACT_VALUES_MAX: usize = 32;

/// Names that tokens, passes and the calls that issue them have for something else.
const RESERVED: [&str; 12] = ["aud", "by", "drop", "exp", "iat", "iss", "jti", "nbf", "pass", "sale", "sub", "valid_s"];

/// Whether a fact may be called this: 1 to 32 of `a-z 0-9 _`, a letter first, and no name that is taken.
#[must_use]
pub(crate) fn is_fact_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=FACT_NAME_BYTES_MAX).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(is_plain)
        && !RESERVED.contains(&name)
}

/// Whether a fact may have this value: 1 to 64 bytes of UTF-8 without control characters.
#[must_use]
pub(crate) fn is_fact_value(value: &str) -> bool {
    (1..=FACT_VALUE_BYTES_MAX).contains(&value.len()) && !value.chars().any(char::is_control)
}

/// The values that a claim gives to a fact: its own, or those of its list. What can be no value is left out.
#[must_use]
pub(crate) fn fact_values(claim: &Value) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(is_so) => Some(is_so.to_string()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    };
    let values: Vec<String> = match claim {
        Value::Array(list) => list.iter().filter_map(one).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            one(claim).into_iter().collect()
        }
    };
    values.into_iter().filter(|value| is_fact_value(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_is_any_of_its_values_and_what_is_no_text_is_its_text_or_nothing() {
        for (claim, values) in [
            (json!("gold"), vec!["gold"]),
            (json!(["gold", 7, true, "gold"]), vec!["gold", "7", "true", "gold"]),
            (json!(18_446_744_073_709_551_615_u64), vec!["18446744073709551615"]),
            (json!(-1), vec!["-1"]),
            (json!(false), vec!["false"]),
            (json!(1.0), vec![]),
            (json!(null), vec![]),
            (json!({ "gold": true }), vec![]),
            (json!([["gold"], { "a": 1 }, null]), vec![]),
            (json!(""), vec![]),
            (json!("a\nb"), vec![]),
            (json!("x".repeat(65)), vec![]),
        ] {
            assert_eq!(fact_values(&claim), values, "{claim}");
        }
        assert_eq!(fact_values(&json!("x".repeat(64))).len(), 1);
    }

    #[test]
    fn a_name_is_plain_and_is_none_that_is_taken() {
        assert!(["tier", "person", "a", "tier_2", &"x".repeat(32)].into_iter().all(is_fact_name));
        let others = ["", "Tier", "2tier", "_tier", "ti-er", "tïer", "sub", "pass", "exp", &"x".repeat(33)];
        assert!(!others.into_iter().any(is_fact_name));
    }
}
