//! Named tokens of operators and of the shop's backend (F10): who may do what on the admin API. Kept as their SHA-256, so that the
//! configuration holds nothing that opens a door.
//!
//! Input: tables in a file, or one text `name:role:sha256,…` where only text can be given. Output: tokens as they stand.

use serde::{Deserialize, Deserializer, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Most named tokens: each sign-in compares with all of them.
const TOKENS_MAX: usize = 64;
/// Longest name, characters: it is copied into columns that hold a little more.
const NAME_CHARS_MAX: usize = 48;
/// Shortest token, bytes. This number of random ones is beyond guessing; wrong ones need not be slowed.
pub const TOKEN_BYTES_MIN: usize = 32;
/// Names that the record of acts has for others: holders of `admin.token`, the console, the command line, the reconciler.
const RESERVED: [&str; 5] = ["admin", "admin.token", "console", "cli", "p5_reconcile"];
/// Digits of a SHA-256.
const DIGITS: usize = 64;
const EXPECTED: &str =
    "expected a list of { name, role, sha256 }, or a text name:role:sha256 with commas between its parts";

/// What the holder of a token may do, beside reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OperatorRole {
    /// Nothing but reading.
    View,
    /// Sales, dead-letter queues, cancelling an order.
    Operate,
    /// Payments, refunds, cancelling an order.
    Money,
}

impl OperatorRole {
    /// The code, as in the configuration and in the record of acts.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Operate => "operate",
            Self::Money => "money",
        }
    }

    fn from_code(code: &str) -> Option<Self> {
        [Self::View, Self::Operate, Self::Money].into_iter().find(|role| role.code() == code)
    }
}

/// One token.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NamedToken {
    /// Who has it.
    pub name: String,
    /// What its holder may do.
    pub role: OperatorRole,
    /// SHA-256 of the token, 64 hexadecimal digits.
    pub sha256: String,
}

/// Tokens in the order in which they are given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct NamedTokens(Vec<NamedToken>);

#[derive(Deserialize)]
#[serde(untagged)]
enum TokensAsGiven {
    List(Vec<NamedToken>),
    Text(String),
}

impl<'de> Deserialize<'de> for NamedTokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        match TokensAsGiven::deserialize(deserializer).map_err(|_ignored| D::Error::custom(EXPECTED))? {
            TokensAsGiven::List(list) => Ok(Self(list)),
            TokensAsGiven::Text(text) => text
                .split(',')
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .map(|part| of_text(part).ok_or_else(|| D::Error::custom(EXPECTED)))
                .collect::<Result<_, _>>()
                .map(Self),
        }
    }
}

fn of_text(part: &str) -> Option<NamedToken> {
    let mut parts = part.split(':');
    let (name, role, sha256) = (parts.next()?, OperatorRole::from_code(parts.next()?)?, parts.next()?);
    parts.next().is_none().then(|| NamedToken { name: name.to_owned(), role, sha256: sha256.to_owned() })
}

impl NamedTokens {
    /// The tokens.
    #[must_use]
    pub fn all(&self) -> &[NamedToken] {
        &self.0
    }

    /// What is wrong with them.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.0.len() > TOKENS_MAX {
            found.push(format!("{} tokens, expected at most {TOKENS_MAX}", self.0.len()));
        }
        let (mut names, mut digests) = (BTreeSet::new(), BTreeMap::new());
        for NamedToken { name, sha256, .. } in &self.0 {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            if !(1..=NAME_CHARS_MAX).contains(&name.len()) || !name.chars().all(plain) {
                found.push(format!("name {name:?}, expected 1 to {NAME_CHARS_MAX} of A-Z a-z 0-9 . _ -"));
            }
            if RESERVED.contains(&name.as_str()) {
                found.push(format!("name {name:?} is one that acts have of another actor, expected another one"));
            }
            if let Some(other) = digests.insert(sha256, name) {
                found
                    .push(format!("{other:?} and {name:?} have the same sha256, expected a token of its own for each"));
            }
            if !names.insert(name) {
                found.push(format!("name {name:?} is given twice"));
            }
            if sha256.len() != DIGITS || !sha256.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
                found.push(format!(
                    "sha256 of {name:?}: expected {DIGITS} hexadecimal digits, e.g. of: printf %s TOKEN | sha256sum"
                ));
            }
        }
        found
    }
}

/// What is wrong with `admin.token`, beside the named ones.
pub(super) fn complaints_about_the_first(token: &str, named: &NamedTokens) -> Vec<String> {
    let mut found = Vec::new();
    if !token.is_empty() && token.len() < TOKEN_BYTES_MIN {
        found.push(format!(
            "admin.token: has {} bytes, expected none or {TOKEN_BYTES_MIN} random ones or more, e.g. of: openssl rand -hex 32",
            token.len()
        ));
    }
    let digest: String = Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect();
    if let Some(same) = named.0.iter().find(|other| other.sha256 == digest) {
        found.push(format!("admin.tokens: {:?} has the sha256 of admin.token, expected a token of its own", same.name));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<NamedTokens, serde_json::Error> {
        serde_json::from_value(serde_json::Value::from(text))
    }

    #[test]
    fn a_text_and_a_list_say_the_same_and_nonsense_is_refused_without_being_shown() {
        let (hash, other) = ("ab".repeat(32), "cd".repeat(32));
        let listed: NamedTokens = serde_json::from_value(
            serde_json::json!([{ "name": "shop", "role": "money", "sha256": hash }, { "name": "li", "role": "view", "sha256": other }]),
        )
        .unwrap();
        assert_eq!(of(&format!("shop:money:{hash}, li:view:{other}")).unwrap(), listed);
        assert!(listed.complaints().is_empty() && of("").unwrap().all().is_empty());
        for wrong in ["hunter2", "a:root:00", "a:view:00:x"] {
            let error = of(wrong).unwrap_err().to_string();
            assert!(error.contains("name:role:sha256") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn every_rule_names_what_is_wrong() {
        let hash = "ab".repeat(32);
        let complaint = |text: &str| of(text).unwrap().complaints().join("; ");
        assert!(complaint(&format!("a b:view:{hash}")).contains("name \"a b\""));
        for name in RESERVED {
            assert!(complaint(&format!("{name}:view:{hash}")).contains("another actor"), "{name}");
        }
        assert!(complaint(&format!("a:view:{hash},b:money:{hash}")).contains("\"a\" and \"b\" have the same sha256"));
        assert!(complaint(&format!("a:view:{hash},a:money:{hash}")).contains("given twice"));
        assert!(complaint("a:view:ABC").contains("64 hexadecimal digits"));
        let of_first = |token: &str, named: &str| complaints_about_the_first(token, &of(named).unwrap()).join("; ");
        assert!(of_first(&"x".repeat(31), "").contains("has 31 bytes, expected none or 32 random ones"));
        assert_eq!((of_first("", ""), of_first(&"x".repeat(32), "")), (String::new(), String::new()));
        let digest: String = Sha256::digest("x".repeat(32)).iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(
            of_first(&"x".repeat(32), &format!("li:view:{digest}")).contains("\"li\" has the sha256 of admin.token")
        );
    }
}
