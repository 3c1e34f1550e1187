//! Events of sales and lines: written in the caller's transaction, a row each.
//!
//! Input: events as they are published. Output: rows for the exchange, and for the webhooks that want them. A crash before COMMIT leaves
//! nothing, after it rows that wait for the broker.

use crate::domain::webhook::WebhookSubscriptions;
use crate::events::published::WaitingEvents;
use crate::events::webhooks::rows as webhooks;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::order_events;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// Writes events.
pub(crate) async fn write(
    conn: &mut Conn,
    events: &[WaitingEvents],
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
    if events.is_empty() {
        return Ok(());
    }
    let row = |event: &WaitingEvents| {
        (
            order_events::request_id.eq(event.request_id.get()),
            order_events::event_key.eq(event.key.to_string()),
            order_events::events_count.eq(event.count),
            order_events::body.eq(event.bodies.clone()),
        )
    };
    let rows: Vec<_> = events.iter().map(row).collect();
    diesel::insert_into(order_events::table).values(rows).execute(conn).await?;
    webhooks::write(conn, webhooks, events).await
}
