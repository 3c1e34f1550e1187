//! The order that a transaction changes: its row, locked until the end, and what every change of one has in common.
//!
//! Input: a request. Output: its order as nothing else changes it meanwhile, the condition of the UPDATE, the event. A crash before
//! COMMIT leaves nothing.

use crate::domain::ids::RequestId;
use crate::domain::order_life::{OrderEvent, OrderState};
use crate::domain::payment::{Price, RefundReason};
use crate::events::published::PublishedEvent;
use crate::orders::rows::row::{OrderRow, OrderTerms, terms_of_sale};
use crate::runtime::now_ms;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::orders;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// How often a transaction that lost a deadlock is tried again.
pub(super) const DEADLOCK_TRIES: u32 = 3;

/// An order that this transaction holds, and what its sale says of it. Its state is the one that holds.
pub(super) struct LockedOrder {
    pub(super) row: OrderRow,
    pub(super) terms: OrderTerms,
}

impl LockedOrder {
    /// The event of its next version: it gets this state.
    pub(super) fn state_event(&self, to: OrderState) -> PublishedEvent<'_> {
        let change = PublishedEvent::of_state(self.row.request_id, to);
        self.row.event(change, &self.terms, self.row.version + 1, now_ms())
    }
}

/// The order of a request, locked until the transaction ends; `None` when there is none.
pub(super) async fn lock(conn: &mut Conn, request_id: RequestId) -> Result<Option<LockedOrder>, DbError> {
    let row: Option<OrderRow> =
        orders::table.find(request_id.get()).select(OrderRow::as_select()).for_update().first(conn).await.optional()?;
    let Some(mut row) = row else { return Ok(None) };
    if row.lacks_its_state() {
        row.state = row.state.and(Some(OrderState::Cancelled));
    }
    let terms = terms_of_sale(conn, &row.sale_id).await?;
    Ok(Some(LockedOrder { row, terms }))
}

/// The event of money that has to go back; `order` with the version that the event has.
pub(super) fn refund_event<'a>(
    request_id: RequestId,
    order: Option<(&'a LockedOrder, u32)>,
    payment_id: &'a str,
    price: &'a Price,
    reason: RefundReason,
) -> PublishedEvent<'a> {
    let at = now_ms();
    let of_request = PublishedEvent { version: Some(0), at: Some(at), ..PublishedEvent::of_refund(request_id) };
    PublishedEvent {
        reason: Some(reason.code()),
        payment_id: Some(payment_id),
        amount: Some(price.amount_cents),
        currency: Some(&price.currency),
        ..match order {
            Some((order, version)) => order.row.event(of_request, &order.terms, version, at),
            None => of_request,
        }
    }
}

/// The condition of an UPDATE: the states from which `event` moves an order, as an SQL list.
pub(super) fn movable(event: OrderEvent) -> String {
    let quoted: Vec<String> = event.movable_states().map(|code| format!("'{code}'")).collect();
    format!("({})", quoted.join(", "))
}

/// An UPDATE of a row that this transaction holds matched none, or too many: the row is not what it was read as.
pub(super) fn moved_away(request_id: RequestId, matched: usize) -> DbError {
    DbError::Other(format!("order {request_id}: {matched} rows matched where one was locked"))
}

/// Repeats a transaction that lost a deadlock, a few times.
macro_rules! retried {
    ($work:expr) => {{
        let mut tries = 1;
        loop {
            match $work.await {
                Err($crate::store::mysql::DbError::Deadlock) if tries < crate::orders::rows::locked::DEADLOCK_TRIES => {
                    tries += 1
                }
                done => break done,
            }
        }
    }};
}
pub(super) use retried;
