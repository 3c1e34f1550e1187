//! Events in bundles of one routing key. A group of orders is published in a handful of messages: one message per order would cost the
//! broker, this process and the subscribers more than the transaction does.
//!
//! Input: encoded events. Output: messages for the event exchange. Nothing here waits or fails.

use crate::domain::ids::RequestId;
use crate::domain::message::{self, EVENTS_MAX};
use crate::events::rows::outcome::OutcomeEvent;
use crate::store::rabbit::{Outgoing, PublishRoute};
use std::collections::BTreeMap;
use std::time::Duration;

/// A broker that took no events is not tried again for this time. Meanwhile events go to the database at once.
pub(crate) const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Events of one key that stay together.
pub(crate) struct KeyedEvents<'a> {
    pub(crate) first: RequestId,
    pub(crate) key: &'a str,
    /// JSON, with commas between them.
    pub(crate) bodies: &'a [u8],
    /// How many, at most [`EVENTS_MAX`].
    pub(crate) count: usize,
}

impl<'a> KeyedEvents<'a> {
    pub(crate) fn of(event: &'a OutcomeEvent) -> Self {
        Self { first: event.request_id, key: &event.key, bodies: &event.body, count: 1 }
    }
}

/// Messages of one routing key and at most [`EVENTS_MAX`] events each. A message's id is the request id of its first event.
pub(crate) fn bundles<'a>(exchange: &str, events: impl Iterator<Item = KeyedEvents<'a>>) -> Vec<Outgoing> {
    let mut by_key: BTreeMap<&str, Vec<KeyedEvents<'_>>> = BTreeMap::new();
    for event in events {
        by_key.entry(event.key).or_default().push(event);
    }
    let mut outgoing = Vec::new();
    for (key, events) in by_key {
        let mut rest = events.as_slice();
        while let Some(first) = rest.first() {
            let mut count = 0;
            let fitting = rest.iter().take_while(|more| {
                count += more.count;
                count <= EVENTS_MAX
            });
            let (bundle, behind) = rest.split_at(fitting.count().max(1));
            rest = behind;
            let body = message::events(bundle.iter().map(|events| events.bodies));
            let route = PublishRoute { exchange, key };
            outgoing.push(Outgoing::new(route, first.first.to_string(), body).optional());
        }
    }
    outgoing
}
