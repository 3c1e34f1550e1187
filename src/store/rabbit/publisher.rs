//! Publishing with confirms: one connection, one channel, tags counted here.
//!
//! `publish` only hands a message to the client library; nothing but an [`PublishEvent::Ack`] says that the broker has it. A crash
//! after the hand-over leaves a message that may or may not be stored: the caller keeps its own record until the ack, and
//! sends it again over the next [`Publisher`].

use super::bundle;
use super::config::RabbitConfig;
use super::declare::connect_and_declare;
use super::error::RabbitError;
use super::headers::{BODY_BYTES_MAX, HeaderValue, Headers, fits, short, to_table};
use super::link::{Link, call};
use super::signals::Signal;
use super::topology::Topology;
use amqprs::BasicProperties;
use amqprs::channel::{BasicPublishArguments, ConfirmSelectArguments};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// The number of a publish on its connection, from 1.
pub(crate) type Tag = u64;

/// Where a message is published to.
#[derive(Debug, Clone, Copy)]
pub struct PublishRoute<'a> {
    /// The exchange; the default exchange has an empty name.
    pub exchange: &'a str,
    /// The routing key.
    pub key: &'a str,
}

/// A message to send. Always persistent.
#[derive(Debug, Clone)]
pub struct Outgoing {
    exchange: String,
    routing_key: String,
    message_id: String,
    content_type: &'static str,
    body: Vec<u8>,
    headers: Headers,
    mandatory: bool,
}

impl Outgoing {
    /// A message that must reach a queue: if none takes it, it comes back as [`PublishEvent::Returned`].
    /// `message_id` is what a person sees in the broker's console: the request id.
    #[must_use]
    pub fn new(route: PublishRoute<'_>, message_id: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        Self {
            exchange: route.exchange.to_owned(),
            routing_key: route.key.to_owned(),
            message_id: message_id.into(),
            content_type: "application/json",
            body: body.into(),
            headers: Headers::new(),
            mandatory: true,
        }
    }

    /// Several orders, (message id, body) each, as one message, named after the first; at most
    /// [`crate::domain::message::BUNDLE_MAX`], and each of them [`super::may_share`]. A [`super::Consumer`] gives them out one by one.
    #[must_use]
    pub fn bundle<'a>(route: PublishRoute<'_>, orders: impl Iterator<Item = (&'a str, &'a [u8])> + Clone) -> Self {
        let first = orders.clone().next().map(|(message_id, _)| message_id).unwrap_or_default();
        Self { content_type: bundle::CONTENT_TYPE, ..Self::new(route, first, bundle::pack(orders)) }
    }

    /// Orders in lines as one message, named after the first; at most [`crate::domain::message::BUNDLE_MAX`] of them.
    #[must_use]
    pub fn lines(route: PublishRoute<'_>, first: &str, body: Vec<u8>) -> Self {
        Self { content_type: bundle::LINES_CONTENT_TYPE, ..Self::new(route, first, body) }
    }

    /// Adds a header. Names that start with `x-` but not with `x-seckill-` are the broker's own and are not sent.
    #[must_use]
    pub fn header(mut self, name: &str, value: HeaderValue) -> Self {
        self.headers.insert(name.to_owned(), value);
        self
    }

    /// Takes over all headers of a message that is sent again; same rule for the broker's own.
    #[must_use]
    pub fn headers(mut self, headers: Headers) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Lets the message vanish when no queue wants it: for the events exchange only.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.mandatory = false;
        self
    }

    /// The tag travels as correlation id: a returned message carries it back, and `message_id` stays the caller's.
    fn encode(self, tag: Tag) -> Result<(BasicProperties, Vec<u8>, BasicPublishArguments), RabbitError> {
        short("exchange", &self.exchange)?;
        short("routing key", &self.routing_key)?;
        short("message id", &self.message_id)?;
        fits("body", self.body.len(), BODY_BYTES_MAX)?;
        let mut properties = BasicProperties::default();
        properties
            .with_persistence(true)
            .with_content_type(self.content_type)
            // Where people and tools search a request. The tag is beside it, because a returned message has none of its own.
            .with_message_id(&self.message_id)
            .with_correlation_id(&tag.to_string());
        if !self.headers.is_empty() {
            properties.with_headers(to_table(&self.headers)?);
        }
        let mut to = BasicPublishArguments::default();
        to.exchange(self.exchange).routing_key(self.routing_key).mandatory(self.mandatory);
        Ok((properties, self.body, to))
    }
}

