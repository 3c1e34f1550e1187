//! One name in front of several servers: what a DNS entry or a virtual address is, with a port for a name.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Runs until it is dropped; so do the connections through it.
pub struct MovingName {
    port: u16,
    target: Arc<AtomicU16>,
    moved: Arc<Notify>,
    task: JoinHandle<()>,
}

impl MovingName {
    /// In front of a port of this machine.
    pub async fn before(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (target, moved) = (Arc::new(AtomicU16::new(target)), Arc::new(Notify::new()));
        let (at, leaves) = (Arc::clone(&target), Arc::clone(&moved));
        let task = tokio::spawn(async move {
            let mut pumps = tokio::task::JoinSet::new();
            while let Ok((mut client, _)) = listener.accept().await {
                let Ok(mut server) = TcpStream::connect(("127.0.0.1", at.load(Ordering::SeqCst))).await else {
                    continue;
                };
                let leaves = Arc::clone(&leaves);
                pumps.spawn(async move {
                    let left = leaves.notified();
                    tokio::select! {
                        _ended = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                        () = left => {}
                    }
                });
            }
        });
        Self { port, target, moved, task }
    }

    /// The address through it instead of the direct one.
    pub fn url(&self, direct: &str) -> String {
        crate::support::world::fault_injection::through(direct, self.port)
    }

    /// From now on it means another server. Connections to the one before end.
    pub fn move_to(&self, target: u16) {
        self.target.store(target, Ordering::SeqCst);
        self.moved.notify_waiters();
    }
}

impl Drop for MovingName {
    fn drop(&mut self) {
        self.task.abort();
    }
}
