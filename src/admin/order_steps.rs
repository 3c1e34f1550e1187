//! What happens to an order over HTTP, by operators and the shop's backend (L3, L4): paid, cancelled, refunded.
//!
//! A payment that was understood is answered with 200: the money is on record, and the body says whether an order took it (`P6-F1`) or
//! it has to go back (`P6-F4`). While its order is still to be written the answer is 503, and nothing is on record. Every write may be
//! repeated.

use super::act_body::ActBody;
use super::calls::{MoneyCall, OperateOrMoneyCall};
use super::json_api::{AdminAnswer, JsonBody, WriteProblems, answer};
use super::orders::{OrderPath, OrderWithPayments, document, no_order};
use super::state::Admin;
use crate::domain::order_life::OrderState;
use crate::http::problem::{Kind, Problem};
use crate::http::times::shown_time;
use crate::orders::document::{OrderDocument, PaymentDocument};
use crate::orders::forms::{CancelForm, PaymentForm, RefundedForm};
use crate::orders::rows::{Cancelled, Payment, PaymentAnswer, PaymentStart, RefundMark};
use crate::p6_fulfil::{self, OrderWork};
use actix_web::web;
use serde::{Deserialize, Serialize};

type PaidBody = ActBody<PaymentForm>;

/// What became of a payment.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct PaidAnswer {
    /// P6-F1: the order is paid. P6-F4: the money has to go back.
    #[schema(example = "P6-F1")]
    code: &'static str,
    /// The same in a word.
    label: &'static str,
    /// Why the money has to go back; null when the order is paid.
    reason: Option<String>,
    payment: PaymentDocument,
    /// The order as it is now; null when there is none.
    order: Option<OrderDocument>,
}

/// Report that an order was paid.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/paid", operation_id = "order_paid", tag = "orders",
    params(OrderPath), request_body = PaidBody,
    responses(
        (status = 200, description = "The money is on record, also of a request that failed or that no server knows. While a request \
            is accepted and its order is still to be written, or that cannot be read, the answer is 503 ORDER_NOT_WRITTEN and nothing is \
            recorded: repeat it. `code` is P6-F1 when the order is paid, P6-F4 when the money has \
            to go back; `reason` says why. Where another payment has the id, `payment.payment_id` is the id that this one has \
            instead", body = PaidAnswer),
        WriteProblems,
    )
)]
pub(super) async fn paid(
    call: MoneyCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<PaidBody>,
    path: web::Path<OrderPath>,
) -> AdminAnswer {
    let (actor, request_id) = (call.actor(body.by.as_deref())?, path.request_id);
    let payment = body.form.of(request_id)?;
    let work = OrderWork { context: &admin.fulfil, request_id, actor: &actor };
    let PaymentAnswer { row, .. } = p6_fulfil::receive_payment(work, &payment).await?;
    let state = p6_fulfil::payment_state(&row);
    let order = admin.servers.rows.orders.get(request_id).await?.map(OrderDocument::with_buyer);
    let (reason, payment) = (row.reason.clone(), PaymentDocument::of(row));
    answer(PaidAnswer { code: state.code(), label: state.label(), reason, payment, order })
}

#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PayingBody {
    /// Who reports it, for the record.
    by: Option<String>,
}

/// Report that a buyer has begun to pay: the deadline moves, once.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/paying", operation_id = "order_paying", tag = "orders",
    params(OrderPath), request_body = PayingBody,
    responses((status = 200, description = "The order and its payments, with the deadline that holds now", body = OrderWithPayments), WriteProblems)
)]
pub(super) async fn paying(
    call: MoneyCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<PayingBody>,
    path: web::Path<OrderPath>,
) -> AdminAnswer {
    let actor = call.actor(body.by.as_deref())?;
    let work = OrderWork { context: &admin.fulfil, request_id: path.request_id, actor: &actor };
    match p6_fulfil::start_payment(work).await? {
        PaymentStart::Until(_) => answer(document(&admin, path.request_id).await?),
        PaymentStart::Refused(None) => Err(no_payment_step()),
        PaymentStart::Refused(Some(OrderState::Unpaid)) => Err(Kind::Conflict.because_both(
            "the deadline of the order has passed; do not take the money",
            "订单的付款期限已过；请勿收款",
        )),
        PaymentStart::Refused(Some(state)) => Err(Kind::Conflict.because_both(
            format!("the order is {}; do not take the money", state.code()),
            format!("订单{}；请勿收款", state.chinese()),
        )),
        PaymentStart::NoOrder => Err(no_order(path.request_id)),
    }
}

fn no_payment_step() -> Problem {
    Kind::Conflict.because_both(
        "the sale of this order has no payment step (pay_within_s)",
        "该订单所属活动没有付款环节（pay_within_s）",
    )
}

type CancelBody = ActBody<CancelForm>;

/// Cancel an order: its units are on sale again; money that was paid has to go back.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/cancel", operation_id = "cancel_order", tag = "orders",
    params(OrderPath), request_body = CancelBody,
    responses((status = 200, description = "The order and its payments", body = OrderWithPayments), WriteProblems)
)]
pub(super) async fn cancel(
    call: OperateOrMoneyCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<CancelBody>,
    path: web::Path<OrderPath>,
) -> AdminAnswer {
    let (actor, request_id) = (call.actor(body.by.as_deref())?, path.request_id);
    let reason = body.form.checked()?;
    let work = OrderWork { context: &admin.fulfil, request_id, actor: &actor };
    match p6_fulfil::cancel_by_operator(work, &reason).await?.0 {
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

type RefundedBody = ActBody<RefundedForm>;

/// A payment whose money went back.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct RefundedAnswer {
    payment: PaymentDocument,
    /// Whether it was on record before this call: somebody else may have sent the money, or this call is a repeat. The record of acts says
    /// who marked it (`order.refunded`).
    before: bool,
    /// When it was marked, RFC 3339.
    marked_at: String,
}

impl RefundedAnswer {
    fn of(row: Payment, before: bool) -> Self {
        let marked_at = shown_time(row.state_at_ms);
        Self { payment: PaymentDocument::of(row), before, marked_at }
    }
}

/// Report that the money of a payment went back.
#[utoipa::path(
    post, path = "/admin/v1/orders/{request_id}/refunded", operation_id = "order_refunded", tag = "orders",
    params(OrderPath), request_body = RefundedBody,
    responses((status = 200, description = "The payment. `before` is true when it was marked before: send no money then",
        body = RefundedAnswer), WriteProblems)
)]
pub(super) async fn refunded(
    call: MoneyCall,
    admin: web::Data<Admin>,
    JsonBody(body): JsonBody<RefundedBody>,
    path: web::Path<OrderPath>,
) -> AdminAnswer {
    let (actor, request_id) = (call.actor(body.by.as_deref())?, path.request_id);
    let payment_id = body.form.checked()?;
    let work = OrderWork { context: &admin.fulfil, request_id, actor: &actor };
    match p6_fulfil::refund_done(work, &payment_id).await? {
        RefundMark::Refunded(row) => answer(RefundedAnswer::of(row, false)),
        RefundMark::Before(row) => answer(RefundedAnswer::of(row, true)),
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
