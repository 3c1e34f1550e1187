//! `/admin/v1/openapi.json`: the admin API as a document, from one table. A test compares the table with the routes.

use super::json_api::answer;
use super::state::Admin;
use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Map, Value, json};

/// Method, path, what it does, fields of its JSON body (empty: `{}`) or of its query.
type Row = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Every route below `/admin/v1`.
pub const ROUTES: [Row; 20] = [
    ("get", "/sales", "List the newest sales", &[]),
    (
        "post",
        "/sales",
        "Create a sale as a draft, with `warm` also open it",
        &[
            "id",
            "product",
            "title",
            "stock",
            "limit",
            "price_cents",
            "currency",
            "starts_at",
            "ends_at",
            "token_required",
            "waiting_room",
            "warm",
            "by",
        ],
    ),
    ("get", "/sales/{sale_id}", "One sale, with what Redis holds of it", &[]),
    ("post", "/sales/{sale_id}/warm", "Put a sale's stock into Redis and open it", &["by"]),
    ("post", "/sales/{sale_id}/pause", "Stop selling; can be resumed", &["by"]),
    ("post", "/sales/{sale_id}/resume", "Go on selling", &["by"]),
    ("post", "/sales/{sale_id}/top-up", "Add units, once for each name of a grant", &["units", "grant", "by"]),
    (
        "post",
        "/sales/{sale_id}/reclaim",
        "Sell the units of final failures and of written-off gaps again, once each",
        &["by"],
    ),
    ("post", "/sales/{sale_id}/rebuild", "Freeze a sale; the reconciler builds what Redis holds of it anew", &["by"]),
    ("post", "/sales/{sale_id}/close", "End a sale for good", &["by"]),
    (
        "get",
        "/sales/{sale_id}/audit",
        "The balance sheet, made now: equations, acceptance numbers, findings, buyers of gaps",
        &["now"],
    ),
    ("get", "/audits", "The last runs of the audit with their findings", &["limit"]),
    ("get", "/acts", "What people did, newest first", &["sale_id", "before", "limit"]),
    ("get", "/dlq", "What is parked in both dead-letter queues and the register", &["source", "named"]),
    (
        "post",
        "/dlq/replay",
        "Land parked requests; the database is asked first",
        &["named", "all", "source", "dry_run", "by"],
    ),
    (
        "post",
        "/dlq/give-up",
        "Record that parked requests will never be orders",
        &["named", "all", "source", "dry_run", "by", "reason"],
    ),
    ("get", "/register", "The register of failures", &["status", "sale_id", "after", "limit"]),
    ("get", "/pipeline", "What lies at each hop, at most a second old", &[]),
    ("get", "/openapi.json", "This document", &[]),
    ("get", "/whoami", "Whether the token is right", &[]),
];

pub(super) async fn json(request: HttpRequest) -> HttpResponse {
    answer(&request, Ok(document()))
}

pub(super) async fn whoami(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let roles: Vec<&str> = admin.roles.iter().map(|role| role.name()).collect();
    answer(&request, Ok(json!({ "roles": roles, "version": env!("CARGO_PKG_VERSION") })))
}

/// The document (OpenAPI 3.1).
#[must_use]
pub fn document() -> Value {
    let mut paths = Map::new();
    for (method, path, summary, fields) in ROUTES {
        let operations = paths.entry(format!("/admin/v1{path}")).or_insert_with(|| json!({}));
        if let Some(operations) = operations.as_object_mut() {
            operations.insert(method.to_owned(), operation(method, path, summary, fields));
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": { "title": "seckill admin", "version": env!("CARGO_PKG_VERSION") },
        "security": [{ "bearer": [] }],
        "components": { "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer" } } },
        "paths": paths,
    })
}

fn operation(method: &str, path: &str, summary: &str, fields: &[&str]) -> Value {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": place == "path", "schema": { "type": "string" } });
    let mut parameters = Vec::new();
    if path.contains("{sale_id}") {
        parameters.push(parameter("sale_id", "path"));
    }
    let problem = json!({ "description": "A problem (RFC 9457)", "content": { "application/problem+json": {} } });
    let mut operation = json!({
        "summary": summary,
        "responses": { "200": { "description": "Done", "content": { "application/json": {} } }, "default": problem },
    });
    if method == "post" {
        let properties: Map<String, Value> = fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect();
        let schema = json!({ "type": "object", "additionalProperties": false, "properties": properties });
        operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    } else {
        parameters.extend(fields.iter().map(|field| parameter(field, "query")));
    }
    operation["parameters"] = Value::Array(parameters);
    operation
}
