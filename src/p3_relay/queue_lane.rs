//! What a relay has for one order queue: a session with the broker, a window of entries, and those that it set aside.
//!
//! A queue that does not answer, or refuses, stops only its own entries (H6). A few of them keep trying; the others leave the
//! window, so that there is room for other queues. Nothing is written for that: an entry that was set aside stays this relay's in
//! the outbox, is read again when its queue is whole or its pause is over, and is taken over like any other when the relay dies.
//! One window for all queues would be less code, and one queue that is full would stop every sale: `rabbitmq.queues` promises more.
//!
//! A connection for each queue, not a channel: a confirm that does not come ends a connection, because what it carried cannot be
//! trusted any more, and that must not meet the other queues.
//!
//! With one order queue nothing is set aside: there is no other queue to make room for, and what is not read costs nothing. Nor with an
//! outbox that is a list: each step walks everything that the relay holds, in the thread that sells. A queue in trouble fills the
//! window there, and stops the others.

use super::RateCap;
use super::breaker::BrokerBreaker;
use super::entry::RelayEntry;
use super::in_flight::InFlightWindow;
use super::publisher_session::PublisherSession;
use super::set_aside::SetAside;
use crate::config::P3Relay;
use crate::store::rabbit::RabbitConfig;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

/// One order queue, as a relay sees it.
pub(super) struct QueueLane {
    pub(super) settings: P3Relay,
    pub(super) limiter: Option<Arc<RateCap>>,
    pub(super) session: PublisherSession,
    pub(super) window: InFlightWindow,
    aside: SetAside,
}

impl QueueLane {
    pub(super) fn new(rabbit: &RabbitConfig, queue: u16, settings: &P3Relay, limiter: Option<Arc<RateCap>>) -> Self {
        Self {
            settings: settings.clone(),
            limiter,
            session: PublisherSession::new(rabbit.clone(), queue, settings),
            window: InFlightWindow::default(),
            aside: SetAside::new(settings, Instant::now()),
        }
    }

    /// Whether the queue answers, as far as this relay knows.
    pub(super) fn is_trusted(&self) -> bool {
        self.session.breaker == BrokerBreaker::Closed
    }

    /// Whether entries of this queue wait for it to become whole.
    pub(super) fn is_troubled(&self) -> bool {
        !self.is_trusted() || !self.aside.is_empty()
    }

    /// Takes an entry that was read into the window, or sets it aside while the queue is in trouble and has its share.
    pub(super) fn admit(&mut self, entry: RelayEntry, makes_room: bool) {
        let entries_max = self.session.breaker.entries_max(self.settings.window_max, self.settings.probe_max);
        let is_full = self.window.len() >= entries_max || self.window.orders() >= self.settings.window_max;
        if !makes_room || !self.is_troubled() || !is_full {
            self.window.insert(entry);
        } else {
            self.aside.extend([entry.shard]);
        }
    }

    /// Sets aside what is more than the few that keep trying.
    pub(super) fn set_aside_surplus(&mut self) {
        let is_trusted = self.is_trusted();
        let held = if is_trusted { self.window.waiting_count() } else { self.window.len() };
        let surplus = held.saturating_sub(self.settings.probe_max);
        if surplus > 0 {
            let shards = self.window.set_aside(surplus, !is_trusted);
            if !shards.is_empty() && self.aside.is_empty() {
                tracing::warn!(
                    phase = "p3_relay",
                    queue = self.session.queue,
                    "an order queue does not take its messages: a few keep trying, the others are set aside"
                );
            }
            self.aside.extend(shards);
        }
    }

    /// The queue refused a message, or there is none: what is set aside waits, each time longer.
    pub(super) fn pause_what_is_aside(&mut self) {
        self.aside.refused(Instant::now());
    }

    /// The shards whose entries are to be read again: the queue answers, and the pause is over.
    pub(super) fn taken_back(&mut self) -> BTreeSet<u16> {
        let shards = if self.is_trusted() { self.aside.taken_back(Instant::now()) } else { BTreeSet::new() };
        if !shards.is_empty() {
            tracing::info!(phase = "p3_relay", queue = self.session.queue, "reading again what was set aside");
        }
        shards
    }
}
