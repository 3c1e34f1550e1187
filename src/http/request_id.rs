//! `X-Request-Id`: the caller's or a new one, in every answer; it is the current id while its call is handled.
//!
//! An id of a caller that cannot be used (too long, other characters, given twice) is replaced: an id that only helps to find
//! log lines is no reason to refuse a purchase. Bytes that are not an HTTP request are refused earlier and have no id. By hand,
//! because crates for request ids box a future or open a span for every call; this adds a header and a line at debug level.

use crate::telemetry::http_request_id::HttpRequestId;
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use pin_project_lite::pin_project;
use std::future::{Future, Ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// Middleware: gives each call its `X-Request-Id`.
pub(crate) struct RequestIdMiddleware;

impl<S, B> Transform<S, ServiceRequest> for RequestIdMiddleware
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type InitError = ();
    type Transform = RequestIdService<S>;
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        std::future::ready(Ok(RequestIdService { inner }))
    }
}

/// The service that the middleware wraps.
pub(crate) struct RequestIdService<S> {
    inner: S,
}

impl<S, B> Service<ServiceRequest> for RequestIdService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Future = WithRequestIdFuture<S::Future>;

    forward_ready!(inner);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let id = of(request.headers());
        let _entered = id.enter();
        WithRequestIdFuture { inner: self.inner.call(request), id }
    }
}

/// The id of the call with these headers: the caller's or a new one.
pub(crate) fn of(request: &HeaderMap) -> HttpRequestId {
    let given = || {
        let mut values = request.get_all(NAME);
        let value = values.next()?;
        HttpRequestId::given(value.as_bytes()).filter(|_| values.next().is_none())
    };
    given().unwrap_or_else(HttpRequestId::made)
}

/// Puts the id in the headers of its answer.
pub(crate) fn put(id: &HttpRequestId, answer: &mut HeaderMap) {
    if let Ok(value) = HeaderValue::from_maybe_shared(id.bytes()) {
        answer.insert(NAME, value);
    }
}

/// What the line about an answered call says of a request that is gone by then; nothing unless the line is wanted.
pub(crate) struct CallToLog(Option<Box<(Method, String)>>);

impl CallToLog {
    pub(crate) fn new(method: &Method, path: &str) -> Self {
        let wanted = tracing::enabled!(target: "seckill::p1_entry", tracing::Level::DEBUG);
        Self(wanted.then(|| Box::new((method.clone(), path.to_owned()))))
    }

    pub(crate) fn answered(&self, status: StatusCode) {
        if let Some(call) = &self.0 {
            log_answered(&call.0, &call.1, status);
        }
    }
}

/// The line about an answered call. The log filter that docs/operations.md names for calls is `seckill::p1_entry`.
fn log_answered(method: &Method, path: &str, status: StatusCode) {
    tracing::debug!(
        target: "seckill::p1_entry", phase = "p1_entry", %method, path, status = status.as_u16(), "answered"
    );
}

pin_project! {
    /// Handles one call under its id.
    pub(crate) struct WithRequestIdFuture<F> {
        #[pin]
        inner: F,
        id: HttpRequestId,
    }
}

impl<F, B> Future for WithRequestIdFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _entered = this.id.enter();
        let mut answer = ready!(this.inner.poll(context))?;
        put(this.id, answer.headers_mut());
        log_answered(answer.request().method(), answer.request().path(), answer.status());
        Poll::Ready(Ok(answer))
    }
}
