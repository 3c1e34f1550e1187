//! Events of orders that changed together: in the database a row of up to a message's worth, which says once what they have in
//! common, and each of them in full where they are published.
//!
//! Input: events of one transaction. Output: the body of a row, and of that the events. Nothing here waits or fails on the way; a row
//! that cannot be read is an error of the database's content.

use crate::domain::ids::RequestId;
use crate::domain::message::EVENTS_MAX;
use crate::events::published::PublishedEvent;
use crate::events::rows::waiting_page::check_event;
use crate::store::mysql::fault::DbError;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What a row of several events has, written and read: what all of them say, and of each order its request, buyer, units, amount and
/// version after the change.
#[derive(Serialize, Deserialize)]
struct EventBundle<'a> {
    sale: Cow<'a, str>,
    status: Cow<'a, str>,
    currency: Cow<'a, str>,
    at: i64,
    orders: Vec<(RequestId, Cow<'a, str>, u32, i64, u32)>,
}

impl<'a> EventBundle<'a> {
    /// Nothing when an event is no change of state, or says something else than the first one.
    fn of(events: &[PublishedEvent<'a>]) -> Option<Self> {
        let first = events.first()?;
        let order = |event: &PublishedEvent<'a>| {
            let (user, amount, version) = (event.user?, event.amount?, event.version?);
            is_shared(first, event).then_some((event.request_id, user.into(), event.quantity?, amount, version))
        };
        Some(Self {
            sale: first.sale?.into(),
            status: first.status.into(),
            currency: first.currency?.into(),
            at: first.at?,
            orders: events.iter().map(order).collect::<Option<_>>()?,
        })
    }

    /// Each of them in full.
    fn events(&self) -> impl Iterator<Item = PublishedEvent<'_>> {
        self.orders.iter().map(|(request_id, user, quantity, amount, version)| PublishedEvent {
            sale: Some(&self.sale),
            user: Some(user),
            quantity: Some(*quantity),
            amount: Some(*amount),
            currency: Some(&self.currency),
            version: Some(*version),
            at: Some(self.at),
            ..PublishedEvent::new(*request_id, "", &self.status)
        })
    }
}

/// Whether two events differ in nothing but what a bundle has of each order.
pub(super) fn is_shared(one: &PublishedEvent<'_>, next: &PublishedEvent<'_>) -> bool {
    let is_of_a_state = |event: &PublishedEvent<'_>| event.reason.is_none() && event.payment_id.is_none();
    is_of_a_state(one)
        && is_of_a_state(next)
        && (one.sale, one.status, one.currency, one.at) == (next.sale, next.status, next.currency, next.at)
}

/// What a row has of events that share one: of a single one the event itself.
pub(super) fn row(events: &[PublishedEvent<'_>]) -> Result<Vec<u8>, DbError> {
    if let [event] = events {
        return Ok(event.encoded().bodies);
    }
    let no_bundle = || DbError::Other("events that say different things share no row".to_owned());
    let bundle = EventBundle::of(events).ok_or_else(no_bundle)?;
    serde_json::to_vec(&bundle).map_err(|error| DbError::Other(format!("a bundle of events: {error}")))
}

/// The events of a row, with commas between them.
pub(super) fn full_events(row: Vec<u8>, count: u16) -> Result<Vec<u8>, DbError> {
    if count == 1 {
        check_event("order_events", &row)?;
        return Ok(row);
    }
    let no_events =
        |error: serde_json::Error| DbError::Other(format!("order_events.body is no list of events: {error}"));
    let bundle: EventBundle<'_> = serde_json::from_slice(&row).map_err(no_events)?;
    let (counted, orders) = (usize::from(count), bundle.orders.len());
    if counted != orders || !(1..=EVENTS_MAX).contains(&counted) {
        return Err(DbError::Other(format!("order_events.events_count is {count}, and its body has {orders} orders")));
    }
    let mut events = Vec::with_capacity(row.len() * 4);
    for event in bundle.events() {
        if !events.is_empty() {
            events.push(b',');
        }
        event.append_to(&mut events);
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::order_life::OrderState;

    fn expired<'a>(request_id: u64, user: &'a str) -> PublishedEvent<'a> {
        PublishedEvent {
            sale: Some("s"),
            user: Some(user),
            quantity: Some(2),
            amount: Some(i64::MAX),
            currency: Some("CNY"),
            version: Some(u32::MAX),
            at: Some(7),
            ..PublishedEvent::of_state(RequestId::new(request_id).unwrap(), OrderState::Expired)
        }
    }

    #[test]
    fn events_that_share_a_row_are_published_as_each_of_them_alone() {
        let users = ["a\"b", "\u{4e70}\u{5bb6}", "c,d"];
        let events: Vec<_> = users.into_iter().zip(1_000_000_000_001..).map(|(user, id)| expired(id, user)).collect();
        let alone: Vec<Vec<u8>> = events.iter().map(|event| event.encoded().bodies).collect();
        let written = row(&events).unwrap();
        assert_eq!(
            std::str::from_utf8(&written).unwrap(),
            r#"{"sale":"s","status":"EXPIRED","currency":"CNY","at":7,"orders":[["1000000000001","a\"b",2,9223372036854775807,4294967295],["1000000000002","买家",2,9223372036854775807,4294967295],["1000000000003","c,d",2,9223372036854775807,4294967295]]}"#,
            "as processes of the version before read it"
        );
        let together = full_events(written.clone(), 3).unwrap();
        assert_eq!(String::from_utf8(together).unwrap(), String::from_utf8(alone.join(&b',')).unwrap());
        assert_eq!(full_events(row(&events[..1]).unwrap(), 1).unwrap(), alone[0]);
        assert!(full_events(b"{}".to_vec(), 2).is_err());
        for count in [0, 2, 4] {
            assert!(full_events(written.clone(), count).is_err(), "{count} of 3");
        }
    }

    #[test]
    fn only_events_that_differ_in_their_orders_share_a_row() {
        let first = expired(1, "a");
        assert!(is_shared(&first, &expired(2, "b")));
        let other_sale = PublishedEvent { sale: Some("t"), ..first };
        let later = PublishedEvent { at: Some(8), ..first };
        let cancelled = PublishedEvent { status: "CANCELLED", ..first };
        let refund = PublishedEvent { payment_id: Some("p"), reason: Some("CANCELLED"), ..first };
        for other in [other_sale, later, cancelled, refund] {
            assert!(!is_shared(&first, &other), "{other:?}");
            assert!(row(&[first, other]).is_err());
        }
    }
}
