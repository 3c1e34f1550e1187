//! Single steps of an order: paid, payment started, cancelled, refunded. Each is written down as an act when a person or the shop's
//! backend did it.
//!
//! Input: who asks for what. Output: what the database decided, counted by its state. What changes something has its act in the same
//! transaction: a crash leaves both or neither, and a repeat changes nothing. What changes nothing is recorded afterwards.

use super::acceptance::{Acceptance, NoOrderYet, acceptance};
use super::context::FulfilContext;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::operator::{ActOutcome, ActTarget, Actor, Operation, OperatorAct};
use crate::domain::payment::{PaymentState, RefundReason};
use crate::domain::states::{P6Fulfil, State};
use crate::orders::rows::{
    CancelRequest, Cancelled, NewPayment, Payment, PaymentAnswer, PaymentRecorded, PaymentStart, RefundMark,
    cancel_grant,
};
use crate::store::mysql::DbError;
use crate::telemetry::count;
use serde_json::{Value, json};

/// Why an order was not cancelled; the text says what to do next. Repeating is safe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CancelError {
    /// Its sale is being rebuilt.
    #[error(
        "sale {0} is being rebuilt, its orders cannot be cancelled before that is done; nothing was changed, try again"
    )]
    BeingRebuilt(SaleId),
    /// Its order is to come, or may be.
    #[error(transparent)]
    NoOrderYet(#[from] NoOrderYet),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// Why a payment was not decided; the text says what to do next. Repeating is safe.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PaymentError {
    /// Its order is to come, or may be: nothing was recorded.
    #[error(transparent)]
    NoOrderYet(#[from] NoOrderYet),
    /// The database did not answer, or refused.
    #[error(transparent)]
    Database(#[from] DbError),
}

/// The order that a caller works on, and who it is.
#[derive(Clone, Copy)]
pub(crate) struct OrderWork<'a> {
    pub(crate) context: &'a FulfilContext,
    pub(crate) request_id: RequestId,
    pub(crate) actor: &'a Actor,
}

impl OrderWork<'_> {
    /// The act, before it is known what comes of it.
    fn act(&self, operation: Operation, asked: Value) -> OperatorAct {
        let mut act = OperatorAct::new(self.actor, operation, ActTarget::Request(self.request_id.to_string()));
        act.reason = asked.get("reason").and_then(Value::as_str).map(str::to_owned);
        act.after = Some(asked);
        act
    }

    /// The request has no order: why not, unless the order is to come.
    async fn orderless(&self) -> Result<RefundReason, NoOrderYet> {
        match acceptance(self.context, self.request_id).await? {
            Acceptance::ToCome => Err(NoOrderYet::ToCome(self.request_id)),
            Acceptance::Failed => Ok(RefundReason::RequestFailed),
            Acceptance::Nowhere => Ok(RefundReason::NoOrder),
        }
    }

    /// Records an act that changed nothing.
    async fn record(&self, mut act: OperatorAct, code: &str, ok: bool) -> Result<(), DbError> {
        act.sale_id = self.context.orders.get(self.request_id).await?.map(|order| order.row.sale_id);
        act.outcome = if ok { ActOutcome::Ok } else { ActOutcome::Failed };
        act.code = Some(code.to_owned());
        self.context.acts.record(&[act]).await
    }
}

/// Records a payment and tries its order. Returns whether it was new, and the payment. Repeating is safe.
///
/// # Errors
/// [`PaymentError`]; nothing is recorded while the order is to come, otherwise repeating finds out what was decided.
pub(crate) async fn receive_payment(work: OrderWork<'_>, payment: &NewPayment) -> Result<PaymentAnswer, PaymentError> {
    let price = &payment.price;
    let asked = json!({ "payment_id": payment.payment_id, "amount": price.amount_cents, "currency": price.currency });
    let act = work.act(Operation::OrderPaid, asked);
    let answer = match work.context.orders.receive(payment, None, Some(&act)).await? {
        Some(answer) => answer,
        None => {
            let recorded = work.context.orders.recorded(payment).await?;
            match (work.orderless().await, recorded) {
                // It is on record as money without an order, and that holds until its order is known of.
                (Err(NoOrderYet::Unread(..)), Some(recorded)) => recorded,
                (why, _) => {
                    let answer = work.context.orders.receive(payment, Some(why?), Some(&act)).await?;
                    answer.ok_or(NoOrderYet::ToCome(work.request_id))?
                }
            }
        }
    };
    let PaymentAnswer { recorded, row } = &answer;
    if *recorded == PaymentRecorded::Now {
        count(State::P6(payment_state(row)), 1);
        if row.state != PaymentState::Applied {
            let code = row.reason.as_deref().unwrap_or("REFUND_NEEDED");
            tracing::error!(
                phase = "p6_fulfil", request_id = %work.request_id, payment = row.payment_id, code,
                "money that no order can take: it has to go back"
            );
        }
    }
    Ok(answer)
}

