//! A payment that was recorded before its order was there, reported again: the order takes it if it can.
//!
//! Input: the payment as it is reported, and on record as one without an order. Output: its order is paid, or nothing changes. A crash before
//! COMMIT leaves nothing, after it a repeat finds what was decided.

use crate::domain::operator::OperatorAct;
use crate::domain::payment::{PaymentState, RefundReason};
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::rows::order as events;
use crate::faults::crash_point;
use crate::orders::rows::acts::{self, OrderActResult};
use crate::orders::rows::handles::OrderRows;
use crate::orders::rows::locked::lock;
use crate::orders::rows::payment::{NewPayment, PaymentAnswer, PaymentRecorded, PaymentStep, is_written, pay};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::payments;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// The payment is on record as one without an order. Its order may have come since: then it is paid, unless the money went back. An
/// order that cannot take it changes nothing. The order is locked before the payment, as everywhere; a refund that is marked at
/// the same time has the payment's row only.
pub(crate) async fn again(
    conn: &mut Conn,
    payment: &NewPayment,
    act: Option<&OperatorAct>,
    webhooks: &WebhookSubscriptions,
) -> Result<PaymentStep, DbError> {
    if !is_written(conn, payment.request_id).await? {
        return Ok(PaymentStep::NoOrder);
    }
    let Some(order) = lock(conn, payment.request_id).await? else { return Ok(PaymentStep::NoOrder) };
    if payment.refused_by(&order).is_some() {
        return Ok(PaymentStep::Unchanged);
    }
    let early = payments::table
        .find(payment.payment_id.as_bytes())
        .filter(payments::state.eq(PaymentState::RefundNeeded.code()))
        .filter(payments::reason.eq(RefundReason::NoOrder.code()));
    let set = (
        payments::state.eq(PaymentState::Applied.code()),
        payments::reason.eq(None::<&str>),
        payments::sale_id.eq(Some(order.row.sale_id.as_str().as_bytes())),
        payments::state_at.eq(diesel::dsl::sql("NOW(3)")),
    );
    if diesel::update(early).set(set).execute(conn).await? == 0 {
        return Ok(PaymentStep::Unchanged);
    }
    let event = pay(conn, &order).await?;
    events::write(conn, &[event], webhooks).await?;
    let done = OrderActResult { code: PaymentState::Applied.code(), ok: true, after: None };
    acts::write(conn, act, Some(&order), done).await?;
    payment.trace_written(PaymentState::Applied.code());
    crash_point!(PaymentWritten);
    Ok(PaymentStep::Decided)
}

impl OrderRows {
    /// The payment as it is on record already, of the same order and money.
    ///
    /// # Errors
    /// [`DbError`]; repeating is safe.
    pub(crate) async fn recorded(&self, payment: &NewPayment) -> Result<Option<PaymentAnswer>, DbError> {
        let row = self.payment_by_id(&payment.payment_id).await?.filter(|row| payment.is_on_record_as(row));
        Ok(row.map(|row| PaymentAnswer { recorded: PaymentRecorded::Before, row }))
    }
}
