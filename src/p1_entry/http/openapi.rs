//! The contract as a document: `/openapi.json`. The page that shows it (`/docs/`) is `console`'s.

use super::{events, orders, places, sales, tokens};
use crate::p1_entry::problem::Kind;
use actix_web::{HttpResponse, Responder};
use std::collections::BTreeSet;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{Modify, OpenApi};

/// A problem document (RFC 9457).
#[derive(utoipa::ToSchema)]
#[allow(dead_code, reason = "describes the document that `Problem::respond` writes")]
pub(super) struct ProblemBody {
    /// `urn:seckill:problem:<code>`
    r#type: String,
    /// The problem in the client's language (English or Chinese).
    title: String,
    status: u16,
    /// Stable code; a state code where a state is the reason.
    #[schema(example = "P2-R2")]
    code: String,
    /// This call: `urn:seckill:x-request-id:` and the answer's X-Request-Id.
    #[schema(example = "urn:seckill:x-request-id:5b1f6e0a9c2d4e37")]
    instance: Option<String>,
    /// What exactly, and what would be accepted.
    detail: Option<String>,
    /// The request it is about.
    request_id: Option<String>,
    /// Where to ask for its status.
    status_url: Option<String>,
    /// Units left.
    remaining: Option<u64>,
}

/// A problem; `code` says which, `Retry-After` when to come back.
#[derive(utoipa::ToResponse)]
#[response(description = "A problem; `code` says which", content_type = "application/problem+json")]
#[allow(dead_code, reason = "a name for the OpenAPI document")]
pub(super) struct ProblemResponse(ProblemBody);

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("JWT").build();
        document.components.get_or_insert_default().add_security_scheme("bearer", SecurityScheme::Http(scheme));
    }
}

/// Names every problem code in the document, so that it cannot lag behind the code.
struct Codes;

impl Modify for Codes {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemas = document.components.as_mut().map(|components| &mut components.schemas);
        let problem = schemas.and_then(|schemas| schemas.get_mut("ProblemBody"));
        let Some(RefOr::T(Schema::Object(problem))) = problem else { return };
        if let Some(RefOr::T(Schema::Object(code))) = problem.properties.get_mut("code") {
            let codes: BTreeSet<&str> = Kind::ALL.iter().map(|kind| kind.code()).collect();
            code.enum_values = Some(codes.into_iter().map(serde_json::Value::from).collect());
        }
    }
}

/// `X-Request-Id` of every call and every answer.
struct RequestIds;

const REQUEST_ID: &str = "X-Request-Id";

impl Modify for RequestIds {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        // Any text, without a pattern: what cannot be used is replaced, not refused.
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let sent = ParameterBuilder::new()
            .name(REQUEST_ID)
            .parameter_in(ParameterIn::Header)
            .description(Some("The caller's id of this call, 1 to 64 of A-Z a-z 0-9 . _ -; another one is replaced"))
            .schema(Some(text()))
            .build();
        let told = || {
            HeaderBuilder::new()
                .schema(Some(text()))
                .description(Some("The call's id: the caller's, or a new one"))
                .build()
        };
        for path in document.paths.paths.values_mut() {
            for call in [&mut path.get, &mut path.post].into_iter().flatten() {
                call.parameters.get_or_insert_default().push(RefOr::T(sent.clone()));
                let answers = call.responses.responses.values_mut();
                for answer in
                    answers.filter_map(|answer| if let RefOr::T(answer) = answer { Some(answer) } else { None })
                {
                    answer.headers.insert(REQUEST_ID.to_owned(), RefOr::T(told()));
                }
            }
        }
        let problem =
            document.components.as_mut().and_then(|components| components.responses.get_mut("ProblemResponse"));
        if let Some(RefOr::T(problem)) = problem {
            problem.headers.insert(REQUEST_ID.to_owned(), RefOr::T(told()));
        }
    }
}

#[derive(OpenApi)]
#[openapi(
    info(title = "seckill", description = "A flash-sale order system: 202 means admitted, the status tells the outcome."),
    paths(sales::list, sales::show, places::enter, places::show, tokens::issue, orders::buy, orders::show, events::follow),
    components(schemas(ProblemBody), responses(ProblemResponse)),
    modifiers(&Bearer, &Codes, &RequestIds),
    tags((name = "sales"), (name = "waiting room"), (name = "orders"))
)]
struct Document;

/// The OpenAPI document.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

pub(super) async fn json() -> impl Responder {
    HttpResponse::Ok().json(document())
}
