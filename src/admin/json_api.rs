//! How the admin API reads requests and writes answers: strict queries and JSON bodies, the operator's name, problems.

use crate::domain::ids::SaleId;
use crate::domain::operator::Actor;
use crate::http::problem::{Kind, Problem};
use crate::telemetry::http_request_id::HttpRequestId;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Longest body, bytes: a thousand request ids fit.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Longest name of an operator, characters; its column has 64, and a word goes before it.
const NAME_CHARS_MAX: usize = 48;
/// Bytes of a message in a list; the list of one entry has all of it.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// A body before it is read.
pub(super) type JsonBody = Result<web::Bytes, actix_web::Error>;

/// Reads a JSON object strictly: an unknown field is an error.
pub(super) fn read<T: DeserializeOwned>(request: &HttpRequest, body: JsonBody) -> Result<T, Problem> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    if kind.split(';').next().unwrap_or("").trim() != "application/json" {
        return Err(Kind::WrongMediaType.because("send Content-Type: application/json"));
    }
    let body =
        body.map_err(|_| Kind::BodyTooLarge.because(format!("the body has more than {BODY_BYTES_MAX} bytes")))?;
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Kind::BadRequest.because("the body is not a JSON object, expected at least {}"));
    }
    serde_json::from_slice(&body)
        .map_err(|error| Kind::BadRequest.because(format!("the body is not as expected: {error}")))
}

/// Reads the query of an address strictly.
pub(super) fn query<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, Problem> {
    web::Query::from_query(request.query_string())
        .map(web::Query::into_inner)
        .map_err(|error| Kind::BadRequest.because(format!("the query is not as expected: {error}")))
}

/// 200 with the document, or the problem. Browsers may not store it.
pub(super) fn answer<T: Serialize>(request: &HttpRequest, outcome: Result<T, Problem>) -> HttpResponse {
    match outcome {
        Ok(document) => HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(document),
        Err(problem) => problem.respond(request),
    }
}

/// The sale id in an address or a query.
pub(super) fn sale_id_in(word: &str) -> Result<SaleId, Problem> {
    SaleId::parse(word).map_err(|error| Kind::BadRequest.because(error.to_string()))
}

/// The operator of this call: a holder of the token who typed this name. The address is that of the connection, so of a proxy if
/// there is one: headers about the way before it can be forged.
pub(super) fn actor(request: &HttpRequest, by: Option<&str>) -> Result<Actor, Problem> {
    let name = by.map(str::trim).filter(|name| !name.is_empty());
    if name.is_some_and(|name| name.chars().count() > NAME_CHARS_MAX) {
        return Err(Kind::Unprocessable.because(format!("by: expected at most {NAME_CHARS_MAX} characters")));
    }
    let call = request.headers().get("x-request-id").and_then(|id| HttpRequestId::given(id.as_bytes()));
    let ip = request.peer_addr().map(|address| address.ip().to_string());
    Ok(Actor::with_admin_token(name, ip, call.map(|id| id.to_string())))
}

/// The beginning of a message as text.
pub(super) fn message_text(payload: &[u8]) -> String {
    let head = payload.get(..MESSAGE_BYTES_MAX).unwrap_or(payload);
    let mut text = String::from_utf8_lossy(head).into_owned();
    if head.len() < payload.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn the_operator_is_named_by_what_was_typed_and_the_call_by_its_header() {
        let request = TestRequest::default()
            .insert_header(("x-request-id", "call-7"))
            .peer_addr("192.0.2.7:4711".parse().unwrap())
            .to_http_request();
        let (nobody, somebody) = (actor(&request, None).unwrap(), actor(&request, Some(" Li Wei ")).unwrap());
        assert_eq!((nobody.label().as_str(), somebody.label().as_str()), ("console", "console: Li Wei"));
        assert_eq!((somebody.ip.as_deref(), somebody.call_id.as_deref()), (Some("192.0.2.7"), Some("call-7")));
        assert!(actor(&request, Some(&"x".repeat(49))).is_err());
    }

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        assert_eq!(message_text(b"{}"), "{}");
        assert_eq!(message_text(&[b'x'; MESSAGE_BYTES_MAX + 1]).chars().count(), MESSAGE_BYTES_MAX + 1);
        assert!(message_text(&[b'x'; MESSAGE_BYTES_MAX + 1]).ends_with('…'));
        assert_eq!(message_text(&[0xff, b'a']), "\u{fffd}a");
    }
}
