//! Orders over HTTP, for operators and the shop's backend (L4): found page by page, shown one by one. Reads only.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::state::Admin;
use crate::domain::ids::RequestId;
use crate::http::problem::{Kind, Problem};
use crate::orders::document::{OrderDocument, OrdersPage, PaymentDocument};
use crate::orders::forms::OrdersForm;
use actix_web::web;
use serde::{Deserialize, Serialize};

/// Find orders, newest first.
#[utoipa::path(
    get, path = "/admin/v1/orders", operation_id = "find_orders", tag = "orders",
    params(OrdersForm),
    responses((status = 200, description = "Orders, and `next` when there are more", body = OrdersPage), ReadProblems)
)]
pub(super) async fn find(_call: ViewCall, admin: web::Data<Admin>, query: web::Query<OrdersForm>) -> AdminAnswer {
    let found = admin.servers.rows.orders.find(&query.into_inner().query(admin.token_ttl_s)?).await??;
    answer(OrdersPage::with_buyers(found))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OrderPath {
    /// Id of the request that became the order.
    #[param(value_type = String, pattern = "^[1-9][0-9]{0,18}$")]
    pub(super) request_id: RequestId,
}

/// An order with its payments.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct OrderWithPayments {
    order: OrderDocument,
    /// Oldest first.
    payments: Vec<PaymentDocument>,
}

pub(super) async fn document(admin: &Admin, request_id: RequestId) -> Result<OrderWithPayments, Problem> {
    let Some(order) = admin.servers.rows.orders.get(request_id).await? else { return Err(no_order(request_id)) };
    let payments = admin.servers.rows.requests.payments_of(request_id).await?;
    let payments = payments.into_iter().map(PaymentDocument::of).collect();
    Ok(OrderWithPayments { order: OrderDocument::with_buyer(order), payments })
}

pub(super) fn no_order(request_id: RequestId) -> Problem {
    let english = format!("request {request_id} is no order (yet)");
    Kind::OrderNotFound.because_both(english, format!("请求 {request_id} （尚）不是订单"))
}

/// One order, with its payments.
#[utoipa::path(
    get, path = "/admin/v1/orders/{request_id}", operation_id = "show_order", tag = "orders",
    params(OrderPath),
    responses((status = 200, description = "The order and its payments", body = OrderWithPayments), OrderProblems)
)]
pub(super) async fn show(_call: ViewCall, admin: web::Data<Admin>, path: web::Path<OrderPath>) -> AdminAnswer {
    answer(document(&admin, path.request_id).await?)
}

crate::http::openapi::problem_responses! {
    /// Of calls that read one order.
    OrderProblems: 400, 401, 404, 429, 500, 503;
}
