//! Publishing to an order queue, and the broker's answers.

use super::breaker::BrokerBreaker;
use super::entry::RelayEntry;
use super::in_flight::{EntryKey, EntryState};
use super::publisher_session::Published;
use super::queue_lane::QueueLane;
use super::traced;
use crate::faults::{crash_point, left_out};
use crate::store::rabbit::{Outgoing, PublishEvent, PublishResult, PublishRoute, Publisher, RabbitError, may_share};
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Instant;

/// Entries that are going to share a message.
#[derive(Default)]
struct NextMessage {
    keys: Vec<EntryKey>,
    orders: usize,
}

impl QueueLane {
    /// Publishes entries that are ready or whose pause is over, as far as the breaker lets it. The error says why there is no
    /// connection.
    pub(super) async fn send(&mut self) -> Result<(), String> {
        self.window.retry_due(Instant::now());
        if self.session.breaker == BrokerBreaker::HalfOpen && self.window.len() == 0 {
            self.session.breaker.close();
        }
        let nothing_to_do = !self.window.has_ready() && self.session.breaker == BrokerBreaker::Closed;
        if nothing_to_do || self.session.should_reconnect() || !self.connected()? {
            return Ok(());
        }
        let sent = match self.session.breaker {
            BrokerBreaker::Open => self.session.send_canary().await,
            BrokerBreaker::HalfOpen => self.send_up_to(self.probes_to_send()).await,
            BrokerBreaker::Closed => self.send_up_to(usize::MAX).await,
        };
        if let Err(lost) = sent {
            // Answers that arrived before the end count.
            self.take_answers();
            self.give_up_connection(&lost);
        }
        Ok(())
    }

    /// How many more entries may probe a broker that is not trusted. Entries in an attempt count, so that a long outage spends
    /// the attempts of the same few entries, not of all (C3, window 41).
    fn free_probes(&self) -> usize {
        self.settings.probe_max.saturating_sub(self.window.attempts_under_way())
    }

    /// Those that may be sent now: at least one when none is on its way. After a cut under load all others wait for their next
    /// attempt, and the broker answers already.
    fn probes_to_send(&self) -> usize {
        self.free_probes().max(usize::from(self.session.confirms.is_empty()))
    }

    /// Publishes up to `max` entries, which share messages.
    async fn send_up_to(&mut self, max: usize) -> Result<(), String> {
        // By the form of their payload.
        let mut bundles: BTreeMap<bool, NextMessage> = BTreeMap::new();
        for key in self.window.ready(max) {
            let Some(entry) = self.window.get(key) else { continue };
            let (orders, in_lines) = (entry.orders, entry.in_lines);
            if self.is_over_rate(orders) {
                // The cap on the rate (C7): the rest goes with a later step.
                break;
            }
            if !in_lines && !may_share(&entry.request_id, &entry.payload) {
                self.publish(vec![key]).await?;
                continue;
            }
            // An entry is never split; with others it shares a message up to the limit.
            let bundle = bundles.entry(in_lines).or_default();
            if bundle.orders + orders > self.settings.bundle_max && bundle.orders > 0 {
                let full = std::mem::take(bundle);
                self.publish(full.keys).await?;
            }
            let bundle = bundles.entry(in_lines).or_default();
            bundle.keys.push(key);
            bundle.orders += orders;
        }
        for bundle in bundles.into_values() {
            self.publish(bundle.keys).await?;
        }
        Ok(())
    }

    /// Takes these orders off the rate; whether they are too many for now. More than a second's worth counts as a second's.
    fn is_over_rate(&self, orders: usize) -> bool {
        let Some(limiter) = &self.limiter else { return false };
        let orders = u32::try_from(orders).unwrap_or(u32::MAX).min(self.settings.rate_per_s);
        let Some(orders) = NonZeroU32::new(orders) else { return false };
        !matches!(limiter.check_n(orders), Ok(Ok(())))
    }

