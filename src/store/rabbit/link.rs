//! One connection with one channel, and everything that shows that it can no longer be used.
//!
//! What the library does not do and this file adds: a deadline on every call, without ever dropping a call half-way (that
//! panics the library's own tasks); the broker's reason when it closes a channel; and certain knowledge of the end. The
//! library's `is_open` can stay true after one of its tasks died, so both callbacks hold a [`Reporter`] whose `Drop`
//! reports: the callbacks live inside those tasks and are dropped with them, however they end.
//!
//! Known rest: if the broker is frozen with the socket full, dropping a link leaves the library's writer task waiting in
//! the socket until the broker wakes or dies. That is one socket a freeze, as a new connection to a frozen broker fails.

use super::config::{BrokerAddress, RabbitConfig};
use super::error::{RabbitError, RabbitResult};
use crate::store::tls::advised;
use amqprs::callbacks::{ChannelCallback, ConnectionCallback};
use amqprs::channel::Channel;
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::tls::TlsAdaptor;
use amqprs::{Ack, BasicProperties, Cancel, Close, CloseChannel, Deliver, Nack, Return};
use async_trait::async_trait;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a call whose caller has stopped waiting may go on in the background before it is dropped after all.
const ABANDONED_CALL_MS: u64 = 30_000;
/// How often `is_open` is checked while waiting; only a second safety net under the reporters.
const CHECK_MS: u64 = 1_000;
/// How long the broker's reason may lag behind the failure of the call it is about.
const REASON_WAIT_MS: u64 = 250;
const NOT_OPEN: &str = "it is no longer open";

/// Numbers the links of this process.
static GENERATION: AtomicU64 = AtomicU64::new(1);

