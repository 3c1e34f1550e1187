//! What the broker sends on a link by itself, out of the library's tasks; and certain knowledge of the link's end.
//!
//! Input: the library's callbacks. Output: [`Signal`]s in the order of arrival. The library's `is_open` can stay true after one of
//! its tasks died, so both callbacks hold a [`Reporter`] whose `Drop` reports: the callbacks live inside those tasks and are
//! dropped with them, however they end.

use amqprs::callbacks::{ChannelCallback, ConnectionCallback};
use amqprs::channel::Channel;
use amqprs::connection::Connection;
use amqprs::consumer::AsyncConsumer;
use amqprs::{Ack, BasicProperties, Cancel, Close, CloseChannel, Deliver, Nack, Return};
use async_trait::async_trait;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;

/// Why a link is gone.
#[derive(Debug, Clone)]
pub struct Gone {
    /// The broker's reply code, when it said one.
    pub(super) code: Option<u16>,
    pub(super) text: String,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What the broker sends on a link by itself, in the order of arrival.
pub enum Signal {
    /// The broker has taken over this publish; with `multiple` all before it, too.
    #[allow(missing_docs, reason = "AMQP's own fields")]
    Ack { tag: u64, multiple: bool },
    /// The broker refuses this publish; with `multiple` all before it, too.
    #[allow(missing_docs, reason = "AMQP's own fields")]
    Nack { tag: u64, multiple: bool },
    /// No queue takes this publish.
    #[allow(missing_docs, reason = "AMQP's own fields")]
    Returned { tag: Option<u64>, reason: String },
    /// A message for the consumer.
    Delivered(Box<(Deliver, BasicProperties, Vec<u8>)>),
    /// The link has ended.
    Gone(Gone),
}

/// Sends signals from inside the library's tasks, and reports their end. The queue has no bound of its own: it holds
/// at most the publishes in the caller's window or the deliveries of the prefetch, and a callback must never wait.
#[derive(Clone)]
pub(super) struct SignalSender {
    signals: mpsc::UnboundedSender<Signal>,
    /// Set with the first report of an end, so that it is known before the signals ahead of it are read.
    ended: Arc<AtomicBool>,
}

impl SignalSender {
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Signal>) {
        let (signals, received) = mpsc::unbounded_channel();
        (Self { signals, ended: Arc::default() }, received)
    }

    /// The callbacks of a task whose end is the end of the link.
    pub(super) fn callbacks(&self, end: &'static str) -> Callbacks {
        Callbacks(self.reporter(end))
    }

    pub(super) fn reporter(&self, end: &'static str) -> Reporter {
        Reporter { sender: self.clone(), end }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

/// The end of a [`SignalSender`] that lives inside one of the library's tasks.
pub(super) struct Reporter {
    sender: SignalSender,
    end: &'static str,
}

impl Reporter {
    pub(super) fn send(&self, signal: Signal) {
        // An error means that the link was dropped: no one reads signals any more.
        drop(self.sender.signals.send(signal));
    }

    fn gone(&self, code: Option<u16>, text: String) {
        self.send(Signal::Gone(Gone { code, text }));
        // After the reason, so that a reader of the flag also finds the reason.
        self.sender.ended.store(true, Ordering::Release);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.gone(None, self.end.to_owned());
    }
}

/// Both callback traits over one reporter. Nothing here may wait: it would hold up the whole connection.
pub(super) struct Callbacks(Reporter);

#[async_trait]
impl ConnectionCallback for Callbacks {
    async fn close(&mut self, _: &Connection, close: Close) -> Result<(), amqprs::error::Error> {
        self.0.gone(Some(close.reply_code()), format!("{} {}", close.reply_code(), close.reply_text()));
        Ok(())
    }
    // The three below never come: the library does not offer these abilities to the broker.
    async fn blocked(&mut self, _: &Connection, _: String) {}
    async fn unblocked(&mut self, _: &Connection) {}
    async fn secret_updated(&mut self, _: &Connection) {}
}

#[async_trait]
impl ChannelCallback for Callbacks {
    async fn close(&mut self, _: &Channel, close: CloseChannel) -> Result<(), amqprs::error::Error> {
        let reason = format!("{} {}", close.reply_code(), close.reply_text());
        self.0.gone(Some(close.reply_code()), reason.clone());
        // An error keeps the library from answering. The answer is of no use, as the whole connection is dropped now, and
        // if that is faster than the answer, the library's task panics.
        Err(amqprs::error::Error::ChannelUseError(reason))
    }

    async fn cancel(&mut self, _: &Channel, cancel: Cancel) -> Result<(), amqprs::error::Error> {
        self.0.gone(None, format!("the broker cancelled consumer {}: was its queue deleted?", cancel.consumer_tag()));
        Ok(())
    }

    async fn flow(&mut self, _: &Channel, active: bool) -> Result<bool, amqprs::error::Error> {
        Ok(active)
    }

    async fn publish_ack(&mut self, _: &Channel, ack: Ack) {
        self.0.send(Signal::Ack { tag: ack.delivery_tag(), multiple: ack.mutiple() });
    }

    async fn publish_nack(&mut self, _: &Channel, nack: Nack) {
        self.0.send(Signal::Nack { tag: nack.delivery_tag(), multiple: nack.multiple() });
    }

    async fn publish_return(&mut self, _: &Channel, ret: Return, properties: BasicProperties, _: Vec<u8>) {
        let tag = properties.correlation_id().and_then(|text| text.parse().ok());
        let reason = format!("{} {}", ret.reply_code(), ret.reply_text());
        self.0.send(Signal::Returned { tag, reason });
    }
}

/// Passes one queue's deliveries on; all queues of a consumer feed the same link. When the broker cancels the consumer or
/// the channel closes, the library drops it, which reports the end to the link.
pub(super) struct Feed(pub(super) Reporter);

#[async_trait]
impl AsyncConsumer for Feed {
    async fn consume(&mut self, _: &Channel, deliver: Deliver, properties: BasicProperties, content: Vec<u8>) {
        self.0.send(Signal::Delivered(Box::new((deliver, properties, content))));
    }
}
