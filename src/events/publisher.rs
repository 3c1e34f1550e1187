//! Publishes the events that no message carries (D10, L5): outcomes of P5 and operators, events that the broker did not take, and
//! what became of orders after they were confirmed.
//!
//! Input: events that wait in the database. Output: the same events at the broker, then deleted from the database. It is a
//! worker of its own, so that a broker that takes no messages does not delay transactions. A crash between the confirm and the
//! deletion leaves events that are published again. A row that cannot be read stays and is reported; the others are published.

use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::events::bundles::{PAUSE_AFTER_FAILURE, bundles};
use crate::events::published::WaitingEvents;
use crate::events::rows::waiting_page::WaitingPage;
use crate::events::rows::{OrderEventRows, OutcomeEventRows};
use crate::events::unreadable::UnreadableEvents;
use crate::faults::{crash_point, hold, left_out};
use crate::runtime::Worker;
use crate::store::mysql::DbError;
use crate::store::rabbit::{RabbitConfig, Sender, Topology};
use std::time::Instant;

/// The worker; one in each process with the consumer role.
pub(crate) struct EventPublisher {
    outcome_events: OutcomeEventRows,
    order_events: OrderEventRows,
    exchange: String,
    sender: Sender,
    /// While events are switched off they are only deleted.
    publishes: bool,
    /// The broker took no events a moment ago and is not tried before.
    paused_until: Instant,
    outcome_rows: UnreadableEvents,
    order_rows: UnreadableEvents,
}

/// Where the events of a page are.
#[derive(Clone, Copy)]
enum EventTable {
    Outcomes,
    Orders,
}

impl EventPublisher {
    /// Connects to the broker when there is something to publish.
    #[must_use]
    pub(crate) fn new(
        (outcome_events, order_events): (&OutcomeEventRows, &OrderEventRows),
        rabbit: &RabbitConfig,
        settings: &config::P4Persist,
    ) -> Self {
        Self {
            outcome_events: outcome_events.clone(),
            order_events: order_events.clone(),
            exchange: Topology::new(rabbit).events_exchange(),
            sender: Sender::new(rabbit),
            publishes: settings.events,
            paused_until: Instant::now(),
            outcome_rows: UnreadableEvents::of("outcome_event"),
            order_rows: UnreadableEvents::of("order_events"),
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
        // Of full pages: there may be more.
        let more = self.outcomes().await + self.orders().await;
        Ok(if more > 0 { Progress::Moved(more) } else { Progress::Idle })
    }
}

impl EventPublisher {
    /// Events of outcomes. Returns how many rows were done with if there may be more; trouble is logged, and they wait.
    async fn outcomes(&mut self) -> usize {
        let page = match self.outcome_events.waiting(self.outcome_rows.after()).await {
            Ok(page) => page,
            Err(error) => return not_read(&error),
        };
        let is_done = self.finish(&page, EventTable::Outcomes).await;
        if is_done { passed(&mut self.outcome_rows, &page) } else { 0 }
    }

    /// Events of orders after they were confirmed. Returns the same.
    async fn orders(&mut self) -> usize {
        let page = match self.order_events.waiting(self.order_rows.after()).await {
            Ok(page) => page,
            Err(error) => return not_read(&error),
        };
        let is_done = self.finish(&page, EventTable::Orders).await;
        if is_done { passed(&mut self.order_rows, &page) } else { 0 }
    }

    /// Publishes a page and deletes its rows. Whether both are done.
    async fn finish(&mut self, page: &WaitingPage<WaitingEvents>, table: EventTable) -> bool {
        if page.events.is_empty() {
            return true;
        }
        if left_out!(ConfirmedEventsOnly) && !self.delete(page, table).await {
            return false;
        }
        hold!(EventsRead);
        self.publish(&page.events).await && self.delete(page, table).await
    }

    /// Whether its rows are deleted.
    async fn delete(&self, page: &WaitingPage<WaitingEvents>, table: EventTable) -> bool {
        let deleted = match table {
            EventTable::Outcomes => self.outcome_events.delete(&page.rows).await,
            EventTable::Orders => self.order_events.delete(&page.rows).await,
        };
        is_deleted(deleted, page.rows.len())
    }

    /// Whether the broker has it (or no queue wants it).
    async fn publish(&mut self, waiting: &[WaitingEvents]) -> bool {
        if self.publishes
            && let Err(error) = self.sender.send(bundles(&self.exchange, waiting)).await
        {
            tracing::warn!(phase = "p4_persist", %error, "the broker takes no events, they wait in the database");
            self.paused_until = Instant::now() + PAUSE_AFTER_FAILURE;
            return false;
        }
        crash_point!(EventsConfirmed);
        true
    }
}

/// Notes that a page is done with. Returns its rows, if there may be more behind it.
fn passed(rows: &mut UnreadableEvents, page: &WaitingPage<WaitingEvents>) -> usize {
    rows.passed(page);
    if page.is_full { page.events.len() + page.unreadable.len() } else { 0 }
}

/// The writers report a database that is unavailable; events can wait. Anything else stands in the way of all events.
fn not_read(error: &DbError) -> usize {
    if error.is_outage() {
        tracing::debug!(phase = "p4_persist", %error, "waiting events not read");
    } else {
        tracing::error!(phase = "p4_persist", %error, "waiting events cannot be read: no event is published");
    }
    0
}

fn is_deleted(deleted: Result<(), DbError>, count: usize) -> bool {
    match deleted {
        Ok(()) => {
            tracing::debug!(phase = "p4_persist", count, "waiting events published");
            true
        }
        Err(error) => {
            tracing::debug!(phase = "p4_persist", %error, "published events not deleted, they are published again");
            false
        }
    }
}
