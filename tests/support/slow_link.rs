//! A way to a server on which every answer comes late, as from one that is far away or has little processor time.

use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// Runs until it is dropped; so do the connections through it.
pub struct SlowLink {
    port: u16,
    task: JoinHandle<()>,
}

impl SlowLink {
    /// In front of a port of this machine; what the server says is handed on `delay_ms` after it was said.
    pub async fn before(target: u16, delay_ms: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let task = tokio::spawn(async move {
            let mut pumps = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                pumps.spawn(pump(from_client, to_server, Duration::ZERO));
                pumps.spawn(pump(from_server, to_client, Duration::from_millis(delay_ms)));
            }
        });
        Self { port, task }
    }

    /// The address through it instead of the direct one.
    pub fn url(&self, direct: &str) -> String {
        direct.replace(&format!(":{}/", super::fault_injection::port_of(direct)), &format!(":{}/", self.port))
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// One piece at a time: an answer that is asked for after another waits for its own time.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Duration) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        super::time::time_passes(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)).await;
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
