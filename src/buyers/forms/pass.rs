//! A pass as it is asked for: the body of `POST /admin/v1/passes`, and a line of the file of `seckill pass issue`.

use crate::domain::facts::{FACT_VALUES_MAX, FACTS_MAX, fact_values, is_fact_name};
use crate::domain::ids::{DropId, SaleId, UserId};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Longest time of a pass, seconds: a leap year.
const VALID_S_MAX: i64 = 366 * 86_400;
/// Longest `jti`, bytes.
const JTI_BYTES_MAX: usize = 64;

/// A pass for one buyer; what is no other field is a fact.
#[derive(Debug, Clone, Deserialize, utoipa::ToSchema)]
#[schema(as = PassBody)]
pub(crate) struct PassForm {
    /// The buyer: the `sub` of the access tokens.
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    sub: Option<String>,
    /// The sale that it is for; this or `drop`.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    sale: Option<String>,
    /// The drop that it is for, with all its sales.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    drop: Option<String>,
    /// The end of its time, Unix seconds; this or `valid_s`. At most 366 days from now.
    exp: Option<i64>,
    /// The same, seconds from now.
    #[schema(minimum = 1, maximum = 31_622_400)]
    valid_s: Option<i64>,
    /// Its own id; made up when left out.
    #[schema(min_length = 1, max_length = 64)]
    jti: Option<String>,
    /// Facts of the buyer: a text, a whole number, true or false, or a list of these.
    #[serde(flatten, deserialize_with = "each_once")]
    facts: BTreeMap<String, Value>,
}

/// What a pass is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PassOf {
    /// One sale.
    Sale(SaleId),
    /// All sales of a drop.
    Drop(DropId),
}

/// A pass that may be signed: its claims.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct NewPass {
    pub(crate) sub: UserId,
    #[serde(flatten)]
    pub(crate) of: PassOf,
    /// Unix seconds.
    pub(crate) exp: i64,
    pub(crate) jti: String,
    #[serde(flatten)]
    pub(crate) facts: BTreeMap<String, Value>,
}

/// Which field of a pass cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}")]
pub(crate) struct BadPass {
    /// A field of the form, or a fact.
    pub(crate) field: String,
    pub(crate) expected: &'static str,
    pub(crate) chinese: &'static str,
}

fn bad<T>(field: &str, expected: &'static str, chinese: &'static str) -> Result<T, BadPass> {
    // A name that is too long to be one is not repeated.
    Err(BadPass { field: field.chars().take(64).collect(), expected, chinese })
}

impl PassForm {
    /// The pass that is asked for at this time, Unix seconds; `jti` is made up where it gives none.
    ///
    /// # Errors
    /// Which field cannot be used.
    pub(crate) fn checked(self, now_s: i64, jti: impl FnOnce() -> String) -> Result<NewPass, BadPass> {
        let sub = self.sub.as_deref().map(UserId::parse);
        let Some(Ok(sub)) = sub else {
            return bad(
                "sub",
                "the buyer: the sub of the access tokens, 1 to 64 bytes of UTF-8 without control characters",
                "买家：访问令牌的 sub，1 至 64 字节的 UTF-8 文本，不含控制字符",
            );
        };
        let of = pass_of(self.sale.as_deref(), self.drop.as_deref())?;
        let exp = ends_at(self.exp, self.valid_s, now_s)?;
        let jti = self.jti.unwrap_or_else(jti);
        if !(1..=JTI_BYTES_MAX).contains(&jti.len()) || jti.chars().any(char::is_control) {
            return bad(
                "jti",
                "1 to 64 bytes of UTF-8 without control characters, or none",
                "1 至 64 字节的 UTF-8 文本，不含控制字符，或不填",
            );
        }
        facts_hold(&self.facts)?;
        Ok(NewPass { sub, of, exp, jti, facts: self.facts })
    }
}

fn pass_of(sale: Option<&str>, drop: Option<&str>) -> Result<PassOf, BadPass> {
    const ID: (&str, &str) = ("an id: 1 to 64 characters of A-Z a-z 0-9 _ -", "编号：1 至 64 个字符 A-Z a-z 0-9 _ -");
    match (sale, drop) {
        (Some(sale), None) => SaleId::parse(sale).map(PassOf::Sale).or_else(|_ignored| bad("sale", ID.0, ID.1)),
        (None, Some(drop)) => DropId::parse(drop).map(PassOf::Drop).or_else(|_ignored| bad("drop", ID.0, ID.1)),
        (Some(_), Some(_)) => bad("drop", "a sale or a drop, not both", "活动（sale）与组合（drop）二选一"),
        (None, None) => bad("sale", "a sale, or a drop in the field drop", "活动，或在 drop 中给出组合活动"),
    }
}

fn ends_at(exp: Option<i64>, valid_s: Option<i64>, now_s: i64) -> Result<i64, BadPass> {
    let is_usable = |exp: i64| exp > now_s && exp <= now_s.saturating_add(VALID_S_MAX);
    match (exp, valid_s) {
        (Some(exp), None) if is_usable(exp) => Ok(exp),
        (Some(_), None) => bad(
            "exp",
            "Unix seconds of a time to come, at most 366 days from now",
            "将来时间的 Unix 秒数，至多 366 天后",
        ),
        (None, Some(seconds)) if (1..=VALID_S_MAX).contains(&seconds) => Ok(now_s.saturating_add(seconds)),
        (None, Some(_)) => bad("valid_s", "1 to 31,622,400 seconds", "1 至 31,622,400 秒"),
        (Some(_), Some(_)) => bad("valid_s", "exp or valid_s, not both", "exp 与 valid_s 二选一"),
        (None, None) => {
            bad("exp", "the end of its time, or seconds in the field valid_s", "到期时间，或在 valid_s 中给出秒数")
        }
    }
}

