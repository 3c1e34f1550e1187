//! Events of orders that changed together: in the database a row of up to a message's worth, which says once what they have in
//! common, and each of them in full where they are published.
//!
//! Input: a change of several orders of one sale. Output: the body of a row, and of that the events. Nothing here waits or fails on
//! the way; a row that cannot be read is an error of the database's content.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::message::EVENTS_MAX;
use crate::domain::order_life::OrderState;
use crate::events::rows::order::NewOrderEvent;
use crate::events::rows::waiting_page::check_event;
use crate::store::mysql::fault::DbError;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

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
pub(crate) struct SharedChange<'a> {
    pub(crate) sale_id: &'a SaleId,
    pub(crate) currency: &'a str,
    pub(crate) to: OrderState,
    pub(crate) orders: Vec<ChangedOrder<'a>>,
}

/// One of them.
pub(crate) struct ChangedOrder<'a> {
    pub(crate) request_id: RequestId,
    pub(crate) user_id: &'a UserId,
    pub(crate) quantity: u32,
    pub(crate) amount_cents: i64,
    /// After the change.
    pub(crate) version: u32,
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
    pub(crate) fn event(&self, order: &ChangedOrder<'_>, at: i64) -> NewOrderEvent {
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
    pub(crate) fn row(&self, orders: &[ChangedOrder<'_>], at: i64) -> Vec<u8> {
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
pub(crate) fn full_events(row: Vec<u8>, count: u16) -> Result<Vec<u8>, DbError> {
    if count == 1 {
        check_event("order_events", &row)?;
        return Ok(row);
    }
    let no_events =
        |error: serde_json::Error| DbError::Other(format!("order_events.body is no list of events: {error}"));
    let read: ReadRow<'_> = serde_json::from_slice(&row).map_err(no_events)?;
    let counted = usize::from(count);
    if counted != read.orders.len() || !(1..=EVENTS_MAX).contains(&counted) {
        let orders = read.orders.len();
        return Err(DbError::Other(format!("order_events.events_count is {count}, and its body has {orders} orders")));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_share_a_row_are_published_as_each_of_them_alone() {
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
        let together = full_events(change.row(&change.orders, 7), 3).unwrap();
        assert_eq!(String::from_utf8(together).unwrap(), String::from_utf8(alone.join(&b',')).unwrap());
        let one = &change.orders[..1];
        assert_eq!(full_events(change.row(one, 7), 1).unwrap(), alone[0]);
        assert!(full_events(b"{}".to_vec(), 2).is_err());
        for count in [0, 2, 4] {
            assert!(full_events(change.row(&change.orders, 7), count).is_err(), "{count} of 3");
        }
    }
}
