//! Answers held against the OpenAPI document that describes them: as much of JSON Schema as our documents use, and stricter in one
//! thing: an object has no field that its schema does not name, or has a schema for the others.

use serde_json::{Value, json};

/// The schema of the JSON of an answer.
pub fn of_answer<'d>(document: &'d Value, method: &str, template: &str, status: u16) -> &'d Value {
    &document["paths"][template][method]["responses"][status.to_string()]["content"]["application/json"]["schema"]
}

/// What of `value` is not as the schema says, each with its place; nothing when it fits.
pub fn misfits(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Checked { document, place: String::new() }.check(schema, value, &mut found);
    found
}

/// A part of an answer.
struct Checked<'d> {
    document: &'d Value,
    place: String,
}

impl Checked<'_> {
    fn at(&self, part: &str) -> Self {
        Checked { document: self.document, place: format!("{}/{part}", self.place) }
    }

    fn check(&self, schema: &Value, value: &Value, found: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            let named = self.document.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("no {name}"));
            return self.check(named, value, found);
        }
        if let Some(any) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
            if !any.iter().any(|one| misfits(self.document, one, value).is_empty()) {
                found.push(format!("{}: {value} fits none of {any:?}", self.place));
            }
            return;
        }
        if schema["allOf"].is_array() {
            // A field that one part does not name may be another part's.
            let mut whole = json!({ "type": "object", "properties": {}, "required": [] });
            self.put_together(schema, &mut whole);
            return self.check(&whole, value, found);
        }
        if schema["type"].is_null() {
            return;
        }
        let named: Vec<&str> = match schema["type"].as_array() {
            Some(types) => types.iter().filter_map(Value::as_str).collect(),
            None => vec![schema["type"].as_str().expect("a type")],
        };
        if !named.iter().any(|name| is_of(name, value)) {
            return found.push(format!("{}: {value} is none of {named:?}", self.place));
        }
        let elements = value.as_array().into_iter().flatten();
        elements.enumerate().for_each(|(at, one)| self.at(&at.to_string()).check(&schema["items"], one, found));
        self.check_fields(schema, value, found);
    }

    /// Adds the fields of an object, and those of its parts.
    fn put_together(&self, schema: &Value, whole: &mut Value) {
        if let Some(name) = schema["$ref"].as_str() {
            let named = self.document.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("no {name}"));
            return self.put_together(named, whole);
        }
        schema["allOf"].as_array().into_iter().flatten().for_each(|part| self.put_together(part, whole));
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            whole["properties"][name] = field.clone();
        }
        let needed = schema["required"].as_array().into_iter().flatten().cloned();
        whole["required"].as_array_mut().expect("a list").extend(needed);
    }

    fn check_fields(&self, schema: &Value, value: &Value, found: &mut Vec<String>) {
        let Some(fields) = value.as_object() else { return };
        let (known, others) = (&schema["properties"], &schema["additionalProperties"]);
        if known.is_null() && others.is_null() {
            return;
        }
        for (name, field) in fields {
            match (known.get(name), others) {
                (Some(schema), _) => self.at(name).check(schema, field, found),
                (None, Value::Object(_)) => self.at(name).check(others, field, found),
                (None, _) => found.push(format!("{}/{name} is not in the document", self.place)),
            }
        }
        for needed in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !fields.contains_key(needed) {
                found.push(format!("{}/{needed} is missing", self.place));
            }
        }
    }
}

fn is_of(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("a type {other:?}"),
    }
}
