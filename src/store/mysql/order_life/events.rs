//! Events of orders after CONFIRMED (L5): written in the transaction of what they tell, published and deleted by a consumer.
//!
//! The body is versioned JSON like that of outcome events. `version` grows with each event of an order, so that a receiver can drop
//! those that come late. A row has up to [`EVENTS_MAX`] events of one key, as one message has: orders expire together, and a row each
//! would cost the database as much as their change. A crash between the broker's confirm and the deletion leaves the row, and its
//! events are published again.

use super::super::codes::read_request_id;
use super::super::fault::DbError;
use super::super::pool::{Conn, Db};
use super::super::schema::order_events;
use super::super::webhooks::{self, ToldEvent};
use super::LockedOrder;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::message::EVENTS_MAX;
use crate::domain::order_life::{OrderState, REFUND_NEEDED_KEY};
use crate::domain::payment::RefundReason;
use crate::domain::webhook::WebhookSubscriptions;
use crate::runtime::now_ms;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde::Serialize;
use serde_json::json;

/// Most rows that one call of [`waiting`] returns: two megabytes, when each has as many events as it may.
pub const WAITING_ROWS_MAX: u16 = 100;

/// Events of one key that wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingEvents {
    /// Order of writing.
    pub event_id: u64,
    /// The first order.
    pub request_id: RequestId,
    /// Routing key at the broker.
    pub key: String,
    /// How many, 1 to [`EVENTS_MAX`].
    pub count: u16,
    /// JSON, one after the other with commas between them.
    pub bodies: Vec<u8>,
}

/// One event of an order.
pub(super) struct NewOrderEvent {
    request_id: u64,
    event_key: &'static str,
    body: Vec<u8>,
}

/// What an event says of an order.
#[derive(Serialize)]
pub(super) struct ToldOrder<'a> {
    #[serde(rename = "rid")]
    pub(super) request_id: RequestId,
    #[serde(rename = "sale")]
    pub(super) sale_id: &'a SaleId,
    #[serde(rename = "user")]
    pub(super) user_id: &'a UserId,
    #[serde(rename = "qty")]
    pub(super) quantity: u32,
    #[serde(rename = "amount")]
    pub(super) amount_cents: i64,
    pub(super) currency: &'a str,
}

/// An order got another state.
#[derive(Serialize)]
struct StateEvent<'a> {
    v: u8,
    #[serde(flatten)]
    order: &'a ToldOrder<'a>,
    status: &'static str,
    version: u32,
    at: i64,
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
    pub(super) fn of_state(order: &ToldOrder<'_>, to: OrderState, version: u32) -> Self {
        let event = StateEvent { v: 1, order, status: to.code(), version, at: now_ms() };
        let body = serde_json::to_vec(&event).unwrap_or_default();
        Self { request_id: order.request_id.get(), event_key: to.event_key(), body }
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
    let rows: Vec<_> = events
        .chunk_by(|one, next| one.event_key == next.event_key)
        .flat_map(|of_key| of_key.chunks(EVENTS_MAX))
        .filter_map(|chunk| {
            let first = chunk.first()?;
            let bodies: Vec<&[u8]> = chunk.iter().map(|event| event.body.as_slice()).collect();
            Some((
                order_events::request_id.eq(first.request_id),
                order_events::event_key.eq(first.event_key),
                order_events::events_count.eq(u16::try_from(chunk.len()).unwrap_or(u16::MAX)),
                order_events::body.eq(bodies.join(&b',')),
            ))
        })
        .collect();
    diesel::insert_into(order_events::table).values(&rows).execute(conn).await?;
    let told = events.iter().map(|event| ToldEvent {
        request_id: event.request_id,
        key: event.event_key,
        body: event.body.as_slice(),
    });
    webhooks::write(conn, webhooks, told).await
}

/// The first waiting events, at most [`WAITING_ROWS_MAX`] rows. Several processes may get the same ones.
pub async fn waiting(db: &Db) -> Result<Vec<WaitingEvents>, DbError> {
    let rows: Vec<(u64, u64, String, u16, Vec<u8>)> = db
        .run("order_events", async |conn| {
            let columns = (
                order_events::event_id,
                order_events::request_id,
                order_events::event_key,
                order_events::events_count,
                order_events::body,
            );
            let page = order_events::table.order(order_events::event_id).limit(WAITING_ROWS_MAX.into());
            Ok(page.select(columns).load(conn).await?)
        })
        .await?;
    let read = |(event_id, request, key, count, bodies)| {
        Ok(WaitingEvents { event_id, request_id: read_request_id(request)?, key, count, bodies })
    };
    rows.into_iter().map(read).collect()
}

/// Deletes rows whose events were published. After an error they are published again.
pub async fn delete(db: &Db, ids: &[u64]) -> Result<(), DbError> {
    db.run("order_events_told", async |conn| {
        let told = order_events::table.filter(order_events::event_id.eq_any(ids));
        diesel::delete(told).execute(conn).await?;
        Ok(())
    })
    .await
}
