//! One connection with one channel, and everything that shows that it can no longer be used.
//!
//! What the library does not do and this file adds: a deadline on every call, without ever dropping a call half-way (that
//! panics the library's own tasks); the broker's reason when it closes a channel; certain knowledge of the end
//! ([`super::signals`]); and several nodes, of which the next is connected to when one fails.
//!
//! Known rest: if the broker is frozen with the socket full, dropping a link leaves the library's writer task waiting in
//! the socket until the broker wakes or dies. That is one socket a freeze, as a new connection to a frozen broker fails.

use super::config::{BrokerAddress, RabbitConfig};
use super::error::{RabbitError, RabbitResult, broker_words};
use super::signals::{Gone, Reporter, Signal, SignalSender};
use crate::store::address_in_use::AddressInUse;
use crate::store::tls::advised;
use amqprs::channel::Channel;
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::tls::TlsAdaptor;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

/// How long a call whose caller has stopped waiting may go on in the background before it is dropped after all.
const ABANDONED_CALL_MS: u64 = 30_000;
/// How often `is_open` is checked while waiting; only a second safety net under the reporters.
const CHECK_MS: u64 = 1_000;
/// How long the broker's reason may lag behind the failure of the call it is about.
const REASON_WAIT_MS: u64 = 250;
/// Reply codes about a name or a right: another node would say the same.
const OF_A_NAME: std::ops::RangeInclusive<u16> = 403..=406;
const NOT_OPEN: &str = "it is no longer open";

/// Numbers the links of this process.
static GENERATION: AtomicU64 = AtomicU64::new(1);

/// A connection with one channel.
pub struct Link {
    // Fields drop in this order: first it is seen whether the link had ended, then the channel says goodbye before its connection
    // does.
    watch: EndWatch,
    /// The channel, in the library's terms.
    pub channel: Channel,
    pub(super) connection: Connection,
    /// Differs for every link: a delivery tag means something on its own link only, and on another it would settle
    /// another message.
    pub(super) generation: u64,
    signals: mpsc::UnboundedReceiver<Signal>,
    gone: Option<Gone>,
}

/// A node of the broker, by its place in the list of addresses.
#[derive(Clone)]
pub(super) struct NodeInUse {
    in_use: AddressInUse,
    index: usize,
}

impl NodeInUse {
    /// It failed: the next connection is to another, if there is one.
    pub(super) fn give_up(&self) {
        if self.in_use.give_up(self.index) {
            tracing::warn!("a node of rabbitmq is given up, the next one is tried");
        }
    }

    /// Gives the node up when the error may be its own: it does not answer, or has no part in a majority.
    pub(super) fn blamed(&self, error: RabbitError) -> RabbitError {
        match &error {
            RabbitError::Timeout { .. }
            | RabbitError::Refused { .. }
            | RabbitError::Closed(_)
            | RabbitError::Starved { .. } => self.give_up(),
            RabbitError::Config { .. }
            | RabbitError::Connect { .. }
            | RabbitError::Mismatch { .. }
            | RabbitError::NoQueue { .. }
            | RabbitError::Stale { .. }
            | RabbitError::TooLong { .. } => {}
        }
        error
    }
}

/// Gives the node of a link up that ended by itself.
struct EndWatch {
    node: NodeInUse,
    sender: SignalSender,
    /// The link is about to be closed in order.
    is_expected: bool,
}

impl Drop for EndWatch {
    fn drop(&mut self) {
        if !self.is_expected && self.sender.has_ended() {
            self.node.give_up();
        }
    }
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
    /// Connects and opens the channel: to the node in use, else to the next that answers, each within `connect_timeout_ms`. `role`
    /// shows in the broker's list of connections.
    ///
    /// # Errors
    /// That of the node in use, when none answers.
    pub async fn connect(config: &RabbitConfig, role: &'static str) -> RabbitResult<Self> {
        let mut first = None;
        for node in config.in_use.in_turn() {
            let opening = config.clone();
            let opened = async move { Self::open(&opening, node, role).await };
            match call("open a connection", config.connect_timeout_ms, opened).await {
                Ok(link) => {
                    if config.in_use.switch_to(node) {
                        tracing::warn!(role, "another node of rabbitmq is used");
                    }
                    return Ok(link);
                }
                Err(error) => {
                    if first.is_none() {
                        tracing::debug!(%error, role, "a node of rabbitmq cannot be used");
                    }
                    first = first.or(Some(error));
                }
            }
        }
        Err(first.unwrap_or_else(|| RabbitError::Closed("no address is given".to_owned())))
    }

    /// Connects to a node and opens the channel; run inside [`call`].
    async fn open(config: &RabbitConfig, node: usize, role: &str) -> RabbitResult<Self> {
        config.check()?;
        let address = BrokerAddress::parse(config.urls.get(node).map_or("", String::as_str))?;
        let failed = |error: amqprs::error::Error| RabbitError::Connect {
            address: address.host_and_port(),
            reason: advised("rabbitmq", address.encrypted, &broker_words(&error.to_string())),
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
        let (sender, signals) = SignalSender::new();
        connection.register_callback(sender.callbacks("the network connection ended")).await.map_err(failed)?;
        let channel = connection.open_channel(None).await.map_err(failed)?;
        channel.register_callback(sender.callbacks("the channel ended")).await.map_err(failed)?;
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        let node = NodeInUse { in_use: config.in_use.clone(), index: node };
        let watch = EndWatch { node, sender, is_expected: false };
        Ok(Self { watch, channel, connection, generation, signals, gone: None })
    }

    /// The node that the link is to.
    pub(super) fn node(&self) -> NodeInUse {
        self.watch.node.clone()
    }

    /// The link's end says nothing about its node from now on.
    pub(super) fn expect_end(&mut self) {
        self.watch.is_expected = true;
    }

    /// A reporter into this link's signals, for a consumer.
    pub(super) fn reporter(&self, end: &'static str) -> Reporter {
        self.watch.sender.reporter(end)
    }

    /// Whether the link still seems good. Leaves the signals alone: confirms that came before the end still count.
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
        !self.watch.sender.has_ended() && self.connection.is_open() && self.channel.is_open()
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
            if gone.code.is_some_and(|code| OF_A_NAME.contains(&code)) {
                self.expect_end();
            }
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