fn facts_hold(facts: &BTreeMap<String, Value>) -> Result<(), BadPass> {
    if facts.len() > FACTS_MAX {
        return bad("facts", "16 of them at most", "至多 16 个");
    }
    for (name, value) in facts {
        if !is_fact_name(name) {
            return bad(
                name,
                "sub, sale or drop, exp or valid_s, jti, and facts with names of 1 to 32 of a-z 0-9 _, a letter first, that tokens \
                 have for nothing else",
                "sub、sale 或 drop、exp 或 valid_s、jti，以及名称为 1 至 32 个 a-z 0-9 _（字母开头、非令牌已有名称）的事实",
            );
        }
        let given = value.as_array().map_or(1, Vec::len);
        if !(1..=FACT_VALUES_MAX).contains(&given) || fact_values(value).len() != given {
            return bad(
                name,
                "a text of 1 to 64 bytes, a whole number, true or false, or a list of 1 to 32 of these",
                "1 至 64 字节的文本、整数、true 或 false，或由 1 至 32 个上述值组成的列表",
            );
        }
    }
    Ok(())
}

/// A fact that is given twice could be read as either.
fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Value>, D::Error> {
    struct EachOnce;

    impl<'de> Visitor<'de> for EachOnce {
        type Value = BTreeMap<String, Value>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("facts")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<BTreeMap<String, Value>, A::Error> {
            let mut facts = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, Value>()? {
                if facts.contains_key(&name) {
                    return Err(A::Error::custom(format!("duplicate field `{name}`")));
                }
                facts.insert(name, value);
            }
            Ok(facts)
        }
    }

    deserializer.deserialize_map(EachOnce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_800_000_000;

    fn checked(text: &str) -> Result<NewPass, String> {
        let form: PassForm = serde_json::from_str(text).map_err(|error| error.to_string())?;
        form.checked(NOW_S, || "made-up".to_owned()).map_err(|bad| bad.to_string())
    }

    #[test]
    fn the_claims_of_a_pass_are_what_was_asked_for() {
        let pass =
            checked(r#"{"sub":"买家","drop":"sneaker","tier":"gold","shops":[1,true,"a"],"valid_s":60}"#).unwrap();
        let claims =
            r#"{"sub":"买家","drop":"sneaker","exp":1800000060,"jti":"made-up","shops":[1,true,"a"],"tier":"gold"}"#;
        assert_eq!(serde_json::to_string(&pass).unwrap(), claims);
        let pass = checked(r#"{"sub":"b","sale":"s","exp":1800000001,"jti":"j"}"#).unwrap();
        assert_eq!(serde_json::to_string(&pass).unwrap(), r#"{"sub":"b","sale":"s","exp":1800000001,"jti":"j"}"#);
    }

    #[test]
    fn what_cannot_be_used_is_refused_by_its_field() {
        let many: String = (0..17).map(|n| format!(r#","f{n}":1"#)).collect();
        for (rest, said) in [
            (r#""sale":"s","valid_s":1"#, "sub: expected the buyer"),
            (r#""sub":"","sale":"s","valid_s":1"#, "sub: expected the buyer"),
            (r#""sub":7,"sale":"s","valid_s":1"#, "expected a string"),
            (r#""sub":"b","valid_s":1"#, "sale: expected a sale, or a drop"),
            (r#""sub":"b","sale":"s","drop":"d","valid_s":1"#, "drop: expected a sale or a drop, not both"),
            (r#""sub":"b","sale":"s s","valid_s":1"#, "sale: expected an id"),
            (r#""sub":"b","drop":"","valid_s":1"#, "drop: expected an id"),
            (r#""sub":"b","sale":"s""#, "exp: expected the end"),
            (r#""sub":"b","sale":"s","valid_s":0"#, "valid_s: expected 1 to 31,622,400"),
            (r#""sub":"b","sale":"s","valid_s":31622401"#, "valid_s: expected 1 to 31,622,400"),
            (r#""sub":"b","sale":"s","exp":1800000000"#, "exp: expected Unix seconds"),
            (r#""sub":"b","sale":"s","exp":1831622401"#, "exp: expected Unix seconds"),
            (r#""sub":"b","sale":"s","exp":1800000009,"valid_s":9"#, "valid_s: expected exp or valid_s"),
            (r#""sub":"b","sale":"s","valid_s":1,"jti":"""#, "jti: expected 1 to 64 bytes"),
            (r#""sub":"b","sale":"s","valid_s":1,"Tier":"gold""#, "Tier: expected sub"),
            (r#""sub":"b","sale":"s","valid_s":1,"nbf":1"#, "nbf: expected sub"),
            (r#""sub":"b","sale":"s","valid_s":1,"tier":1.5"#, "tier: expected a text"),
            (r#""sub":"b","sale":"s","valid_s":1,"tier":[]"#, "tier: expected a text"),
            (r#""sub":"b","sale":"s","valid_s":1,"tier":["a",null]"#, "tier: expected a text"),
            (r#""sub":"b","sale":"s","valid_s":1,"tier":"a","tier":"b""#, "duplicate field `tier`"),
            (r#""sub":"b","sub":"c","sale":"s","valid_s":1"#, "duplicate field `sub`"),
            (&format!(r#""sub":"b","sale":"s","valid_s":1{many}"#), "facts: expected 16"),
        ] {
            let error = checked(&format!("{{{rest}}}")).unwrap_err();
            assert!(error.contains(said), "{rest}: {error}");
        }
    }
}