/// Why a link is gone.
#[derive(Debug, Clone)]
pub struct Gone {
    /// The broker's reply code, when it said one.
    pub(super) code: Option<u16>,
    text: String,
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
struct SignalSender {
    signals: mpsc::UnboundedSender<Signal>,
    /// Set with the first report of an end, so that it is known before the signals ahead of it are read.
    ended: Arc<AtomicBool>,
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

/// A connection with one channel.
pub struct Link {
    // Fields drop in this order: the channel says goodbye before its connection does.
    /// The channel, in the library's terms.
    pub channel: Channel,
    pub(super) connection: Connection,
    /// Differs for every link: a delivery tag means something on its own link only, and on another it would settle
    /// another message.
    pub(super) generation: u64,
    signals: mpsc::UnboundedReceiver<Signal>,
    sender: SignalSender,
    gone: Option<Gone>,
}

/// Runs a library call to its end in a task of its own and waits at most `limit_ms` for it. `future` must own what it needs.
pub(super) async fn call<T, F>(what: &'static str, limit_ms: u64, future: F) -> RabbitResult<T>
where
    T: Send + 'static,
    F: Future<Output = RabbitResult<T>> + Send + 'static,
{
    let abandoned = Duration::from_millis(limit_ms + ABANDONED_CALL_MS);
    let task = tokio::spawn(timeout(abandoned, future));
    match timeout(Duration::from_millis(limit_ms), task).await {
        Ok(Ok(Ok(result))) => result,
        Ok(Ok(Err(_))) | Err(_) => Err(RabbitError::Timeout { what, limit_ms }),
        Ok(Err(join)) => Err(RabbitError::Closed(format!("{what}: the client library failed: {join}"))),
    }
}

impl Link {
    /// Connects and opens the channel, within `connect_timeout_ms`. `role` shows in the broker's list of connections.
    pub async fn connect(config: &RabbitConfig, role: &'static str) -> RabbitResult<Self> {
        let opening = config.clone();
        call("open a connection", config.connect_timeout_ms, async move { Self::open(&opening, role).await }).await
    }

    /// Connects and opens the channel; run inside [`call`]. `role` shows in the broker's list of connections.
    pub(super) async fn open(config: &RabbitConfig, role: &str) -> RabbitResult<Self> {
        config.check()?;
        let address = BrokerAddress::parse(&config.url)?;
        let failed = |error: amqprs::error::Error| RabbitError::Connect {
            address: address.host_and_port(),
            reason: advised("rabbitmq", address.encrypted, &error.to_string()),
        };
        let name = format!("{} {role} {}", config.prefix, std::process::id());
        let mut arguments = OpenConnectionArguments::new(&address.host, address.port, &address.user, &address.password)
            .virtual_host(&address.vhost)
            .connection_name(&name)
            .heartbeat(config.heartbeat_s)
            .finish();
        if let Some(trust) = &config.trust {
            // The brackets of an IPv6 address belong to the URL, not to the name in the certificate.
            let name = address.host.trim_matches(['[', ']']).to_owned();
            arguments.tls_adaptor(TlsAdaptor::new(trust.connector(), name));
        }
        let connection = Connection::open(&arguments).await.map_err(failed)?;
        let (outgoing, signals) = mpsc::unbounded_channel();
        let sender = SignalSender { signals: outgoing, ended: Arc::default() };
        let reporter = |end| Callbacks(Reporter { sender: sender.clone(), end });
        connection.register_callback(reporter("the network connection ended")).await.map_err(failed)?;
        let channel = connection.open_channel(None).await.map_err(failed)?;
        channel.register_callback(reporter("the channel ended")).await.map_err(failed)?;
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        Ok(Self { channel, connection, generation, signals, sender, gone: None })
    }

    /// A reporter into this link's signals, for a consumer.
    pub(super) fn reporter(&self, end: &'static str) -> Reporter {
        Reporter { sender: self.sender.clone(), end }
    }

    /// Whether the link still looks good. Leaves the signals alone: confirms that came before the end still count.
    ///
    /// # Errors
    /// [`RabbitError::Closed`] with the reason, as far as it is known, when it does not.
    pub(super) fn check_open(&self) -> RabbitResult<()> {
        match &self.gone {
            Some(gone) => Err(RabbitError::Closed(gone.to_string())),
            None if self.is_open() => Ok(()),
            None => Err(RabbitError::Closed(NOT_OPEN.to_owned())),
        }
    }

    fn is_open(&self) -> bool {
        !self.sender.ended.load(Ordering::Acquire) && self.connection.is_open() && self.channel.is_open()
    }

    /// The next signal, or `None` at the deadline. Once the link is gone, every further call says so. Cancel-safe.
    pub async fn next_signal(&mut self, deadline: Instant) -> Option<Signal> {
        loop {
            if let Some(gone) = &self.gone {
                return Some(Signal::Gone(gone.clone()));
            }
            let check = Instant::now() + Duration::from_millis(CHECK_MS);
            // The link holds a sender itself, so the queue never ends.
            if let Ok(Some(signal)) = timeout_at(deadline.min(check), self.signals.recv()).await {
                return Some(self.note(signal));
            }
            if self.check_open().is_err() {
                self.gone = Some(Gone { code: None, text: NOT_OPEN.to_owned() });
            } else if Instant::now() >= deadline {
                return None;
            }
        }
    }

    /// A signal that has already arrived.
    pub fn try_signal(&mut self) -> Option<Signal> {
        if let Some(gone) = &self.gone {
            return Some(Signal::Gone(gone.clone()));
        }
        self.signals.try_recv().ok().map(|signal| self.note(signal))
    }

    fn note(&mut self, signal: Signal) -> Signal {
        if let Signal::Gone(gone) = &signal {
            self.gone = Some(gone.clone());
        }
        signal
    }

    /// Why a call just failed: the broker's words if it closed the channel, else the library's.
    pub(super) async fn why(&mut self, error: &amqprs::error::Error) -> Gone {
        let deadline = Instant::now() + Duration::from_millis(REASON_WAIT_MS);
        loop {
            match self.next_signal(deadline).await {
                Some(Signal::Gone(gone)) => return gone,
                Some(Signal::Ack { .. } | Signal::Nack { .. } | Signal::Returned { .. } | Signal::Delivered(_)) => {}
                None => return Gone { code: None, text: error.to_string() },
            }
        }
    }
}

/// Both callback traits over one reporter. Nothing here may wait: it would hold up the whole connection.
struct Callbacks(Reporter);

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
