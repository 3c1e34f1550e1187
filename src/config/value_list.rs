//! Several values of one key: a list in a file, or one text with commas where only text can be given.
//!
//! Input: what stands in a file or a variable. Output: the values in their order. No error shows a value of a kind that may be secret.

use serde::de::{DeserializeOwned, Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// Values in the order in which they are given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ValueList<T>(Vec<T>);

/// What a list may hold.
pub(crate) trait ListValue: DeserializeOwned {
    /// What is to be given, for error texts.
    const EXPECTED: &'static str;
    /// Whether no error may show what was given.
    const IS_SECRET: bool = false;

    /// The values in a text.
    fn parts(text: &str) -> Result<Vec<Self>, String>;
}

impl<T> ValueList<T> {
    /// The values.
    #[must_use]
    pub fn all(&self) -> &[T] {
        &self.0
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for ValueList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<Vec<T>> for ValueList<T> {
    fn from(values: Vec<T>) -> Self {
        Self(values)
    }
}

impl<'de, T: ListValue> Deserialize<'de> for ValueList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = deserializer.deserialize_any(ListOrText(PhantomData));
        // serde's own words for a value of another type show it.
        read.map_err(|error| if T::IS_SECRET { D::Error::custom(format!("expected {}", T::EXPECTED)) } else { error })
    }
}

struct ListOrText<T>(PhantomData<T>);

impl<'de, T: ListValue> Visitor<'de> for ListOrText<T> {
    type Value = ValueList<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ValueList<T>, E> {
        // As it stands in a file. Taken as one value it would be a secret that no one meant.
        if text.trim().starts_with('[') && text.trim().ends_with(']') {
            return Err(E::custom(
                "is a list in brackets, which only a file has; expected values with commas between them",
            ));
        }
        T::parts(text).map(ValueList).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ValueList<T>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(ValueList(values))
    }
}

/// The parts of a text without blanks around them; empty ones are none.
pub(super) fn trimmed(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Secret;

    #[test]
    fn a_list_of_a_file_is_no_text() {
        let read = |json: &str| serde_json::from_str::<ValueList<Secret>>(json);
        assert_eq!(read(r#"["one", "two"]"#).unwrap().all().len(), 2);
        assert_eq!(read(r#""one,two""#).unwrap().all().len(), 2);
        for text in [r#""[\"one\"]""#, r#"" [one, two] ""#, r#""[]""#] {
            assert!(read(text).unwrap_err().to_string().contains("commas"), "{text}");
        }
    }
}
