//! One TCP link under given conditions: what goes through it can be slowed, held back, cut, reset, or answered into the void.
//!
//! Knows no protocol. The port stays the same for the life of the value; a link that is cut refuses connections as a dead
//! server would, because nobody listens.

use super::link_conditions::{Direction, LinkConditions, OneWayConditions};
use super::time::time_passes;
use seckill::dev::ports::free_port;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A server that has not answered a request by then will not be waited for: the client is cut off all the same.
const REPLY_WAIT: Duration = Duration::from_millis(200);
/// After the first reply, what else was on its way may come too: replies are pipelined.
const REPLY_REST_MS: u64 = 20;
/// A throttled link hands over this many slices a second.
const SLICES_PER_S: usize = 20;

struct Link {
    target: SocketAddr,
    conditions: watch::Sender<LinkConditions>,
    /// What to look for in the client's bytes; empty: any bytes.
    armed: Mutex<Option<Vec<u8>>>,
    fired: AtomicU64,
    open: AtomicU64,
    passed_bytes: AtomicU64,
}

/// A proxy in front of one server, for one client process.
pub struct Proxy {
    port: u16,
    link: Arc<Link>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free loopback port and forwards to `target_port`.
    pub async fn start(target_port: u16) -> Self {
        let port = free_port().expect("a port");
        let link = Arc::new(Link {
            target: (Ipv4Addr::LOCALHOST, target_port).into(),
            conditions: watch::Sender::new(LinkConditions::default()),
            armed: Mutex::default(),
            fired: AtomicU64::new(0),
            open: AtomicU64::new(0),
            passed_bytes: AtomicU64::new(0),
        });
        let listener = listen(port).await;
        Self { port, accepting: tokio::spawn(accept(link.clone(), port, listener)), link }
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
        self.link.conditions.send_modify(change);
    }

    /// Sends a RST on both sides of every open connection. New ones pass.
    pub fn reset(&self) {
        self.change(|conditions| conditions.generation += 1);
    }

    /// The next request with `pattern` in it is executed, its reply thrown away, and the connection reset.
    pub fn drop_next_reply(&self, pattern: &[u8]) {
        *self.link.armed.lock().expect("not poisoned") = Some(pattern.to_vec());
    }

    /// Takes [`Proxy::drop_next_reply`] back; false when it has been used up.
    pub fn disarm(&self) -> bool {
        self.link.armed.lock().expect("not poisoned").take().is_some()
    }

    /// How many replies were thrown away so far.
    pub fn fired(&self) -> u64 {
        self.link.fired.load(SeqCst)
    }

    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.link.open.load(SeqCst)
    }

    /// Bytes handed over so far, both directions.
    pub fn passed_bytes(&self) -> u64 {
        self.link.passed_bytes.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.reset();
    }
}

/// A port that is ours may still be in its last connection's hands.
async fn listen(port: u16) -> TcpListener {
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
            Ok(listener) => return listener,
            Err(_) => time_passes(5).await,
        }
    }
}

async fn accept(link: Arc<Link>, port: u16, listener: TcpListener) {
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
async fn serve(link: Arc<Link>, client: TcpStream) {
    let mut conditions = link.conditions.subscribe();
    let generation = conditions.borrow_and_update().generation;
    let Ok(server) = TcpStream::connect(link.target).await else {
        drop(client.set_zero_linger());
        return;
    };
    link.open.fetch_add(1, SeqCst);
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

/// The answer to the request that was looked for.
#[derive(Default)]
struct Reply {
    unwanted: AtomicBool,
    asked: Notify,
    came: Notify,
}

impl Reply {
    /// Ends when the request was sent and the server had its chance to execute it.
    async fn dropped(&self) {
        self.asked.notified().await;
        drop(timeout(REPLY_WAIT, self.came.notified()).await);
        time_passes(REPLY_REST_MS).await;
    }
}

struct Pump<'a> {
    link: &'a Link,
    direction: Direction,
    reply: &'a Reply,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    conditions: watch::Receiver<LinkConditions>,
    /// The end of what went before, where a pattern may have begun.
    tail: Vec<u8>,
}

impl<'a> Pump<'a> {
    fn new(link: &'a Link, direction: Direction, reply: &'a Reply, ends: (OwnedReadHalf, OwnedWriteHalf)) -> Self {
        let conditions = link.conditions.subscribe();
        Self { link, direction, reply, from: ends.0, to: ends.1, conditions, tail: Vec::new() }
    }

    async fn run(&mut self) -> std::io::Result<()> {
        let mut buffer = vec![0; 65_536];
        loop {
            let count = self.from.read(&mut buffer).await?;
            let direction = self.direction;
            let passable = |conditions: &LinkConditions| !conditions.lane(direction).black_hole;
            let lane = match self.conditions.wait_for(passable).await {
                Ok(conditions) => conditions.lane(direction),
                Err(_closed) => return Ok(()),
            };
            if count == 0 {
                return self.to.shutdown().await;
            }
            let chunk = &buffer[..count];
            match direction {
                Direction::ToServer => self.look_for_pattern(chunk),
                Direction::ToClient if self.reply.unwanted.load(SeqCst) => {
                    self.reply.came.notify_one();
                    continue;
                }
                Direction::ToClient => {}
            }
            self.hand_over(chunk, lane).await?;
            self.link.passed_bytes.fetch_add(count as u64, SeqCst);
        }
    }

    async fn hand_over(&mut self, chunk: &[u8], lane: OneWayConditions) -> std::io::Result<()> {
        if lane.delay_ms > 0 {
            time_passes(lane.delay_ms).await;
        }
        if lane.bytes_per_s == 0 {
            return self.to.write_all(chunk).await;
        }
        for slice in chunk.chunks((lane.bytes_per_s / SLICES_PER_S).max(1)) {
            // The link may have healed meanwhile, then the rest goes at once.
            if self.conditions.borrow().lane(self.direction).bytes_per_s > 0 {
                time_passes(1000 / SLICES_PER_S as u64).await;
            }
            self.to.write_all(slice).await?;
        }
        Ok(())
    }

    /// From here on the server's bytes are unwanted, if this is the request that was looked for.
    fn look_for_pattern(&mut self, chunk: &[u8]) {
        let mut armed = self.link.armed.lock().expect("not poisoned");
        let Some(pattern) = armed.as_deref() else {
            self.tail.clear();
            return;
        };
        self.tail.extend_from_slice(chunk);
        if pattern.is_empty() || self.tail.windows(pattern.len()).any(|window| window == pattern) {
            *armed = None;
            self.link.fired.fetch_add(1, SeqCst);
            self.reply.unwanted.store(true, SeqCst);
            self.reply.asked.notify_one();
        } else {
            let keep = self.tail.len().min(pattern.len() - 1);
            self.tail.drain(..self.tail.len() - keep);
        }
    }
}
