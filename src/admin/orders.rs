//! Orders over HTTP, for operators and the shop's backend (L3, L4): found, paid, cancelled, refunded.
//!
//! A payment is always answered with 200 when it was understood: the money is on record, and the body says whether an order took
//! it (`P6-F1`) or it has to go back (`P6-F4`). Every write may be repeated.

use super::json_api::{AdminAnswer, JsonBody, OperatorCall, ReadProblems, WriteProblems, answer};
use super::state::Admin;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::order_life::OrderState;
use crate::domain::payment::Price;
use crate::http::problem::{Kind, Problem};
use crate::p6_fulfil::{self, OrderDocument, OrderWork, OrdersForm, PaymentForm, checked_payment_id};
use crate::store::mysql::order_life::{self, Cancelled, Payment, PaymentAnswer, PaymentStart, RefundMark};
use actix_web::web;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

/// Orders of a page when nothing else is asked for.
const PAGE: u16 = 50;
/// Longest reason, characters.
const REASON_CHARS_MAX: usize = 500;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct FindQuery {
    /// Only of this sale.
    #[param(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    sale: Option<SaleId>,
    /// Only of this buyer.
    #[param(value_type = Option<String>)]
    buyer: Option<UserId>,
    /// Only UNPAID, PAID, EXPIRED or CANCELLED; needs a sale or a buyer.
    state: Option<String>,
    /// Only accepted from then on, RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<DateTime<Utc>>,
    /// Only accepted before then, RFC 3339.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<DateTime<Utc>>,
    /// `next` of the page before.
    #[param(value_type = Option<String>, pattern = "^[1-9][0-9]{0,18}$")]
    cursor: Option<RequestId>,
    /// How many; 50 when left out.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u16>,
}

/// Find orders, newest first.
#[utoipa::path(
    get, path = "/admin/v1/orders", operation_id = "find_orders", tag = "orders",
    params(FindQuery),
    responses((status = 200, description = "Orders, and `next` when there are more", body = Value), ReadProblems)
)]
pub(super) async fn find(admin: web::Data<Admin>, query: web::Query<FindQuery>) -> AdminAnswer {
    let FindQuery { sale, buyer, state, from, to, cursor, limit } = query.into_inner();
    let limit = limit.unwrap_or(PAGE);
    let ms = |time: DateTime<Utc>| time.timestamp_millis();
    let form = OrdersForm { sale, buyer, state, from_ms: from.map(ms), to_ms: to.map(ms), cursor, limit };
    let orders = order_life::find(&admin.servers.db, &form.query()?).await?;
    let next = (orders.len() == usize::from(limit)).then(|| orders.last().map(|order| order.request_id)).flatten();
    let orders: Vec<_> = orders.into_iter().map(OrderDocument::with_buyer).collect();
    answer(json!({ "orders": orders, "next": next }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct OrderPath {
    /// Id of the request that became the order.
    #[param(value_type = String, pattern = "^[1-9][0-9]{0,18}$")]
    request_id: RequestId,
}

pub(super) fn payment(row: &Payment) -> Value {
    let told_at = DateTime::from_timestamp_millis(row.created_at_ms).unwrap_or_default();
    let mut shown = json!(row);
    shown["told_at"] = json!(told_at.to_rfc3339_opts(SecondsFormat::Millis, true));
    shown
}

async fn document(admin: &Admin, request_id: RequestId) -> Result<Value, Problem> {
    let Some(order) = order_life::get(&admin.servers.db, request_id).await? else { return Err(no_order(request_id)) };
    let payments = order_life::payments_of(&admin.servers.db, request_id).await?;
    let payments: Vec<Value> = payments.iter().map(payment).collect();
    Ok(json!({ "order": OrderDocument::with_buyer(order), "payments": payments }))
}

/// One order, with its payments.
#[utoipa::path(
    get, path = "/admin/v1/orders/{request_id}", operation_id = "show_order", tag = "orders",
    params(OrderPath),
    responses((status = 200, description = "The order and its payments", body = Value), OrderProblems)
)]
pub(super) async fn show(admin: web::Data<Admin>, path: web::Path<OrderPath>) -> AdminAnswer {
    answer(document(&admin, path.request_id).await?)
}

crate::http::openapi::problem_responses! {
    /// Of calls that read one order.
    OrderProblems: 400, 401, 404, 429, 500, 503;
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PaidBody {
    /// The provider's id of the payment: a repeated call with the same id changes nothing. The same id with another order, amount or
    /// currency is other money, which has to go back.
    #[schema(min_length = 1, max_length = 128)]
    payment_id: String,
    /// In the smallest unit of the currency.
    #[schema(minimum = 0)]
    amount: i64,
    /// ISO 4217 code.
    #[schema(pattern = "^[A-Z]{3}$", example = "CNY")]
    currency: String,
    /// Who tells it, for the record.
    by: Option<String>,
}

/// Tell that an order was paid.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/paid", operation_id = "order_paid", tag = "orders",
    params(OrderPath), request_body = PaidBody,
    responses(
        (status = 200, description = "The money is on record. `code` is P6-F1 when the order is paid, P6-F4 when the money has \
            to go back; `reason` says why. Where another payment has the id, `payment.payment_id` is the id that this one has \
            instead", body = Value),
        WriteProblems,
    )
)]
pub(super) async fn paid(
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<PaidBody>,
    path: web::Path<OrderPath>,
    call: OperatorCall,
) -> AdminAnswer {
    let PaidBody { payment_id, amount, currency, by } = body;
    let (actor, request_id) = (call.actor(by.as_deref())?, path.request_id);
    let price = Price { amount_cents: amount, currency };
    let told = PaymentForm { payment_id, price }.of(request_id)?;
    let work = OrderWork { context: &admin.fulfil, request_id, actor: &actor };
    let PaymentAnswer { row, .. } = p6_fulfil::receive_payment(work, &told).await?;
    let state = p6_fulfil::payment_state(&row);
    let order = order_life::get(&admin.servers.db, request_id).await?.map(OrderDocument::with_buyer);
    answer(json!({
        "code": state.code(), "label": state.label(), "reason": row.reason, "payment": payment(&row), "order": order,
    }))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PayingBody {
    /// Who tells it, for the record.
    by: Option<String>,
}

/// Tell that a buyer has begun to pay: the deadline moves, once.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/paying", operation_id = "order_paying", tag = "orders",
    params(OrderPath), request_body = PayingBody,
    responses((status = 200, description = "The order and its payments, with the deadline that holds now", body = Value), WriteProblems)
)]
pub(super) async fn paying(
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<PayingBody>,
    path: web::Path<OrderPath>,
    call: OperatorCall,
) -> AdminAnswer {
    let actor = call.actor(body.by.as_deref())?;
    let work = OrderWork { context: &admin.fulfil, request_id: path.request_id, actor: &actor };
    match p6_fulfil::start_payment(work).await? {
        PaymentStart::Until(_) => answer(document(&admin, path.request_id).await?),
        PaymentStart::Refused(None) => Err(no_payment_step()),
        PaymentStart::Refused(Some(OrderState::Unpaid)) => {
            Err(Kind::Conflict.because("the deadline of the order has passed; do not take the money"))
        }
        PaymentStart::Refused(Some(state)) => {
            Err(Kind::Conflict.because(format!("the order is {}; do not take the money", state.code())))
        }
        PaymentStart::NoOrder => Err(no_order(path.request_id)),
    }
}

