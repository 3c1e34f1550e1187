//! The demo shop as its own backend: it says that a visitor's order is paid, with the right amount, as a payment provider would.
//!
//! Input: a visitor, and an order of his. Output: what P6 decided; money that came too late is on record and has to go back. The id
//! of the payment is made from the order's, so a repeat pays nothing twice. A crash leaves only what P6 itself leaves.

use super::shop_calls::{answer, must_be_json};
use crate::domain::ids::RequestId;
use crate::domain::operator::{Actor, ActorKind, AuthMethod};
use crate::http::problem::{Kind, Problem};
use crate::orders::forms::PaymentForm;
use crate::orders::rows::PaymentAnswer;
use crate::p1_entry::http::{Caller, PublicApi};
use crate::p6_fulfil::{self, OrderWork};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PayBody {
    request_id: RequestId,
}

/// `POST /shop/v1/payments`.
pub(super) async fn pay(
    public: web::Data<PublicApi>,
    request: HttpRequest,
    caller: Result<Caller, Problem>,
    body: Result<web::Bytes, actix_web::Error>,
) -> HttpResponse {
    let work = async {
        must_be_json(&request)?;
        let body = body.map_err(|_| Problem::from(Kind::BodyTooLarge))?;
        let wanted: PayBody = serde_json::from_slice(&body)
            .map_err(|error| Kind::BadRequest.because(format!("the body is not as expected: {error}")))?;
        pay_order(&public, caller?, wanted.request_id).await
    };
    answer(&request, work.await)
}

/// The shop has the servers' passwords, as a shell has that pays an order.
fn shop() -> Actor {
    Actor {
        kind: ActorKind::Service,
        id: "demo-shop".to_owned(),
        name: "demo shop".to_owned(),
        roles: "payments".to_owned(),
        auth_method: AuthMethod::Shell,
        ip: None,
        call_id: None,
    }
}

async fn pay_order(public: &PublicApi, Caller(visitor): Caller, request_id: RequestId) -> Result<Value, Problem> {
    let orders = &public.my_orders;
    let order = orders.one(&visitor, request_id).await?;
    if order.state.is_none() {
        return Err(Kind::Conflict.because_both("orders of this sale need no payment", "该活动的订单无需付款"));
    }
    let payment_id = format!("demo-{request_id}");
    let form = PaymentForm { payment_id, amount: order.amount, currency: order.currency };
    let payment = form.of(request_id).map_err(|bad| Kind::Unprocessable.because(bad.to_string()))?;
    let work = OrderWork { context: orders.fulfil(), request_id, actor: &shop() };
    let paid = p6_fulfil::receive_payment(work, &payment).await.map_err(|error| {
        tracing::warn!(phase = "demo_shop", %request_id, %error, "a payment");
        Kind::Unavailable
            .because_both("the payment cannot be recorded right now; repeat it", "付款暂时无法记录，请重试")
    })?;
    orders.has_changed(request_id).await;
    let PaymentAnswer { row, .. } = paid;
    let state = p6_fulfil::payment_state(&row);
    let (code, label) = (state.code(), state.label());
    Ok(json!({ "code": code, "label": label, "reason": row.reason, "order": orders.read(&visitor, request_id).await? }))
}
