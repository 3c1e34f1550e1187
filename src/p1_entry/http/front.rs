//! Purchases and status questions are answered before actix-web's `App`: the front of the public server.
//!
//! Input: every request. Output: the answer to `POST /v1/sales/{sale_id}/orders` and `GET /v1/sales/{sale_id}/orders/{request_id}`
//! where the ids are plain; all others go to the `App`, among them the same requests with `%` in their path, and everything while
//! pages of other origins may call (CORS). Neither needs anything of what an `App` does for a request (routing by patterns,
//! extractors, layers of middleware), and that costs as much as they do themselves. The bytes of an answer are the same both ways. A crash leaves an unanswered connection.

use super::headers::OrderInPath;
use super::orders::{self, StatusQuestion};
use super::read_purchase::ReadPurchase;
use super::state::PublicApi;
use crate::domain::ids::{RequestId, SaleId};
use crate::http::language::Language;
use crate::http::request_id::{self, CallToLog};
use actix_http::Request;
use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{AppConfig, Payload, Response, Service, ServiceFactory, ServiceResponse, forward_ready};
use actix_web::http::Method;
use actix_web::{Error, HttpMessage, HttpResponse, web};
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
    /// Before `app`; `public` answers what a crowd asks, without it the `App` does.
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
        match self.public.as_ref().zip(CrowdRequest::of(&request)) {
            // Boxed: a connection has the room for this future as long as it lives, also while it is idle.
            Some((public, asked)) => {
                FrontFuture::Front { answer: Box::pin(answer(public.clone(), Some(request), asked)) }
            }
            None => FrontFuture::App { answer: self.app.call(request) },
        }
    }
}

pin_project! {
    /// The answer to one request.
    #[project = FrontAnswer]
    pub(super) enum FrontFuture<F> {
        Front { answer: LocalBoxFuture<'static, Response<BoxBody>> },
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
            FrontAnswer::Front { answer } => {
                answer.as_mut().poll(context).map(|answer| Ok(answer.map_body(|_, body| EitherBody::right(body))))
            }
            FrontAnswer::App { answer } => answer.poll(context).map_ok(|answer| {
                let answer: Response<B> = answer.into();
                answer.map_body(|_, body| EitherBody::left(body))
            }),
        }
    }
}

/// What is answered before the `App`, if every reader of its path would read the same ids.
enum CrowdRequest {
    Purchase,
    Status(OrderInPath),
}

impl CrowdRequest {
    fn of(request: &Request) -> Option<Self> {
        let (sale, order) = sale_and_rest(request).filter(|(sale, _)| SaleId::accepts(sale))?;
        match *request.method() {
            Method::POST if order.is_empty() => Some(Self::Purchase),
            Method::GET => {
                let request_id = RequestId::parse(order.strip_prefix('/')?).ok()?;
                Some(Self::Status(OrderInPath { sale_id: SaleId::parse(sale).ok()?, request_id }))
            }
            _ => None,
        }
    }
}

/// The sale in a path, and what stands behind its `orders`.
fn sale_and_rest(request: &Request) -> Option<(&str, &str)> {
    request.path().strip_prefix("/v1/sales/")?.split_once("/orders")
}

/// The request goes as soon as it is read. Its head and its headers serve the next one then, while they are near; hundreds of heads
/// that wait for decisions would each be far away when they are cleared. So does a body; one that was not read has to stay.
///
/// All are lent, because what an async function is given stays a part of its future after it has gone.
async fn answered(
    public: &PublicApi,
    head: &mut Option<Request>,
    payload: &mut Payload,
    asked: &CrowdRequest,
) -> HttpResponse {
    let Some(request) = head.as_ref() else { return HttpResponse::InternalServerError().finish() };
    let language = Language::of(request.headers());
    let answered = match asked {
        CrowdRequest::Purchase => {
            let (sale, _) = sale_and_rest(request).unwrap_or_default();
            let read = ReadPurchase::read(public, request.headers(), sale, payload).await;
            *head = None;
            match read {
                Ok(purchase) => {
                    *payload = Payload::None;
                    orders::decide(public, purchase).await
                }
                Err(problem) => Err(problem),
            }
        }
        CrowdRequest::Status(order) => {
            let query = request.uri().query().unwrap_or_default();
            let read = StatusQuestion::read(public, request.headers(), query);
            *head = None;
            match read {
                Ok(question) => orders::status(public, question, order).await,
                Err(problem) => Err(problem),
            }
        }
    };
    answered.unwrap_or_else(|problem| problem.respond(language))
}

/// Answers one request as the `App` does, with its `X-Request-Id`.
async fn answer(public: Rc<web::Data<PublicApi>>, mut head: Option<Request>, asked: CrowdRequest) -> Response<BoxBody> {
    // An option only so that it can go before its future does.
    let Some(request) = head.as_mut() else { return HttpResponse::InternalServerError().finish().into() };
    let (id, mut payload) = (request_id::of(request.headers()), request.take_payload());
    let call = CallToLog::new(request.method(), request.path());
    let mut answering = pin!(answered(&public, &mut head, &mut payload, &asked));
    let answer = poll_fn(|context| {
        let _entered = id.enter();
        let mut answer = ready!(answering.as_mut().poll(context));
        request_id::put(&id, answer.headers_mut());
        call.answered(answer.status());
        Poll::Ready(answer)
    })
    .await;
    answer.into()
}

/// Bytes that each answer allocates for its future.
#[cfg(test)]
pub(super) fn answer_bytes() -> usize {
    fn of_three<A, B, C, F>(_: impl Fn(A, B, C) -> F) -> usize {
        size_of::<F>()
    }
    of_three(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::test::TestRequest;

    #[test]
    fn only_what_has_plain_ids_is_answered_before_the_app() {
        let asked = |method: Method, path: &str| {
            let request = TestRequest::with_uri(path).method(method).to_request();
            CrowdRequest::of(&request).map(|asked| match asked {
                CrowdRequest::Purchase => format!("buy {}", sale_and_rest(&request).unwrap().0),
                CrowdRequest::Status(order) => format!("show {} {}", order.sale_id, order.request_id),
            })
        };
        assert_eq!(asked(Method::POST, "/v1/sales/flash_1-A/orders").as_deref(), Some("buy flash_1-A"));
        assert_eq!(asked(Method::POST, "/v1/sales/flash/orders?a=b").as_deref(), Some("buy flash"));
        assert_eq!(asked(Method::GET, "/v1/sales/flash/orders/7?wait=3").as_deref(), Some("show flash 7"));
        for path in [
            "/v1/sales//orders",
            "/v1/sales/a/b/orders",
            "/v1/sales/%66lash/orders",
            "/v1/sales/a.b/orders",
            "/v1/sales/flash/orders/",
            "/v1/sales/flash/orders/7/events",
            "/v1/sales/flash/orders/07",
            "/v1/sales/flash/orders/%37",
            "/v1/sales/flash/ordersx",
            "/v1/sales/flash/orders7",
            "/v1/sales/orders",
            "/v1/sales/flash",
            "//v1/sales/flash/orders",
        ] {
            assert_eq!((asked(Method::POST, path), asked(Method::GET, path)), (None, None), "{path}");
        }
        assert_eq!(asked(Method::GET, "/v1/sales/flash/orders"), None);
        assert_eq!(asked(Method::POST, "/v1/sales/flash/orders/7"), None);
        assert_eq!(asked(Method::HEAD, "/v1/sales/flash/orders/7"), None);
    }
}
