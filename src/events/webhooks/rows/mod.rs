//! Deliveries of webhooks (`webhook_deliveries`): a row for each event and each webhook that wants it, written in the transaction of
//! the change, so that neither is there without the other.
//!
//! Input: events of one transaction. Output: rows that the leader of `events/webhooks` sends (`due`) and what it came to (`tried`), and that people list and
//! replay (`listed`), for the webhooks of `subscriptions`. A crash before COMMIT leaves no row, after it a row that waits. Without a
//! webhook nothing is written.

mod due;
mod listed;
pub mod subscriptions;
mod tried;

pub use due::{DueDelivery, WebhookFigures};
pub use listed::{
    DELIVERIES_COUNTED_MAX, DeliveriesFilter, DeliveryPlace, FoundDeliveries, ListedDelivery, PAGE_MAX, ReplayedRows,
};
pub(crate) use subscriptions::is_of_before;
pub use subscriptions::{StoredSubscription, Subscriptions};
pub use tried::TriedDelivery;

use crate::domain::webhook::WebhookSubscriptions;
use crate::events::published::WaitingEvents;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::values::Values;
use diesel_async::SimpleAsyncConnection;
use std::borrow::Cow;

mysql_handle! {
    /// Deliveries of webhooks and who wants them.
    WebhookRows
}

const DELIVERY_COLUMNS: &str =
    "/* webhooks::write */ INSERT INTO webhook_deliveries (webhook, request_id, event_key, body) VALUES ";

/// Rows for the webhooks that want one kind of event, as the text of one INSERT; nothing when none does.
pub(crate) struct DeliveryRows<'a> {
    wanting: Vec<&'a str>,
    rows: Option<Values>,
}

impl<'a> DeliveryRows<'a> {
    /// For this many events of one kind.
    pub(crate) fn new(webhooks: &'a WebhookSubscriptions, event_key: &'static str, events: usize) -> Self {
        let wanting: Vec<&str> = webhooks.wanting(event_key).collect();
        let rows = (!wanting.is_empty()).then(|| Values::insert(DELIVERY_COLUMNS, 2 * events * wanting.len()));
        Self { wanting, rows }
    }

    /// Whether any webhook wants them.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.rows.is_some()
    }

    /// One event of that kind.
    pub(crate) fn add(&mut self, event: &WaitingEvents) {
        let Some(rows) = &mut self.rows else { return };
        for webhook in &self.wanting {
            add_row(rows, webhook, event);
        }
    }

    /// Puts the INSERT behind the statements of a message.
    pub(crate) fn append_to(self, message: &mut String) {
        if let Some(rows) = self.rows {
            message.push_str("; ");
            message.push_str(&rows.finish());
        }
    }
}

fn add_row(rows: &mut Values, webhook: &str, event: &WaitingEvents) {
    rows.row();
    rows.bytes(webhook.as_bytes());
    rows.number(event.request_id.get());
    match &event.key {
        Cow::Borrowed(key) => rows.code(key),
        Cow::Owned(key) => rows.bytes(key.as_bytes()),
    }
    rows.bytes(&event.bodies);
}

/// Writes a row for each of these events, each by itself, and each webhook that wants it, in the caller's transaction, with one INSERT.
pub(crate) async fn write(
    conn: &mut Conn,
    webhooks: &WebhookSubscriptions,
    events: &[WaitingEvents],
) -> Result<(), DbError> {
    let mut insert: Option<Values> = None;
    for event in events {
        for webhook in webhooks.wanting(&event.key) {
            add_row(insert.get_or_insert_with(|| Values::insert(DELIVERY_COLUMNS, 1)), webhook, event);
        }
    }
    match insert {
        Some(insert) => Ok(conn.batch_execute(&insert.finish()).await?),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;
    use crate::domain::webhook::WebhookSubscription;

    #[test]
    fn an_event_is_a_row_for_each_webhook_that_wants_it_and_no_text_without_one() {
        let mut message = "BEGIN".to_owned();
        let none = WebhookSubscriptions::default();
        let mut rows = DeliveryRows::new(&none, "order.confirmed", 1);
        let event = WaitingEvents {
            request_id: RequestId::new(7).unwrap(),
            key: "order.confirmed".into(),
            count: 1,
            bodies: b"{}".to_vec(),
        };
        rows.add(&event);
        assert!(!rows.is_wanted());
        rows.append_to(&mut message);
        assert_eq!(message, "BEGIN");
        let of = |name: &str, event: &str| WebhookSubscription { name: name.into(), events: vec![event.into()] };
        let some = WebhookSubscriptions::new(vec![
            of("a", "order.confirmed"),
            of("b", "order.confirmed"),
            of("c", "order.paid"),
        ]);
        let mut rows = DeliveryRows::new(&some, "order.confirmed", 1);
        rows.add(&event);
        rows.append_to(&mut message);
        let key = "'order.confirmed'";
        let values = format!("(x'61',7,{key},x'7b7d'),(x'62',7,{key},x'7b7d')");
        assert_eq!(message, format!("BEGIN; {DELIVERY_COLUMNS}{values}"));
    }
}
