//! `POST …/orders` and `GET …/orders/{request_id}`.

use super::headers::{Caller, OrderInPath};
use super::state::PublicApi;
use super::{body, headers};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::states::P2Reserve;
use crate::http::openapi::problem_responses;
use crate::http::problem::{Kind, Problem, RETRY_LATER_S, spread_s};
use crate::p1_entry::status::status_url;
use actix_web::dev::Payload;
use actix_web::http::header::{CACHE_CONTROL, LOCATION, RETRY_AFTER};
use actix_web::{FromRequest, HttpRequest, HttpResponse, web};
use serde::Serialize;
use std::future::{Ready, ready};
use std::time::Duration;

/// Longest long poll, seconds; longer wishes are cut to it.
const WAIT_MAX_S: u64 = 30;

/// The answer to an accepted purchase. A replay gives the same bytes.
#[derive(Serialize, utoipa::ToSchema)]
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
#[derive(serde::Deserialize, utoipa::ToSchema)]
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
) -> HttpResponse {
    match try_buy(&public, &request, &path, &mut payload).await {
        Ok(answer) => answer,
        Err(problem) => problem.respond(&request),
    }
}

async fn try_buy(
    public: &PublicApi,
    request: &HttpRequest,
    sale: &str,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Problem> {
    let declared = body::declared_length(request.headers());
    let PurchaseHead { user, sale, token } = match PurchaseHead::read(public, request, sale) {
        Ok(head) => head,
        Err(problem) => {
            body::discard(&public.bounds, declared, payload).await;
            return Err(problem);
        }
    };
    let body = body::read(&public.bounds, declared, payload).await?;
    let quantity = body::quantity(&body, public.bounds.quantity_max)?;
    let _under_way = public.overload.enter()?;
    let request_id = public.purchasing.buy(user, &sale, quantity, token).await?;
    let queued = Queued { request_id, status: "QUEUED", code: P2Reserve::Reserved.code() };
    Ok(HttpResponse::Accepted().insert_header((LOCATION, status_url(&sale, request_id))).json(queued))
}

/// What can be refused before the body is read.
struct PurchaseHead<'a> {
    user: UserId,
    sale: SaleId,
    token: Option<&'a str>,
}

impl<'a> PurchaseHead<'a> {
    fn read(public: &PublicApi, request: &'a HttpRequest, sale: &str) -> Result<Self, Problem> {
        public.overload.check_room()?;
        let user = headers::buyer(public, request)?;
        let sale = headers::sale(sale)?;
        let token = headers::purchase_token(request)?;
        headers::json_only(request)?;
        Ok(Self { user, sale, token })
    }
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
         headers(("Retry-After" = i32, description = "Too many wait: this is the status now, ask again after these seconds"))),
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
    let place = if wait.is_zero() { None } else { public.waiters.enter() };
    let granted = if place.is_some() { wait } else { Duration::ZERO };
    let status = public.statuses.ask(&user, &order.sale_id, order.request_id, granted).await?;
    let mut answer = HttpResponse::Ok();
    answer.insert_header((CACHE_CONTROL, "no-store"));
    if granted < wait && !status.is_final() {
        answer.insert_header((RETRY_AFTER, spread_s(RETRY_LATER_S)));
    }
    Ok(answer.json(status))
}

/// How long the client wants to wait for the final status.
pub(super) struct LongPoll(Duration);

impl FromRequest for LongPoll {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(wait_s(request.query_string()).map(|seconds| Self(Duration::from_secs(seconds.min(WAIT_MAX_S)))))
    }
}

/// `wait` of a query string; 0 when it is not given.
fn wait_s(query: &str) -> Result<u64, Problem> {
    let mut wait = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("wait", seconds)) if wait.is_none() => {
                // As far as the contract's int32 goes.
                let whole = seconds.parse::<i32>().ok().and_then(|seconds| u64::try_from(seconds).ok());
                wait = Some(whole.ok_or_else(|| {
                    Kind::BadRequest
                        .because(format!("wait is {seconds:?}, expected whole seconds from 0 to {WAIT_MAX_S}"))
                })?);
            }
            Some(_) | None => {
                return Err(Kind::BadRequest
                    .because(format!("query {pair:?} is not known or given twice, expected wait=<seconds>")));
            }
        }
    }
    Ok(wait.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::tokens;
    use super::*;

    /// The framework allocates the future of every request and moves it there, so what few requests await is boxed.
    #[test]
    fn what_every_request_allocates_is_small() {
        fn of_four<A, B, C, D, F>(_: impl Fn(A, B, C, D) -> F) -> usize {
            size_of::<F>()
        }
        let bytes = [of_four(buy), of_four(show), of_four(tokens::issue)];
        assert!(bytes.iter().all(|bytes| *bytes <= 2_048), "{bytes:?}");
    }
}
