//! Reading the dead-letter queue one by one, for `dlq list|replay|give-up` and `audit`.
//!
//! What was read and not removed goes back when the [`DlqReader`] is dropped, or when this process dies. To replay: send the
//! message, wait for its confirm, then remove it; a crash in between leaves it in both places, which consumers bear.

use super::config::RabbitConfig;
use super::error::RabbitError;
use super::headers::{Headers, from_properties};
use super::link::{Link, call};
use super::topology::Topology;
use amqprs::channel::{BasicAckArguments, BasicGetArguments, BasicNackArguments};
use std::collections::BTreeSet;

/// A message in the dead-letter queue.
#[derive(Debug, Clone)]
pub struct Parked {
    generation: u64,
    tag: u64,
    /// The order queue it belongs to: replay it with this key.
    pub routing_key: String,
    /// The request id, if the sender is one of ours.
    pub message_id: Option<String>,
    /// The content, opaque here.
    pub body: Vec<u8>,
    /// Headers that are text or whole numbers; `x-first-death-reason` and `x-first-death-queue` tell why the broker put
    /// it here, if the broker did.
    pub headers: Headers,
    /// Messages of the queue that were ready behind it when it was read.
    pub behind_count: u32,
}

/// A connection that holds what it has read of the dead-letter queue, unseen by other readers, until it is dropped.
pub struct DlqReader {
    link: Link,
    queue: String,
    op_timeout_ms: u64,
    /// Read and not removed, by tag.
    held: BTreeSet<u64>,
}

impl DlqReader {
    /// Connects, within `connect_timeout_ms`.
    ///
    /// # Errors
    /// Why there is no usable connection.
    pub async fn connect(config: &RabbitConfig) -> Result<Self, RabbitError> {
        let config = config.clone();
        call("open a connection", config.connect_timeout_ms, async move {
            let link = Link::open(&config, "dlq").await?;
            Ok(Self {
                link,
                queue: Topology::new(&config).dlq(),
                op_timeout_ms: config.op_timeout_ms,
                held: BTreeSet::new(),
            })
        })
        .await
    }

    /// The next message, within `op_timeout_ms`; `None` when no more is there. Bound the number that you hold.
    ///
    /// # Errors
    /// After any error this reader is of no use.
    pub async fn next(&mut self) -> Result<Option<Parked>, RabbitError> {
        self.link.check_open()?;
        let channel = self.link.channel.clone();
        let arguments = BasicGetArguments::new(&self.queue);
        let got =
            call(
                "read the dead-letter queue",
                self.op_timeout_ms,
                async move { Ok(channel.basic_get(arguments).await) },
            )
            .await?;
        match got {
            Ok(None) => Ok(None),
            Ok(Some((got, properties, body))) => {
                self.held.insert(got.delivery_tag());
                Ok(Some(Parked {
                    generation: self.link.generation,
                    tag: got.delivery_tag(),
                    routing_key: got.routing_key().clone(),
                    message_id: properties.message_id().cloned(),
                    body,
                    headers: from_properties(&properties),
                    behind_count: got.message_count(),
                }))
            }
            Err(error) => {
                let reason = self.link.why(&error).await.to_string();
                Err(RabbitError::Refused { what: format!("read queue {}", self.queue), reason })
            }
        }
    }

    /// Removes a message for good.
    ///
    /// # Errors
    /// [`RabbitError::Stale`] when another reader read it, or it was removed before. After any other error this reader is
    /// of no use, and the message may or may not be gone.
    pub async fn remove(&mut self, parked: &Parked) -> Result<(), RabbitError> {
        if parked.generation != self.link.generation || !self.held.remove(&parked.tag) {
            return Err(RabbitError::Stale { tag: parked.tag });
        }
        self.link.check_open()?;
        let channel = self.link.channel.clone();
        let arguments = BasicAckArguments::new(parked.tag, false);
        let sent = call("remove from the dead-letter queue", self.op_timeout_ms, async move {
            Ok(channel.basic_ack(arguments).await)
        })
        .await?;
        sent.map_err(|error| RabbitError::Closed(error.to_string()))
    }

    /// Ends the connection in order and waits for that, so that what was removed is removed and the rest is back.
    ///
    /// # Errors
    /// When the broker does not answer in time.
    pub async fn close(self) -> Result<(), RabbitError> {
        let Link { channel, connection, .. } = self.link;
        let newest = self.held.last().copied();
        call("close the connection", self.op_timeout_ms, async move {
            // Put back by word, not by the channel's end: that takes effect some time after the end is confirmed, and
            // whoever reads meanwhile would find the queue empty.
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

/// Reads up to `max` messages of the dead-letter queue and puts them back.
///
/// # Errors
/// As [`DlqReader`].
pub async fn browse_dlq(config: &RabbitConfig, max: usize) -> Result<Vec<Parked>, RabbitError> {
    let mut reader = DlqReader::connect(config).await?;
    let mut all = Vec::new();
    while all.len() < max
        && let Some(parked) = reader.next().await?
    {
        all.push(parked);
    }
    reader.close().await?;
    Ok(all)
}
