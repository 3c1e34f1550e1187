//! Reading the dead-letter queue one by one, for `dlq list|replay|give-up` and `audit`.
//!
//! A message that was read and not removed goes back when the [`DlqReader`] is dropped, or when this process dies. To
//! replay: send the message, wait for its confirm, then remove it; a crash in between leaves it in both places, which consumers bear.
//!
//! Only the broker itself puts a bundle here, after many deliveries. Its orders are read one by one, and it is gone when
//! all of them were removed.

use super::ack_tracker::{AckTracker, OrderPart};
use super::bundle::{self, OpenedOrder};
use super::config::RabbitConfig;
use super::error::RabbitError;
use super::headers::{Headers, from_properties};
use super::link::{Link, call};
use super::topology::Topology;
use crate::domain::message;
use amqprs::channel::{BasicAckArguments, BasicGetArguments, BasicNackArguments};
use std::collections::VecDeque;

/// A message in the dead-letter queue.
#[derive(Debug, Clone)]
pub struct ParkedMessage {
    generation: u64,
    part: OrderPart,
    /// The order queue it belongs to: replay it with this key.
    pub routing_key: String,
    /// The request id, if the sender is one of ours.
    pub message_id: Option<String>,
    /// The content, opaque here.
    pub body: Vec<u8>,
    /// Headers that are text or whole numbers; `x-first-death-reason` and `x-first-death-queue` say why the broker put
    /// it here, if the broker did.
    pub headers: Headers,
    /// Messages of the queue that were ready behind it when it was read.
    pub behind_count: u32,
}

/// A connection that holds what it has read of the dead-letter queue (or of a retry queue), unseen by other readers, until it is dropped.
pub struct DlqReader {
    link: Link,
    queue: String,
    op_timeout_ms: u64,
    /// Read and not removed.
    held: AckTracker,
    /// Orders of the last message that were not given out yet.
    rest: VecDeque<ParkedMessage>,
    /// Messages that were there when the first one was read, and have not been read.
    there: Option<u32>,
}

impl DlqReader {
    /// Connects, within `connect_timeout_ms`.
    pub async fn connect(config: &RabbitConfig) -> Result<Self, RabbitError> {
        Self::connect_to(config, Topology::new(config).dlq()).await
    }

    /// The same for another queue that has no consumers: one of the retry queues.
    pub(crate) async fn connect_to(config: &RabbitConfig, queue: String) -> Result<Self, RabbitError> {
        Ok(Self {
            link: Link::connect(config, "dlq").await?,
            queue,
            op_timeout_ms: config.op_timeout_ms,
            held: AckTracker::default(),
            rest: VecDeque::new(),
            there: None,
        })
    }

    /// The next of the messages that were there when the first one was read: a queue that fills as fast as it is read does not
    /// keep the reader for ever. Else as [`DlqReader::next`].
    pub(crate) async fn next_there(&mut self) -> Result<Option<ParkedMessage>, RabbitError> {
        if self.rest.is_empty() && self.there == Some(0) {
            return Ok(None);
        }
        self.next().await
    }

    /// The next message, within `op_timeout_ms`; `None` when no more is there. Bound the number that you hold.
    /// After an error this reader is of no use.
    pub async fn next(&mut self) -> Result<Option<ParkedMessage>, RabbitError> {
        self.link.check_open()?;
        if let Some(parked) = self.rest.pop_front() {
            return Ok(Some(parked));
        }
        let channel = self.link.channel.clone();
        let arguments = BasicGetArguments::new(&self.queue);
        let got =
            call("read a queue", self.op_timeout_ms, async move { Ok(channel.basic_get(arguments).await) }).await?;
        match got {
            Ok(None) => Ok(None),
            Ok(Some((got, properties, body))) => {
                let orders = bundle::open(&properties, body);
                self.there = Some(self.there.map_or(got.message_count(), |there| there.saturating_sub(1)));
                self.held.received(got.delivery_tag(), orders.len());
                let headers = from_properties(&properties);
                self.rest.extend((0..).zip(orders).map(|(part, OpenedOrder { message_id, body, order })| {
                    ParkedMessage {
                        generation: self.link.generation,
                        part: (got.delivery_tag(), part),
                        routing_key: got.routing_key().clone(),
                        message_id,
                        body: order.map_or(body, |order| message::encode(&order).into_bytes()),
                        headers: headers.clone(),
                        behind_count: got.message_count(),
                    }
                }));
                Ok(self.rest.pop_front())
            }
            Err(error) => {
                let reason = self.link.why(&error).await.to_string();
                Err(RabbitError::Refused { what: format!("read queue {}", self.queue), reason })
            }
        }
    }

    /// Removes a message for good; a bundle with its last order.
    ///
    /// # Errors
    /// [`RabbitError::Stale`] when another reader read it, or it was removed before. After any other error this reader is
    /// of no use, and the message may or may not be gone.
    pub async fn remove(&mut self, parked: &ParkedMessage) -> Result<(), RabbitError> {
        let (tag, _) = parked.part;
        if parked.generation != self.link.generation {
            return Err(RabbitError::Stale { tag });
        }
        if self.held.ack(&[parked.part]).map_err(|tag| RabbitError::Stale { tag })?.is_empty() {
            return Ok(());
        }
        self.link.check_open()?;
        let channel = self.link.channel.clone();
        let arguments = BasicAckArguments::new(tag, false);
        let sent = call("remove from the dead-letter queue", self.op_timeout_ms, async move {
            Ok(channel.basic_ack(arguments).await)
        })
        .await?;
        sent.map_err(|error| RabbitError::Closed(error.to_string()))
    }

    /// Ends the connection in order and waits for that, so that what was removed is removed and the rest is back.
    pub async fn close(mut self) -> Result<(), RabbitError> {
        self.link.expect_end();
        let Link { channel, connection, .. } = self.link;
        let newest = self.held.newest();
        call("close the connection", self.op_timeout_ms, async move {
            // Put back by a nack, not by the channel's end: the latter takes effect some time after the end is
            // confirmed, and another reader would find the queue empty meanwhile.
            let back = match newest {
                Some(tag) => channel.basic_nack(BasicNackArguments::new(tag, true, true)).await,
                None => Ok(()),
            };
            let closed = match (back, channel.close().await) {
                (Ok(()), Ok(())) => connection.close().await,
                (Err(error), _) | (_, Err(error)) => Err(error),
            };
            closed.map_err(|error| RabbitError::Closed(error.to_string()))
        })
        .await
    }
}

/// Reads up to `max` of the messages that are in the dead-letter queue and puts them back.
pub async fn browse_dlq(config: &RabbitConfig, max: usize) -> Result<Vec<ParkedMessage>, RabbitError> {
    let mut reader = DlqReader::connect(config).await?;
    let mut all = Vec::new();
    while all.len() < max
        && let Some(parked) = reader.next_there().await?
    {
        all.push(parked);
    }
    reader.close().await?;
    Ok(all)
}
