//! Payments as a provider tells of them (L3). The money is recorded first and in any case; then the order is tried.
//!
//! One transaction: the order is locked, the payment gets its row, the order becomes PAID or the row says why the money has to go
//! back. The provider's id is unique, so a repeat finds what was decided; other money under the same id gets a row beside it. There is
//! no look at the clock: as long as an order is UNPAID its units are held, and the sweep decides when they are not.

use super::super::columns::{ByteText, UnixMs};
use super::super::fault::DbError;
use super::super::pool::{Conn, Db};
use super::super::schema::{orders, payments, sales};
use super::acts::{self, DoneToOrder};
use super::events::{self, NewOrderEvent, RefundNeeded};
use super::{LockedOrder, lock, movable, moved_away, retried};
use crate::domain::ids::RequestId;
use crate::domain::operator::OperatorAct;
use crate::domain::order_life::{OrderEvent, OrderState, OrderTransition};
use crate::domain::payment::{PaymentState, Price, RefundReason, id_beside, refund_reason};
use crate::domain::webhook::WebhookSubscriptions;
use crate::faults::crash_point;
use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};
use serde_json::json;

/// Most payments of one order that are shown.
const PAYMENTS_MAX: i64 = 1000;

/// Money that a provider tells of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPayment {
    /// Identity given by the provider, 1 to 128 bytes.
    pub payment_id: String,
    /// The order that it is for.
    pub request_id: RequestId,
    /// How much, in which currency.
    pub price: Price,
}

/// A row of `payments`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, Queryable, Selectable)]
#[diesel(table_name = payments)]
pub struct Payment {
    /// Identity given by the provider.
    #[diesel(deserialize_as = ByteText)]
    pub payment_id: String,
    /// The order that it is for, as told.
    pub request_id: RequestId,
    /// Amount in the smallest unit of the currency.
    #[serde(rename = "amount")]
    pub amount_cents: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// `APPLIED`, `REFUND_NEEDED` or `REFUNDED`.
    #[serde(serialize_with = "code_of")]
    pub state: PaymentState,
    /// Why the money has to go back, or went.
    pub reason: Option<String>,
    /// When it was told, Unix milliseconds by the database's clock.
    #[diesel(column_name = created_at, deserialize_as = UnixMs)]
    #[serde(skip)]
    pub created_at_ms: i64,
    /// When it got its state, Unix milliseconds by the database's clock.
    #[diesel(column_name = state_at, deserialize_as = UnixMs)]
    #[serde(skip)]
    pub state_at_ms: i64,
}

fn code_of<S: serde::Serializer>(state: &PaymentState, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.code())
}

/// Whether a payment was new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaymentTold {
    /// It was recorded now.
    Now,
    /// It was recorded before; nothing changed.
    Before,
}

impl NewPayment {
    fn is_on_record_as(&self, row: &Payment) -> bool {
        row.request_id == self.request_id
            && row.amount_cents == self.price.amount_cents
            && row.currency == self.price.currency
    }
}

/// What became of a payment: it is on record, with this decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentAnswer {
    /// Whether it was new.
    pub told: PaymentTold,
    /// The payment. Its id is another one than was told where another payment has that one.
    pub row: Payment,
}

/// Records a payment and tries its order, with the act that it is. Repeating is safe, and is no act. An id that another payment has, for
/// another order or of another amount, loses no money: it is recorded beside that one, and has to go back.
///
/// # Errors
/// [`DbError`]; after [`DbError::Unavailable`] and [`DbError::Timeout`] it is unknown, and a repeat finds out.
pub async fn receive(db: &Db, payment: &NewPayment, act: Option<&OperatorAct>) -> Result<PaymentAnswer, DbError> {
    let answer = on_record(db, payment, None, act).await?;
    if payment.is_on_record_as(&answer.row) {
        return Ok(answer);
    }
    let payment_id = id_beside(&payment.payment_id, payment.request_id, &payment.price);
    let beside = NewPayment { payment_id, ..payment.clone() };
    let answer = on_record(db, &beside, Some(RefundReason::PaymentIdTaken), act).await?;
    if beside.is_on_record_as(&answer.row) {
        return Ok(answer);
    }
    Err(DbError::Other(format!(
        "payment ids {} and {} are both another payment's",
        payment.payment_id, beside.payment_id
    )))
}

