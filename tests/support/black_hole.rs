//! A way to the broker that can swallow everything the broker says, while what is said to the broker gets through.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Runs until it is dropped; so do the connections through it.
pub struct BlackHole {
    port: u16,
    swallows: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl BlackHole {
    /// In front of a port of this machine; it swallows nothing yet.
    pub async fn before(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let swallows = Arc::new(AtomicBool::new(false));
        let switch = Arc::clone(&swallows);
        let task = tokio::spawn(async move {
            let mut pumps = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                pumps.spawn(pump(from_client, to_server, Arc::new(AtomicBool::new(false))));
                pumps.spawn(pump(from_server, to_client, Arc::clone(&switch)));
            }
        });
        Self { port, swallows, task }
    }

    /// The address through it instead of the direct one.
    pub fn url(&self, direct: &str) -> String {
        super::fault_injection::through(direct, self.port)
    }

    /// From now on the broker's answers get lost, or do so no more.
    pub fn swallow(&self, swallows: bool) {
        self.swallows.store(swallows, Ordering::SeqCst);
    }
}

impl Drop for BlackHole {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, swallows: Arc<AtomicBool>) {
    let mut buffer = vec![0; 16 * 1024];
    // A connection that has lost bytes stays dumb: what came after the gap would be read as nonsense.
    let mut dumb = false;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        dumb |= swallows.load(Ordering::SeqCst);
        if !dumb && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
