//! What the calls of the demo shop have in common: which bodies they take, and how they answer. Keeps nothing.

use crate::http::language::Language;
use crate::http::problem::{Kind, Problem};
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse};

/// 200 with the document, or the problem in the client's language.
pub(super) fn answer(request: &HttpRequest, outcome: Result<serde_json::Value, Problem>) -> HttpResponse {
    match outcome {
        Ok(document) => HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(document),
        Err(problem) => problem.respond(Language::of(request.headers())),
    }
}

/// Another site's page cannot send this type without being asked for first.
pub(super) fn must_be_json(request: &HttpRequest) -> Result<(), Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if kind.starts_with("application/json") { Ok(()) } else { Err(Kind::WrongMediaType.into()) }
}
