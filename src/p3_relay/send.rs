//! Publishing, and what follows from the broker's answers.

use super::Relay;
use super::breaker::Breaker;
use super::hand::{Place, Ticket};
use super::line::Sent;
use crate::domain::shard::order_queue_index;
use crate::faults::{crash_point, left_out};
use crate::store::rabbit::{Outgoing, PublishEvent, PublishResult, PublishRoute, RabbitError, may_share};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

impl Relay {
    /// Publishes what is ready and what has waited long enough, as far as the breaker lets it.
    pub(super) async fn send(&mut self) {
        self.hand.wake(Instant::now());
        if self.line.breaker == Breaker::HalfOpen && self.hand.len() == 0 {
            self.line.breaker.close();
        }
        let nothing_to_do = !self.hand.has_ready() && self.line.breaker == Breaker::Closed;
        if nothing_to_do || self.line.should_reconnect() || !self.connected().await {
            return;
        }
        let sent = match self.line.breaker {
            Breaker::Open => self.line.send_canary().await,
            Breaker::HalfOpen => self.send_up_to(self.free_trials()).await,
            Breaker::Closed => self.send_up_to(usize::MAX).await,
        };
        if let Err(lost) = sent {
            self.give_up_connection(&lost);
        }
    }

    /// How many more entries may probe a broker that is not trusted. Those already in an attempt count, so that a long outage
    /// spends the attempts of the same few instead of everybody's (C3, window 41).
    fn free_trials(&self) -> usize {
        self.settings.probe_max.saturating_sub(self.hand.on_trial_count())
    }

    /// Publishes up to `max` entries; those of one order queue share messages.
    async fn send_up_to(&mut self, max: usize) -> Result<(), String> {
        let mut bundles: BTreeMap<u16, Vec<Ticket>> = BTreeMap::new();
        for ticket in self.hand.ready(max) {
            if self.limiter.as_ref().is_some_and(|limiter| limiter.check().is_err()) {
                // The cap on the rate (C7): the rest goes with a later step.
                break;
            }
            let Some(item) = self.hand.get(ticket) else { continue };
            let queue = order_queue_index(item.sale_id.as_str(), self.queues);
            if !may_share(&item.request_id, &item.payload) {
                self.publish(queue, vec![ticket]).await?;
                continue;
            }
            let bundle = bundles.entry(queue).or_default();
            bundle.push(ticket);
            if bundle.len() >= self.settings.bundle_max {
                let full = std::mem::take(bundle);
                self.publish(queue, full).await?;
            }
        }
        for (queue, bundle) in bundles {
            self.publish(queue, bundle).await?;
        }
        Ok(())
    }

    /// Publishes entries as one message. An error says the connection is of no use any more; the entries have failed then.
    async fn publish(&mut self, queue: u16, tickets: Vec<Ticket>) -> Result<(), String> {
        let Some(publisher) = &mut self.line.publisher else { return Ok(()) };
        let items = tickets.iter().filter_map(|ticket| self.hand.get(*ticket));
        let mut orders = items.map(|item| (item.request_id.as_str(), item.payload.as_slice()));
        let (exchange, key) = (self.topology.orders_exchange(), self.topology.orders_key(queue));
        let mut message = if tickets.len() > 1 {
            Outgoing::bundle(PublishRoute { exchange: &exchange, key: &key }, orders)
        } else {
            let Some((request_id, payload)) = orders.next() else { return Ok(()) };
            Outgoing::new(PublishRoute { exchange: &exchange, key: &key }, request_id, payload)
        };
        if left_out!(Mandatory) {
            message = message.optional();
        }
        #[cfg(feature = "faults")]
        if crate::domain::message::is_next_version_played() {
            // Something that an older consumer has never heard of and has to keep.
            message = message.header("x-seckill-of-tomorrow", crate::store::rabbit::HeaderValue::Int(1));
        }
        crash_point!(BeforePublish);
        match publisher.publish(message).await {
            Ok(tag) => {
                crash_point!(AfterPublish);
                metrics::histogram!("seckill_p3_relay_group_count").record(tickets.len() as f64);
                for ticket in &tickets {
                    let sent = if left_out!(ConfirmFirst) { Place::Confirmed } else { Place::Sent };
                    self.hand.put(*ticket, sent);
                }
                self.line.confirms.sent(tag, Sent::Entries(tickets), Instant::now());
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                self.failed(&tickets, &reason);
                // Only a message that is too long leaves the connection as it was.
                if matches!(error, RabbitError::TooLong { .. }) { Ok(()) } else { Err(reason) }
            }
        }
    }

