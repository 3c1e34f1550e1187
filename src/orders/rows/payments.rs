//! Payments as a provider reports them (L3). If the order exists, or is known never to come, the money is recorded in any case; while
//! an order may still come, nothing is ([`OrderRows::receive`]).
//!
//! Input: a payment. Output: its row, and the order PAID or the reason why the money has to go back, in one transaction. A crash leaves
//! all of it or nothing; a repeat finds what was decided, because the provider's id is unique. Other money under the same id gets a row
//! beside it. There is no check of the clock: while an order is UNPAID its units are held, and the sweep (`deadline.rs`) decides when
//! they are not.

use crate::domain::operator::OperatorAct;
use crate::domain::payment::{PaymentState, RefundReason, id_beside};
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::published::PublishedEvent;
use crate::events::rows::order as events;
use crate::faults::{crash_point, hold, left_out};
use crate::orders::rows::acts::{self, OrderActResult};
use crate::orders::rows::early_payments::again;
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::locked::{LockedOrder, lock, refund_event, retried};
use crate::orders::rows::payment::{NewPayment, PaymentAnswer, PaymentRecorded, PaymentStep, is_written, pay, step};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::payments;
use crate::store::mysql::transaction::{commit_half, transaction};
use crate::trace_points::trace_point;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

impl OrderRows {
    /// Records a payment and tries its order, with the act that it is. Repeating is safe, and is no act. An id that another payment has, for
    /// another order or of another amount, loses no money: it is recorded beside that one, and has to go back.
    ///
    /// Where the request has no order, `orderless` is why the money goes back. Without a reason nothing is recorded and the answer is `None`:
    /// the caller finds out whether the order is still to come. A payment that was recorded as [`RefundReason::NoOrder`] and whose
    /// order came afterwards is judged again.
    ///
    /// # Errors
    /// [`DbError`]; after [`DbError::Unavailable`] and [`DbError::Timeout`] it is unknown, and a repeat finds out.
    pub async fn receive(
        &self,
        payment: &NewPayment,
        orderless: Option<RefundReason>,
        act: Option<&OperatorAct>,
    ) -> Result<Option<PaymentAnswer>, DbError> {
        let payment = &if left_out!(PaymentId) { under_a_new_id(payment) } else { payment.clone() };
        let reasons = Reasons { taken: None, orderless };
        let Some(answer) = self.find_or_record(payment, reasons, act).await? else { return Ok(None) };
        if payment.is_on_record_as(&answer.row) {
            return Ok(Some(answer));
        }
        let payment_id = id_beside(&payment.payment_id, payment.request_id, &payment.price);
        let beside = NewPayment { payment_id, ..payment.clone() };
        let taken = Some(RefundReason::PaymentIdTaken);
        let answer = self.find_or_record(&beside, Reasons { taken, orderless: taken }, act).await?;
        if let Some(answer) = answer.filter(|answer| beside.is_on_record_as(&answer.row)) {
            return Ok(Some(answer));
        }
        Err(DbError::Other(format!(
            "payment ids {} and {} are both another payment's",
            payment.payment_id, beside.payment_id
        )))
    }
}

/// What `Mechanism::PaymentId` forbids: a payment is another one each time it is reported.
fn under_a_new_id(payment: &NewPayment) -> NewPayment {
    NewPayment { payment_id: format!("{}-{:016x}", payment.payment_id, rand::random::<u64>()), ..payment.clone() }
}

/// Why money goes back that an order could take otherwise.
#[derive(Debug, Clone, Copy)]
struct Reasons {
    /// Another payment has its id.
    taken: Option<RefundReason>,
    /// Where there is no order; `None`: nothing is recorded then.
    orderless: Option<RefundReason>,
}

