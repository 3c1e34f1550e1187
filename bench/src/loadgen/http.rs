//! A lean HTTP/1.1 keep-alive client: one connection, one request at a time, one reused buffer.
//!
//! It shares the machine with the servers it measures, so it does per request what must be done and nothing else. After
//! any fault, and when a call is dropped half-way, the connection is closed: no answer is ever taken for another's. That is
//! why it is written by hand; a general client does more for each request.

use super::answer::{ParseError, ResponseHead, parse_head};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

/// A connection unused for this long is checked before it is written to: the server may have closed it meanwhile.
const IDLE_CHECK: Duration = Duration::from_millis(500);
const READ_BYTES: usize = 4096;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Not an address this client can talk to.
    #[error("{0} is not a plain address like http://127.0.0.1:8080")]
    BadUrl(String),
    /// The host has no address.
    #[error("{0} cannot be resolved")]
    Resolve(String),
    /// No connection; nothing was sent.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Host and port.
        address: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// No complete answer in time.
    #[error("no complete answer within {0} ms")]
    TimedOut(u128),
    /// The server closed the connection before the answer was complete.
    #[error("the connection was closed before the answer was complete")]
    Closed,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broken(#[from] std::io::Error),
    /// The answer cannot be read.
    #[error(transparent)]
    Unreadable(#[from] ParseError),
}

impl HttpError {
    /// Whether the server may have received the request. If not, nothing can have happened.
    #[must_use]
    pub const fn may_have_arrived(&self) -> bool {
        match self {
            Self::BadUrl(_) | Self::Resolve(_) | Self::Connect { .. } => false,
            Self::TimedOut(_) | Self::Closed | Self::Broken(_) | Self::Unreadable(_) => true,
        }
    }
}

/// A server, resolved once; when its name has several addresses, connections take them in turn. Clones are cheap.
#[derive(Debug, Clone)]
pub struct ServerAddress {
    host: Arc<str>,
    addresses: Arc<[SocketAddr]>,
    turn: Arc<AtomicUsize>,
}

impl ServerAddress {
    /// Resolves `http://host[:port][/]` within `within`.
    ///
    /// # Errors
    /// [`HttpError::BadUrl`] or [`HttpError::Resolve`].
    pub async fn resolve(url: &str, within: Duration) -> Result<Self, HttpError> {
        let bad = || HttpError::BadUrl(url.to_owned());
        let host = url.strip_prefix("http://").ok_or_else(bad)?.trim_end_matches('/');
        if host.is_empty() || host.bytes().any(|b| b == b'/' || b == b'@' || b == b'?' || !b.is_ascii_graphic()) {
            return Err(bad());
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        let address = if has_port { host.to_owned() } else { format!("{host}:80") };
        let found = timeout(within, tokio::net::lookup_host(address)).await;
        let addresses: Arc<[SocketAddr]> = match found {
            Ok(Ok(found)) => found.collect(),
            Ok(Err(_)) | Err(_) => return Err(HttpError::Resolve(host.to_owned())),
        };
        Ok(Self { host: Arc::from(host), addresses, turn: Arc::default() })
    }

    /// All addresses, in the order a new connection tries them: the next one in turn first.
    fn addresses(&self) -> Vec<SocketAddr> {
        let mut addresses = self.addresses.to_vec();
        let first = self.turn.fetch_add(1, Relaxed).checked_rem(addresses.len()).unwrap_or(0);
        addresses.rotate_left(first);
        addresses
    }

    /// The value of the `Host` header.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }
}

/// One answer; its bytes live in the connection's buffer until the next call.
#[derive(Debug)]
pub struct ServerResponse<'a> {
    head: ResponseHead,
    bytes: &'a [u8],
}

impl ServerResponse<'_> {
    /// The status.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.head.status
    }

    /// The body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.bytes.get(self.head.head_bytes..).unwrap_or_default()
    }

    /// `Retry-After`, seconds.
    #[must_use]
    pub const fn retry_after_s(&self) -> Option<u64> {
        self.head.retry_after_s
    }

    /// `Location`, when it is a path on this server.
    #[must_use]
    pub fn location(&self) -> Option<&str> {
        let value = self.bytes.get(self.head.location.clone()?)?;
        std::str::from_utf8(value)
            .ok()
            .filter(|path| path.starts_with('/') && path.bytes().all(|b| b.is_ascii_graphic()))
    }
}

/// A keep-alive connection that is (re)made when it is needed.
#[derive(Debug)]
pub struct Connection {
    target: ServerAddress,
    deadline: Duration,
    source: Option<Ipv4Addr>,
    stream: Option<TcpStream>,
    used: Instant,
    made: u64,
    inbox: Vec<u8>,
}