/// What the broker says about publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishEvent {
    /// Stored (or, if it was returned before, not).
    Ack {
        /// The publish, or the last of several.
        tag: Tag,
        /// Also all before it that have no answer yet.
        multiple: bool,
    },
    /// The broker refused a message.
    Nack {
        /// The publish, or the last of several.
        tag: Tag,
        /// Also all before it that have no answer yet.
        multiple: bool,
    },
    /// No queue took it. An ack with the same tag follows and must not count.
    Returned {
        /// The tag of the refused publish.
        tag: Tag,
        /// The broker's words.
        reason: String,
    },
    /// The connection is gone with this reason: no more answers will come. Drop the publisher.
    Closed(String),
}

/// A connection for publishing. Dropping it never waits: the connection says goodbye in the background.
pub struct Publisher {
    link: Link,
    op_timeout_ms: u64,
    last_tag: Tag,
    /// A publish failed or was dropped half-way: whether it counted is unknown, so the count is worthless.
    torn: bool,
}

impl Publisher {
    /// Connects, declares the topology and switches confirms on; each call to the broker has `connect_timeout_ms`.
    pub async fn connect(config: &RabbitConfig) -> Result<Self, RabbitError> {
        Self::connect_with(config, Topology::new(config)).await
    }

    /// The same for a part of the topology.
    pub(crate) async fn connect_with(config: &RabbitConfig, topology: Topology) -> Result<Self, RabbitError> {
        let mut link = connect_and_declare(config, topology, "publisher").await?;
        let node = link.node();
        let link = call("switch confirms on", config.connect_timeout_ms, async move {
            if let Err(error) = link.channel.confirm_select(ConfirmSelectArguments::default()).await {
                let reason = link.why(&error).await.to_string();
                return Err(RabbitError::Refused { what: "switch confirms on".to_owned(), reason });
            }
            Ok(link)
        })
        .await
        .map_err(|error| node.blamed(error))?;
        Ok(Self { link, op_timeout_ms: config.op_timeout_ms, last_tag: 0, torn: false })
    }

    /// Hands a message over for sending, within `op_timeout_ms`, and returns its tag. Bound the number of unanswered
    /// tags yourself ([`super::Confirms::len`]).
    ///
    /// # Errors
    /// [`RabbitError::TooLong`] concerns this message only. After any other error, or if the returned future was dropped
    /// before it was ready, the publisher is of no use: read the events that have arrived, then drop it.
    pub async fn publish(&mut self, message: Outgoing) -> Result<Tag, RabbitError> {
        if self.torn {
            return Err(RabbitError::Closed("an earlier publish was cut short".to_owned()));
        }
        // The library says Ok to a publish on a closed channel, and the broker then kills the connection (loss window 35).
        self.link.check_open()?;
        let tag = self.last_tag + 1;
        let (properties, body, to) = message.encode(tag)?;
        self.torn = true;
        let limit = Duration::from_millis(self.op_timeout_ms);
        // Not a case for `call`: it is a single send into the library's queue and waits only while that is full.
        match timeout(limit, self.link.channel.basic_publish(properties, body, to)).await {
            Ok(Ok(())) => {
                self.torn = false;
                self.last_tag = tag;
                Ok(tag)
            }
            Ok(Err(error)) => Err(RabbitError::Closed(error.to_string())),
            Err(_) => Err(RabbitError::Timeout { what: "publish", limit_ms: self.op_timeout_ms }),
        }
    }

    /// The next event, or `None` at the deadline. Once the connection is gone, every call says so. Cancel-safe.
    pub async fn next_event(&mut self, deadline: std::time::Instant) -> Option<PublishEvent> {
        loop {
            let signal = self.link.next_signal(Instant::from_std(deadline)).await?;
            if let Some(event) = event(signal) {
                return Some(event);
            }
        }
    }

    /// An event that has already arrived.
    pub fn try_event(&mut self) -> Option<PublishEvent> {
        loop {
            let signal = self.link.try_signal()?;
            if let Some(event) = event(signal) {
                return Some(event);
            }
        }
    }

    /// Answers are late: the next connection is to another node, if there is one.
    pub(crate) fn give_up_node(&self) {
        self.link.node().give_up();
    }

    /// Whether publishing still makes sense. `false` is certain, `true` is not: only acks are.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.torn && self.link.check_open().is_ok()
    }
}

fn event(signal: Signal) -> Option<PublishEvent> {
    match signal {
        Signal::Ack { tag, multiple } => Some(PublishEvent::Ack { tag, multiple }),
        Signal::Nack { tag, multiple } => Some(PublishEvent::Nack { tag, multiple }),
        Signal::Returned { tag: Some(tag), reason } => Some(PublishEvent::Returned { tag, reason }),
        // Its ack would count as stored, so nothing that follows on this connection can be believed.
        Signal::Returned { tag: None, .. } => {
            Some(PublishEvent::Closed("a returned message carried no tag".to_owned()))
        }
        Signal::Gone(gone) => Some(PublishEvent::Closed(gone.to_string())),
        // Nothing is consumed here.
        Signal::Delivered(_) => None,
    }
}
