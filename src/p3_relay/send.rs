//! Publishing, confirms, and what follows from each verdict.

use super::hand::{Failed, InHand, Waiting};
use super::{CONNECT_PAUSE, Relay};
use crate::domain::shard::lane;
use crate::domain::states::Event;
use crate::runtime::grown;
use crate::store::rabbit::{Event as BrokerEvent, Outgoing, Publisher, RabbitError, Verdict};
use crate::store::redis::RedisFault;
use std::time::{Duration, Instant};

impl Relay {
    /// Publishes what is ready and what has waited long enough.
    pub(super) async fn send(&mut self) {
        let now = Instant::now();
        let (due, later): (Vec<Waiting>, Vec<Waiting>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| waiting.until <= now);
        self.waiting = later;
        self.ready.extend(due.into_iter().map(|waiting| waiting.item));
        if self.ready.is_empty() || !self.connected().await {
            return;
        }
        let mut items = std::mem::take(&mut self.ready).into_iter();
        for item in items.by_ref() {
            if self.limiter.as_ref().is_some_and(|limiter| limiter.check().is_err()) {
                // The cap on the rate (C7): the rest goes with a later step.
                self.ready.push(item);
                break;
            }
            if let Err(lost) = self.publish(item).await {
                self.give_up_connection(&lost);
                break;
            }
        }
        self.ready.extend(items);
    }

    /// An error says the connection is of no use any more; the item is in `failed` then.
    async fn publish(&mut self, item: InHand) -> Result<(), String> {
        let key = self.topology.orders_key(lane(item.sale_id.as_str(), self.queues));
        let exchange = self.topology.orders_exchange();
        let message = Outgoing::new((&exchange, &key), item.request_id.as_str(), item.payload.as_slice());
        let Some(publisher) = &mut self.publisher else {
            self.ready.push(item);
            return Ok(());
        };
        match publisher.publish(message).await {
            Ok(tag) => {
                self.confirms.sent(tag, item, Instant::now());
                Ok(())
            }
            Err(error @ RabbitError::TooLong { .. }) => {
                self.failed.push(Failed { item, reason: error.to_string() });
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                self.failed.push(Failed { item, reason: reason.clone() });
                Err(reason)
            }
        }
    }

    /// Whether there is a connection to publish on; tries to make one, not too often. A broker that is away costs every
    /// entry in the hand one attempt for each try.
    async fn connected(&mut self) -> bool {
        if let Some(publisher) = &self.publisher {
            if publisher.is_open() {
                return true;
            }
            self.give_up_connection("the connection was closed");
        }
        if Instant::now() < self.connect_at {
            return false;
        }
        match Publisher::connect(&self.rabbit).await {
            Ok(publisher) => {
                tracing::info!(phase = "p3_relay", "connected to the broker");
                self.publisher = Some(publisher);
                true
            }
            Err(error) => {
                self.connect_at = Instant::now() + CONNECT_PAUSE;
                tracing::warn!(phase = "p3_relay", %error, count = self.ready.len(), "broker is away");
                let reason = format!("broker is away: {error}");
                let ready = std::mem::take(&mut self.ready);
                self.failed.extend(ready.into_iter().map(|item| Failed { item, reason: reason.clone() }));
                false
            }
        }
    }

    /// Drops the connection. Nothing sent on it can be confirmed any more, so all of it counts as failed; the broker may
    /// have stored any of it, and P4 bears the repeats.
    fn give_up_connection(&mut self, reason: &str) {
        tracing::warn!(phase = "p3_relay", reason, unanswered = self.confirms.len(), "giving up the broker connection");
        metrics::counter!("seckill_p3_relay_reconnects_total").increment(1);
        self.publisher = None;
        let unanswered = self.confirms.drain();
        self.failed.extend(unanswered.into_iter().map(|item| Failed { item, reason: format!("no confirm: {reason}") }));
    }

