//! Events of orders after CONFIRMED (L5): written in the transaction of what they tell, published and deleted by a consumer.
//!
//! The body is versioned JSON like that of outcome events. `version` grows with each event of an order, so that a receiver can drop
//! those that come late. A crash between the broker's confirm and the deletion leaves the row, and the event is published again.

use super::super::codes::read_request_id;
use super::super::events::WAITING_MAX;
use super::super::fault::DbError;
use super::super::pool::{Conn, Db};
use super::super::schema::order_events;
use super::super::webhooks::{self, ToldEvent};
use super::LockedOrder;
use crate::domain::ids::RequestId;
use crate::domain::order_life::{OrderState, REFUND_NEEDED_KEY};
use crate::domain::payment::RefundReason;
use crate::domain::webhook::WebhookSubscriptions;
use crate::runtime::now_ms;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde_json::json;

/// An event that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingEvent {
    /// Order of writing.
    pub event_id: u64,
    /// The order.
    pub request_id: RequestId,
    /// Routing key at the broker.
    pub key: String,
    /// The body, JSON.
    pub body: Vec<u8>,
}

/// One event of an order.
#[derive(Insertable)]
#[diesel(table_name = order_events)]
pub(super) struct NewOrderEvent {
    request_id: u64,
    event_key: &'static str,
    body: Vec<u8>,
}

/// Money that has to go back.
pub(super) struct RefundNeeded<'a> {
    pub(super) payment_id: &'a str,
    pub(super) reason: RefundReason,
    pub(super) amount_cents: i64,
    pub(super) currency: &'a str,
}

impl NewOrderEvent {
    /// The order got this state; its version is that of after the change.
    pub(super) fn of_state(order: &LockedOrder, to: OrderState, version: u32) -> Self {
        let body = json!({
            "v": 1, "rid": order.request_id, "sale": order.sale_id, "user": order.user_id, "qty": order.quantity,
            "status": to.code(), "amount": order.amount_cents, "currency": order.currency, "version": version, "at": now_ms(),
        });
        Self { request_id: order.request_id.get(), event_key: to.event_key(), body: body.to_string().into_bytes() }
    }

    /// Money came, or stayed, that has to go back. Of a request without an order there is nothing but the payment.
    pub(super) fn of_refund(request_id: RequestId, order: Option<&LockedOrder>, refund: &RefundNeeded<'_>) -> Self {
        let body = json!({
            "v": 1, "rid": request_id, "sale": order.map(|order| &order.sale_id), "user": order.map(|order| &order.user_id),
            "qty": order.map(|order| order.quantity), "status": "REFUND_NEEDED", "reason": refund.reason.code(),
            "payment_id": refund.payment_id, "amount": refund.amount_cents, "currency": refund.currency,
            "version": order.map_or(0, |order| order.version + 1), "at": now_ms(),
        });
        Self { request_id: request_id.get(), event_key: REFUND_NEEDED_KEY, body: body.to_string().into_bytes() }
    }
}

/// Writes events in the caller's transaction, for the exchange and for the webhooks that want them.
pub(super) async fn write(
    conn: &mut Conn,
    events: &[NewOrderEvent],
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
    if crate::faults::left_out!(OrderEventRow) || events.is_empty() {
        return Ok(());
    }
    diesel::insert_into(order_events::table).values(events).execute(conn).await?;
    let told = events.iter().map(|event| ToldEvent {
        request_id: event.request_id,
        key: event.event_key,
        body: event.body.as_slice(),
    });
    webhooks::write(conn, webhooks, told).await
}

/// The first waiting events, at most [`WAITING_MAX`]. Several processes may get the same ones.
pub async fn waiting(db: &Db) -> Result<Vec<WaitingEvent>, DbError> {
    let rows: Vec<(u64, u64, String, Vec<u8>)> = db
        .run("order_events", async |conn| {
            let columns =
                (order_events::event_id, order_events::request_id, order_events::event_key, order_events::body);
            let page = order_events::table.order(order_events::event_id).limit(WAITING_MAX.into());
            Ok(page.select(columns).load(conn).await?)
        })
        .await?;
    let read = |(event_id, request, key, body)| {
        Ok(WaitingEvent { event_id, request_id: read_request_id(request)?, key, body })
    };
    rows.into_iter().map(read).collect()
}

/// How many events wait.
pub async fn waiting_count(db: &Db) -> Result<i64, DbError> {
    db.run("order_events_count", async |conn| Ok(order_events::table.count().get_result(conn).await?)).await
}

/// Deletes events that were published. After an error they are published again.
pub async fn delete(db: &Db, ids: &[u64]) -> Result<(), DbError> {
    db.run("order_events_told", async |conn| {
        let told = order_events::table.filter(order_events::event_id.eq_any(ids));
        diesel::delete(told).execute(conn).await?;
        Ok(())
    })
    .await
}
