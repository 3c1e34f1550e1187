//! For the benchmark: plain queues by name, of the same kind as the order queues, and a consumer of them that acknowledges
//! one message at a time. No retries, no dead letters, no reconnecting: any trouble ends the measurement.
//!
//! A crash leaves the queues; what was not acknowledged is delivered again.

use amqprs::channel::{BasicAckArguments, BasicConsumeArguments, Channel, QueueDeclareArguments, QueueDeleteArguments};
use amqprs::consumer::AsyncConsumer;
use amqprs::{BasicProperties, Deliver};
use async_trait::async_trait;
use seckill::store::rabbit::{Link, RabbitConfig, RabbitError, Topology};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A message as it arrived.
#[derive(Debug, Clone)]
pub struct BareDelivery {
    /// The queue it came from.
    pub queue: String,
    /// To acknowledge it with, on the connection that it came from.
    pub tag: u64,
    /// The id its sender gave it; empty without one.
    pub message_id: String,
    /// The content.
    pub body: Vec<u8>,
}

/// A connection that consumes queues.
pub struct QueueReader {
    link: Link,
    deliveries: mpsc::UnboundedReceiver<BareDelivery>,
}

fn failed(error: &amqprs::error::Error) -> RabbitError {
    RabbitError::Closed(error.to_string())
}

/// Makes these queues.
///
/// # Errors
/// [`RabbitError`].
pub async fn declare(config: &RabbitConfig, queues: &[&str]) -> Result<(), RabbitError> {
    let link = Link::connect(config, "bench").await?;
    for queue in queues {
        let table = Topology::new(config).order_queue_arguments();
        let declare = QueueDeclareArguments::durable_client_named(queue).arguments(table).finish();
        link.channel.queue_declare(declare).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

/// Removes these queues with what is in them.
///
/// # Errors
/// [`RabbitError`].
pub async fn delete(config: &RabbitConfig, queues: &[&str]) -> Result<(), RabbitError> {
    let link = Link::connect(config, "bench").await?;
    for queue in queues {
        link.channel.queue_delete(QueueDeleteArguments::new(queue)).await.map_err(|error| failed(&error))?;
    }
    Ok(())
}

impl QueueReader {
    /// Connects and consumes these queues, which must exist. Quorum queues give out 2,000 unacknowledged messages at most.
    ///
    /// # Errors
    /// [`RabbitError`].
    pub async fn open(config: &RabbitConfig, queues: &[&str]) -> Result<Self, RabbitError> {
        let link = Link::connect(config, "bench").await?;
        let (sender, deliveries) = mpsc::unbounded_channel();
        for queue in queues {
            let arguments = BasicConsumeArguments::new(queue, queue).manual_ack(true).finish();
            link.channel
                .basic_consume(DeliveryFeed(sender.clone()), arguments)
                .await
                .map_err(|error| failed(&error))?;
        }
        Ok(Self { link, deliveries })
    }

    /// Waits up to `wait` for a message, then takes what else has arrived, `max` in all. Empty when none came. Cancel-safe
    /// until the first message.
    ///
    /// # Errors
    /// [`RabbitError::Closed`] when the queues or the connection are gone.
    pub async fn take(&mut self, max: usize, wait: Duration) -> Result<Vec<BareDelivery>, RabbitError> {
        let Ok(first) = timeout(wait, self.deliveries.recv()).await else { return Ok(Vec::new()) };
        let ended = || RabbitError::Closed("the consumer of the benchmark's queues ended".to_owned());
        let mut taken = vec![first.ok_or_else(ended)?];
        while taken.len() < max {
            let Ok(next) = self.deliveries.try_recv() else { break };
            taken.push(next);
        }
        Ok(taken)
    }

    /// Acknowledges one message.
    ///
    /// # Errors
    /// [`RabbitError`]; then it is delivered again.
    pub async fn ack(&self, tag: u64) -> Result<(), RabbitError> {
        self.link.channel.basic_ack(BasicAckArguments::new(tag, false)).await.map_err(|error| failed(&error))
    }

    /// Messages of `queue` that were not given out to anybody.
    ///
    /// # Errors
    /// [`RabbitError`].
    pub async fn ready(&self, queue: &str) -> Result<u64, RabbitError> {
        let passive = QueueDeclareArguments::durable_client_named(queue).passive(true).finish();
        let answer = self.link.channel.queue_declare(passive).await.map_err(|error| failed(&error))?;
        Ok(answer.map_or(0, |(_, ready, _)| u64::from(ready)))
    }
}

/// Passes deliveries on. The library drops it with the channel, and the reader sees the end.
struct DeliveryFeed(mpsc::UnboundedSender<BareDelivery>);

#[async_trait]
impl AsyncConsumer for DeliveryFeed {
    async fn consume(&mut self, _: &Channel, deliver: Deliver, properties: BasicProperties, body: Vec<u8>) {
        // The consumer tag is the queue's name. An error means that the reader is gone.
        drop(self.0.send(BareDelivery {
            queue: deliver.consumer_tag().clone(),
            tag: deliver.delivery_tag(),
            message_id: properties.message_id().cloned().unwrap_or_default(),
            body,
        }));
    }
}
