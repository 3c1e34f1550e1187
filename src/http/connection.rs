//! One connection of an HTTP server, with bounds on what it may cost.
//!
//! Input: the bytes of a client, and the answers to it. Output: the same bytes, until the client breaks a bound: then the
//! connection is closed and counted by reason. A crash leaves an unanswered connection.
//!
//! By hand, because actix-http has no deadline for a client that does not take its answers or finish the head of a second request,
//! takes heads of 128 KB and keeps their memory, and reads as many waiting requests as fit in that. The time of an idle connection is
//! here, too: actix-http's runs from when an answer is ready, and would end one that its client is still to take.

use super::client_deadline::{Awaited, ClientDeadline};
use super::framing::{Framing, TooMuch, WAITING_REQUESTS_MAX};
use metrics::Counter;
use std::cell::RefCell;
use std::io::{Error, ErrorKind, Result};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What a client gets whose head is too large.
const TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// What is read and thrown away of such a client, bytes, and for how long: closing with bytes unread would take the answer back.
const THROWN_AWAY_BYTES_MAX: usize = 256 << 10;
const THROWN_AWAY_FOR: Duration = Duration::from_secs(1);

/// The bounds of a port's connections.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionBounds {
    /// Longest time in which a client takes nothing of its answers.
    pub write_timeout: Duration,
    /// Longest time for the head of a request that is not the first.
    pub head_timeout: Duration,
    /// How long a connection without a request is kept once it had one.
    pub keep_alive: Duration,
    /// Longest body, bytes.
    pub body_bytes_max: usize,
}

/// Connections that were closed because of their client, by reason.
pub(super) struct ClosedConnections {
    write_timeout: Counter,
    head_timeout: Counter,
    head_too_large: Counter,
    pipelined: Counter,
    malformed: Counter,
}

impl ClosedConnections {
    /// All are exported from the start.
    pub(super) fn of(server: &'static str) -> Self {
        let counter = |reason: &'static str| {
            let counter =
                metrics::counter!("seckill_http_connections_closed_total", "server" => server, "reason" => reason);
            counter.increment(0);
            counter
        };
        Self {
            write_timeout: counter("write_timeout"),
            head_timeout: counter("head_timeout"),
            head_too_large: counter("head_too_large"),
            pipelined: counter("pipelined"),
            malformed: counter("malformed"),
        }
    }

    /// Bytes came that are no HTTP request.
    pub(super) fn count_malformed(&self) {
        self.malformed.increment(1);
    }
}

/// What a connection and the calls that it carries know of each other.
pub(super) struct ConnectionState {
    pub(super) framing: RefCell<Framing>,
    /// Waits until less is in hand.
    paused: RefCell<Option<Waker>>,
}

impl ConnectionState {
    pub(super) fn wake(&self) {
        if let Some(waker) = self.paused.take() {
            waker.wake();
        }
    }
}

/// A client's connection.
pub(super) struct BoundedStream {
    stream: TcpStream,
    state: Rc<ConnectionState>,
    bounds: ConnectionBounds,
    closed: Rc<ClosedConnections>,
    deadline: ClientDeadline,
    /// Refused, or idle for too long: what comes is thrown away.
    refused: bool,
    thrown_away_bytes: usize,
}

impl BoundedStream {
    pub(super) fn new(stream: TcpStream, bounds: ConnectionBounds, closed: Rc<ClosedConnections>) -> Self {
        let framing = RefCell::new(Framing::new(bounds.body_bytes_max));
        let state = Rc::new(ConnectionState { framing, paused: RefCell::default() });
        Self {
            stream,
            state,
            bounds,
            closed,
            deadline: ClientDeadline::default(),
            refused: false,
            thrown_away_bytes: 0,
        }
    }

    pub(super) const fn state(&self) -> &Rc<ConnectionState> {
        &self.state
    }

    /// Starts the time for `awaited`, if it does not run yet, and has its end wake the connection.
    fn await_client(&mut self, awaited: Awaited, context: &mut Context<'_>) -> Result<()> {
        let time = match awaited {
            Awaited::Taken => self.bounds.write_timeout,
            Awaited::Head => self.bounds.head_timeout,
            Awaited::Next => self.bounds.keep_alive,
            Awaited::Gone => THROWN_AWAY_FOR,
        };
        self.deadline.begin(awaited, time);
        self.in_time(context)
    }

