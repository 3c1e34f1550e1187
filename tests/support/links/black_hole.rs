//! A way to a server that can swallow everything the server says, while what is said to the server gets through.

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
    heard: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl BlackHole {
    /// In front of a port of this machine; it swallows nothing yet.
    pub async fn before(target: u16) -> Self {
        Self::of_word(target, None).await
    }

    /// The same, but a connection on which a client has said `word` gets no answer any more.
    pub async fn after_word(target: u16, word: &'static str) -> Self {
        Self::of_word(target, Some(word)).await
    }

    async fn of_word(target: u16, word: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (swallows, heard) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (all, any) = (Arc::clone(&swallows), Arc::clone(&heard));
        let task = tokio::spawn(async move {
            let mut pumps = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                let (all, any, this) = (Arc::clone(&all), Arc::clone(&any), Arc::<AtomicBool>::default());
                let heard_here = Arc::clone(&this);
                pumps.spawn(pump(from_client, to_server, move |said: &[u8]| {
                    if word.is_some_and(|word| says(said, word)) {
                        heard_here.store(true, Ordering::SeqCst);
                        any.store(true, Ordering::SeqCst);
                    }
                    false
                }));
                let swallows = move |_: &[u8]| all.load(Ordering::SeqCst) || this.load(Ordering::SeqCst);
                pumps.spawn(pump(from_server, to_client, swallows));
            }
        });
        Self { port, swallows, heard, task }
    }

    /// The address through it instead of the direct one.
    pub fn url(&self, direct: &str) -> String {
        crate::support::world::fault_injection::through(direct, self.port)
    }

    /// From now on the server's answers get lost, or do so no more.
    pub fn swallow(&self, swallows: bool) {
        self.swallows.store(swallows, Ordering::SeqCst);
    }

    /// Whether a client has said the word.
    pub fn has_heard(&self) -> bool {
        self.heard.load(Ordering::SeqCst)
    }
}

impl Drop for BlackHole {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn says(said: &[u8], word: &str) -> bool {
    said.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Hands on what comes until `swallows` says of a piece that it gets lost.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, swallows: impl Fn(&[u8]) -> bool + Send) {
    let mut buffer = vec![0; 16 * 1024];
    // A connection that has lost bytes stays dumb: what came after the gap would be read as nonsense.
    let mut dumb = false;
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        dumb |= swallows(&buffer[..length]);
        if !dumb && to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
