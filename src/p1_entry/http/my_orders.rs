//! `GET /v1/orders`, `GET /v1/orders/{request_id}`, `DELETE /v1/orders/{request_id}`: a buyer's own orders.

use super::headers::Caller;
use super::queries::read_query;
use super::state::PublicApi;
use crate::domain::ids::RequestId;
use crate::http::openapi::problem_responses;
use crate::http::problem::Problem;
use crate::orders::document::OrderDocument;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};

/// A page of orders.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct OrderListAnswer {
    orders: Vec<OrderDocument>,
    /// `cursor` of the next page; null on the last one.
    #[schema(value_type = Option<String>)]
    next: Option<RequestId>,
}

/// The order in a path.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OrderId {
    /// Id of the request that became the order.
    #[param(value_type = String, pattern = "^[1-9][0-9]{0,18}$")]
    request_id: RequestId,
}

problem_responses! {
    MyOrdersProblems: 400, 401, 429, 503;
    MyOrderProblems: 400, 401, 404, 409, 429, 503;
    CancelProblems: 400, 401, 404, 409, 429, 503;
}

fn answer(document: impl Serialize) -> HttpResponse {
    HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(document)
}

/// The query of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MyOrdersQuery {
    cursor: Option<RequestId>,
}

/// List my orders, newest first.
#[utoipa::path(
    get, path = "/v1/orders", operation_id = "list_my_orders", tag = "my orders",
    params(("cursor" = Option<String>, Query, pattern = "^[1-9][0-9]{0,18}$", description = "`next` of the page before")),
    responses((status = 200, description = "Up to 50 orders", body = OrderListAnswer), MyOrdersProblems),
    security(("bearer" = []))
)]
pub(super) async fn list(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    request: HttpRequest,
) -> Result<HttpResponse, Problem> {
    let MyOrdersQuery { cursor } = read_query(request.query_string(), "cursor=<next of a page>")?;
    let (orders, next) = public.my_orders.list(user, cursor).await?;
    Ok(answer(OrderListAnswer { orders, next }))
}

/// One order of mine.
#[utoipa::path(
    get, path = "/v1/orders/{request_id}", operation_id = "show_my_order", tag = "my orders",
    params(OrderId),
    responses((status = 200, description = "The order", body = OrderDocument), MyOrderProblems),
    security(("bearer" = []))
)]
pub(super) async fn show(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    path: web::Path<OrderId>,
) -> Result<HttpResponse, Problem> {
    Ok(answer(public.my_orders.one(&user, path.request_id).await?))
}

/// Cancel an order that is not paid: its units are on sale again.
#[utoipa::path(
    delete, path = "/v1/orders/{request_id}", operation_id = "cancel_my_order", tag = "my orders",
    params(OrderId),
    responses((status = 200, description = "The order, CANCELLED", body = OrderDocument), CancelProblems),
    security(("bearer" = []))
)]
pub(super) async fn cancel(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    path: web::Path<OrderId>,
) -> Result<HttpResponse, Problem> {
    Ok(answer(public.my_orders.cancel(&user, path.request_id).await?))
}
