//! Outcome events for downstream systems (D10): each outcome at least once, in bundles of one routing key.
//!
//! A group of orders is published in a handful of messages. One message per order would cost the broker, this process and the
//! subscribers more than the transaction does.
//!
//! Input: what was decided here; it is published before the ack. What P5 and operators decided waits in the database for the
//! [`super::EventPublisher`]. A broker that takes no messages (a memory or disk alarm) must not delay the acks, because acks
//! are what frees it: events that it does not take are written to the database and wait there, too. A crash after the commit
//! and before the ack leads to a redelivery, which finds the outcome and publishes it again. A crash before a waiting event is
//! deleted leaves it in the database, and it is published again.

use super::Persist;
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::message::{self, EVENTS_MAX, OrderMessage, UnitPrice};
use crate::domain::outcome::Verdict;
use crate::store::mysql::events::OutcomeEvent;
use crate::store::mysql::{DbError, events};
use crate::store::rabbit::{Outgoing, PublishRoute, RabbitError, Topology};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// A broker that took no events is not tried again for this time. Meanwhile events go to the database at once.
pub(super) const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Events of one key that stay together.
pub(super) struct KeyedEvents<'a> {
    pub(super) first: RequestId,
    pub(super) key: &'a str,
    /// JSON, with commas between them.
    pub(super) bodies: &'a [u8],
    /// How many, at most [`EVENTS_MAX`].
    pub(super) count: usize,
}

impl<'a> KeyedEvents<'a> {
    pub(super) fn of(event: &'a OutcomeEvent) -> Self {
        Self { first: event.request_id, key: &event.key, bodies: &event.body, count: 1 }
    }
}

/// The events of what is decided among `items`.
pub(super) fn of(
    items: &[OrderMessage],
    verdicts: &[Result<Verdict, DbError>],
    prices: &HashMap<SaleId, UnitPrice>,
) -> Vec<OutcomeEvent> {
    let events = items.iter().zip(verdicts).filter_map(|(accepted, verdict)| {
        let outcome = verdict.as_ref().ok()?.outcome()?;
        Some(OutcomeEvent {
            request_id: accepted.purchase.request_id,
            key: message::event_key(outcome).into(),
            body: message::event(accepted, outcome, prices.get(&accepted.purchase.sale_id).copied()).into_bytes(),
        })
    });
    events.collect()
}

/// Messages of one routing key and at most [`EVENTS_MAX`] events each. A message's id is the request id of its first event.
pub(super) fn bundles<'a>(exchange: &str, events: impl Iterator<Item = KeyedEvents<'a>>) -> Vec<Outgoing> {
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

impl Persist {
    /// Publishes events, or stores them in the database to be published later. After an error neither could be done, so nothing
    /// may be acknowledged.
    pub(super) async fn publish_or_store(&mut self, events: Vec<OutcomeEvent>) -> Result<(), DbError> {
        if !self.settings.events || events.is_empty() {
            return Ok(());
        }
        if Instant::now() >= self.events_paused_until {
            match self.publish(&events).await {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(phase = "p4_persist", %error, "the broker takes no events, they wait in the database");
                    self.events_paused_until = Instant::now() + PAUSE_AFTER_FAILURE;
                }
            }
        }
        metrics::counter!("seckill_p4_persist_events_deferred_total").increment(events.len() as u64);
        events::store(&self.db, &events).await
    }

    /// Publishes events and waits for the broker's confirm. Subscribers are not required.
    async fn publish(&mut self, events: &[OutcomeEvent]) -> Result<(), RabbitError> {
        self.sender
            .send(bundles(&Topology::new(&self.rabbit).events_exchange(), events.iter().map(KeyedEvents::of)))
            .await
    }
}
