//! The events as `docs/asyncapi.yaml` describes them: each message is held against the schema that a receiver would generate its
//! code from. A keyword that is not checked here fails the test, so that the schema cannot promise more than is held.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    serde_saphyr::from_str(include_str!("../../../docs/asyncapi.yaml")).expect("YAML in which no key is given twice")
});

/// The schema of the messages with a routing key.
fn of_key(key: &str) -> &'static Value {
    let messages = DOCUMENT["components"]["messages"].as_object().expect("messages");
    let message = messages.values().find(|message| message["name"] == key);
    &message.unwrap_or_else(|| panic!("{key} is not documented"))["payload"]
}

/// What is wrong with a message of the exchange; nothing when it is as documented.
pub fn problems_of_message(key: &str, message: &Value) -> Vec<String> {
    problems(message, of_key(key))
}

/// What is wrong with the call of a webhook: its envelope, and its event as a message of that type would have it.
pub fn problems_of_call(call: &Value) -> Vec<String> {
    let calls = DOCUMENT["components"]["schemas"]["WebhookCall"]["oneOf"].as_array().expect("calls");
    let mut of_type = calls.iter().map(|one| resolved(&one["$ref"]));
    let Some(schema) = of_type.find(|schema| schema["properties"]["type"]["const"] == call["type"]) else {
        return vec![format!("type: {} is of no call", call["type"])];
    };
    let mut found = problems(call, schema);
    if found.is_empty() {
        let message = serde_json::json!({ "v": 1, "events": [call["data"]] });
        found = problems_of_message(call["type"].as_str().expect("a type"), &message);
    }
    found
}

/// Fails the test when a message is not as documented.
pub fn assert_message(key: &str, message: &Value) {
    let found = problems_of_message(key, message);
    assert!(found.is_empty(), "{key}: {found:?}: {message}");
}

/// Fails the test when the call of a webhook is not as documented.
pub fn assert_call(call: &Value) {
    let found = problems_of_call(call);
    assert!(found.is_empty(), "{found:?}: {call}");
}

fn problems(value: &Value, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(value, schema, "message", &mut found);
    unknown_fields(value, &[schema], "message", &mut found);
    found
}

/// What a `$ref` names.
fn resolved(reference: &Value) -> &'static Value {
    let path = reference.as_str().and_then(|path| path.strip_prefix('#')).expect("a place in the document");
    DOCUMENT.pointer(path).unwrap_or_else(|| panic!("{path} is not in the document"))
}

fn check(value: &Value, schema: &Value, at: &str, found: &mut Vec<String>) {
    for (keyword, of) in schema.as_object().expect("a schema") {
        let holds = match keyword.as_str() {
            "description" => true,
            "$ref" => {
                check(value, resolved(of), at, found);
                true
            }
            "allOf" => {
                of.as_array().expect("schemas").iter().for_each(|part| check(value, part, at, found));
                true
            }
            "properties" => {
                for (name, part) in of.as_object().expect("fields") {
                    if let Some(field) = value.get(name) {
                        check(field, part, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(item, of, &format!("{at}[{index}]"), found);
                }
                true
            }
            keyword => is_held(value, keyword, of),
        };
        if !holds {
            found.push(format!("{at}: {keyword}: {of} does not hold for {value}"));
        }
    }
}

/// Whether a keyword about the value itself holds. As in JSON Schema, one about another type of value always does.
fn is_held(value: &Value, keyword: &str, of: &Value) -> bool {
    let length = value.as_array().map(|list| list.len() as u64);
    match keyword {
        "type" => of.as_array().map_or_else(|| has_type(value, of), |types| types.iter().any(|of| has_type(value, of))),
        "required" => {
            let mut names = of.as_array().expect("names").iter().filter_map(Value::as_str);
            value.as_object().is_none_or(|fields| names.all(|name| fields.contains_key(name)))
        }
        "const" => value == of,
        "enum" => of.as_array().expect("values").contains(value),
        "minimum" => value.as_i64().is_none_or(|number| number >= of.as_i64().expect("a number")),
        "minItems" => length.is_none_or(|length| length >= of.as_u64().expect("a number")),
        "maxItems" => length.is_none_or(|length| length <= of.as_u64().expect("a number")),
        "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= of.as_u64().expect("a number")),
        "pattern" => {
            let matches: fn(&str) -> bool = match of.as_str().expect("a pattern") {
                "^[A-Z]{3}$" => |text| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()),
                "^[0-9]+$" => |text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()),
                "^[0-9a-f]{64}$" => |text| {
                    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
                },
                pattern => panic!("the pattern {pattern} is not known here"),
            };
            value.as_str().is_none_or(matches)
        }
        "format" => {
            assert_eq!(of, "date-time", "this format is not known here");
            value.as_str().is_none_or(|text| chrono::DateTime::parse_from_rfc3339(text).is_ok())
        }
        keyword => panic!("the keyword {keyword} is not known here"),
    }
}

fn has_type(value: &Value, of: &Value) -> bool {
    match of.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        other => panic!("the type {other} is not known here"),
    }
}

/// Fields that no part of the schema names. A receiver lets them through; the document would lack them.
fn unknown_fields(value: &Value, schemas: &[&Value], at: &str, found: &mut Vec<String>) {
    let mut parts: Vec<&Map<String, Value>> = Vec::new();
    schemas.iter().for_each(|schema| collect(schema, &mut parts));
    let of_parts = |keyword: &str| parts.iter().filter_map(|part| part.get(keyword)).collect::<Vec<_>>();
    let properties = of_parts("properties");
    if let Some(fields) = value.as_object().filter(|_| !properties.is_empty()) {
        let known: BTreeSet<&String> = properties.iter().filter_map(|of| of.as_object()).flat_map(Map::keys).collect();
        for (name, field) in fields {
            if !known.contains(name) {
                found.push(format!("{at}: {name} is not documented"));
            }
            let of_field: Vec<&Value> = properties.iter().filter_map(|of| of.get(name)).collect();
            unknown_fields(field, &of_field, &format!("{at}.{name}"), found);
        }
    }
    let of_items = of_parts("items");
    value.as_array().into_iter().flatten().for_each(|item| unknown_fields(item, &of_items, at, found));
}

/// A schema with everything that it refers to.
fn collect<'a>(schema: &'a Value, parts: &mut Vec<&'a Map<String, Value>>) {
    let of = schema.as_object().expect("a schema");
    parts.push(of);
    if let Some(reference) = of.get("$ref") {
        collect(resolved(reference), parts);
    }
    of.get("allOf").and_then(Value::as_array).into_iter().flatten().for_each(|part| collect(part, parts));
}
