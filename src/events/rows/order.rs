//! Events of orders after CONFIRMED (L5): written in the transaction of the change, published and deleted by a consumer.
//!
//! The body is versioned JSON like that of outcome events. `version` grows with each event of an order, so that a receiver can drop
//! those that come late. Orders that expire together share rows, up to [`EVENTS_MAX`] each, which say once what they have in common:
//! a row with the whole event each would cost the database as much as the change. A crash between the broker's confirm and the
//! deletion leaves the row, and its events are published again.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::message::EVENTS_MAX;
use crate::domain::order_life::REFUND_NEEDED_KEY;
use crate::domain::payment::RefundReason;
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::rows::OrderEventRows;
use crate::events::rows::shared::{ChangedOrder, SharedChange, full_events};
use crate::events::rows::waiting_page::WaitingPage;
use crate::events::webhooks::rows::{self as webhooks, DeliverableEvent};
use crate::runtime::now_ms;
use crate::store::mysql::codes::read_request_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::order_events;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde_json::json;

/// Most rows that one call of [`waiting`] returns: two megabytes, when each has as many events as it may.
const WAITING_ROWS_MAX: u16 = 100;

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
pub(crate) struct NewOrderEvent {
    pub(crate) request_id: u64,
    pub(crate) event_key: &'static str,
    pub(crate) body: Vec<u8>,
}

/// Money that has to go back.
pub(crate) struct RefundNeeded<'a> {
    pub(crate) payment_id: &'a str,
    pub(crate) reason: RefundReason,
    pub(crate) amount_cents: i64,
    pub(crate) currency: &'a str,
}

impl NewOrderEvent {
    /// Money came, or stayed, that has to go back; `order` with the version that this event has. Of a request without an order there
    /// is nothing but the payment.
    pub(crate) fn of_refund(
        request_id: RequestId,
        order: Option<(&SaleId, ChangedOrder<'_>)>,
        refund: &RefundNeeded<'_>,
    ) -> Self {
        let (sale, order) = order.unzip();
        let order = order.as_ref();
        let body = json!({
            "v": 1, "rid": request_id, "sale": sale, "user": order.map(|order| order.user_id),
            "qty": order.map(|order| order.quantity), "status": "REFUND_NEEDED", "reason": refund.reason.code(),
            "payment_id": refund.payment_id, "amount": refund.amount_cents, "currency": refund.currency,
            "version": order.map_or(0, |order| order.version), "at": now_ms(),
        });
        Self { request_id: request_id.get(), event_key: REFUND_NEEDED_KEY, body: body.to_string().into_bytes() }
    }
}

/// Writes events in the caller's transaction, for the exchange and for the webhooks that want them.
pub(crate) async fn write(
    conn: &mut Conn,
    events: &[NewOrderEvent],
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
    if crate::faults::left_out!(OrderEventRow) || events.is_empty() {
        return Ok(());
    }
    let row = |event: &NewOrderEvent| (event.request_id, event.event_key, 1, event.body.clone());
    insert(conn, events.iter().map(row).collect()).await?;
    write_deliveries(conn, events, webhooks).await
}

/// The same of orders that changed together.
pub(crate) async fn write_shared(
    conn: &mut Conn,
    change: &SharedChange<'_>,
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
    if crate::faults::left_out!(OrderEventRow) {
        return Ok(());
    }
    let (key, at) = (change.to.event_key(), now_ms());
    let rows = change.orders.chunks(EVENTS_MAX).filter_map(|orders| {
        let count = u16::try_from(orders.len()).unwrap_or(u16::MAX);
        Some((orders.first()?.request_id.get(), key, count, change.row(orders, at)))
    });
    insert(conn, rows.collect()).await?;
    if webhooks.wanting(key).next().is_none() {
        return Ok(());
    }
    let events: Vec<NewOrderEvent> = change.orders.iter().map(|order| change.event(order, at)).collect();
    write_deliveries(conn, &events, webhooks).await
}

async fn insert(conn: &mut Conn, rows: Vec<(u64, &'static str, u16, Vec<u8>)>) -> Result<(), DbError> {
    let columns = |(first, key, count, body): (u64, &'static str, u16, Vec<u8>)| {
        (
            order_events::request_id.eq(first),
            order_events::event_key.eq(key),
            order_events::events_count.eq(count),
            order_events::body.eq(body),
        )
    };
    let rows: Vec<_> = rows.into_iter().map(columns).collect();
    diesel::insert_into(order_events::table).values(rows).execute(conn).await?;
    Ok(())
}

async fn write_deliveries(
    conn: &mut Conn,
    events: &[NewOrderEvent],
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
    let deliverable = events.iter().map(|event| DeliverableEvent {
        request_id: event.request_id,
        key: event.event_key,
        body: event.body.as_slice(),
    });
    webhooks::write(conn, webhooks, deliverable).await
}

impl OrderEventRows {
    /// The first waiting events behind a row, at most `WAITING_ROWS_MAX` rows; 0 is before the first. Several processes may get the
    /// same ones.
    pub async fn waiting(&self, after: u64) -> Result<WaitingPage<WaitingEvents>, DbError> {
        let rows: Vec<(u64, u64, String, u16, Vec<u8>)> = self
            .db
            .run("order_events", async |conn| {
                let columns = (
                    order_events::event_id,
                    order_events::request_id,
                    order_events::event_key,
                    order_events::events_count,
                    order_events::body,
                );
                let behind = order_events::table.filter(order_events::event_id.gt(after));
                let page = behind.order(order_events::event_id).limit(WAITING_ROWS_MAX.into());
                Ok(page.select(columns).load(conn).await?)
            })
            .await?;
        let read = |(event_id, request, key, count, row)| {
            Ok(WaitingEvents {
                event_id,
                request_id: read_request_id(request)?,
                key,
                count,
                bodies: full_events(row, count)?,
            })
        };
        Ok(WaitingPage::of(rows, WAITING_ROWS_MAX, |(event_id, ..)| *event_id, read))
    }

    /// Deletes rows whose events were published. After an error they are published again.
    pub(crate) async fn delete(&self, ids: &[u64]) -> Result<(), DbError> {
        self.db
            .run("order_events_told", async |conn| {
                let published = order_events::table.filter(order_events::event_id.eq_any(ids));
                diesel::delete(published).execute(conn).await?;
                Ok(())
            })
            .await
    }
}
