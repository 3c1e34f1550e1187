//! Sending a handful of messages and waiting until the broker has them all.

use super::config::RabbitConfig;
use super::confirms::{Confirms, PublishResult};
use super::error::RabbitError;
use super::publisher::{Outgoing, PublishEvent, Publisher};
use super::topology::Topology;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longest wait of a [`Sender`] for its connection; a broker that takes longer is connected to in the background.
const READY_WAIT: Duration = Duration::from_secs(1);

/// Sends copies and events for a caller that has other work: a slow connection is opened in the background. It declares no order
/// queue, and must publish to none.
pub struct Sender {
    config: RabbitConfig,
    publisher: Option<Publisher>,
    connecting: Option<JoinHandle<Result<Publisher, RabbitError>>>,
}

impl Sender {
    /// Connects with the first messages.
    #[must_use]
    pub(crate) fn new(config: &RabbitConfig) -> Self {
        Self { config: config.clone(), publisher: None, connecting: None }
    }

    /// Sends all messages and waits for every confirm, at most `connect_timeout_ms`, and at most a second for a connection. After
    /// an error any part of the messages may have been stored.
    ///
    /// # Errors
    /// As [`send_all`]; [`RabbitError::Timeout`] while there is no connection yet: nothing was sent then, and the next call finds
    /// it, or makes another.
    pub(crate) async fn send(&mut self, messages: Vec<Outgoing>) -> Result<(), RabbitError> {
        if messages.is_empty() {
            return Ok(());
        }
        let mut open = match self.publisher.take().filter(Publisher::is_open) {
            Some(open) => open,
            None => self.connected().await?,
        };
        send(&self.config, &mut open, messages).await?;
        self.publisher = Some(open);
        Ok(())
    }

    async fn connected(&mut self) -> Result<Publisher, RabbitError> {
        let config = &self.config;
        let connecting = self.connecting.get_or_insert_with(|| {
            let config = config.clone();
            tokio::spawn(async move {
                let topology = Topology::without_order_queues(&config);
                Publisher::connect_with(&config, topology).await
            })
        });
        let Ok(connected) = timeout(READY_WAIT, connecting).await else {
            let limit_ms = u64::try_from(READY_WAIT.as_millis()).unwrap_or(u64::MAX);
            return Err(RabbitError::Timeout { what: "open a connection for publishing", limit_ms });
        };
        self.connecting = None;
        connected.map_err(|join| RabbitError::library_failed(&join))?
    }
}

/// Sends all messages on `publisher` (connecting it when there is none) and waits for every confirm, at most
/// `connect_timeout_ms`. After an error the publisher is gone and any part of the messages may have been stored.
///
/// # Errors
/// When one message was refused, had no queue, or got no confirm in time; or the connection was lost.
pub async fn send_all(
    config: &RabbitConfig,
    publisher: &mut Option<Publisher>,
    messages: Vec<Outgoing>,
) -> Result<(), RabbitError> {
    if messages.is_empty() {
        return Ok(());
    }
    let mut open = match publisher.take().filter(Publisher::is_open) {
        Some(open) => open,
        None => Publisher::connect(config).await?,
    };
    send(config, &mut open, messages).await?;
    *publisher = Some(open);
    Ok(())
}

async fn send(config: &RabbitConfig, publisher: &mut Publisher, messages: Vec<Outgoing>) -> Result<(), RabbitError> {
    let mut confirms = Confirms::new();
    for message in messages {
        let tag = publisher.publish(message).await?;
        confirms.sent(tag, (), Instant::now());
    }
    let deadline = Instant::now() + Duration::from_millis(config.connect_timeout_ms);
    while !confirms.is_empty() {
        let late = || RabbitError::Timeout { what: "wait for confirms", limit_ms: config.connect_timeout_ms };
        let Some(event) = publisher.next_event(deadline).await else {
            publisher.give_up_node();
            return Err(late());
        };
        if let PublishEvent::Closed(reason) = event {
            return Err(RabbitError::Closed(reason));
        }
        for ((), verdict) in confirms.apply(event) {
            match verdict {
                PublishResult::Confirmed => {}
                PublishResult::Refused => return Err(RabbitError::Closed("the broker refused a message".to_owned())),
                PublishResult::Unroutable(words) => return Err(RabbitError::Closed(words)),
            }
        }
    }
    Ok(())
}