fn no_payment_step() -> Problem {
    Kind::Conflict.because_both(
        "the sale of this order has no payment step (pay_within_s)",
        "该订单所属活动没有付款环节（pay_within_s）",
    )
}

fn no_order(request_id: RequestId) -> Problem {
    let english = format!("request {request_id} is no order (yet)");
    Kind::OrderNotFound.because_both(english, format!("请求 {request_id} （尚）不是订单"))
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelBody {
    /// Why, for the record.
    #[schema(min_length = 1, max_length = 500)]
    reason: String,
    /// The operator, for the record.
    by: Option<String>,
}

/// Cancel an order: its units are on sale again; money that was paid has to go back.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/cancel", operation_id = "cancel_order", tag = "orders",
    params(OrderPath), request_body = CancelBody,
    responses((status = 200, description = "The order and its payments", body = Value), WriteProblems)
)]
pub(super) async fn cancel(
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<CancelBody>,
    path: web::Path<OrderPath>,
    call: OperatorCall,
) -> AdminAnswer {
    let (actor, request_id) = (call.actor(body.by.as_deref())?, path.request_id);
    let reason = body.reason.trim();
    if reason.is_empty() || reason.chars().count() > REASON_CHARS_MAX {
        return Err(Kind::Unprocessable.because_both(
            format!("reason: expected 1 to {REASON_CHARS_MAX} characters"),
            format!("reason：应为 1 至 {REASON_CHARS_MAX} 个字符"),
        ));
    }
    let work = OrderWork { context: &admin.fulfil, request_id, actor: &actor };
    match p6_fulfil::cancel_by_operator(work, reason).await?.0 {
        Cancelled::Now(sale, ..) => {
            admin.changed(&sale, "an order was cancelled").await;
            answer(document(&admin, request_id).await?)
        }
        Cancelled::Before(_) => answer(document(&admin, request_id).await?),
        Cancelled::Refused(_, state) => {
            let english = state.map_or("without a payment step", |state| state.code());
            let english = format!("the order is {english}; its units are on sale again already");
            let chinese = state.map_or("无付款环节", |state| state.chinese());
            Err(Kind::Conflict.because_both(english, format!("订单{chinese}，其库存已重新开售")))
        }
        Cancelled::NoOrder => Err(no_order(request_id)),
    }
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RefundedBody {
    /// The payment's id, as it is on record.
    #[schema(min_length = 1, max_length = 128)]
    payment_id: String,
    /// The operator, for the record.
    by: Option<String>,
}

/// Tell that the money of a payment went back.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/refunded", operation_id = "order_refunded", tag = "orders",
    params(OrderPath), request_body = RefundedBody,
    responses((status = 200, description = "The payment", body = Value), WriteProblems)
)]
pub(super) async fn refunded(
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<RefundedBody>,
    path: web::Path<OrderPath>,
    call: OperatorCall,
) -> AdminAnswer {
    let (actor, request_id) = (call.actor(body.by.as_deref())?, path.request_id);
    let payment_id = checked_payment_id(&body.payment_id)?;
    let work = OrderWork { context: &admin.fulfil, request_id, actor: &actor };
    match p6_fulfil::refund_done(work, payment_id).await? {
        RefundMark::Refunded(row) | RefundMark::Before(row) => answer(json!({ "payment": payment(&row) })),
        RefundMark::NotNeeded(_) => {
            let english = "this payment paid its order; cancel the order before the money goes back";
            Err(Kind::Conflict.because_both(english, "这笔付款已用于订单；请先取消订单再退款"))
        }
        RefundMark::NoPayment => Err(Kind::OrderNotFound.because_both(
            format!("request {request_id} has no payment {payment_id}"),
            format!("请求 {request_id} 没有付款 {payment_id}"),
        )),
    }
}