/// The payment that has this id: recorded now, or before; with `taken` it is money that goes back for that.
async fn on_record(
    db: &Db,
    payment: &NewPayment,
    taken: Option<RefundReason>,
    act: Option<&OperatorAct>,
) -> Result<PaymentAnswer, DbError> {
    let mut known = by_id(db, &payment.payment_id).await?;
    let mut told = PaymentTold::Before;
    if known.is_none() {
        let recorded = retried!(db.run("payment_receive", async |conn| {
            conn.transaction(async |conn| in_transaction(conn, (payment, taken), act, db.webhooks()).await).await
        }));
        match recorded {
            Ok(()) => told = PaymentTold::Now,
            // Another process was first with the same id.
            Err(error) if error.is_duplicate() => {}
            Err(error) => return Err(error),
        }
        crash_point!(PaymentCommitted);
        known = by_id(db, &payment.payment_id).await?;
    }
    let row = known.ok_or_else(|| DbError::Other(format!("payment {} is not on record", payment.payment_id)))?;
    Ok(PaymentAnswer { told, row })
}

async fn in_transaction(
    conn: &mut Conn,
    (payment, taken): (&NewPayment, Option<RefundReason>),
    act: Option<&OperatorAct>,
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
    let order = lock(conn, payment.request_id).await?;
    let tried = order.as_ref().map_or(Some(RefundReason::NoOrder), |order| {
        let asked = Price { amount_cents: order.amount_cents, currency: order.currency.clone() };
        refund_reason(order.state, &asked, &payment.price)
    });
    let reason = taken.or(tried);
    let state = if reason.is_some() { PaymentState::RefundNeeded } else { PaymentState::Applied };
    let row = (
        payments::payment_id.eq(payment.payment_id.as_bytes()),
        payments::request_id.eq(payment.request_id.get()),
        payments::sale_id.eq(order.as_ref().map(|order| order.sale_id.as_str().as_bytes())),
        payments::amount_cents.eq(payment.price.amount_cents),
        payments::currency.eq(payment.price.currency.as_str()),
        payments::state.eq(state.code()),
        payments::reason.eq(reason.map(RefundReason::code)),
    );
    diesel::insert_into(payments::table).values(row).execute(conn).await?;
    let told = match (reason, &order) {
        (None, Some(order)) => {
            let condition = format!("state IN {}", movable(OrderEvent::PaymentReceived));
            step(conn, order, "state = 'PAID', state_at = NOW(3), ", &condition).await?;
            NewOrderEvent::of_state(order, OrderState::Paid)
        }
        (reason, order) => {
            if let Some(order) = order {
                step(conn, order, "", "TRUE").await?;
            }
            let refund = RefundNeeded {
                payment_id: &payment.payment_id,
                reason: reason.unwrap_or(RefundReason::NoOrder),
                amount_cents: payment.price.amount_cents,
                currency: &payment.price.currency,
            };
            let order = order.as_ref().map(|order| (order, order.version + 1));
            NewOrderEvent::of_refund(payment.request_id, order, &refund)
        }
    };
    events::write(conn, &[told], webhooks).await?;
    let done = DoneToOrder { code: reason.map_or(state.code(), RefundReason::code), ok: reason.is_none(), after: None };
    acts::write(conn, act, order.as_ref(), done).await?;
    crash_point!(PaymentWritten);
    Ok(())
}

/// One step of an order that this transaction holds.
async fn step(conn: &mut Conn, order: &LockedOrder, set: &str, condition: &str) -> Result<(), DbError> {
    let update = format!(
        "/* order_life::payment */ UPDATE orders SET {set}version = version + 1 WHERE request_id = {} AND {condition}",
        order.request_id
    );
    match diesel::sql_query(update).execute(conn).await? {
        1 => Ok(()),
        matched => Err(moved_away(order.request_id, matched)),
    }
}

