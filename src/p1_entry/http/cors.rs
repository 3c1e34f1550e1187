//! Browsers' pages of other origins (CORS): which may call, with what, and what they may read of the answers.
//!
//! Nothing here keeps anybody out: a browser asks these headers before it lets a page read an answer. Who may buy is decided by
//! the access token, which a page sends as a header by itself; cookies play no part, so none are allowed for.

use crate::config::{Origin, ValueList};
use actix_cors::Cors;
use actix_web::http::Method;
use actix_web::http::header::{
    ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE, HeaderName, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE,
};
use actix_web::middleware::Condition;

/// Request headers that the API reads, beside those every page may send.
const READ: [HeaderName; 8] = [
    ACCEPT_LANGUAGE,
    AUTHORIZATION,
    CONTENT_TYPE,
    HeaderName::from_static("idempotency-key"),
    HeaderName::from_static("seckill-pass"),
    HeaderName::from_static("seckill-place"),
    HeaderName::from_static("seckill-solution"),
    HeaderName::from_static("x-request-id"),
];
/// Answer headers that a client acts on, beside those every page may read.
const EXPOSED: [HeaderName; 4] = [LOCATION, RETRY_AFTER, WWW_AUTHENTICATE, HeaderName::from_static("x-request-id")];
/// How long a browser may remember a preflight, seconds: without it each purchase would cost two requests. Browsers cut it to
/// two hours or less; after a change of `http.cors_origins` a removed page may go on for as long.
const REMEMBERED_S: usize = 3600;

/// The middleware for pages of these origins. Without any it is passed by.
pub(super) fn for_pages_of(origins: &ValueList<Origin>) -> Condition<Cors> {
    let cors = Cors::default()
        .allowed_methods([Method::GET, Method::POST, Method::DELETE])
        .allowed_headers(READ)
        .expose_headers(EXPOSED)
        .max_age(REMEMBERED_S);
    Condition::new(!origins.is_empty(), origins.all().iter().map(Origin::as_str).fold(cors, Cors::allowed_origin))
}
