//! A payment as it is reported and as it is on record, and the step of its order.
//!
//! Input: money for an order. Output: its row; the order's UPDATE and event, in the caller's transaction. A crash before COMMIT leaves
//! nothing.

use crate::domain::ids::RequestId;
use crate::domain::order_life::{OrderEvent, OrderState};
use crate::domain::payment::{PaymentState, Price, RefundReason, refund_reason};
use crate::events::published::PublishedEvent;
use crate::faults::left_out;
use crate::orders::rows::handles::{OrderRows, RequestRows};
use crate::orders::rows::locked::{LockedOrder, movable, moved_away};
use crate::store::mysql::columns::{ByteText, UnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{orders, payments};
use crate::trace_points::trace_point;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// Most payments of one order that are shown.
const PAYMENTS_MAX: i64 = 1000;

/// Money that a provider reports.
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
    /// The order that it is for, as reported.
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
    /// When it was reported, Unix milliseconds by the database's clock.
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
pub enum PaymentRecorded {
    /// It was recorded now, or got its order now.
    Now,
    /// It was recorded before; nothing changed.
    Before,
}

impl NewPayment {
    /// A line for the trace of a test build: it is written and not committed.
    pub(crate) fn trace_written(&self, verdict: &str) {
        trace_point!(OrderWritten {
            rid: self.request_id.to_string(),
            event: "PaymentReceived",
            payment: self.payment_id.as_str(),
            verdict: verdict,
        });
    }

    pub(crate) fn is_on_record_as(&self, row: &Payment) -> bool {
        row.request_id == self.request_id
            && row.amount_cents == self.price.amount_cents
            && row.currency == self.price.currency
    }

    /// Whether this row is the same money, recorded when its request had no order.
    pub(super) fn came_too_early(&self, row: &Payment) -> bool {
        self.is_on_record_as(row)
            && row.state == PaymentState::RefundNeeded
            && row.reason.as_deref() == Some(RefundReason::NoOrder.code())
    }

    /// Why this order cannot take it.
    pub(super) fn refused_by(&self, order: &LockedOrder) -> Option<RefundReason> {
        let asked = Price { amount_cents: order.row.amount_cents, currency: order.terms.currency.clone() };
        let reason = refund_reason(order.row.state, &asked, &self.price)?;
        let is_taken = match reason {
            RefundReason::Expired => left_out!(LateMoneyRefused),
            RefundReason::OtherAmount => left_out!(AmountCompared),
            RefundReason::NoOrder
            | RefundReason::RequestFailed
            | RefundReason::NoPaymentStep
            | RefundReason::AlreadyPaid
            | RefundReason::Cancelled
            | RefundReason::OtherCurrency
            | RefundReason::PaymentIdTaken => false,
        };
        (!is_taken).then_some(reason)
    }
}

/// What became of a payment: it is on record, with this decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentAnswer {
    /// Whether it was new.
    pub recorded: PaymentRecorded,
    /// The payment's row. Its id differs from the reported one if another payment already has that id.
    pub row: Payment,
}

/// What a transaction did.
pub(crate) enum PaymentStep {
    /// The payment has its decision.
    Decided,
    /// It keeps the one that it has.
    Unchanged,
    /// There is no order; nothing was written.
    NoOrder,
}

/// The order is paid.
pub(super) async fn pay<'a>(conn: &mut Conn, order: &'a LockedOrder) -> Result<PublishedEvent<'a>, DbError> {
    let condition = match left_out!(LateMoneyRefused) {
        true => "TRUE".to_owned(),
        false => format!("state IN {}", movable(OrderEvent::PaymentReceived)),
    };
    step(conn, order, "state = 'PAID', state_at = NOW(3), ", &condition).await?;
    Ok(order.state_event(OrderState::Paid))
}

/// Whether the request has an order. Without a lock: an order whose transaction is under way would be waited for.
pub(crate) async fn is_written(conn: &mut Conn, request_id: RequestId) -> Result<bool, DbError> {
    let order = orders::table.find(request_id.get()).select(orders::request_id);
    Ok(order.first::<u64>(conn).await.optional()?.is_some())
}

/// One step of an order that this transaction holds.
pub(super) async fn step(conn: &mut Conn, order: &LockedOrder, set: &str, condition: &str) -> Result<(), DbError> {
    let update = format!(
        "/* orders::payment */ UPDATE orders SET {set}version = version + 1 WHERE request_id = {} AND {condition}",
        order.row.request_id
    );
    match diesel::sql_query(update).execute(conn).await? {
        1 => Ok(()),
        matched => Err(moved_away(order.row.request_id, matched)),
    }
}

impl OrderRows {
    pub(crate) async fn payment_by_id(&self, payment_id: &str) -> Result<Option<Payment>, DbError> {
        self.db
            .run("payment_get", async |conn| {
                let payment = payments::table.find(payment_id.as_bytes()).select(Payment::as_select());
                Ok(payment.first(conn).await.optional()?)
            })
            .await
    }
}

impl RequestRows {
    /// The payments of an order, oldest first.
    pub async fn payments_of(&self, request_id: RequestId) -> Result<Vec<Payment>, DbError> {
        self.db
            .run("payments_of", async |conn| {
                let of = payments::table.filter(payments::request_id.eq(request_id.get()));
                let first = of.order((payments::created_at, payments::payment_id)).limit(PAYMENTS_MAX);
                Ok(first.select(Payment::as_select()).load(conn).await?)
            })
            .await
    }
}
