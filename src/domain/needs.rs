//! What a sale needs of its buyers (Q1): facts with certain values, and perhaps a pass.
//!
//! Needs are of a sale from its creation and never change. So a copy of a sale that has them, however old, says what the sale says.

use super::facts::{FACT_VALUES_MAX, FACTS_MAX, is_fact_name, is_fact_value};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use utoipa::openapi::schema::{AnyOfBuilder, ArrayBuilder, ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

/// Longest text of needs, characters: their column has as many.
pub(crate) const NEEDS_CHARS_MAX: usize = 2_000;
/// A fact that no buyer can have, because no fact may be called so.
const UNREADABLE: &str = "?";

/// What a sale needs of its buyers: all of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Needs {
    /// A pass for the sale or for its drop.
    #[serde(default, skip_serializing_if = "is_not")]
    pub pass: bool,
    /// Of each of these facts one of these values.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, NeededValues>)]
    pub facts: BTreeMap<String, Vec<String>>,
}

/// What a name of needs has, for the documents: of a fact its values, of `pass` true. Every field of an object with free names must fit
/// their schema, and generators of types want `anyOf`.
struct NeededValues;

impl utoipa::PartialSchema for NeededValues {
    fn schema() -> RefOr<Schema> {
        let of = |of| ObjectBuilder::new().schema_type(of);
        let any = AnyOfBuilder::new().item(ArrayBuilder::new().items(of(Type::String))).item(of(Type::Boolean));
        any.description(Some("Of a fact its values, one of which is needed; of `pass` whether a pass is.")).into()
    }
}

impl utoipa::ToSchema for NeededValues {}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_not(needed: &bool) -> bool {
    !*needed
}

/// What is wrong with needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NeedsFault {
    /// They need nothing, or too many facts.
    Count,
    /// A name that no fact may have.
    Name,
    /// No values of a fact, too many, one that is none, or one twice.
    Values,
    /// Their text is too long.
    Length,
}

impl Needs {
    /// Why no sale may have these needs, if so.
    pub(crate) fn fault(&self) -> Option<NeedsFault> {
        let are_values = |values: &Vec<String>| {
            let different: BTreeSet<&String> = values.iter().collect();
            (1..=FACT_VALUES_MAX).contains(&values.len())
                && different.len() == values.len()
                && values.iter().all(|value| is_fact_value(value))
        };
        match () {
            () if self.facts.is_empty() && !self.pass || self.facts.len() > FACTS_MAX => Some(NeedsFault::Count),
            () if !self.facts.keys().all(|name| is_fact_name(name)) => Some(NeedsFault::Name),
            () if !self.facts.values().all(are_values) => Some(NeedsFault::Values),
            () if self.text().chars().count() > NEEDS_CHARS_MAX => Some(NeedsFault::Length),
            () => None,
        }
    }

    /// As they are stored and shown: JSON.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads stored needs. What this version cannot read, no buyer has: a later version knows what it asks for.
    #[must_use]
    pub(crate) fn of_text(text: &str) -> Self {
        let unreadable = || Self { pass: true, facts: BTreeMap::from([(UNREADABLE.to_owned(), Vec::new())]) };
        serde_json::from_str(text).unwrap_or_else(|_ignored| unreadable())
    }

    /// What of it is not met: `is` says whether a fact has a value, `has_pass` whether there is a pass.
    #[must_use]
    pub(crate) fn are_met(&self, is: impl Fn(&str, &str) -> bool, has_pass: bool) -> bool {
        let has = |(fact, values): (&String, &Vec<String>)| values.iter().any(|value| is(fact, value));
        (has_pass || !self.pass) && self.facts.iter().all(has)
    }

    /// In words, in English and in Chinese.
    #[must_use]
    pub(crate) fn words(&self) -> [String; 2] {
        let pass = |text: &str| self.pass.then(|| text.to_owned());
        let facts = |or: &str| {
            let fact = |(fact, values): (&String, &Vec<String>)| format!("{fact} {}", values.join(or));
            self.facts.iter().map(fact).collect::<Vec<_>>()
        };
        let [mut english, mut chinese] = [facts(" or "), facts(" 或 ")];
        english.extend(pass("a pass"));
        chinese.extend(pass("通行证"));
        [english.join(", and "), chinese.join("，且 ")]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(text: &str) -> Needs {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn all_of_the_facts_are_needed_and_one_value_of_each() {
        let tier = needs(r#"{"tier": ["gold", "platinum"], "region": ["north"]}"#);
        let met = |facts: &[(&str, &str)]| tier.are_met(|fact, value| facts.contains(&(fact, value)), false);
        assert!(met(&[("tier", "platinum"), ("region", "north")]));
        assert!(!met(&[("tier", "platinum")]) && !met(&[("tier", "silver"), ("region", "north")]) && !met(&[]));
        let pass = needs(r#"{"pass": true}"#);
        assert_eq!([true, false].map(|has_pass| pass.are_met(|_, _| false, has_pass)), [true, false]);
    }

    #[test]
    fn what_is_stored_reads_the_same_and_what_cannot_be_read_is_met_by_no_buyer() {
        for text in [r#"{"pass":true}"#, r#"{"pass":true,"tier":["gold"]}"#, r#"{"tier":["金","b"]}"#] {
            assert_eq!((needs(text).text().as_str(), Needs::of_text(text)), (text, needs(text)));
        }
        for later in [r#"{"tier":{"at_least":3}}"#, r#"{"pass":"gold"}"#, "tier=gold", ""] {
            assert!(!Needs::of_text(later).are_met(|_, _| true, true), "{later}");
        }
    }

    #[test]
    fn each_fault_is_found() {
        let fault = |text: &str| needs(text).fault();
        let list = |values: u32| {
            format!(r#"{{"t":[{}]}}"#, (0..values).map(|n| format!(r#""{n}""#)).collect::<Vec<_>>().join(","))
        };
        assert_eq!(fault(&list(32)), None);
        for (text, found) in [
            ("{}", NeedsFault::Count),
            (r#"{"pass":false}"#, NeedsFault::Count),
            (r#"{"Tier":["a"]}"#, NeedsFault::Name),
            (r#"{"sub":["a"]}"#, NeedsFault::Name),
            (r#"{"tier":[]}"#, NeedsFault::Values),
            (r#"{"tier":["a","a"]}"#, NeedsFault::Values),
            (r#"{"tier":[""]}"#, NeedsFault::Values),
            (&list(33), NeedsFault::Values),
        ] {
            assert_eq!(fault(text), Some(found), "{text}");
        }
        let many = Needs { pass: true, facts: (0..17).map(|n| (format!("f{n}"), vec!["v".to_owned()])).collect() };
        assert_eq!(many.fault(), Some(NeedsFault::Count));
        let long = |fact: u32| (format!("f{fact}"), (0..16).map(|n| format!("{n:064}")).collect());
        assert_eq!(Needs { pass: false, facts: (0..2).map(long).collect() }.fault(), Some(NeedsFault::Length));
    }

    #[test]
    fn the_words_say_what_is_needed() {
        let [english, chinese] = needs(r#"{"pass":true,"tier":["gold","platinum"]}"#).words();
        assert_eq!(
            (english.as_str(), chinese.as_str()),
            ("tier gold or platinum, and a pass", "tier gold 或 platinum，且 通行证")
        );
    }
}