pub(super) async fn by_id(db: &Db, payment_id: &str) -> Result<Option<Payment>, DbError> {
    db.run("payment_get", async |conn| {
        let payment = payments::table.find(payment_id.as_bytes()).select(Payment::as_select());
        Ok(payment.first(conn).await.optional()?)
    })
    .await
}

/// What became of the start of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PaymentStart {
    /// The buyer may pay until then, Unix milliseconds; the deadline moved when this was the first start.
    Until(i64),
    /// The order is not payable any more: its state, UNPAID when its deadline has passed and the sweep is on its way; `None`: its
    /// sale has no payment step.
    Refused(Option<OrderState>),
    /// There is no such order.
    NoOrder,
}

/// A payment is started: the deadline moves by the time to pay, once, and that is an act. Repeating is safe.
pub async fn start(db: &Db, request_id: RequestId, act: Option<&OperatorAct>) -> Result<PaymentStart, DbError> {
    let started = retried!(db.run("payment_start", async |conn| {
        conn.transaction(async |conn| {
            let Some(order) = lock(conn, request_id).await? else { return Ok(PaymentStart::NoOrder) };
            let Some(state) = order.state else { return Ok(PaymentStart::Refused(None)) };
            if !matches!(state.after(OrderEvent::PaymentStarted), OrderTransition::To(_)) {
                return Ok(PaymentStart::Refused(Some(state)));
            }
            let sale = order.sale_id.as_str().as_bytes();
            let columns = (sales::pay_within_s, sales::pay_grace_s);
            let (within, grace): (Option<u32>, u32) = sales::table.find(sale).select(columns).first(conn).await?;
            let within = u64::from(within.unwrap_or(0));
            // Never past twice the time, whatever a clock says.
            let later = format!(
                "LEAST(pay_by + INTERVAL {within} SECOND, created_at + INTERVAL {} SECOND)",
                within.saturating_mul(2)
            );
            // `expire_at` first: it is made from the `pay_by` of before.
            let set = format!(
                "/* order_life::start */ UPDATE orders SET expire_at = {later} + INTERVAL {grace} SECOND, pay_by = {later}, \
                 paying_at = NOW(3) WHERE request_id = {request_id} AND state IN {} AND paying_at IS NULL AND expire_at > NOW(3)",
                movable(OrderEvent::PaymentStarted)
            );
            let moved = diesel::sql_query(set).execute(conn).await?;
            // Read whether or not it moved: a repeat hears the same deadline.
            let payable = orders::table.find(request_id.get()).filter(orders::expire_at.gt(diesel::dsl::sql("NOW(3)")));
            let pay_by: Option<UnixMs> =
                payable.select(orders::pay_by.assume_not_null()).first(conn).await.optional()?;
            let Some(pay_by) = pay_by else { return Ok(PaymentStart::Refused(Some(state))) };
            let pay_by_ms: i64 = pay_by.into();
            if moved > 0 {
                let done = DoneToOrder { code: "DEADLINE_MOVED", ok: true, after: Some(json!({ "pay_by_ms": pay_by_ms })) };
                acts::write(conn, act, Some(&order), done).await?;
                crash_point!(PayingWritten);
            }
            Ok(PaymentStart::Until(pay_by_ms))
        })
        .await
    }))?;
    if matches!(started, PaymentStart::Until(_)) {
        crash_point!(PayingCommitted);
    }
    Ok(started)
}

/// The payments of an order, oldest first.
pub async fn payments_of(db: &Db, request_id: RequestId) -> Result<Vec<Payment>, DbError> {
    db.run("payments_of", async |conn| {
        let of = payments::table.filter(payments::request_id.eq(request_id.get()));
        let first = of.order((payments::created_at, payments::payment_id)).limit(PAYMENTS_MAX);
        Ok(first.select(Payment::as_select()).load(conn).await?)
    })
    .await
}
