//! The body of an act: the form of the call, and beside its fields what all acts have: `by`, and of changes `version`.
//!
//! The fields are taken out while the body is read, so the form stays strict: a field twice, or one that it does not have, is an error
//! with its place. The document of the form is the document of the body.

use super::calls::NAME_CHARS_MAX;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt::{self, Formatter};
use std::marker::PhantomData;
use utoipa::openapi::schema::{ObjectBuilder, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A form, and who wants it.
pub(super) struct ActBody<T, const VERSIONED: bool = false> {
    pub(super) form: T,
    pub(super) by: Option<String>,
    /// What the operator saw; only of a body that has it.
    pub(super) version: Option<u32>,
}

/// The form of a change: nothing is changed when the sale has another version.
pub(super) type ChangeBody<T> = ActBody<T, true>;

impl<'de, T: Deserialize<'de>, const VERSIONED: bool> Deserialize<'de> for ActBody<T, VERSIONED> {
    fn deserialize<D: Deserializer<'de>>(body: D) -> Result<Self, D::Error> {
        body.deserialize_map(BodyReader::<T, VERSIONED>(PhantomData))
    }
}

struct BodyReader<T, const VERSIONED: bool>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const VERSIONED: bool> Visitor<'de> for BodyReader<T, VERSIONED> {
    type Value = ActBody<T, VERSIONED>;

    fn expecting(&self, text: &mut Formatter<'_>) -> fmt::Result {
        text.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, fields: M) -> Result<Self::Value, M::Error> {
        let (mut by, mut version) = (None, None);
        let rest = FormFields { fields, by: &mut by, version: VERSIONED.then_some(&mut version) };
        let form = T::deserialize(MapAccessDeserializer::new(rest))?;
        Ok(ActBody { form, by: by.flatten(), version: version.flatten() })
    }
}

/// The fields that are the form's.
struct FormFields<'a, M> {
    fields: M,
    by: &'a mut Option<Option<String>>,
    version: Option<&'a mut Option<Option<u32>>>,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for FormFields<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        while let Some(key) = self.fields.next_key::<String>()? {
            match (key.as_str(), &mut self.version) {
                ("by", _) if self.by.is_some() => return Err(M::Error::duplicate_field("by")),
                ("by", _) => *self.by = Some(self.fields.next_value()?),
                ("version", Some(version)) if version.is_some() => return Err(M::Error::duplicate_field("version")),
                ("version", Some(version)) => **version = Some(self.fields.next_value()?),
                _ => return seed.deserialize(key.into_deserializer()).map(Some),
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.fields.next_value_seed(seed)
    }
}

impl<T: ToSchema, const VERSIONED: bool> ToSchema for ActBody<T, VERSIONED> {
    fn name() -> Cow<'static, str> {
        T::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
    }
}

impl<T: ToSchema, const VERSIONED: bool> PartialSchema for ActBody<T, VERSIONED> {
    fn schema() -> RefOr<Schema> {
        let mut schema = T::schema();
        if let RefOr::T(Schema::Object(form)) = &mut schema {
            let or_null = |other| SchemaType::from_iter([other, Type::Null]);
            if VERSIONED {
                let version = ObjectBuilder::new().schema_type(or_null(Type::Integer)).minimum(Some(0));
                let version = version
                    .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::Int32)));
                let version = version.description(Some(
                    "The version that was seen: with another one nothing is changed. Left out: whatever it is.",
                ));
                form.properties.insert("version".to_owned(), version.into());
            }
            let by = ObjectBuilder::new().schema_type(or_null(Type::String)).max_length(Some(NAME_CHARS_MAX));
            let by = by.description(Some("The operator, for the record."));
            form.properties.insert("by".to_owned(), by.into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Form {
        amount: i64,
        #[serde(default)]
        note: Option<String>,
    }

    fn read<const VERSIONED: bool>(text: &str) -> Result<(i64, Option<String>, Option<u32>), String> {
        let body: ActBody<Form, VERSIONED> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        assert_eq!(body.form.note, None);
        Ok((body.form.amount, body.by, body.version))
    }

    #[test]
    fn what_all_acts_have_is_taken_out_and_the_form_stays_strict() {
        assert_eq!(read::<false>(r#"{"by":"ann","amount":7}"#), Ok((7, Some("ann".to_owned()), None)));
        assert_eq!(read::<true>(r#"{"amount":7,"version":3,"by":null}"#), Ok((7, None, Some(3))));
        for (text, part) in [
            (r#"{"amount":7,"version":3}"#, "unknown field `version`"),
            (r#"{"amount":7,"sum":3}"#, "unknown field `sum`, expected `amount` or `note` at line 1 column 17"),
            (r#"{"amount":7,"amount":8}"#, "duplicate field `amount`"),
            (r#"{"amount":7,"by":"a","by":"b"}"#, "duplicate field `by`"),
            (r#"{"by":"a"}"#, "missing field `amount`"),
            (r#"{"amount":7,"by":7}"#, "invalid type: integer `7`, expected a string"),
            (r#"{"amount":"7"}"#, "expected i64 at line 1"),
        ] {
            let error = read::<false>(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert!(read::<true>(r#"{"amount":7,"version":3,"version":4}"#).unwrap_err().contains("duplicate field"));
    }
}
