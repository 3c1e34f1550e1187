//! Events of orders after CONFIRMED (L5): written in the transaction of the change, published and deleted by a consumer.
//!
//! The body is versioned JSON like that of outcome events. `version` grows with each event of an order, so that a receiver can drop
//! those that come late. Orders that expire together share rows, up to [`EVENTS_MAX`] each, which say once what they have in common:
//! a row with the whole event each would cost the database as much as the change. A crash between the broker's confirm and the
//! deletion leaves the row, and its events are published again.

use crate::domain::message::EVENTS_MAX;
use crate::domain::webhook::WebhookSubscriptions;
use crate::events::published::{PublishedEvent, WaitingEvents};
use crate::events::rows::bundle;
use crate::events::rows::waiting_page::WaitingPage;
use crate::events::webhooks::rows as webhooks;
use crate::faults::left_out;
use crate::store::mysql::codes::read_request_id;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::order_events;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

mysql_handle! {
    /// Events of orders that wait for the broker.
    OrderEventRows
}

/// Most rows that one call of [`OrderEventRows::waiting`] returns: two megabytes, when each has as many events as it may.
const WAITING_ROWS_MAX: u16 = 100;

/// Writes events in the caller's transaction, for the exchange and for the webhooks that want them. Neighbours that differ in their
/// orders only share rows.
pub(crate) async fn write(
    conn: &mut Conn,
    events: &[PublishedEvent<'_>],
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
    if left_out!(OrderEventRow) || events.is_empty() {
        return Ok(());
    }
    let shared = events.chunk_by(bundle::is_shared).flat_map(|same| same.chunks(EVENTS_MAX));
    let rows = shared.filter_map(|events| Some((events.first()?, events))).map(|(first, events)| {
        let row = (
            order_events::request_id.eq(first.request_id.get()),
            order_events::event_key.eq(first.key),
            order_events::events_count.eq(u16::try_from(events.len()).unwrap_or(u16::MAX)),
            order_events::body.eq(bundle::row(events)?),
        );
        Ok(row)
    });
    let rows = rows.collect::<Result<Vec<_>, DbError>>()?;
    diesel::insert_into(order_events::table).values(rows).execute(conn).await?;
    let wanted = events.iter().filter(|event| webhooks.wanting(event.key).next().is_some());
    let wanted: Vec<WaitingEvents> = wanted.map(PublishedEvent::encoded).collect();
    webhooks::write(conn, webhooks, &wanted).await
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
        let read = |(_, request, key, count, row): (u64, u64, String, u16, Vec<u8>)| {
            let (request_id, bodies) = (read_request_id(request)?, bundle::full_events(row, count)?);
            Ok(WaitingEvents { request_id, key: key.into(), count, bodies })
        };
        Ok(WaitingPage::of(rows, WAITING_ROWS_MAX, |(event_id, ..)| *event_id, read))
    }

    /// Deletes rows whose events were published. After an error they are published again.
    pub(crate) async fn delete(&self, ids: &[u64]) -> Result<(), DbError> {
        self.db
            .run("order_events_told", async |conn| {
                if left_out!(OwnEventRows) {
                    diesel::delete(order_events::table).execute(conn).await?;
                    return Ok(());
                }
                let published = order_events::table.filter(order_events::event_id.eq_any(ids));
                diesel::delete(published).execute(conn).await?;
                Ok(())
            })
            .await
    }
}