    /// Publishes entries as one message. An error says the connection is of no use any more; the entries have failed then.
    async fn publish(&mut self, keys: Vec<EntryKey>) -> Result<(), String> {
        let Some(publisher) = &mut self.session.publisher else { return Ok(()) };
        let entries: Vec<&RelayEntry> = keys.iter().filter_map(|key| self.window.get(*key)).collect();
        let Some(first) = entries.first() else { return Ok(()) };
        let count: usize = entries.iter().map(|entry| entry.orders).sum();
        let (exchange, key) =
            (self.session.topology.orders_exchange(), self.session.topology.orders_key(self.session.queue));
        let route = PublishRoute { exchange: &exchange, key: &key };
        let mut message = if first.in_lines {
            let blocks: Vec<&[u8]> = entries.iter().map(|entry| entry.payload.as_slice()).collect();
            Outgoing::lines(route, &first.request_id, blocks.concat())
        } else if entries.len() > 1 {
            Outgoing::bundle(route, entries.iter().map(|entry| (entry.request_id.as_str(), entry.payload.as_slice())))
        } else {
            Outgoing::new(route, first.request_id.as_str(), first.payload.as_slice())
        };
        if left_out!(Mandatory) {
            message = message.optional();
        }
        #[cfg(feature = "faults")]
        if crate::domain::message::is_next_version_played() {
            // A header that an older consumer does not know and has to keep.
            message = message.header("x-seckill-of-tomorrow", crate::store::rabbit::HeaderValue::Int(1));
        }
        traced::publish(&entries);
        crash_point!(BeforePublish);
        match publisher.publish(message).await {
            Ok(tag) => {
                crash_point!(AfterPublish);
                metrics::histogram!("seckill_p3_relay_group_count").record(count as f64);
                for key in &keys {
                    let sent = if left_out!(ConfirmFirst) { EntryState::Confirmed } else { EntryState::Published };
                    self.window.set_state(*key, sent);
                }
                self.session.confirms.sent(tag, Published::Entries(keys), Instant::now());
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                self.failed(&keys, &reason);
                // Only a message that is too long leaves the connection as it was.
                if matches!(error, RabbitError::TooLong { .. }) { Ok(()) } else { Err(reason) }
            }
        }
    }

    /// Whether there is a connection to publish on; tries to make one, not too often. A try that fails costs the few entries
    /// that probe an attempt each, at the pace of their own back-off.
    fn connected(&mut self) -> Result<bool, String> {
        if self.session.is_open() {
            return Ok(true);
        }
        if self.session.publisher.is_some() {
            // The end overtakes the answers before it: these count, and finding the end among them gives the connection up.
            self.take_answers();
        }
        if self.session.publisher.is_some() {
            self.give_up_connection("the connection was closed");
        }
        match self.session.connect() {
            Some(Ok(())) => Ok(true),
            Some(Err(error)) => {
                self.fail_probes(&format!("broker is away: {error}"));
                Err(error.to_string())
            }
            None => Ok(false),
        }
    }

    /// Drops the connection. Nothing sent on it can be confirmed any more, so all of it counts as failed, and P4 bears the
    /// repeats. If the breaker was open, the entries that wait behind the canary have failed with it.
    fn give_up_connection(&mut self, reason: &str) {
        let reason = format!("no confirm: {reason}");
        let was_open = self.session.breaker == BrokerBreaker::Open;
        for sent in self.session.give_up(&reason) {
            if let Published::Entries(keys) = sent {
                self.failed(&keys, &reason);
            }
        }
        if was_open {
            self.fail_probes(&reason);
        }
    }

    fn fail_probes(&mut self, reason: &str) {
        let keys = self.window.ready(self.free_probes());
        self.failed(&keys, reason);
    }

