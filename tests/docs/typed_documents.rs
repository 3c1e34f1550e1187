//! Both OpenAPI documents are typed to the end, so that a generated client has a field for each field: every JSON that is sent or answered
//! has a schema that says which fields there are, of which types, down to the leaves.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is untyped for a reason: schema and field, or call, and why.
const UNTYPED: [(&str, &str); 6] = [
    ("Act.before", "whatever was so before the act, as the version that did it wrote it"),
    ("Act.after", "the same of what was so after it"),
    ("AuditRun.sheet", "as the version that made the audit wrote it: a field of today may be missing in it"),
    ("Delivery.data", "an event: the AsyncAPI document has its types, by the `type` beside it"),
    ("PassBody.*", "facts of the shop's own, by its own names: a text, a number, true or false, or a list of these"),
    ("get /admin/v1/openapi.json 200", "an OpenAPI document, which is described by OpenAPI"),
];

/// What of a document says nothing about its JSON.
struct Walk<'d> {
    document: &'d Value,
    untyped: BTreeSet<String>,
    /// Schemas with a name whose fields were read, or are being read.
    seen: BTreeSet<&'d str>,
}

impl<'d> Walk<'d> {
    fn named(&mut self, reference: &'d str) {
        let name = reference.rsplit('/').next().unwrap();
        if self.seen.insert(name) {
            let schema = self.document.pointer(reference.trim_start_matches('#'));
            self.schema(schema.unwrap_or_else(|| panic!("no {reference}")), name);
        }
    }

    fn schema(&mut self, schema: &'d Value, place: &str) {
        if let Some(reference) = schema["$ref"].as_str() {
            return self.named(reference);
        }
        let parts = ["oneOf", "anyOf", "allOf"].into_iter().filter_map(|of| schema[of].as_array());
        let parts: Vec<&Value> = parts.flatten().collect();
        parts.iter().for_each(|part| self.schema(part, place));
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
        };
        let (fields, others) = (schema["properties"].as_object(), &schema["additionalProperties"]);
        let says_nothing = types.is_empty() && parts.is_empty();
        let has_no_fields = types.contains(&"object") && parts.is_empty() && fields.is_none() && !others.is_object();
        if says_nothing || has_no_fields {
            self.untyped.insert(place.to_owned());
        }
        if types.contains(&"array") {
            // One type of all elements: few generators know tuples.
            self.schema(&schema["items"], &format!("{place}[]"));
        }
        for (name, field) in fields.into_iter().flatten() {
            self.schema(field, &format!("{place}.{name}"));
        }
        if others.is_object() {
            self.schema(others, &format!("{place}.*"));
        }
    }

    /// What a body or an answer has.
    fn content(&mut self, of: &'d Value, place: &str) {
        for (kind, content) in of["content"].as_object().into_iter().flatten() {
            if kind.ends_with("json") {
                self.schema(&content["schema"], place);
            }
        }
    }

    fn call(&mut self, call: &'d Value, place: &str) {
        self.content(&call["requestBody"], &format!("{place} body"));
        for parameter in call["parameters"].as_array().into_iter().flatten() {
            self.schema(&parameter["schema"], &format!("{place} {}", parameter["name"]));
        }
        for (status, answer) in call["responses"].as_object().unwrap() {
            let named = answer["$ref"].as_str().map(|name| self.document.pointer(&name[1..]).unwrap());
            self.content(named.unwrap_or(answer), &format!("{place} {status}"));
        }
    }
}

fn untyped(document: &Value) -> BTreeSet<String> {
    let mut walk = Walk { document, untyped: BTreeSet::new(), seen: BTreeSet::new() };
    for (path, calls) in document["paths"].as_object().unwrap() {
        for (method, call) in calls.as_object().unwrap() {
            walk.call(call, &format!("{method} {path}"));
        }
    }
    walk.untyped
}

fn documents() -> [Value; 2] {
    [seckill::p1_entry::http::document(), seckill::admin::document()].map(|one| serde_json::to_value(one).unwrap())
}

#[test]
fn both_documents_are_typed_to_the_end() {
    let found: BTreeSet<String> = documents().iter().flat_map(untyped).collect();
    let excused: BTreeMap<&str, &str> = UNTYPED.into();
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), excused.into_keys().collect());
}

/// Generators make one type of each name. Two schemas of one name in one document would be one of them.
#[test]
fn a_name_means_the_same_in_both_documents() {
    let [public, admin] = documents();
    let schemas = |document: &Value| document["components"]["schemas"].as_object().unwrap().clone();
    let (public, admin) = (schemas(&public), schemas(&admin));
    let differ = public.iter().filter(|(name, schema)| admin.get(*name).is_some_and(|other| other != *schema));
    assert_eq!(differ.map(|(name, _)| name).collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Where one type of several is meant, no object may forbid what the others of the same value have.
#[test]
fn no_part_of_a_whole_forbids_the_fields_of_the_other_parts() {
    for document in documents() {
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for (name, schema) in schemas {
            for part in schema["allOf"].as_array().into_iter().flatten() {
                let of = part["$ref"].as_str().map_or(part, |reference| document.pointer(&reference[1..]).unwrap());
                assert_ne!(of["additionalProperties"], Value::Bool(false), "{name}: {of}");
            }
        }
    }
}
