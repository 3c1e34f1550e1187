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
use crate::domain::ids::SaleId;
use crate::domain::message::{self, OrderMessage, UnitPrice};
use crate::domain::outcome::Verdict;
use crate::store::mysql::events::OutcomeEvent;
use crate::store::mysql::{DbError, events};
use crate::store::rabbit::{Outgoing, PublishRoute, RabbitError, Topology};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// A broker that took no events is not tried again for this time. Meanwhile events go to the database at once.
pub(super) const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Most events in one message; about 20 kB.
const BUNDLE_MAX: usize = 100;

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

/// One message for each routing key and at most [`BUNDLE_MAX`] events. Its message id is the request id of the first event.
pub(super) fn bundles(exchange: &str, events: &[OutcomeEvent]) -> Vec<Outgoing> {
    let mut by_key: BTreeMap<&str, Vec<&OutcomeEvent>> = BTreeMap::new();
    for event in events {
        by_key.entry(&event.key).or_default().push(event);
    }
    let mut outgoing = Vec::with_capacity(events.len() / BUNDLE_MAX + by_key.len());
    for (key, events) in by_key {
        for bundle in events.chunks(BUNDLE_MAX) {
            let first = bundle.first().map(|event| event.request_id.to_string()).unwrap_or_default();
            let body = message::events(bundle.iter().map(|event| event.body.as_slice()));
            outgoing.push(Outgoing::new(PublishRoute { exchange, key }, first, body).optional());
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
        self.sender.send(bundles(&Topology::new(&self.rabbit).events_exchange(), events)).await
    }
}
