//! Outcome events for downstream systems (D10): one of each fate, at least once.
//!
//! Input: what was decided here, told before the ack; and what P5 and operators decided, which waits in the database.
//! Whoever dies after the commit and before the ack is redelivered, finds the outcome and tells it again; whoever dies
//! before a waiting event is forgotten leaves it to be told again.

use super::Persist;
use crate::domain::fate::Verdict;
use crate::domain::ids::RequestId;
use crate::domain::message;
use crate::domain::request::Accepted;
use crate::store::mysql::{DbError, events};
use crate::store::rabbit::{Outgoing, RabbitError, Topology, send_all};
use std::time::{Duration, Instant};

/// How often the database is asked for events that no message tells.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// An event: the request, its routing key, its body.
pub(super) type Event = (RequestId, String, Vec<u8>);

/// The events of what is decided among `items`.
pub(super) fn of(items: &[Accepted], verdicts: &[Result<Verdict, DbError>]) -> Vec<Event> {
    let told = items.iter().zip(verdicts).filter_map(|(accepted, verdict)| {
        let fate = verdict.as_ref().ok()?.fate()?;
        let body = message::event(accepted, fate).into_bytes();
        Some((accepted.purchase.request_id, message::event_key(fate).to_owned(), body))
    });
    told.collect()
}

impl Persist {
    /// Publishes events and waits until the broker has them. Nobody need listen.
    pub(super) async fn tell(&mut self, told: Vec<Event>) -> Result<(), RabbitError> {
        if !self.settings.events {
            return Ok(());
        }
        let exchange = Topology::new(&self.rabbit).events_exchange();
        let outgoing = told
            .into_iter()
            .map(|(id, key, body)| Outgoing::new((&exchange, &key), id.to_string(), body).optional())
            .collect();
        send_all(&self.rabbit, &mut self.publisher, outgoing).await
    }

    /// Tells what P5 and operators decided. With events switched off these are only forgotten.
    pub(super) async fn tell_untold(&mut self) -> Result<(), RabbitError> {
        if Instant::now() < self.events_at {
            return Ok(());
        }
        self.events_at = Instant::now() + ASK_EVERY;
        let waiting = match events::untold(&self.db).await {
            Ok(waiting) => waiting,
            Err(error) => {
                // Landing notices a database that is away by itself, and these can wait.
                tracing::debug!(phase = "p4_persist", %error, "events not read");
                return Ok(());
            }
        };
        if waiting.is_empty() {
            return Ok(());
        }
        let ids: Vec<RequestId> = waiting.iter().map(|event| event.request_id).collect();
        self.tell(waiting.into_iter().map(|event| (event.request_id, event.key, event.body)).collect()).await?;
        match events::told(&self.db, &ids).await {
            Ok(()) => tracing::debug!(phase = "p4_persist", count = ids.len(), "events of other paths told"),
            Err(error) => tracing::debug!(phase = "p4_persist", %error, "events stay and are told again"),
        }
        Ok(())
    }
}
