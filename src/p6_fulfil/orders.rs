//! Single steps of an order: paid, payment started, cancelled, refunded. Each is written down as an act when a person or the shop's
//! backend did it.
//!
//! Input: who asks for what. Output: what the database decided, counted by its state. A crash after the step and before the row of
//! its act leaves the step, which its event and its row in `payments` show; a repeat changes nothing.

use super::context::FulfilContext;
use crate::domain::ids::{RequestId, UserId};
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use crate::domain::payment::PaymentState;
use crate::domain::states::{P6Fulfil, State};
use crate::store::mysql::order_life::{
    self, CancelRequest, Cancelled, NewPayment, PaymentAnswer, PaymentStart, PaymentTold, RefundMark,
};
use crate::store::mysql::{DbError, acts};
use crate::telemetry::count;
use serde_json::{Value, json};

/// The order that a caller works on, and who it is.
#[derive(Clone, Copy)]
pub(crate) struct OrderWork<'a> {
    pub(crate) context: &'a FulfilContext,
    pub(crate) request_id: RequestId,
    pub(crate) actor: &'a Actor,
}

/// What became of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PaidOrder {
    pub(crate) answer: PaymentAnswer,
    /// `P6-F1` or `P6-F4`; none when another payment has the id.
    pub(crate) state: Option<P6Fulfil>,
}

impl OrderWork<'_> {
    async fn record(&self, operation: Operation, code: &str, ok: bool, asked: Value) -> Result<(), DbError> {
        let mut act = OperatorAct::new(self.actor, operation, ActTarget::Request(self.request_id.to_string()));
        act.sale_id = order_life::get(&self.context.db, self.request_id).await?.map(|order| order.sale_id);
        act.outcome = if ok { ActOutcome::Ok } else { ActOutcome::Failed };
        act.code = Some(code.to_owned());
        act.reason = asked.get("reason").and_then(Value::as_str).map(str::to_owned);
        act.after = Some(asked);
        acts::record(&self.context.db, &[act]).await
    }
}

/// Records a payment and tries its order; the money is on record in any case. Repeating is safe.
///
/// # Errors
/// [`DbError`]; repeating finds out what was decided.
pub(crate) async fn receive_payment(work: OrderWork<'_>, payment: &NewPayment) -> Result<PaidOrder, DbError> {
    let answer = order_life::receive(&work.context.db, payment).await?;
    let (state, code, told) = match &answer {
        PaymentAnswer::Recorded(told, row) => match row.state {
            PaymentState::Applied => (Some(P6Fulfil::Paid), "APPLIED", *told),
            PaymentState::RefundNeeded | PaymentState::Refunded => {
                (Some(P6Fulfil::RefundNeeded), row.reason.as_deref().unwrap_or("REFUND_NEEDED"), *told)
            }
        },
        PaymentAnswer::IdTaken(_) => (None, "PAYMENT_ID_TAKEN", PaymentTold::Now),
    };
    if told == PaymentTold::Now {
        if let Some(state) = state {
            count(State::P6(state), 1);
        }
        if state == Some(P6Fulfil::RefundNeeded) {
            tracing::error!(
                phase = "p6_fulfil", request_id = %work.request_id, payment = payment.payment_id, code,
                "money that no order can take: it has to go back"
            );
        }
        let price = &payment.price;
        let asked =
            json!({ "payment_id": payment.payment_id, "amount": price.amount_cents, "currency": price.currency });
        work.record(Operation::OrderPaid, code, state == Some(P6Fulfil::Paid), asked).await?;
    }
    Ok(PaidOrder { answer, state })
}

/// A buyer starts to pay: the deadline moves, once.
pub(crate) async fn start_payment(context: &FulfilContext, request_id: RequestId) -> Result<PaymentStart, DbError> {
    order_life::start(&context.db, request_id).await
}

/// A buyer cancels an unpaid order. Repeating is safe.
pub(crate) async fn cancel_by_buyer(
    context: &FulfilContext,
    request_id: RequestId,
    buyer: &UserId,
) -> Result<Cancelled, DbError> {
    let request = CancelRequest { request_id, buyer: Some(buyer), reason: "by the buyer", by: "buyer" };
    Ok(finish(context, order_life::cancel(&context.db, request).await?).await.0)
}

/// An operator or the shop's backend cancels an order. Returns what was found, and whether Redis has the units; if not, it gets
/// them later.
///
/// # Errors
/// [`DbError`], perhaps after the order was cancelled and before the act was recorded; repeating is safe.
pub(crate) async fn cancel_by_operator(work: OrderWork<'_>, reason: &str) -> Result<(Cancelled, bool), DbError> {
    let by = work.actor.label();
    let request = CancelRequest { request_id: work.request_id, buyer: None, reason, by: &by };
    let cancelled = order_life::cancel(&work.context.db, request).await?;
    let (code, ok, after) = match &cancelled {
        Cancelled::Now(_, units, refunds) => {
            ("CANCELLED", true, json!({ "units_back": units, "refunds_needed": refunds, "reason": reason }))
        }
        Cancelled::Before(_) => ("CANCELLED_BEFORE", true, json!({ "reason": reason })),
        Cancelled::Refused(_, state) => {
            (state.map_or("NO_PAYMENT_STEP", |state| state.code()), false, json!({ "reason": reason }))
        }
        Cancelled::NoOrder => ("NO_ORDER", false, json!({ "reason": reason })),
    };
    work.record(Operation::OrderCancel, code, ok, after).await?;
    Ok(finish(work.context, cancelled).await)
}

/// Counts a cancellation and gives its units to Redis.
async fn finish(context: &FulfilContext, cancelled: Cancelled) -> (Cancelled, bool) {
    let given = match &cancelled {
        Cancelled::Now(sale_id, _, refunds) => {
            count(State::P6(P6Fulfil::Cancelled), 1);
            count(State::P6(P6Fulfil::RefundNeeded), refunds.len());
            context.give(sale_id).await
        }
        Cancelled::Before(sale_id) => context.give(sale_id).await,
        Cancelled::Refused(..) | Cancelled::NoOrder => false,
    };
    (cancelled, given)
}

/// Money that no order could take went back. Repeating is safe.
pub(crate) async fn refund_done(work: OrderWork<'_>, payment_id: &str) -> Result<RefundMark, DbError> {
    let marked = order_life::refunded(&work.context.db, work.request_id, payment_id).await?;
    let (code, ok) = match &marked {
        RefundMark::Refunded(_) => ("REFUNDED", true),
        RefundMark::Before(_) => return Ok(marked),
        RefundMark::NotNeeded(_) => ("NOT_NEEDED", false),
        RefundMark::NoPayment => ("NO_PAYMENT", false),
    };
    work.record(Operation::OrderRefunded, code, ok, json!({ "payment_id": payment_id })).await?;
    Ok(marked)
}
