//! Publishes the events that no message carries (D10): outcomes of P5 and operators, and events that the broker did not take.
//!
//! Input: events that wait in the database. Output: the same events at the broker, then deleted from the database. It is a
//! worker of its own, so that a broker that takes no messages does not delay transactions. A crash between the confirm and the
//! deletion leaves events that are published again.

use super::events::{PAUSE_AFTER_FAILURE, bundles};
use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::RequestId;
use crate::runtime::Worker;
use crate::store::mysql::{Db, events};
use crate::store::rabbit::{RabbitConfig, Sender, Topology};
use std::time::Instant;

/// The worker; one in each process with the consumer role.
pub(crate) struct EventPublisher {
    db: Db,
    exchange: String,
    sender: Sender,
    /// While events are switched off they are only deleted.
    publishes: bool,
    /// The broker took no events a moment ago and is not tried before.
    paused_until: Instant,
}

impl EventPublisher {
    /// Connects to the broker when there is something to publish.
    #[must_use]
    pub(crate) fn new(db: &Db, rabbit: &RabbitConfig, settings: &config::P4Persist) -> Self {
        Self {
            db: db.clone(),
            exchange: Topology::new(rabbit).events_exchange(),
            sender: Sender::new(rabbit),
            publishes: settings.events,
            paused_until: Instant::now(),
        }
    }
}

impl Worker for EventPublisher {
    fn name(&self) -> &'static str {
        "p4_events"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if Instant::now() < self.paused_until {
            return Ok(Progress::Idle);
        }
        let waiting = match events::waiting(&self.db).await {
            Ok(waiting) => waiting,
            Err(error) => {
                // The writers report a database that is unavailable; events can wait.
                tracing::debug!(phase = "p4_persist", %error, "waiting events not read");
                return Ok(Progress::Idle);
            }
        };
        if waiting.is_empty() {
            return Ok(Progress::Idle);
        }
        if self.publishes
            && let Err(error) = self.sender.send(bundles(&self.exchange, &waiting)).await
        {
            tracing::warn!(phase = "p4_persist", %error, "the broker takes no events, they wait in the database");
            self.paused_until = Instant::now() + PAUSE_AFTER_FAILURE;
            return Ok(Progress::Idle);
        }
        let ids: Vec<RequestId> = waiting.iter().map(|event| event.request_id).collect();
        if let Err(error) = events::delete(&self.db, &ids).await {
            tracing::debug!(phase = "p4_persist", %error, "published events not deleted, they are published again");
            return Ok(Progress::Idle);
        }
        tracing::debug!(phase = "p4_persist", count = ids.len(), "waiting events published");
        // After a full page there may be more.
        let full_page = ids.len() >= usize::from(events::WAITING_MAX);
        Ok(if full_page { Progress::Moved(ids.len()) } else { Progress::Idle })
    }
}
