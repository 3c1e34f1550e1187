//! Events of orders after CONFIRMED (L5): written in the transaction of what they tell, published and deleted by a consumer.
//!
//! The body is versioned JSON like that of outcome events. `version` grows with each event of an order, so that a receiver can drop
//! those that come late. Orders that expire together share rows, up to [`EVENTS_MAX`] each, which say once what they have in common:
//! a row with the whole event each would cost the database as much as the change. A crash between the broker's confirm and the
//! deletion leaves the row, and its events are published again.

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
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

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

/// An order got another state: the event as it is published.
#[derive(Serialize)]
struct StateEvent<T> {
    v: u8,
    rid: T,
    sale: T,
    user: T,
    qty: u32,
    status: T,
    amount: i64,
    currency: T,
    version: u32,
    at: i64,
}

/// Orders of one sale that got the same state together.
pub(super) struct SharedChange<'a> {
    pub(super) sale_id: &'a SaleId,
    pub(super) currency: &'a str,
    pub(super) to: OrderState,
    pub(super) orders: Vec<ChangedOrder<'a>>,
}

/// One of them.
pub(super) struct ChangedOrder<'a> {
    pub(super) request_id: RequestId,
    pub(super) user_id: &'a UserId,
    pub(super) quantity: u32,
    pub(super) amount_cents: i64,
    /// After the change.
    pub(super) version: u32,
}

/// What a row of several events has.
#[derive(Serialize)]
struct SharedRow<'a> {
    sale: &'a SaleId,
    status: &'static str,
    currency: &'a str,
    at: i64,
    orders: Vec<(RequestId, &'a UserId, u32, i64, u32)>,
}

/// The same, read: texts stay as they are.
#[derive(Deserialize)]
struct ReadRow<'a> {
    #[serde(borrow)]
    sale: &'a RawValue,
    #[serde(borrow)]
    status: &'a RawValue,
    #[serde(borrow)]
    currency: &'a RawValue,
    at: i64,
    #[serde(borrow)]
    orders: Vec<(&'a RawValue, &'a RawValue, u32, i64, u32)>,
}

impl SharedChange<'_> {
    /// The whole event of one order.
    fn event(&self, order: &ChangedOrder<'_>, at: i64) -> NewOrderEvent {
        let rid = order.request_id.to_string();
        let event = StateEvent {
            v: 1,
            rid: rid.as_str(),
            sale: self.sale_id.as_str(),
            user: order.user_id.as_str(),
            qty: order.quantity,
            status: self.to.code(),
            amount: order.amount_cents,
            currency: self.currency,
            version: order.version,
            at,
        };
        let body = serde_json::to_vec(&event).unwrap_or_default();
        NewOrderEvent { request_id: order.request_id.get(), event_key: self.to.event_key(), body }
    }

    /// What a row has of some of its orders: of a single one its event.
    fn row(&self, orders: &[ChangedOrder<'_>], at: i64) -> Vec<u8> {
        if let [order] = orders {
            return self.event(order, at).body;
        }
        let each = orders
            .iter()
            .map(|one| (one.request_id, one.user_id, one.quantity, one.amount_cents, one.version))
            .collect();
        let row = SharedRow { sale: self.sale_id, status: self.to.code(), currency: self.currency, at, orders: each };
        serde_json::to_vec(&row).unwrap_or_default()
    }
}

/// The events of a row, with commas between them.
fn told_by(row: Vec<u8>, count: u16) -> Result<Vec<u8>, DbError> {
    if count == 1 {
        return Ok(row);
    }
    let no_events =
        |error: serde_json::Error| DbError::Other(format!("order_events.body is no list of events: {error}"));
    let read: ReadRow<'_> = serde_json::from_slice(&row).map_err(no_events)?;
    let mut events = Vec::with_capacity(row.len() * 4);
    for (at, (rid, user, qty, amount, version)) in read.orders.iter().enumerate() {
        if at > 0 {
            events.push(b',');
        }
        let ReadRow { sale, status, currency, at, .. } = read;
        let (qty, amount, version) = (*qty, *amount, *version);
        let event = StateEvent { v: 1, rid: *rid, sale, user: *user, qty, status, amount, currency, version, at };
        serde_json::to_writer(&mut events, &event).map_err(no_events)?;
    }
    Ok(events)
}

/// Money that has to go back.
pub(super) struct RefundNeeded<'a> {
    pub(super) payment_id: &'a str,
    pub(super) reason: RefundReason,
    pub(super) amount_cents: i64,
    pub(super) currency: &'a str,
}

impl NewOrderEvent {
    /// The order gets this state.
    pub(super) fn of_state(order: &LockedOrder, to: OrderState) -> Self {
        let changed = ChangedOrder {
            request_id: order.request_id,
            user_id: &order.user_id,
            quantity: order.quantity,
            amount_cents: order.amount_cents,
            version: order.version + 1,
        };
        let change = SharedChange { sale_id: &order.sale_id, currency: &order.currency, to, orders: Vec::new() };
        change.event(&changed, now_ms())
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
    let row = |event: &NewOrderEvent| (event.request_id, event.event_key, 1, event.body.clone());
    insert(conn, events.iter().map(row).collect()).await?;
    tell_webhooks(conn, events, webhooks).await
}

/// The same of orders that changed together.
pub(super) async fn write_shared(
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
    tell_webhooks(conn, &events, webhooks).await
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

async fn tell_webhooks(
    conn: &mut Conn,
    events: &[NewOrderEvent],
    webhooks: &WebhookSubscriptions,
) -> Result<(), DbError> {
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
    let read = |(event_id, request, key, count, row)| {
        Ok(WaitingEvents { event_id, request_id: read_request_id(request)?, key, count, bodies: told_by(row, count)? })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_share_a_row_are_told_as_each_of_them_alone() {
        let sale_id = SaleId::parse("s").unwrap();
        let users: Vec<UserId> = ["a\"b", "\u{4e70}\u{5bb6}", "c,d"].map(|user| UserId::parse(user).unwrap()).to_vec();
        let orders = users.iter().zip(1..).map(|(user_id, number)| ChangedOrder {
            request_id: RequestId::parse(&(1_000_000_000_000_u64 + number).to_string()).unwrap(),
            user_id,
            quantity: 2,
            amount_cents: i64::MAX,
            version: u32::MAX,
        });
        let change =
            SharedChange { sale_id: &sale_id, currency: "CNY", to: OrderState::Expired, orders: orders.collect() };
        let alone: Vec<Vec<u8>> = change.orders.iter().map(|order| change.event(order, 7).body).collect();
        let together = told_by(change.row(&change.orders, 7), 3).unwrap();
        assert_eq!(String::from_utf8(together).unwrap(), String::from_utf8(alone.join(&b',')).unwrap());
        let one = &change.orders[..1];
        assert_eq!(told_by(change.row(one, 7), 1).unwrap(), alone[0]);
        assert!(told_by(b"{}".to_vec(), 2).is_err());
    }
}
