//! Outcome events for downstream systems (D10): each outcome at least once, in bundles of one routing key.
//!
//! A group of orders is told in a handful of messages: one message an order would cost the broker, this process and whoever
//! listens more than landing it does.
//!
//! Input: what was decided here, told before the ack. What P5 and operators decided waits in the database for the teller.
//! A broker that takes no messages (a memory or disk alarm) must not hold the acks back, because they are what frees it:
//! events it does not take are written to the database, to wait there too. Whoever dies after the commit and before the ack
//! is redelivered, finds the outcome and tells it again; whoever dies before a waiting event is forgotten leaves it to be
//! told again.

use super::Persist;
use crate::domain::ids::RequestId;
use crate::domain::message;
use crate::domain::outcome::Verdict;
use crate::domain::request::Accepted;
use crate::store::mysql::{DbError, events};
use crate::store::rabbit::{Outgoing, RabbitError, Topology};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A broker that took no events is left alone for this time; meanwhile they go to the database at once.
pub(super) const MUTE_FOR: Duration = Duration::from_secs(5);

/// Outcomes told in one message; about 20 kB.
const BUNDLE_MAX: usize = 100;

/// An event: the request, its routing key, its body.
pub(super) type Event = (RequestId, String, Vec<u8>);

/// The events of what is decided among `items`.
pub(super) fn of(items: &[Accepted], verdicts: &[Result<Verdict, DbError>]) -> Vec<Event> {
    let told = items.iter().zip(verdicts).filter_map(|(accepted, verdict)| {
        let outcome = verdict.as_ref().ok()?.outcome()?;
        let body = message::event(accepted, outcome).into_bytes();
        Some((accepted.purchase.request_id, message::event_key(outcome).to_owned(), body))
    });
    told.collect()
}

/// One message for each key and at most [`BUNDLE_MAX`] outcomes, named after its first request.
pub(super) fn bundles(exchange: &str, told: &[Event]) -> Vec<Outgoing> {
    let mut by_key: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
    for event in told {
        by_key.entry(&event.1).or_default().push(event);
    }
    let mut outgoing = Vec::with_capacity(told.len() / BUNDLE_MAX + by_key.len());
    for (key, events) in by_key {
        for bundle in events.chunks(BUNDLE_MAX) {
            let first = bundle.first().map(|(id, ..)| id.to_string()).unwrap_or_default();
            let body = message::events(bundle.iter().map(|(.., body)| body.as_slice()));
            outgoing.push(Outgoing::new((exchange, key), first, body).optional());
        }
    }
    outgoing
}

impl Persist {
    /// Tells what was decided, or writes it down to be told later. An error: neither could be done, so nothing may be
    /// acknowledged.
    pub(super) async fn tell(&mut self, told: Vec<Event>) -> Result<(), DbError> {
        if !self.settings.events || told.is_empty() {
            return Ok(());
        }
        if Instant::now() >= self.mute_until {
            match self.publish(&told).await {
                Ok(()) => return Ok(()),
                Err(error) => self.muted(&error),
            }
        }
        metrics::counter!("seckill_p4_persist_events_deferred_total").increment(told.len() as u64);
        events::owe(&self.db, &told).await
    }

    fn muted(&mut self, error: &RabbitError) {
        tracing::warn!(phase = "p4_persist", %error, "the broker takes no events, they wait in the database");
        self.mute_until = Instant::now() + MUTE_FOR;
    }

    /// Publishes events and waits until the broker has them. Nobody need listen.
    async fn publish(&mut self, told: &[Event]) -> Result<(), RabbitError> {
        self.sender.send(bundles(&Topology::new(&self.rabbit).events_exchange(), told)).await
    }
}