    /// Takes in the broker's answers; waits for the first one when something is unanswered and nothing else is to be done.
    pub(super) async fn collect(&mut self, wait: Duration) {
        let timeout = Duration::from_millis(self.settings.confirm_timeout_ms);
        let mut deadline = Instant::now();
        if !self.confirms.is_empty() && self.confirmed.is_empty() && self.failed.is_empty() {
            deadline += wait;
        }
        while let Some(publisher) = &mut self.publisher {
            let event = match publisher.try_event() {
                Some(event) => Some(event),
                // Only the first event is waited for: the step goes on with whatever has arrived.
                None if self.confirmed.is_empty() && self.failed.is_empty() => publisher.next_event(deadline).await,
                None => None,
            };
            match event {
                Some(BrokerEvent::Closed(reason)) => return self.give_up_connection(&reason),
                Some(event) => self.judge(event),
                None if self.confirms.expired(Instant::now(), timeout) => {
                    return self.give_up_connection(&format!("no confirm within {} ms", timeout.as_millis()));
                }
                None => return,
            }
        }
    }

    fn judge(&mut self, event: BrokerEvent) {
        for (item, verdict) in self.confirms.apply(event) {
            match verdict {
                Verdict::Confirmed => self.confirmed.push(item),
                Verdict::Refused => self.failed.push(Failed { item, reason: "nack: the broker refused it".to_owned() }),
                Verdict::Unroutable(words) => {
                    self.failed.push(Failed { item, reason: format!("returned: no queue for it ({words})") });
                }
            }
        }
    }

    /// Deletes what the broker confirmed.
    pub(super) async fn finish_confirmed(&mut self) -> Result<(), RedisFault> {
        for shard in 0..self.shards {
            let ids: Vec<String> =
                self.confirmed.iter().filter(|item| item.shard == shard).map(|item| item.id.clone()).collect();
            if ids.is_empty() {
                continue;
            }
            self.redis.outbox_done(shard, &ids).await?;
            let (done, rest) = std::mem::take(&mut self.confirmed).into_iter().partition(|item| item.shard == shard);
            self.confirmed = rest;
            let done: Vec<InHand> = done;
            for mut item in done {
                item.happened(Event::Confirmed);
                tracing::debug!(phase = "p3_relay", request_id = %item.request_id, "the broker has it");
                self.held.remove(&(shard, item.id));
            }
        }
        Ok(())
    }

    /// Counts failed attempts; entries with attempts left wait for their next one, the others are parked.
    pub(super) async fn count_failed(&mut self) -> Result<(), RedisFault> {
        while let Some(Failed { item, .. }) = self.failed.last() {
            let (shard, id) = (item.shard, item.id.clone());
            // A reply lost here counts twice, which only shortens the retries.
            let attempts =
                self.redis.outbox_failed(shard, std::slice::from_ref(&id)).await?.first().copied().unwrap_or(1);
            let Some(Failed { mut item, reason }) = self.failed.pop() else { break };
            if attempts < self.settings.attempts_max {
                item.happened(Event::PublishFailed);
                let pause = grown(
                    Duration::from_millis(self.settings.backoff_ms),
                    attempts.saturating_sub(1),
                    Duration::from_millis(self.settings.backoff_max_ms),
                );
                tracing::debug!(phase = "p3_relay", request_id = %item.request_id, attempts, %reason, "will be sent again");
                self.waiting.push(Waiting { item, until: Instant::now() + pause });
                continue;
            }
            match self.redis.outbox_park(shard, &self.consumer, &id, (&reason, attempts)).await {
                Ok(parked) => {
                    if parked {
                        item.happened(Event::PublishSpent);
                        tracing::error!(phase = "p3_relay", request_id = %item.request_id, attempts, %reason, "parked in the relay DLQ");
                    }
                    self.held.remove(&(shard, id));
                }
                Err(fault) => {
                    self.failed.push(Failed { item, reason });
                    return Err(fault);
                }
            }
        }
        Ok(())
    }
}
