//! Which claims of an access token are facts of the buyer (`auth.facts`).
//!
//! Input: a table in a file, or one text `fact=claim,…` where only text can be given. Output: the claims by fact, and what is wrong.

use crate::domain::facts::{FACTS_MAX, is_fact_name};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Longest name of a claim, bytes: some issuers name claims by URLs.
const CLAIM_BYTES_MAX: usize = 128;
const EXPECTED: &str = "a table { fact = \"claim\" }, or a text fact=claim with commas between its parts";

/// The claims by the names of the facts that they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FactClaims(BTreeMap<String, String>);

impl FactClaims {
    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The claim of a fact.
    #[must_use]
    pub(crate) fn of(&self, fact: &str) -> Option<&str> {
        self.0.get(fact).map(String::as_str)
    }

    /// What is wrong with them.
    pub(super) fn complaints(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.0.len() > FACTS_MAX {
            found.push(format!("{} facts, expected at most {FACTS_MAX}", self.0.len()));
        }
        for (fact, claim) in &self.0 {
            if !is_fact_name(fact) {
                found.push(format!(
                    "{fact:?} is no name of a fact, expected 1 to 32 of a-z 0-9 _, a letter first, and none that tokens have for \
                     something else (sub, exp, pass, …)"
                ));
            }
            if !(1..=CLAIM_BYTES_MAX).contains(&claim.len()) {
                found.push(format!("the claim of {fact:?} has {} bytes, expected 1 to {CLAIM_BYTES_MAX}", claim.len()));
            }
        }
        found
    }
}

impl<'de> Deserialize<'de> for FactClaims {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TableOrText)
    }
}

struct TableOrText;

impl<'de> Visitor<'de> for TableOrText {
    type Value = FactClaims;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FactClaims, E> {
        let mut claims = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (fact, claim) =
                part.split_once('=').ok_or_else(|| E::custom(format!("{part:?}: expected {EXPECTED}")))?;
            if claims.insert(fact.trim().to_owned(), claim.trim().to_owned()).is_some() {
                return Err(E::custom(format!("{:?} is given twice", fact.trim())));
            }
        }
        Ok(FactClaims(claims))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<FactClaims, A::Error> {
        let mut claims = BTreeMap::new();
        while let Some((fact, claim)) = table.next_entry()? {
            claims.insert(fact, claim);
        }
        Ok(FactClaims(claims))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Settings};

    fn load(set: &str) -> Result<FactClaims, String> {
        let layers = Layers { files: vec![], set: vec![set.to_owned()] };
        Settings::load(&layers).map(|settings| settings.auth.facts).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_and_a_text_say_the_same() {
        let file = std::env::temp_dir().join(format!("seckill-facts-{}.toml", std::process::id()));
        std::fs::write(&file, "[auth]\nfacts = { tier = \"membership\", person = \"https://shop/pid\" }\n").unwrap();
        let listed = Settings::load(&Layers { files: vec![file.clone()], set: vec![] }).unwrap().auth.facts;
        std::fs::remove_file(file).unwrap();
        assert_eq!(load("auth.facts=tier=membership, person = https://shop/pid").unwrap(), listed);
        assert_eq!((listed.of("person"), listed.of("other")), (Some("https://shop/pid"), None));
        assert!(load("auth.facts=").unwrap().is_empty());
    }

    #[test]
    fn a_fact_that_cannot_be_is_named() {
        let many: Vec<String> = (0..17).map(|n| format!("f{n}=c")).collect();
        for (set, said) in [
            ("auth.facts=tier", "fact=claim"),
            ("auth.facts=tier=a,tier=b", "\"tier\" is given twice"),
            ("auth.facts=Tier=a", "auth.facts: \"Tier\" is no name of a fact"),
            ("auth.facts=sub=a", "auth.facts: \"sub\" is no name of a fact"),
            ("auth.facts=tier=", "auth.facts: the claim of \"tier\" has 0 bytes"),
            (&format!("auth.facts=tier={}", "c".repeat(129)), "has 129 bytes"),
            (&format!("auth.facts={}", many.join(",")), "17 facts, expected at most 16"),
        ] {
            let error = load(set).unwrap_err();
            assert!(error.contains(said), "{set}: {error}");
        }
    }
}