    fn failed(&mut self, keys: &[EntryKey], reason: &str) {
        for key in keys {
            traced::answer(self.window.get(*key), "FAILED");
            self.window.set_state(*key, EntryState::Failed(reason.to_owned()));
        }
    }

    /// Whether nothing has arrived from the broker that is still to be dealt with.
    pub(super) fn is_idle(&self) -> bool {
        self.window.confirmed_count() + self.window.failed_count() == 0
    }

    /// The next answer, if this lane waits for any; `None` at the deadline. Cancel-safe.
    pub(super) async fn next_answer(&mut self, deadline: Instant) -> Option<PublishEvent> {
        match &mut self.session.publisher {
            Some(publisher) => publisher.next_event(deadline).await,
            None => None,
        }
    }

    /// Deals with the answers that have arrived.
    pub(super) fn take_answers(&mut self) {
        while let Some(event) = self.session.publisher.as_mut().and_then(Publisher::try_event) {
            self.answered(event);
        }
    }

    /// Gives the connection up if an answer is late.
    pub(super) fn check_silence(&mut self) {
        if self.session.publisher.is_some()
            && let Some(silent) = self.session.is_silent()
        {
            self.give_up_connection(&silent);
        }
    }

    pub(super) fn answered(&mut self, event: PublishEvent) {
        match event {
            PublishEvent::Closed(reason) => self.give_up_connection(&reason),
            event @ (PublishEvent::Ack { .. } | PublishEvent::Nack { .. } | PublishEvent::Returned { .. }) => {
                self.apply_event(event);
            }
        }
    }

    fn apply_event(&mut self, event: PublishEvent) {
        if matches!(event, PublishEvent::Returned { .. }) {
            self.session.note_returned();
            crash_point!(AfterReturn);
        }
        for (sent, verdict) in self.session.confirms.apply(event) {
            let Published::Entries(keys) = sent else {
                self.session.canary_confirmed();
                // One probe goes at once, however long it would have to wait after the attempts of a long outage.
                self.window.retry_first();
                continue;
            };
            if self.session.breaker.close() {
                // Most pauses come from the outage that is over now.
                self.window.retry_all();
            }
            match verdict {
                PublishResult::Confirmed => {
                    for key in keys {
                        traced::answer(self.window.get(key), "CONFIRMED");
                        self.window.set_state(key, EntryState::Confirmed);
                    }
                }
                PublishResult::Refused => {
                    self.session.note_refused();
                    self.pause_what_is_aside();
                    self.failed(&keys, "nack: the broker refused it");
                }
                PublishResult::Unroutable(words) => {
                    self.pause_what_is_aside();
                    self.failed(&keys, &format!("returned: no queue for it ({words})"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Settings};
    use crate::p3_relay::entry::tests::readable;
    use crate::store::rabbit::RabbitConfig;
    use std::time::Duration;

    #[test]
    fn a_broker_that_answers_again_is_probed_although_all_entries_wait() {
        let set = vec!["p3_relay.probe_max=2".to_owned()];
        let settings = Settings::load(&Layers { files: vec![], set }).unwrap().p3_relay;
        let mut lane = QueueLane::new(&RabbitConfig::new("amqp://h"), 0, &settings, None);
        let (now, wait) = (Instant::now(), Duration::from_secs(60));
        let keys: Vec<_> = (0..5).filter_map(|n| lane.window.insert(readable(0, &format!("{n}-0")))).collect();
        for key in &keys {
            lane.window.set_state(*key, EntryState::Waiting(now + wait));
        }
        lane.session.breaker = BrokerBreaker::HalfOpen;
        lane.window.retry_first();
        let probes = lane.window.ready(lane.probes_to_send());
        assert_eq!(probes.len(), 1, "the four that wait are more than the probes that are allowed");
        lane.window.set_state(probes[0], EntryState::Published);
        lane.session.confirms.sent(1, Published::Entries(probes), now);
        assert_eq!(lane.probes_to_send(), 0, "one on its way is enough");
    }
}