impl Connection {
    /// A connection to `target`, not made yet. `deadline` bounds connecting, and again writing and reading together.
    #[must_use]
    pub fn new(target: ServerAddress, deadline: Duration) -> Self {
        let inbox = Vec::with_capacity(READ_BYTES);
        Self { target, deadline, source: None, stream: None, used: Instant::now(), made: 0, inbox }
    }

    /// The same from this address, so that more connections can be open than one address has ports.
    #[must_use]
    pub const fn from(mut self, source: Ipv4Addr) -> Self {
        self.source = Some(source);
        self
    }

    /// Sends one complete request and reads its answer.
    ///
    /// # Errors
    /// [`HttpError`]; the next call makes a new connection.
    pub async fn call(&mut self, request: &[u8]) -> Result<ServerResponse<'_>, HttpError> {
        // Taken out, so that a fault below or a dropped call leaves no half-used connection behind.
        let mut stream = match self.stream.take() {
            Some(stream) if self.is_fresh(&stream) => stream,
            Some(_) | None => self.connect().await?,
        };
        self.inbox.clear();
        let head = timeout(self.deadline, converse(&mut stream, request, &mut self.inbox))
            .await
            .map_err(|_| HttpError::TimedOut(self.deadline.as_millis()))??;
        // The server sent more bytes than one answer has.
        if !head.closes && self.inbox.len() == head.total_bytes() {
            self.stream = Some(stream);
            self.used = Instant::now();
        }
        let bytes = self.inbox.get(..head.total_bytes()).unwrap_or_default();
        Ok(ServerResponse { head, bytes })
    }

    /// Makes the connection now, so that the first call does not pay for it.
    ///
    /// # Errors
    /// [`HttpError::Connect`].
    pub async fn warm(&mut self) -> Result<(), HttpError> {
        if self.stream.is_none() {
            self.stream = Some(self.connect().await?);
            self.used = Instant::now();
        }
        Ok(())
    }

    /// Connections made so far. More than one means that the server closes them, or that they broke.
    #[must_use]
    pub const fn made(&self) -> u64 {
        self.made
    }

    fn is_fresh(&self, stream: &TcpStream) -> bool {
        if self.used.elapsed() < IDLE_CHECK {
            return true;
        }
        // An idle connection has nothing to read; bytes or an end mean it is of no more use.
        matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    async fn connect(&mut self) -> Result<TcpStream, HttpError> {
        let failed = |source| HttpError::Connect { address: self.target.host.to_string(), source };
        let stream = timeout(self.deadline, open(self.source, &self.target.addresses()))
            .await
            .map_err(|_| failed(std::io::ErrorKind::TimedOut.into()))?
            .map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        self.made += 1;
        Ok(stream)
    }
}

async fn open(source: Option<Ipv4Addr>, addresses: &[SocketAddr]) -> std::io::Result<TcpStream> {
    let Some(source) = source else { return TcpStream::connect(addresses).await };
    let first = addresses.first().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    let socket = TcpSocket::new_v4()?;
    socket.bind((source, 0).into())?;
    socket.connect(*first).await
}

async fn converse(stream: &mut TcpStream, request: &[u8], inbox: &mut Vec<u8>) -> Result<ResponseHead, HttpError> {
    stream.write_all(request).await?;
    let head = loop {
        receive(stream, inbox).await?;
        if let Some(head) = parse_head(inbox)? {
            break head;
        }
    };
    while inbox.len() < head.total_bytes() {
        receive(stream, inbox).await?;
    }
    Ok(head)
}

async fn receive(stream: &mut TcpStream, inbox: &mut Vec<u8>) -> Result<(), HttpError> {
    inbox.reserve(READ_BYTES);
    if stream.read_buf(inbox).await? == 0 { Err(HttpError::Closed) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn addresses_of_a_name_take_turns_and_a_dead_one_is_passed_over() {
        let listener = || async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            (listener.local_addr().unwrap(), listener)
        };
        let ((first, first_open), (second, second_open), (dead, closed)) =
            (listener().await, listener().await, listener().await);
        drop(closed);
        let target =
            ServerAddress { host: "name".into(), addresses: [first, second, dead].into(), turn: Arc::default() };
        for _ in 0..3 {
            Connection::new(target.clone(), Duration::from_secs(5)).warm().await.unwrap();
        }
        // The third one's turn was the dead address; the next in the list has it.
        for open in [&first_open, &second_open, &first_open] {
            timeout(Duration::from_secs(5), open.accept()).await.unwrap().unwrap();
        }
    }
}
