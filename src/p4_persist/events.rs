//! Outcome events of P4 for downstream systems (D10): each outcome at least once.
//!
//! Input: what was decided here; it is published before the ack. What P5 and operators decided waits in the database for the
//! [`crate::events::publisher::EventPublisher`]. A broker that takes no messages (a memory or disk alarm) must not delay the acks,
//! because acks are what frees it: events that it does not take are written to the database and wait there, too. They are published also
//! when the consumers are lost after the commit: the queue may have been purged or deleted, and then no message comes again. A crash
//! after the commit and before the ack leads to a redelivery, which finds the outcome and publishes it again. After a last try whose
//! commit was not answered the message is a dead letter: who removes it stores its event. A crash before a waiting event is deleted
//! leaves it in the database, and it is published again.

use super::Persist;
use crate::domain::ids::SaleId;
use crate::domain::message::{OrderMessage, UnitPrice};
use crate::domain::outcome::Verdict;
use crate::events::bundles::{PAUSE_AFTER_FAILURE, bundles};
use crate::events::published::{PublishedEvent, WaitingEvents};
use crate::faults::left_out;
use crate::store::mysql::DbError;
use crate::store::rabbit::{RabbitError, Topology};
use std::collections::HashMap;
use std::time::Instant;

impl Persist {
    /// The events of what is decided among `items`; none while events are switched off.
    pub(super) fn events_of(
        &self,
        items: &[OrderMessage],
        verdicts: &[Result<Verdict, DbError>],
        prices: &HashMap<SaleId, UnitPrice>,
    ) -> Vec<WaitingEvents> {
        if !self.settings.events {
            return Vec::new();
        }
        let events = items.iter().zip(verdicts).filter_map(|(accepted, verdict)| {
            let outcome = verdict.as_ref().ok()?.outcome()?;
            let price = prices.get(&accepted.purchase.sale_id);
            Some(PublishedEvent::of_outcome(accepted, outcome, price).encoded())
        });
        events.collect()
    }

    /// Publishes the events of what is committed, or stores them in the database to be published later. After an error neither could
    /// be done: they stay, nothing may be acknowledged, and no other group may be written.
    pub(super) async fn publish_or_store(&mut self) -> Result<(), RabbitError> {
        let events = std::mem::take(&mut self.unpublished);
        if events.is_empty() {
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
        if left_out!(EventsStored) {
            return Ok(());
        }
        let count = events.len() as u64;
        if let Err(error) = self.outcome_events.store(&events).await {
            self.unpublished = events;
            return Err(RabbitError::Closed(format!("given up, because events could not be written: {error}")));
        }
        metrics::counter!("seckill_p4_persist_events_deferred_total").increment(count);
        Ok(())
    }

    /// Only without the mechanism `CommitBeforeEvent`: publishes that all of these are orders, before any of them is written.
    pub(super) async fn publish_undecided(&mut self, items: &[OrderMessage]) -> Result<(), RabbitError> {
        let as_orders: Vec<_> = items.iter().map(|_| Ok(Verdict::Ordered)).collect();
        let prices = self.prices(items, &as_orders).await?;
        let events = self.events_of(items, &as_orders, &prices);
        self.publish(&events).await
    }

    /// Publishes events and waits for the broker's confirm. Subscribers are not required.
    async fn publish(&mut self, events: &[WaitingEvents]) -> Result<(), RabbitError> {
        self.sender.send(bundles(&Topology::new(&self.rabbit).events_exchange(), events)).await
    }
}