/// What a payment is counted as: `P6-F1`, or `P6-F4` also when the money went back.
pub(crate) const fn payment_state(row: &Payment) -> P6Fulfil {
    match row.state {
        PaymentState::Applied => P6Fulfil::Paid,
        PaymentState::RefundNeeded | PaymentState::Refunded => P6Fulfil::RefundNeeded,
    }
}

/// A buyer starts to pay: the deadline moves, once.
pub(crate) async fn start_payment(work: OrderWork<'_>) -> Result<PaymentStart, PaymentError> {
    let act = work.act(Operation::OrderPaying, json!({}));
    let started = work.context.orders.start(work.request_id, Some(&act)).await?;
    if started == PaymentStart::NoOrder {
        work.orderless().await?;
    }
    Ok(started)
}

/// Cancels the order, unless its sale is being rebuilt: units that come back meanwhile make the rebuild begin again, so steady
/// cancellations would keep the sale from selling. What would change nothing is answered as ever. A freeze that comes right behind the
/// check costs the rebuild one more beginning.
async fn cancel(context: &FulfilContext, request: CancelRequest<'_>) -> Result<Cancelled, CancelError> {
    let order = context.orders.get(request.request_id).await?;
    if let Some(order) = order.map(|order| order.row).filter(|order| request.would_cancel(order))
        && context.waits_for_rebuild(&order.sale_id).await?
    {
        return Err(CancelError::BeingRebuilt(order.sale_id));
    }
    Ok(context.orders.cancel(request).await?)
}

/// A buyer cancels an unpaid order. Repeating is safe.
///
/// # Errors
/// [`CancelError`]; repeating is safe.
pub(crate) async fn cancel_by_buyer(
    context: &FulfilContext,
    request_id: RequestId,
    buyer: &UserId,
) -> Result<Cancelled, CancelError> {
    let request = CancelRequest { request_id, buyer: Some(buyer), reason: "by the buyer", by: "buyer", act: None };
    Ok(finish(context, request_id, cancel(context, request).await?).await.0)
}

/// An operator or the shop's backend cancels an order. Returns what was found, and whether Redis has the units; if not, it gets
/// them later.
///
/// # Errors
/// [`CancelError`]; repeating is safe.
pub(crate) async fn cancel_by_operator(work: OrderWork<'_>, reason: &str) -> Result<(Cancelled, bool), CancelError> {
    let by = work.actor.label();
    let act = work.act(Operation::OrderCancel, json!({ "reason": reason }));
    let request = CancelRequest { request_id: work.request_id, buyer: None, reason, by: &by, act: Some(&act) };
    let cancelled = match cancel(work.context, request).await {
        Err(error @ CancelError::BeingRebuilt(_)) => {
            work.record(act, "FROZEN", false).await?;
            return Err(error);
        }
        done => done?,
    };
    if matches!(cancelled, Cancelled::NoOrder) {
        work.orderless().await?;
    }
    let unchanged = match &cancelled {
        Cancelled::Now(..) => None,
        Cancelled::Before(_) => Some(("CANCELLED_BEFORE", true)),
        Cancelled::Refused(_, state) => Some((state.map_or("NO_PAYMENT_STEP", |state| state.code()), false)),
        Cancelled::NoOrder => Some(("NO_ORDER", false)),
    };
    if let Some((code, ok)) = unchanged {
        work.record(act, code, ok).await?;
    }
    Ok(finish(work.context, work.request_id, cancelled).await)
}

/// Counts a cancellation and gives its units to Redis: those of its own grant. What else is open of the sale is P6's and P5's to give.
async fn finish(context: &FulfilContext, request_id: RequestId, cancelled: Cancelled) -> (Cancelled, bool) {
    let grant_id = cancel_grant(request_id);
    let given = match &cancelled {
        Cancelled::Now(sale_id, _, refunds) => {
            count(State::P6(P6Fulfil::Cancelled), 1);
            count(State::P6(P6Fulfil::RefundNeeded), refunds.len());
            context.give_one(sale_id, &grant_id).await
        }
        Cancelled::Before(sale_id) => context.give_one(sale_id, &grant_id).await,
        Cancelled::Refused(..) | Cancelled::NoOrder => false,
    };
    (cancelled, given)
}

/// Money that no order could take went back. Repeating is safe.
pub(crate) async fn refund_done(work: OrderWork<'_>, payment_id: &str) -> Result<RefundMark, DbError> {
    let act = work.act(Operation::OrderRefunded, json!({ "payment_id": payment_id }));
    let marked = work.context.orders.refunded(work.request_id, payment_id, Some(&act)).await?;
    let refused = match &marked {
        RefundMark::Refunded(_) | RefundMark::Before(_) => None,
        RefundMark::NotNeeded(_) => Some("NOT_NEEDED"),
        RefundMark::NoPayment => Some("NO_PAYMENT"),
    };
    if let Some(code) = refused {
        work.record(act, code, false).await?;
    }
    Ok(marked)
}
