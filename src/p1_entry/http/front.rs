//! Purchases are answered before actix-web's `App`: the front of the public server.
//!
//! Input: every request. Output: the answer to `POST /v1/sales/{sale_id}/orders` where the id is plain; all others go to the `App`,
//! among them the same purchase with `%` in its path, and everything while pages of other origins may call (CORS).
//! A purchase needs nothing of what an `App` does for a request (routing by patterns, extractors, layers of middleware), and that
//! costs as much as the purchase itself. The bytes of an answer are the same both ways. A crash leaves an unanswered connection.

use super::orders;
use super::state::PublicApi;
use crate::domain::ids::SaleId;
use crate::http::request_id;
use actix_http::Request;
use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{AppConfig, Response, Service, ServiceFactory, ServiceResponse, forward_ready};
use actix_web::http::Method;
use actix_web::{Error, HttpMessage, web};
use futures::future::LocalBoxFuture;
use pin_project_lite::pin_project;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Makes the front of one HTTP worker and the `App` behind it.
pub(super) struct FrontFactory<F> {
    app: F,
    /// `None`: the `App` answers everything.
    public: Option<web::Data<PublicApi>>,
}

impl<F> FrontFactory<F> {
    /// Before `app`; `public` answers purchases, without it the `App` does.
    pub(super) const fn new(app: F, public: Option<web::Data<PublicApi>>) -> Self {
        Self { app, public }
    }
}

impl<F, B> ServiceFactory<Request> for FrontFactory<F>
where
    F: ServiceFactory<Request, Config = AppConfig, Response = ServiceResponse<B>, Error = Error>,
    F::Future: 'static,
    B: MessageBody,
{
    type Response = Response<EitherBody<B>>;
    type Error = Error;
    type Config = AppConfig;
    type Service = Front<F::Service>;
    type InitError = F::InitError;
    type Future = LocalBoxFuture<'static, Result<Self::Service, Self::InitError>>;

    fn new_service(&self, config: AppConfig) -> Self::Future {
        // Counted on this thread alone: the count of the shared one would move between all workers with each request.
        let (app, public) = (self.app.new_service(config), self.public.clone().map(Rc::new));
        Box::pin(async move { Ok(Front { app: app.await?, public }) })
    }
}

/// The front of one HTTP worker.
pub(super) struct Front<S> {
    app: S,
    public: Option<Rc<web::Data<PublicApi>>>,
}

impl<S, B> Service<Request> for Front<S>
where
    S: Service<Request, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Response = Response<EitherBody<B>>;
    type Error = Error;
    type Future = FrontFuture<S::Future>;

    forward_ready!(app);

    fn call(&self, request: Request) -> Self::Future {
        match &self.public {
            // Boxed: a connection has the room for this future as long as it lives, also while it is idle.
            Some(public) if sale_of(&request).is_some() => {
                FrontFuture::Purchase { answer: Box::pin(purchase(public.clone(), request)) }
            }
            Some(_) | None => FrontFuture::App { answer: self.app.call(request) },
        }
    }
}

pin_project! {
    /// The answer to one request.
    #[project = FrontAnswer]
    pub(super) enum FrontFuture<F> {
        Purchase { answer: LocalBoxFuture<'static, Response<BoxBody>> },
        App { #[pin] answer: F },
    }
}

impl<F, B> Future for FrontFuture<F>
where
    F: Future<Output = Result<ServiceResponse<B>, Error>>,
{
    type Output = Result<Response<EitherBody<B>>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            FrontAnswer::Purchase { answer } => {
                answer.as_mut().poll(context).map(|answer| Ok(answer.map_body(|_, body| EitherBody::right(body))))
            }
            FrontAnswer::App { answer } => answer.poll(context).map_ok(|answer| {
                let answer: Response<B> = answer.into();
                answer.map_body(|_, body| EitherBody::left(body))
            }),
        }
    }
}

/// The sale that a request wants to buy from, if it is a purchase and every reader of its path would read the same id.
fn sale_of(request: &Request) -> Option<&str> {
    let path = request.path().strip_prefix("/v1/sales/").filter(|_| request.method() == Method::POST)?;
    path.strip_suffix("/orders").filter(|sale| SaleId::accepts(sale))
}

/// Answers one purchase as the `App` does, with its `X-Request-Id`.
async fn purchase(public: Rc<web::Data<PublicApi>>, mut request: Request) -> Response<BoxBody> {
    let (id, mut payload) = (request_id::of(request.headers()), request.take_payload());
    let sale = sale_of(&request).unwrap_or_default();
    let mut answering = pin!(orders::answer(&public, request.headers(), sale, &mut payload));
    let answer = poll_fn(|context| {
        let _entered = id.enter();
        let mut answer = ready!(answering.as_mut().poll(context));
        request_id::put(&id, answer.headers_mut());
        request_id::log_answered(request.method(), request.path(), answer.status());
        Poll::Ready(answer)
    })
    .await;
    answer.into()
}

/// Bytes that each purchase allocates for its future.
#[cfg(test)]
pub(super) fn answer_bytes() -> usize {
    fn of_two<A, B, F>(_: impl Fn(A, B) -> F) -> usize {
        size_of::<F>()
    }
    of_two(purchase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn only_a_purchase_with_a_plain_id_is_taken_before_the_app() {
        let sale = |method: Method, path: &str| {
            sale_of(&TestRequest::with_uri(path).method(method).to_request()).map(str::to_owned)
        };
        assert_eq!(sale(Method::POST, "/v1/sales/flash_1-A/orders").as_deref(), Some("flash_1-A"));
        assert_eq!(sale(Method::POST, "/v1/sales/flash/orders?a=b").as_deref(), Some("flash"));
        for path in [
            "/v1/sales//orders",
            "/v1/sales/a/b/orders",
            "/v1/sales/%66lash/orders",
            "/v1/sales/a.b/orders",
            "/v1/sales/flash/orders/",
            "/v1/sales/flash/orders/7",
            "/v1/sales/orders",
            "/v1/sales/flash",
            "//v1/sales/flash/orders",
        ] {
            assert_eq!(sale(Method::POST, path), None, "{path}");
        }
        assert_eq!(sale(Method::GET, "/v1/sales/flash/orders"), None);
    }
}
