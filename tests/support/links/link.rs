//! One TCP link under given conditions: what goes through it can be slowed, held back, lost, cut, reset, or led to another server.
//! It counts what such a way makes dear: connections and round trips.
//!
//! Knows no protocol. The port stays the same for the life of the value; a link that is cut refuses connections as a dead
//! server would, because nothing listens. It ends with the value, and so do the connections through it.

use super::conditions::{Direction, LinkConditions};
use super::pump::{Pump, Reply};
use crate::support::basics::time::time_passes;
use seckill::dev::ports::free_port;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A link listens on its port within this time.
const LISTENS_WITHIN: Duration = Duration::from_secs(30);

/// What becomes of a connection whose client has said a word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trap {
    /// The reply is thrown away, and the connection reset; once.
    DropsReply,
    /// Everything that the server says on it from then on gets lost.
    Silences,
}

/// What all connections of a link share.
#[derive(Default)]
pub(super) struct Shared {
    target: AtomicU16,
    pub(super) conditions: watch::Sender<LinkConditions>,
    /// What is searched for in the client's bytes, empty: any bytes; and what happens then.
    pub(super) armed: Mutex<Option<(Vec<u8>, Trap)>>,
    pub(super) fired: AtomicU64,
    open: AtomicU64,
    connections: AtomicU64,
    pub(super) trips: AtomicU64,
    pub(super) passed_bytes: AtomicU64,
}

/// A link to one server.
pub struct Link {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Link {
    /// Listens on a free loopback port and forwards to `target`, a port of this machine.
    pub async fn before(target: u16) -> Self {
        let port = free_port().expect("a port");
        let shared = Arc::new(Shared { target: AtomicU16::new(target), ..Shared::default() });
        let listener = listen(port).await;
        Self { port, accepting: tokio::spawn(accept(shared.clone(), port, listener)), shared }
    }

    /// The same; what the server says is handed on `delay_ms` later, as from one that is far away or has little processor time.
    pub async fn slow(target: u16, delay_ms: u64) -> Self {
        let link = Self::before(target).await;
        link.slows_new_connections(delay_ms);
        link
    }

    /// The same, but a connection on which a client has said `word` gets no answer any more.
    pub async fn silent_after(target: u16, word: &str) -> Self {
        let link = Self::before(target).await;
        link.arm(word.as_bytes(), Trap::Silences);
        link
    }

    /// The address through it instead of the direct one.
    pub fn url(&self, direct: &str) -> String {
        super::through(direct, self.port)
    }

    /// Where clients connect.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Everything passes, nothing is armed.
    pub fn heal(&self) {
        self.disarm();
        self.change(LinkConditions::clear);
    }

    /// Changes the conditions of running and future connections.
    pub fn change(&self, change: impl FnOnce(&mut LinkConditions)) {
        self.shared.conditions.send_modify(change);
    }

    /// Sends a RST on both sides of every open connection. New ones pass.
    pub fn reset(&self) {
        self.change(|conditions| conditions.generation += 1);
    }

    /// From now on the server's answers get lost, or do so no more. A connection that has lost one stays silent.
    pub fn loses_answers(&self, yes: bool) {
        self.change(|conditions| conditions.to_client.lost = yes);
    }

    /// What the server says comes this late, on connections from now on; those that there are stay as they are.
    pub fn slows_new_connections(&self, delay_ms: u64) {
        self.change(|conditions| conditions.new_ones_delay_ms = delay_ms);
    }

    /// From now on it leads to another server, as a DNS entry or a virtual address may. Connections to the one before end.
    pub fn move_to(&self, target: u16) {
        self.shared.target.store(target, SeqCst);
        self.reset();
    }

    /// The next request with `pattern` in it is executed, its reply thrown away, and the connection reset.
    pub fn drop_next_reply(&self, pattern: &[u8]) {
        self.arm(pattern, Trap::DropsReply);
    }

    fn arm(&self, pattern: &[u8], trap: Trap) {
        *self.shared.armed.lock().expect("not poisoned") = Some((pattern.to_vec(), trap));
    }

    /// Takes [`Link::drop_next_reply`] back; false when it has been used up.
    pub fn disarm(&self) -> bool {
        self.shared.armed.lock().expect("not poisoned").take().is_some()
    }

    /// How often what was searched for came by.
    pub fn fired(&self) -> u64 {
        self.shared.fired.load(SeqCst)
    }

    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.shared.open.load(SeqCst)
    }

    /// Connections so far.
    pub fn connections(&self) -> u64 {
        self.shared.connections.load(SeqCst)
    }

    /// Times so far that the server answered after the client had said something.
    pub fn trips(&self) -> u64 {
        self.shared.trips.load(SeqCst)
    }

    /// Bytes handed over so far, both directions.
    pub fn passed_bytes(&self) -> u64 {
        self.shared.passed_bytes.load(SeqCst)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.accepting.abort();
        self.reset();
    }
}

/// A port that is ours may still be in its last connection's hands, but not for ever.
async fn listen(port: u16) -> TcpListener {
    let until = Instant::now() + LISTENS_WITHIN;
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => return listener,
            Err(error) => assert!(Instant::now() < until, "no link can listen on port {port}: {error}"),
        }
        time_passes(5).await;
    }
}

async fn accept(link: Arc<Shared>, port: u16, listener: TcpListener) {
    let mut conditions = link.conditions.subscribe();
    let mut listener = Some(listener);
    loop {
        if conditions.borrow_and_update().cut {
            listener = None;
        }
        let Some(open) = &listener else {
            let Ok(_) = conditions.wait_for(|conditions| !conditions.cut).await else { return };
            listener = Some(listen(port).await);
            continue;
        };
        tokio::select! {
            accepted = open.accept() => if let Ok((client, _)) = accepted {
                tokio::spawn(serve(link.clone(), client));
            },
            changed = conditions.changed() => if changed.is_err() { return },
        }
    }
}

/// A connection from its start to its end.
async fn serve(link: Arc<Shared>, client: TcpStream) {
    let mut conditions = link.conditions.subscribe();
    let generation = conditions.borrow_and_update().generation;
    // After the generation: a move that comes in between ends this connection.
    let target = (Ipv4Addr::LOCALHOST, link.target.load(SeqCst));
    let Ok(server) = TcpStream::connect(target).await else {
        drop(client.set_zero_linger());
        return;
    };
    link.open.fetch_add(1, SeqCst);
    link.connections.fetch_add(1, SeqCst);
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let reply = Reply::default();
    let mut up = Pump::new(&link, Direction::ToServer, &reply, (from_client, to_server));
    let mut down = Pump::new(&link, Direction::ToClient, &reply, (from_server, to_client));
    let reset = {
        let ends = async {
            let ends = conditions.wait_for(|conditions| conditions.cut || conditions.generation != generation).await;
            ends.is_ok_and(|conditions| !conditions.cut)
        };
        // Ends at the first error, or when both halves have ended well: a half-closed connection finishes its other half.
        let pumps = async { tokio::try_join!(up.run(), down.run()).is_err() };
        tokio::select! {
            broken = pumps => broken,
            () = reply.dropped() => true,
            reset = ends => reset,
        }
    };
    if reset {
        for end in [up.to, down.to] {
            drop(end.as_ref().set_zero_linger());
            // Its drop would say goodbye in order.
            end.forget();
        }
    }
    link.open.fetch_sub(1, SeqCst);
}
