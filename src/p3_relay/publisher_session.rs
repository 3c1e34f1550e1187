//! The session with the broker for one order queue: one publisher at a time, its unanswered messages, and the breaker.
//!
//! Any doubt about a connection ends it: a new one declares its part of the topology again and counts its tags from the start.
//! Connecting goes on in the background: a queue that answers no declaration takes no time from the others.

use super::breaker::BrokerBreaker;
use super::in_flight::EntryKey;
use crate::config::P3Relay;
use crate::runtime::exponential_backoff;
use crate::store::rabbit::{
    Confirms, Outgoing, PublishRoute, Publisher, QUEUE_LEFT_ALONE, RabbitConfig, RabbitError, Topology, declare_of,
};
use futures::FutureExt;
use std::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

/// Pause between two attempts to reach the broker.
const CONNECT_PAUSE: Duration = Duration::from_millis(250);
/// Pause between two times the topology is declared because messages came back.
const DECLARE_PAUSE: Duration = Duration::from_secs(1);

/// A connection on which messages were refused is not replaced before this time.
const REFUSED_MIN: Duration = Duration::from_secs(1);
/// Longest wait for the canary. Under an alarm the broker reads nothing, not even a close, so every connection given up stays
/// open until the alarm ends (window 41): their number must not grow with every confirm time-out.
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// What was published: entries of the window in one message, or the canary.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Published {
    Entries(Vec<EntryKey>),
    Canary,
}

/// A connection that is being made.
type Connecting = AbortOnDropHandle<Result<Publisher, RabbitError>>;

/// The connection of one relay for one order queue.
pub(super) struct PublisherSession {
    config: RabbitConfig,
    pub(super) queue: u16,
    /// Of this order queue.
    pub(super) topology: Topology,
    confirm_timeout: Duration,
    /// A connection on which messages were refused is replaced after this time, the longest back-off. A broker may go on
    /// refusing on a channel for as long as it lives: 3.10 does, once a full queue's length limit is taken away. Not sooner,
    /// because a full queue takes a few more messages from every new channel.
    refused_max: Duration,
    pub(super) publisher: Option<Publisher>,
    /// Published on the present connection and not answered.
    pub(super) confirms: Confirms<Published>,
    pub(super) breaker: BrokerBreaker,
    connecting: Option<Connecting>,
    connect_at: Instant,
    /// Canaries in a row that had no answer; each is waited for twice as long as the one before it.
    silences: u32,
    /// When the present connection is to be replaced, because a message was refused on it or its queue was declared again.
    replace_at: Option<Instant>,
    /// A message was returned: a queue or a binding is missing.
    unroutable: bool,
    /// The topology that is being declared again.
    declaring: Option<AbortOnDropHandle<Result<(), RabbitError>>>,
    declare_at: Instant,
}

impl PublisherSession {
    pub(super) fn new(config: RabbitConfig, queue: u16, settings: &P3Relay) -> Self {
        let now = Instant::now();
        Self {
            topology: Topology::of_order_queue(&config, queue),
            config,
            queue,
            confirm_timeout: Duration::from_millis(settings.confirm_timeout_ms),
            refused_max: Duration::from_millis(settings.backoff_max_ms).max(REFUSED_MIN),
            publisher: None,
            confirms: Confirms::new(),
            breaker: BrokerBreaker::Closed,
            connecting: None,
            connect_at: now,
            silences: 0,
            replace_at: None,
            unroutable: false,
            declaring: None,
            declare_at: now,
        }
    }

    /// Whether there is a connection that seems open.
    pub(super) fn is_open(&self) -> bool {
        self.publisher.as_ref().is_some_and(Publisher::is_open)
    }

    /// Connects in the background; `None` while that has no result, and when it is not yet time for another attempt.
    pub(super) fn connect(&mut self) -> Option<Result<(), RabbitError>> {
        let connected = match &mut self.connecting {
            Some(connecting) => connecting.now_or_never()?,
            None => {
                if Instant::now() >= self.connect_at {
                    let (config, topology) = (self.config.clone(), self.topology.clone());
                    let connecting = async move { Publisher::connect_with(&config, topology).await };
                    self.connecting = Some(AbortOnDropHandle::new(tokio::spawn(connecting)));
                }
                return None;
            }
        };
        self.connecting = None;
        // After a success too: a connection that is lost at once must not lead to a storm of connections.
        self.connect_at = Instant::now() + CONNECT_PAUSE;
        let connected = connected.unwrap_or_else(|join| Err(RabbitError::library_failed(&join)));
        match connected {
            Ok(publisher) => {
                tracing::info!(phase = "p3_relay", queue = self.queue, "connected to the broker");
                self.publisher = Some(publisher);
                self.replace_at = None;
                Some(Ok(()))
            }
            Err(error) => {
                if self.breaker.outage("no connection") {
                    tracing::warn!(phase = "p3_relay", queue = self.queue, %error, "the broker cannot be reached");
                } else {
                    tracing::debug!(phase = "p3_relay", queue = self.queue, %error, "the broker still cannot be reached");
                }
                Some(Err(error))
            }
        }
    }

