//! `POST …/orders` and `GET …/orders/{request_id}`.

use super::headers::{self, Caller, OrderInPath};
use super::queries::{bad_query, read_query};
use super::read_purchase::ReadPurchase;
use super::state::PublicApi;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::states::P2Reserve;
use crate::http::openapi::problem_responses;
use crate::http::problem::{Kind, Problem, RETRY_LATER_S, spread_s};
use crate::p1_entry::status::status_url;
use actix_web::body::BoxBody;
use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use actix_web::web::{self, Bytes};
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use serde::{Deserialize, Serialize};
use std::future::{Ready, ready};
use std::time::Duration;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Longest long poll, seconds; longer wishes are cut to it.
const WAIT_MAX_S: u64 = 30;

/// The answer to an accepted purchase. A replay gives the same bytes.
#[derive(Serialize, utoipa::ToSchema)]
#[cfg_attr(not(test), allow(dead_code, reason = "describes the answer that `accepted` writes by hand"))]
pub(super) struct Queued {
    /// Ask for the outcome with it; a decimal string.
    #[schema(value_type = String, example = "254385310867492864")]
    request_id: RequestId,
    /// Always QUEUED: the order is not written yet.
    #[schema(example = "QUEUED")]
    status: &'static str,
    /// Its state code, always P2-R0.
    #[schema(example = "P2-R0")]
    code: &'static str,
}

/// The body of a purchase.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "describes the body that `body::quantity` parses by hand")]
pub(super) struct BuyRequest {
    /// Units wanted, 1 to the configured maximum; 1 when left out.
    #[schema(minimum = 1, maximum = 1000, default = 1, nullable = false)]
    quantity: Option<u32>,
}

problem_responses! {
    PurchaseProblems: 400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 423, 425, 428, 429, 503, 504;
    StatusProblems: 400, 401, 404, 503;
}

/// Buy units of a sale.
#[utoipa::path(
    post, path = "/v1/sales/{sale_id}/orders", operation_id = "buy", tag = "orders", request_body = BuyRequest,
    params(
        ("sale_id" = String, Path, description = "The sale", pattern = "^[A-Za-z0-9_-]{1,64}$"),
        ("Idempotency-Key" = Option<String>, Header, description = "A purchase token; repeats with it are one purchase"),
        ("Seckill-Pass" = Option<String>, Header, description = "A pass, for a sale that needs one, or facts that it has"),
    ),
    responses(
        (status = 202, description = "Accepted: the units are yours unless the status says FAILED later", body = Queued,
         headers(("Location" = String, description = "Where to ask for the outcome")),
         links(("outcome" = (operation_id = "show_order", parameters(
             ("sale_id" = "$request.path.sale_id"), ("request_id" = "$response.body#/request_id")))))),
        PurchaseProblems,
    ),
    security(("bearer" = []))
)]
pub(super) async fn buy(
    public: web::Data<PublicApi>,
    request: HttpRequest,
    path: web::Path<String>,
    mut payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let purchase = ReadPurchase::read(&public, request.headers(), &path, &mut payload).await?;
    decide(&public, purchase).await
}

/// Decides a purchase; the answer to an accepted one.
pub(super) async fn decide(public: &PublicApi, purchase: ReadPurchase) -> Result<HttpResponse, Problem> {
    let ReadPurchase { user, shown, sale, quantity, token } = purchase;
    let _under_way = public.overload.enter()?;
    let request_id = public.purchasing.buy((user, shown), &sale, quantity, token.as_deref()).await?;
    Ok(accepted(&sale, request_id))
}

/// The answer to an accepted purchase: where to ask, and a [`Queued`], written without a serialiser.
fn accepted(sale: &SaleId, request_id: RequestId) -> HttpResponse {
    let code = P2Reserve::Reserved.code();
    let body = format!(r#"{{"request_id":"{request_id}","status":"QUEUED","code":"{code}"}}"#);
    let mut answer = HttpResponse::with_body(StatusCode::ACCEPTED, BoxBody::new(body));
    if let Ok(location) = HeaderValue::from_maybe_shared(Bytes::from(status_url(sale, request_id))) {
        answer.headers_mut().insert(LOCATION, location);
    }
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// Read the status of a request.
#[utoipa::path(
    get, path = "/v1/sales/{sale_id}/orders/{request_id}", operation_id = "show_order", tag = "orders",
    params(
        OrderInPath,
        ("wait" = Option<i32>, Query, minimum = 0, description = "Seconds to wait for the final status; more than 30 are cut to 30"),
    ),
    responses(
        (status = 200, description = "QUEUED, CONFIRMED or FAILED", body = crate::p1_entry::status::OrderStatus,
         headers(("Retry-After" = i32, description = "Too many wait, or eight questions of this buyer do: this is \
            the status now, ask again after these seconds"))),
        StatusProblems,
    ),
    security(("bearer" = []))
)]
pub(super) async fn show(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    order: web::Path<OrderInPath>,
    LongPoll(wait): LongPoll,
) -> Result<HttpResponse, Problem> {
    status(&public, StatusQuestion { user, wait }, &order).await
}

