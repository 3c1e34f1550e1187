//! How the admin API reads requests and writes answers: strict queries and JSON bodies, problems.
//!
//! Bodies are read by hand, because `web::Json` takes other media types and reads an array as an object.

use crate::http::openapi::problem_responses;
use crate::http::problem::{Kind, Problem};
use actix_web::dev::Payload;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;

/// Longest body, bytes: a thousand request ids fit.
pub(super) const BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a message in a list; the list of one entry has all of it.
const MESSAGE_BYTES_MAX: usize = 4_096;

problem_responses! {
    /// Of calls that only read.
    ReadProblems: 400, 401, 422, 429, 500, 503;
    /// Of calls that read one sale.
    SaleReadProblems: 400, 401, 404, 409, 429, 500, 503;
    /// Of calls that change something.
    WriteProblems: 400, 401, 403, 404, 409, 413, 415, 422, 429, 500, 503;
}

/// What handlers return.
pub(super) type AdminAnswer = Result<HttpResponse, Problem>;

/// 200 with the document. Browsers may not store it.
pub(super) fn answer(document: impl Serialize) -> AdminAnswer {
    Ok(HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(document))
}

/// A JSON object, read strictly: an unknown field is an error.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned + 'static> FromRequest for JsonBody<T> {
    type Error = Problem;
    type Future = LocalBoxFuture<'static, Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let is_json = kind.split(';').next().unwrap_or("").trim() == "application/json";
        let body = web::Bytes::from_request(request, payload);
        async move {
            let body = body.await;
            if !is_json {
                return Err(Kind::WrongMediaType
                    .because_both("send Content-Type: application/json", "请以 Content-Type: application/json 发送"));
            }
            let too_large = |_| {
                let english = format!("the body has more than {BODY_BYTES_MAX} bytes");
                Kind::BodyTooLarge.because_both(english, format!("请求体超过 {BODY_BYTES_MAX} 字节"))
            };
            let body = body.map_err(too_large)?;
            if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
                return Err(Kind::BadRequest.because_both(
                    "the body is not a JSON object, expected at least {}",
                    "请求体不是 JSON 对象，至少应为 {}",
                ));
            }
            serde_json::from_slice(&body).map(Self).map_err(|error| unexpected_body(&error))
        }
        .boxed_local()
    }
}

/// A body that is JSON, with other fields or values than the call has.
pub(super) fn unexpected_body(error: &impl Display) -> Problem {
    Kind::BadRequest.because_both(format!("the body is not as expected: {error}"), format!("请求体不符合要求：{error}"))
}

/// The same of a query.
pub(super) fn unexpected_query(error: &impl Display) -> Problem {
    Kind::BadRequest
        .because_both(format!("the query is not as expected: {error}"), format!("查询参数不符合要求：{error}"))
}

/// How queries are read: one that does not fit is a problem that says why.
pub(super) fn query_config() -> web::QueryConfig {
    web::QueryConfig::default().error_handler(|error, _request| unexpected_query(&error).into())
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

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        assert_eq!(message_text(b"{}"), "{}");
        assert_eq!(message_text(&[b'x'; MESSAGE_BYTES_MAX + 1]).chars().count(), MESSAGE_BYTES_MAX + 1);
        assert!(message_text(&[b'x'; MESSAGE_BYTES_MAX + 1]).ends_with('…'));
        assert_eq!(message_text(&[0xff, b'a']), "\u{fffd}a");
    }
}