    /// Publishes the canary unless it is on its way. It goes to the orders exchange under a key that no queue is bound to, so
    /// the broker confirms it as soon as it reads from this connection, and delivers it to no queue.
    pub(super) async fn send_canary(&mut self) -> Result<(), String> {
        if !self.confirms.is_empty() {
            return Ok(());
        }
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        let exchange = self.topology.orders_exchange();
        let canary =
            Outgoing::new(PublishRoute { exchange: &exchange, key: "canary" }, "canary", Vec::new()).optional();
        let tag = publisher.publish(canary).await.map_err(|error| error.to_string())?;
        self.confirms.sent(tag, Published::Canary, Instant::now());
        Ok(())
    }

    /// Why the connection is not to be trusted any more, if an answer is late.
    pub(super) fn is_silent(&self) -> Option<String> {
        let limit = match self.breaker {
            BrokerBreaker::Closed | BrokerBreaker::HalfOpen => self.confirm_timeout,
            BrokerBreaker::Open => {
                exponential_backoff(self.confirm_timeout, self.silences, PATIENCE_MAX.max(self.confirm_timeout))
            }
        };
        let late = self.confirms.expired(Instant::now(), limit);
        late.then(|| format!("no confirm within {} ms", limit.as_millis()))
    }

    /// The canary was confirmed: the broker reads from this connection.
    pub(super) fn canary_confirmed(&mut self) {
        self.silences = 0;
        self.breaker.canary_confirmed();
    }

    /// Drops the connection and returns the messages without an answer. The broker may have stored any of them.
    pub(super) fn give_up(&mut self, reason: &str) -> Vec<Published> {
        let unanswered = self.confirms.len();
        tracing::warn!(phase = "p3_relay", queue = self.queue, reason, unanswered, "giving up the broker connection");
        metrics::counter!("seckill_p3_relay_reconnects_total").increment(1);
        self.breaker.outage(reason);
        if let Some(publisher) = self.publisher.take() {
            publisher.give_up_node();
        }
        let unanswered = self.confirms.drain();
        if unanswered.contains(&Published::Canary) {
            self.silences = self.silences.saturating_add(1);
        }
        unanswered
    }

    /// Notes that a message was refused.
    pub(super) fn note_refused(&mut self) {
        metrics::counter!("seckill_p3_relay_nacks_total").increment(1);
        let refused_max = self.refused_max;
        self.replace_at.get_or_insert_with(|| Instant::now() + refused_max);
    }

    /// Whether nothing more is to be sent on this connection. It is dropped once all messages on it are answered, so that it
    /// costs no entry an attempt.
    pub(super) fn should_reconnect(&mut self) -> bool {
        if self.replace_at.is_none_or(|at| Instant::now() < at) {
            return false;
        }
        if self.confirms.is_empty() {
            tracing::info!(phase = "p3_relay", "messages were refused or came back: going on over a new connection");
            self.publisher = None;
            self.replace_at = None;
        }
        true
    }

    /// Notes that a message was returned.
    pub(super) fn note_returned(&mut self) {
        metrics::counter!("seckill_p3_relay_returned_total").increment(1);
        if !self.unroutable {
            self.unroutable = true;
            self.declare_at = self.declare_at.max(Instant::now() + QUEUE_LEFT_ALONE);
        }
    }

    /// Declares the topology after messages were returned, over another connection so that nothing under way suffers: else
    /// a deleted queue or binding would last until the next reconnect, and send every entry to the relay DLQ (windows 36, 59).
    /// In the background, as connecting: a queue that answers no declaration takes no time from the others (H6).
    pub(super) fn redeclare(&mut self) {
        let Some(declaring) = &mut self.declaring else {
            if self.unroutable && Instant::now() >= self.declare_at {
                let (config, topology) = (self.config.clone(), self.topology.clone());
                let declaring = async move { declare_of(&config, topology).await };
                self.declaring = Some(AbortOnDropHandle::new(tokio::spawn(declaring)));
            }
            return;
        };
        let Some(declared) = declaring.now_or_never() else { return };
        self.declaring = None;
        self.declare_at = Instant::now() + DECLARE_PAUSE;
        match declared.unwrap_or_else(|join| Err(RabbitError::library_failed(&join))) {
            Ok(()) => {
                tracing::warn!(phase = "p3_relay", "messages came back unroutable: declared the topology again");
                self.unroutable = false;
                // The broker's side of this connection may still know the queue that is gone.
                self.replace_at = Some(Instant::now());
            }
            Err(error) => tracing::error!(phase = "p3_relay", %error, "messages come back, and declaring failed"),
        }
    }
}
