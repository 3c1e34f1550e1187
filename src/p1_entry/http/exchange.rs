//! `X-Request-Id`: the caller's, or one that is made, in every answer; and the current one while its request is handled.
//!
//! A caller's that cannot be used (too long, other characters, given twice) is replaced: an id for people who look for something is
//! no reason to refuse a purchase. Bytes that are no HTTP request are refused before they come here, and have none.

use crate::telemetry::exchange::ExchangeId;
use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform, forward_ready};
use actix_web::http::header::{HeaderName, HeaderValue};
use pin_project_lite::pin_project;
use std::future::{Future, Ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// The middleware.
pub(super) struct Naming;

impl<S, B> Transform<S, ServiceRequest> for Naming
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type InitError = ();
    type Transform = NamingService<S>;
    type Future = Ready<Result<Self::Transform, ()>>;

    fn new_transform(&self, inner: S) -> Self::Future {
        std::future::ready(Ok(NamingService { inner }))
    }
}

/// What is wrapped.
pub(super) struct NamingService<S> {
    inner: S,
}

impl<S, B> Service<ServiceRequest> for NamingService<S>
where
    S: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
{
    type Response = ServiceResponse<B>;
    type Error = Error;
    type Future = Named<S::Future>;

    forward_ready!(inner);

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let id = given(&request).unwrap_or_else(ExchangeId::made);
        let _entered = id.enter();
        Named { inner: self.inner.call(request), id }
    }
}

fn given(request: &ServiceRequest) -> Option<ExchangeId> {
    let mut values = request.headers().get_all(NAME);
    let value = values.next()?;
    ExchangeId::given(value.as_bytes()).filter(|_| values.next().is_none())
}

pin_project! {
    /// A request that is being handled.
    pub(super) struct Named<F> {
        #[pin]
        inner: F,
        id: ExchangeId,
    }
}

impl<F, B> Future for Named<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let _entered = this.id.enter();
        let mut answer = ready!(this.inner.poll(context))?;
        if let Ok(value) = HeaderValue::from_maybe_shared(this.id.bytes()) {
            answer.headers_mut().insert(NAME, value);
        }
        let (request, status) = (answer.request(), answer.status().as_u16());
        tracing::debug!(phase = "p1_entry", method = %request.method(), path = request.path(), status, "answered");
        Poll::Ready(Ok(answer))
    }
}