    /// An error when the client's time is over. A client that did not begin another request is left without one: to what reads, the
    /// connection has ended.
    fn in_time(&mut self, context: &mut Context<'_>) -> Result<()> {
        let Poll::Ready(missed) = self.deadline.poll_missed(context) else { return Ok(()) };
        match missed {
            Awaited::Taken => self.closed.write_timeout.increment(1),
            Awaited::Head => self.closed.head_timeout.increment(1),
            Awaited::Next | Awaited::Gone => {}
        }
        self.refused = true;
        if missed == Awaited::Next { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
    }

    /// What the client has to do next, but for taking answers. Nothing while a call is under way; for the first head actix-http has a
    /// deadline.
    fn next_awaited(&self) -> Option<Awaited> {
        let framing = self.state.framing.borrow();
        match (framing.has_call(), framing.is_full() || framing.is_amid_head()) {
            (true, _) => None,
            (false, true) => Some(Awaited::Head),
            (false, false) => framing.has_served().then_some(Awaited::Next),
        }
    }

    /// Nothing more comes or goes for now, and what has come is under way: starts the timer for what the client has to do next.
    fn await_next(&mut self, context: &mut Context<'_>) -> Result<()> {
        // The time of a client that has to take answers first runs already.
        if self.refused || self.deadline.awaits(Awaited::Taken) {
            return Ok(());
        }
        match self.next_awaited() {
            Some(awaited) => self.await_client(awaited, context),
            None => {
                self.deadline.end();
                Ok(())
            }
        }
    }

    /// Says that the head is too large, unless the client does not take its answers, and waits for its end.
    fn refuse_head(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.closed.head_too_large.increment(1);
        self.refused = true;
        let awaits_taken = self.deadline.awaits(Awaited::Taken);
        self.deadline.end();
        if awaits_taken {
            return Poll::Ready(Ok(()));
        }
        drop(Pin::new(&mut self.stream).poll_write(context, TOO_LARGE));
        drop(Pin::new(&mut self.stream).poll_shutdown(context));
        self.await_client(Awaited::Gone, context)?;
        self.throw_away(context)
    }

    /// Reads of a client that was refused as if it had closed, once it has or was waited for.
    fn throw_away(&mut self, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut part = [0; 4096];
        while self.deadline.runs() && self.thrown_away_bytes < THROWN_AWAY_BYTES_MAX {
            let mut rest = ReadBuf::new(&mut part);
            match Pin::new(&mut self.stream).poll_read(context, &mut rest) {
                Poll::Pending if self.in_time(context).is_ok() => return Poll::Pending,
                Poll::Ready(Ok(())) if !rest.filled().is_empty() => self.thrown_away_bytes += rest.filled().len(),
                Poll::Pending | Poll::Ready(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for BoundedStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        if !this.refused {
            this.in_time(context)?;
        }
        if this.refused {
            return this.throw_away(context);
        }
        if this.state.framing.borrow().is_full() {
            // A call that begins or ends wakes it. Where none is under way and none begins, what waits are empty lines of a body: the
            // time for a head ends the connection.
            this.state.paused.replace(Some(context.waker().clone()));
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        if Pin::new(&mut this.stream).poll_read(context, buffer)?.is_pending() {
            this.state.framing.borrow_mut().drained();
            return Poll::Pending;
        }
        this.deadline.done(Awaited::Next);
        let read = buffer.filled().get(before..).unwrap_or_default();
        let taken = this.state.framing.borrow_mut().take(read);
        match taken {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TooMuch::Head) => {
                buffer.set_filled(before);
                this.refuse_head(context)
            }
            Err(TooMuch::Requests) => {
                this.closed.pipelined.increment(1);
                this.refused = true;
                let words = format!("more than {WAITING_REQUESTS_MAX} requests wait on a connection");
                Poll::Ready(Err(Error::other(words)))
            }
        }
    }
}

impl AsyncWrite for BoundedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_write(context, bytes) {
            Poll::Pending => {
                this.await_client(Awaited::Taken, context)?;
                Poll::Pending
            }
            Poll::Ready(written) => {
                this.deadline.done(Awaited::Taken);
                Poll::Ready(written)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        // actix-http is here each time it has done what it can, and all that there was to write is written.
        this.await_next(context)?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
