//! Events in bundles of one routing key. A group of orders is published in a handful of messages: one message per order would cost the
//! broker, this process and the subscribers more than the transaction does.
//!
//! Input: encoded events. Output: messages for the event exchange. Nothing here waits or fails.

use crate::domain::message::{self, EVENTS_MAX};
use crate::events::published::WaitingEvents;
use crate::store::rabbit::{Outgoing, PublishRoute};
use std::collections::BTreeMap;
use std::time::Duration;

/// A broker that took no events is not tried again for this time. Meanwhile events go to the database at once.
pub(crate) const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Messages of one routing key and at most [`EVENTS_MAX`] events each. A message's id is the request id of its first event.
pub(crate) fn bundles(exchange: &str, waiting: &[WaitingEvents]) -> Vec<Outgoing> {
    let mut by_key: BTreeMap<&str, Vec<&WaitingEvents>> = BTreeMap::new();
    for events in waiting {
        by_key.entry(&events.key).or_default().push(events);
    }
    let mut outgoing = Vec::new();
    for (key, events) in by_key {
        let mut rest = events.as_slice();
        while let Some(first) = rest.first() {
            let mut count = 0;
            let fitting = rest.iter().take_while(|more| {
                count += usize::from(more.count);
                count <= EVENTS_MAX
            });
            let (bundle, behind) = rest.split_at(fitting.count().max(1));
            rest = behind;
            let body = message::events(bundle.iter().map(|events| events.bodies.as_slice()));
            let route = PublishRoute { exchange, key };
            outgoing.push(Outgoing::new(route, first.request_id.to_string(), body).optional());
        }
    }
    outgoing
}