    /// Whether there is a connection to publish on; tries to make one, not too often. A try that fails costs the few entries
    /// that probe an attempt each, at the pace of their own back-off.
    async fn connected(&mut self) -> bool {
        if self.line.is_open() {
            return true;
        }
        if self.line.publisher.is_some() {
            self.give_up_connection("the connection was closed");
        }
        match self.line.connect().await {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                self.fail_trials(&format!("broker is away: {error}"));
                false
            }
            None => false,
        }
    }

    /// Drops the connection. Nothing sent on it can be confirmed any more, so all of it counts as failed, and P4 bears the
    /// repeats. If the breaker was open, the entries that wait behind the canary have failed with it.
    fn give_up_connection(&mut self, reason: &str) {
        let reason = format!("no confirm: {reason}");
        let was_open = self.line.breaker == Breaker::Open;
        for sent in self.line.give_up(&reason) {
            if let Sent::Entries(tickets) = sent {
                self.failed(&tickets, &reason);
            }
        }
        if was_open {
            self.fail_trials(&reason);
        }
    }

    fn fail_trials(&mut self, reason: &str) {
        let tickets = self.hand.ready(self.free_trials());
        self.failed(&tickets, reason);
    }

    fn failed(&mut self, tickets: &[Ticket], reason: &str) {
        for ticket in tickets {
            self.hand.put(*ticket, Place::Failed(reason.to_owned()));
        }
    }

    /// Takes in the broker's answers; waits for the first one when something is unanswered and nothing else is to be done.
    pub(super) async fn collect(&mut self, wait: Duration) {
        let idle = |relay: &Self| relay.hand.confirmed_count() + relay.hand.failed_count() == 0;
        let wait = if self.line.confirms.is_empty() || !idle(self) { Duration::ZERO } else { wait };
        let deadline = Instant::now() + wait;
        loop {
            let only_news = !idle(self);
            let Some(publisher) = &mut self.line.publisher else { return };
            let event = match publisher.try_event() {
                // Only the first event is waited for: the step goes on with whatever has arrived.
                None if !only_news => publisher.next_event(deadline).await,
                event => event,
            };
            match event {
                Some(PublishEvent::Closed(reason)) => return self.give_up_connection(&reason),
                Some(event) => self.judge(event),
                None => break,
            }
        }
        if let Some(silent) = self.line.is_silent() {
            self.give_up_connection(&silent);
        }
    }

    fn judge(&mut self, event: PublishEvent) {
        if matches!(event, PublishEvent::Returned { .. }) {
            self.line.was_returned();
            crash_point!(AfterReturn);
        }
        for (sent, verdict) in self.line.confirms.apply(event) {
            let Sent::Entries(tickets) = sent else {
                self.line.canary_confirmed();
                // One probe goes at once, however long it would have to wait after the attempts of a long outage.
                self.hand.wake_first();
                continue;
            };
            if self.line.breaker.close() {
                // What waits does so because of the outage, mostly.
                self.hand.wake_all();
            }
            match verdict {
                PublishResult::Confirmed => {
                    for ticket in tickets {
                        self.hand.put(ticket, Place::Confirmed);
                    }
                }
                PublishResult::Refused => {
                    self.line.refused();
                    self.failed(&tickets, "nack: the broker refused it");
                }
                PublishResult::Unroutable(words) => {
                    self.failed(&tickets, &format!("returned: no queue for it ({words})"))
                }
            }
        }
    }
}
