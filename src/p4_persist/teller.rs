//! Tells what no message tells (D10): the events of what P5 and operators decided, and those that the broker did not take.
//!
//! Input: events that wait in the database. Output: the same at the broker, forgotten in the database afterwards. A worker of its
//! own, so that a broker that takes none holds up no landing. A crash between the two leaves events that are told again.

use super::events::{Event, MUTE_FOR, bundles};
use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::RequestId;
use crate::runtime::Worker;
use crate::store::mysql::{Db, events};
use crate::store::rabbit::{RabbitConfig, Sender, Topology};
use std::time::Instant;

/// Of each process with the consumer role.
pub struct Teller {
    db: Db,
    exchange: String,
    sender: Sender,
    /// With events switched off they are only forgotten.
    tells: bool,
    /// Until then the broker is left alone: it took none a moment ago.
    mute_until: Instant,
}

impl Teller {
    /// One that connects when there is something to tell.
    #[must_use]
    pub fn new(db: &Db, rabbit: &RabbitConfig, settings: &config::P4Persist) -> Self {
        Self {
            db: db.clone(),
            exchange: Topology::new(rabbit).events_exchange(),
            sender: Sender::new(rabbit),
            tells: settings.events,
            mute_until: Instant::now(),
        }
    }
}

impl Worker for Teller {
    fn name(&self) -> &'static str {
        "p4_events"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if Instant::now() < self.mute_until {
            return Ok(Progress::Idle);
        }
        let waiting = match events::untold(&self.db).await {
            Ok(waiting) => waiting,
            Err(error) => {
                // Landing notices a database that is away by itself, and these can wait.
                tracing::debug!(phase = "p4_persist", %error, "events not read");
                return Ok(Progress::Idle);
            }
        };
        if waiting.is_empty() {
            return Ok(Progress::Idle);
        }
        let full_page = waiting.len() >= usize::from(events::PAGE);
        let ids: Vec<RequestId> = waiting.iter().map(|event| event.request_id).collect();
        if self.tells {
            let told: Vec<Event> = waiting.into_iter().map(|event| (event.request_id, event.key, event.body)).collect();
            if let Err(error) = self.sender.send(bundles(&self.exchange, &told)).await {
                tracing::warn!(phase = "p4_persist", %error, "the broker takes no events, they wait in the database");
                self.mute_until = Instant::now() + MUTE_FOR;
                return Ok(Progress::Idle);
            }
        }
        if let Err(error) = events::told(&self.db, &ids).await {
            tracing::debug!(phase = "p4_persist", %error, "events stay and are told again");
            return Ok(Progress::Idle);
        }
        tracing::debug!(phase = "p4_persist", count = ids.len(), "events of other paths told");
        // The rest of more than a page is told at once.
        Ok(if full_page { Progress::Moved(ids.len()) } else { Progress::Idle })
    }
}
