//! Consuming order queues: one connection, one channel, deliveries in groups.
//!
//! A message may hold several orders ([`super::Outgoing::bundle`]); each is a delivery of its own here, and the message is
//! acknowledged when all of them are settled. A delivery belongs to the [`Consumer`] that gave it: [`DeliveryId`] carries
//! which one, and another refuses it. A crash or a dropped consumer leaves everything unacknowledged, and the broker gives it
//! out again, marked as redelivered.

use super::ack_tracker::{AckTracker, OrderPart};
use super::bundle::{self, OpenedOrder};
use super::config::RabbitConfig;
use super::declare::{declare_of, refused};
use super::error::{RabbitError, RabbitResult};
use super::headers::{Headers, attempts, from_properties};
use super::link::{Link, call};
use super::queue_inspector::QueueInspector;
use super::signals::{Feed, Signal};
use super::topology::Topology;
use crate::domain::message::{self, MessageError, OrderMessage};
use amqprs::channel::{
    BasicAckArguments, BasicConsumeArguments, BasicNackArguments, BasicQosArguments, BasicRejectArguments, Channel,
};
use amqprs::{BasicProperties, Deliver};
use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A delivery of one particular [`Consumer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(test, derive(Default))]
pub struct DeliveryId {
    pub(super) generation: u64,
    pub(super) tag: u64,
    /// The order's place in the message.
    pub(super) part: u8,
}

/// An order as it was delivered.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// To settle it with.
    pub id: DeliveryId,
    /// It was given out before, perhaps to a consumer that died in the middle of the work.
    pub redelivered: bool,
    /// The routing key it was published with: the number of its order queue.
    pub routing_key: Arc<str>,
    /// The request id, if the sender is one of ours; none where the order is read already.
    pub message_id: Option<String>,
    /// The content, opaque here; empty where the order is read already.
    pub body: Vec<u8>,
    /// The order, when it came in lines.
    pub(crate) order: Option<OrderMessage>,
    /// How often it was tried before, from the header [`super::ATTEMPT_HEADER`].
    pub attempts: u32,
    /// All headers that are text or whole numbers, the broker's own among them.
    pub headers: Headers,
}

impl Delivery {
    /// Takes the order out, or reads it.
    ///
    /// # Errors
    /// [`MessageError`] when the content is none.
    pub fn take_order(&mut self) -> Result<OrderMessage, MessageError> {
        match self.order.take() {
            Some(order) => Ok(order),
            None => message::decode(&self.body),
        }
    }

    /// Gives back an order that was taken out: it is sent on or tried again, and has to be read once more then.
    pub(crate) fn put_back(&mut self, order: &OrderMessage) {
        if self.body.is_empty() {
            self.body = message::encode(order).into_bytes();
            self.message_id = Some(order.purchase.request_id.to_string());
        }
    }
}

/// A connection that consumes some order queues. Dropping it never waits.
pub struct Consumer {
    link: Link,
    op_timeout_ms: u64,
    inspector: QueueInspector,
    /// The most messages in hand from one queue.
    prefetch: usize,
    /// Orders of the last message that the last group had no room for.
    rest: VecDeque<Delivery>,
    /// Nothing more had arrived when the last group was taken.
    drained: bool,
    unacked: AckTracker,
    /// A settling call failed or was dropped half-way. A later ack with `multiple` could then cover a delivery that was to
    /// be requeued, so no more is sent.
    torn: bool,
}

impl Consumer {
    /// Connects and starts to consume the order queues with these indexes; each call to the broker has `connect_timeout_ms`.
    /// `prefetch` is the most unsettled messages per queue, from 1. When one is missing, these are declared with everything but the
    /// other order queues.
    pub async fn connect(config: &RabbitConfig, queues: &[u16], prefetch: u16) -> RabbitResult<Self> {
        match Self::consume(config, queues, prefetch).await {
            Err(RabbitError::NoQueue { .. }) => {
                for queue in queues {
                    declare_of(config, Topology::of_order_queue(config, *queue)).await?;
                }
                Self::consume(config, queues, prefetch).await
            }
            done => done,
        }
    }

    /// The same without declaring anything: while all queues are there, a consumer costs a slow broker no more than it must. It fails
    /// with [`RabbitError::NoQueue`] when one is missing.
    pub(crate) async fn consume(config: &RabbitConfig, queues: &[u16], prefetch: u16) -> RabbitResult<Self> {
        let topology = Topology::new(config);
        let names: Vec<String> = queues.iter().map(|index| topology.orders_queue(*index)).collect();
        let link = Link::connect(config, "consumer").await?;
        let node = link.node();
        let link = start_consuming(link, config, names.clone(), prefetch).await.map_err(|error| node.blamed(error))?;
        Ok(Self {
            link,
            op_timeout_ms: config.op_timeout_ms,
            inspector: QueueInspector::new(names),
            prefetch: usize::from(prefetch.max(1)),
            rest: VecDeque::new(),
            drained: true,
            unacked: AckTracker::default(),
            torn: false,
        })
    }

    /// Waits up to `first_wait` for a delivery, then takes what else has arrived, `max` in all. Empty when none came.
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`RabbitError::Closed`] when the connection, the channel or one of the queues is gone, [`RabbitError::Starved`] when
    /// a queue knows this consumer no more: drop this and connect again, as after [`RabbitError::Timeout`].
    pub async fn recv_group(&mut self, max: usize, first_wait: Duration) -> RabbitResult<Vec<Delivery>> {
        self.check_open()?;
        // All that had arrived is in hand, and with fewer of them than one queue may give, every queue could give more. Before
        // anything is taken, so that nothing is in a future that may be dropped.
        if self.drained && self.unacked.len() < self.prefetch {
            let turn = self.inspector.take_turn(&mut self.link, self.unacked.len()).await;
            turn.map_err(|error| self.link.node().blamed(error))?;
        }
        let (mut group, deadline) = (Vec::new(), Instant::now() + first_wait);
        loop {
            group.extend(self.rest.drain(..self.rest.len().min(max.saturating_sub(group.len()))));
            let next = match group.len() {
                0 => self.link.next_signal(deadline).await,
                count if count < max => self.link.try_signal(),
                _ => break,
            };
            match next {
                Some(Signal::Delivered(message)) => self.take(*message),
                // What was gathered so far will be given out again.
                Some(Signal::Gone(gone)) => return Err(RabbitError::Closed(gone.to_string())),
                // Nothing is published here.
                Some(Signal::Ack { .. } | Signal::Nack { .. } | Signal::Returned { .. }) => {}
                None => break,
            }
        }
        self.drained = group.len() < max;
        Ok(group)
    }

    /// Opens a message: its orders are the next ones to be given out.
    fn take(&mut self, (deliver, properties, body): (Deliver, BasicProperties, Vec<u8>)) {
        let orders = bundle::open(&properties, body);
        let tag = deliver.delivery_tag();
        self.unacked.received(tag, orders.len());
        self.inspector.delivered(deliver.consumer_tag(), Instant::now());
        let (headers, routing_key) = (from_properties(&properties), Arc::from(deliver.routing_key().as_str()));
        for (part, OpenedOrder { message_id, body, order }) in (0_u8..).zip(orders) {
            self.rest.push_back(Delivery {
                id: DeliveryId { generation: self.link.generation, tag, part },
                redelivered: deliver.redelivered(),
                routing_key: Arc::clone(&routing_key),
                message_id,
                body,
                order,
                attempts: attempts(&headers),
                headers: headers.clone(),
            });
        }
    }

    /// Whether this consumer gave the delivery.
    pub(crate) fn gave(&self, id: DeliveryId) -> bool {
        id.generation == self.link.generation
    }

    /// Acknowledges finished deliveries, with as few acks as their order allows; a message with its last order. The broker does
    /// not answer acks: if the connection dies around this call, they may come again.
    ///
    /// # Errors
    /// [`RabbitError::Stale`] before anything is sent, when one is of another consumer or settled already. After
    /// [`RabbitError::Closed`] or [`RabbitError::Timeout`], or if the future is dropped half-way, this consumer is of no use.
    pub async fn ack(&mut self, ids: &[DeliveryId]) -> RabbitResult<()> {
        self.check_open()?;
        let parts = ids.iter().map(|id| self.own(*id)).collect::<RabbitResult<Vec<OrderPart>>>()?;
        let frames = self.unacked.ack(&parts).map_err(|tag| RabbitError::Stale { tag })?;
        let channel = self.link.channel.clone();
        self.send("acknowledge", async move {
            for frame in frames {
                channel.basic_ack(BasicAckArguments::new(frame.tag, frame.multiple)).await?;
            }
            Ok(())
        })
        .await
    }

    /// Gives a delivery's message back: the broker gives it out again at once, to any consumer, and counts that delivery.
    pub async fn requeue(&mut self, id: DeliveryId) -> RabbitResult<()> {
        let (tag, channel) = self.settle(id)?;
        let arguments = BasicNackArguments::new(tag, false, true);
        self.send("requeue", async move { channel.basic_nack(arguments).await }).await
    }

    /// Sends a delivery's message to the dead-letter queue, by the broker itself: at least once with quorum queues. Where a reason
    /// should stay with the message, publish it to [`Topology::dlq`] with a header and acknowledge it instead.
    pub async fn reject(&mut self, id: DeliveryId) -> RabbitResult<()> {
        let (tag, channel) = self.settle(id)?;
        let arguments = BasicRejectArguments::new(tag, false);
        self.send("reject", async move { channel.basic_reject(arguments).await }).await
    }

    /// How many messages were given out and not settled.
    #[must_use]
    pub fn unacked(&self) -> usize {
        self.unacked.len()
    }

    fn settle(&mut self, id: DeliveryId) -> RabbitResult<(u64, Channel)> {
        self.check_open()?;
        let (tag, _) = self.own(id)?;
        self.unacked.settle(tag).map_err(|tag| RabbitError::Stale { tag })?;
        Ok((tag, self.link.channel.clone()))
    }

    fn own(&self, id: DeliveryId) -> RabbitResult<OrderPart> {
        if self.gave(id) { Ok((id.tag, id.part)) } else { Err(RabbitError::Stale { tag: id.tag }) }
    }

    fn check_open(&self) -> RabbitResult<()> {
        if self.torn {
            return Err(RabbitError::Closed("an earlier acknowledgement was cut short".to_owned()));
        }
        self.link.check_open()
    }

    /// Not a case for [`call`]: these are single sends into the library's queue and wait only while that is full.
    async fn send<F>(&mut self, what: &'static str, frames: F) -> RabbitResult<()>
    where
        F: Future<Output = Result<(), amqprs::error::Error>>,
    {
        self.torn = true;
        match timeout(Duration::from_millis(self.op_timeout_ms), frames).await {
            Ok(Ok(())) => {
                self.torn = false;
                Ok(())
            }
            Ok(Err(error)) => Err(RabbitError::Closed(error.to_string())),
            Err(_) => Err(RabbitError::Timeout { what, limit_ms: self.op_timeout_ms }),
        }
    }
}

/// Starts to consume these queues; each delivery has the name of its queue as its tag.
pub(super) async fn start_consuming(
    mut link: Link,
    config: &RabbitConfig,
    names: Vec<String>,
    prefetch: u16,
) -> RabbitResult<Link> {
    link = call("set the prefetch", config.connect_timeout_ms, async move {
        // Quorum queues know no limit over a whole channel, so it is one per consumer. 0 would mean none at all.
        if let Err(error) = link.channel.basic_qos(BasicQosArguments::new(0, prefetch.max(1), false)).await {
            let reason = link.why(&error).await.to_string();
            return Err(RabbitError::Refused { what: "set the prefetch".to_owned(), reason });
        }
        Ok(link)
    })
    .await?;
    for name in names {
        link = call("start to consume", config.connect_timeout_ms, async move {
            let arguments = BasicConsumeArguments::new(&name, &name).manual_ack(true).finish();
            let feed = Feed(link.reporter("the consumer ended"));
            match link.channel.basic_consume(feed, arguments).await {
                Ok(_tag) => Ok(link),
                Err(error) => Err(refused(&mut link, "consumer of queue", name, &error).await),
            }
        })
        .await?;
    }
    Ok(link)
}