/// A status question as it was read.
pub(super) struct StatusQuestion {
    user: UserId,
    wait: Duration,
}

impl StatusQuestion {
    /// Reads one; `request` has its headers, `query` is its query string.
    pub(super) fn read(public: &PublicApi, request: &HeaderMap, query: &str) -> Result<Self, Problem> {
        Ok(Self { user: headers::buyer(public, request)?, wait: wait(query)? })
    }
}

/// Answers a status question.
pub(super) async fn status(
    public: &PublicApi,
    StatusQuestion { user, wait }: StatusQuestion,
    order: &OrderInPath,
) -> Result<HttpResponse, Problem> {
    let place = if wait.is_zero() { None } else { public.waiters.enter(&user).ok() };
    let granted = if place.is_some() { wait } else { Duration::ZERO };
    let mut status = public.statuses.ask(&user, &order.sale_id, order.request_id, granted).await?;
    if status.is_confirmed() {
        status.order = Box::pin(public.my_orders.part(&order.sale_id, order.request_id)).await;
    }
    let body = serde_json::to_vec(&status).map_err(|error| Kind::Internal.because(error.to_string()))?;
    let mut answer = HttpResponse::with_body(StatusCode::OK, BoxBody::new(body));
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_TYPE, JSON);
    if granted < wait && !status.is_final() {
        headers.insert(RETRY_AFTER, HeaderValue::from(spread_s(RETRY_LATER_S)));
    }
    Ok(answer)
}

/// How long the client wants to wait for the final status.
pub(super) struct LongPoll(Duration);

impl FromRequest for LongPoll {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(wait(request.query_string()).map(Self))
    }
}

/// The query of a status question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusQuery {
    /// As far as the contract's int32 goes.
    #[serde(default)]
    wait: i32,
}

fn wait(query: &str) -> Result<Duration, Problem> {
    const EXPECTED: &str = "wait=<whole seconds from 0 to 30>";
    let StatusQuery { wait } = read_query(query, EXPECTED)?;
    let wait = u64::try_from(wait).map_err(|_| bad_query(query, &"wait is negative", EXPECTED))?;
    Ok(Duration::from_secs(wait.min(WAIT_MAX_S)))
}

#[cfg(test)]
mod tests {
    use super::super::{front, tokens};
    use super::*;

    #[actix_web::test]
    async fn the_answer_written_by_hand_is_the_one_that_is_described() {
        let (sale, request_id) = (SaleId::parse("flash").unwrap(), RequestId::new(254_385_310_867_492_864).unwrap());
        let (written, described) =
            (accepted(&sale, request_id), Queued { request_id, status: "QUEUED", code: P2Reserve::Reserved.code() });
        assert_eq!((written.status(), written.headers().len()), (StatusCode::ACCEPTED, 2));
        assert_eq!(written.headers().get(CONTENT_TYPE).unwrap(), "application/json");
        assert_eq!(written.headers().get(LOCATION).unwrap(), "/v1/sales/flash/orders/254385310867492864");
        let body = actix_web::body::to_bytes(written.into_body()).await.unwrap();
        assert_eq!(body, serde_json::to_vec(&described).unwrap());
    }

    /// The framework allocates the future of every request and moves it there, so what few requests await is boxed.
    #[test]
    fn what_every_request_allocates_is_small() {
        fn of_four<A, B, C, D, F>(_: impl Fn(A, B, C, D) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = [of_four(buy), of_four(show), of_four(tokens::issue), front::answer_bytes()];
        assert!(bytes.iter().all(|bytes| *bytes <= 2_048), "{bytes:?}");
    }
}
