//! A way to a server on which every answer comes late, as from one that is far away or has little processor time. It counts what
//! such a way makes dear: connections and round trips.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Runs until it is dropped; so do the connections through it.
pub struct SlowLink {
    port: u16,
    counts: Arc<Counts>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct Counts {
    /// Of connections from now on.
    delay_ms: AtomicU64,
    connections: AtomicUsize,
    trips: AtomicUsize,
}

impl SlowLink {
    /// In front of a port of this machine; what the server says is handed on `delay_ms` after it was said.
    pub async fn before(target: u16, delay_ms: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let counts = Arc::<Counts>::default();
        counts.delay_ms.store(delay_ms, Ordering::SeqCst);
        let counted = counts.clone();
        let task = tokio::spawn(async move {
            let mut pumps = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
                let delay = Duration::from_millis(counted.delay_ms.load(Ordering::SeqCst));
                counted.connections.fetch_add(1, Ordering::SeqCst);
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let asked = Arc::new(AtomicBool::new(false));
                let (answered, counted) = (asked.clone(), counted.clone());
                pumps.spawn(pump(from_client, to_server, Duration::ZERO, move || asked.store(true, Ordering::SeqCst)));
                pumps.spawn(pump(from_server, to_client, delay, move || {
                    let trips = usize::from(answered.swap(false, Ordering::SeqCst));
                    counted.trips.fetch_add(trips, Ordering::SeqCst);
                }));
            }
        });
        Self { port, counts, task }
    }

    /// The address through it instead of the direct one.
    pub fn url(&self, direct: &str) -> String {
        crate::support::world::fault_injection::through(direct, self.port)
    }

    /// What the server says on connections from now on is handed on this late; those that there are stay as they are.
    pub fn slow_down(&self, delay_ms: u64) {
        self.counts.delay_ms.store(delay_ms, Ordering::SeqCst);
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.counts.connections.load(Ordering::SeqCst)
    }

    /// Times so far that the server answered after the client had said something.
    pub fn trips(&self) -> usize {
        self.counts.trips.load(Ordering::SeqCst)
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One piece at a time: an answer that is asked for after another waits for its own time.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration, came: impl Fn() + Send) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        came();
        crate::support::basics::time::time_passes(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