impl OrderRows {
    /// The payment that has this id: recorded now, or before; with `taken` it is money that goes back for that. `None`: there is no order,
    /// and no reason was given for that.
    async fn find_or_record(
        &self,
        payment: &NewPayment,
        reasons: Reasons,
        act: Option<&OperatorAct>,
    ) -> Result<Option<PaymentAnswer>, DbError> {
        let mut known = self.payment_by_id(&payment.payment_id).await?;
        let mut recorded = PaymentRecorded::Before;
        let is_new = known.is_none();
        if is_new || known.as_ref().is_some_and(|row| payment.came_too_early(row)) {
            let webhooks = self.subscriptions.wanted().await?;
            let step = retried!(self.db.run("payment_receive", async |conn| {
                let work = async |conn: &mut Conn| match is_new {
                    true => record_new(conn, (payment, reasons), act, &webhooks).await,
                    false => again(conn, payment, act, &webhooks).await,
                };
                transaction(conn, work).await
            }));
            match step {
                Ok(PaymentStep::Decided) => recorded = PaymentRecorded::Now,
                Ok(PaymentStep::Unchanged) => {}
                Ok(PaymentStep::NoOrder) if reasons.orderless.is_none() => return Ok(None),
                Ok(PaymentStep::NoOrder) => {}
                // Another process was first with the same id.
                Err(error) if error.is_duplicate() => {}
                Err(error) => return Err(error),
            }
            crash_point!(PaymentCommitted);
            if recorded == PaymentRecorded::Now {
                trace_point!(OrderChanged {
                    rid: payment.request_id.to_string(),
                    event: "PaymentReceived",
                    payment: payment.payment_id.as_str(),
                });
            }
            known = self.payment_by_id(&payment.payment_id).await?;
        }
        #[cfg(feature = "faults")]
        if left_out!(RefundRecorded)
            && let Some(refused) = known.as_ref().filter(|row| row.state == PaymentState::RefundNeeded)
        {
            let row = payments::table.find(refused.payment_id.as_bytes());
            self.db.run("payment_forget", async |conn| Ok(diesel::delete(row).execute(conn).await?)).await?;
        }
        let row = known.ok_or_else(|| DbError::Other(format!("payment {} is not on record", payment.payment_id)))?;
        Ok(Some(PaymentAnswer { recorded, row }))
    }
}

async fn record_new(
    conn: &mut Conn,
    (payment, reasons): (&NewPayment, Reasons),
    act: Option<&OperatorAct>,
    webhooks: &WebhookSubscriptions,
) -> Result<PaymentStep, DbError> {
    if reasons.orderless.is_none() && !is_written(conn, payment.request_id).await? {
        return Ok(PaymentStep::NoOrder);
    }
    let order = lock(conn, payment.request_id).await?;
    let tried = match &order {
        Some(order) => payment.refused_by(order),
        None => reasons.orderless.or(Some(RefundReason::NoOrder)),
    };
    let reason = reasons.taken.or(tried);
    let state = if reason.is_some() { PaymentState::RefundNeeded } else { PaymentState::Applied };
    let row = (
        payments::payment_id.eq(payment.payment_id.as_bytes()),
        payments::request_id.eq(payment.request_id.get()),
        payments::sale_id.eq(order.as_ref().map(|order| order.row.sale_id.as_str().as_bytes())),
        payments::amount_cents.eq(payment.price.amount_cents),
        payments::currency.eq(payment.price.currency.as_str()),
        payments::state.eq(state.code()),
        payments::reason.eq(reason.map(RefundReason::code)),
    );
    let paid_before = match &order {
        Some(order) if reason.is_none() && left_out!(PaidWithItsRow) => Some(pay_before(conn, order).await?),
        Some(_) | None => None,
    };
    diesel::insert_into(payments::table).values(row).execute(conn).await?;
    let event = match (paid_before, reason, &order) {
        (Some(event), ..) => event,
        (None, None, Some(order)) => pay(conn, order).await?,
        (None, reason, order) => {
            if let Some(order) = order {
                step(conn, order, "", "TRUE").await?;
            }
            let order = order.as_ref().map(|order| (order, order.row.version + 1));
            let reason = reason.unwrap_or(RefundReason::NoOrder);
            refund_event(payment.request_id, order, &payment.payment_id, &payment.price, reason)
        }
    };
    events::write(conn, &[event], webhooks).await?;
    let done =
        OrderActResult { code: reason.map_or(state.code(), RefundReason::code), ok: reason.is_none(), after: None };
    acts::write(conn, act, order.as_ref(), done).await?;
    payment.trace_written(reason.map_or(state.code(), RefundReason::code));
    crash_point!(PaymentWritten);
    Ok(PaymentStep::Decided)
}

/// What `Mechanism::PaidWithItsRow` forbids: the order is paid in a transaction of its own.
async fn pay_before<'a>(conn: &mut Conn, order: &'a LockedOrder) -> Result<PublishedEvent<'a>, DbError> {
    let event = pay(conn, order).await?;
    commit_half(conn).await?;
    hold!(OrderPaid);
    Ok(event)
}
