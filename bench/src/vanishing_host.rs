//! A way to a server whose host can vanish without a word. What stands then stays open and dumb: nothing comes any more, and
//! what is sent is still acknowledged, as by a proxy that lost its other side. What the vanished host held is gone with it:
//! the server closes those connections, rolls back and gives back. New connections go through: the host's successor.
//!
//! For `recovery_host` and the tests. Nothing is stored; a crash of this process ends the connections.

use std::io;
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

const PIECE_BYTES: usize = 16 * 1024;

/// Runs until it is dropped; so do the connections through it.
pub struct VanishingHost {
    port: u16,
    vanished: watch::Sender<()>,
    task: JoinHandle<()>,
}

impl VanishingHost {
    /// In front of a port of this machine.
    ///
    /// # Errors
    /// No port to listen on.
    pub async fn before(target: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let vanished = watch::Sender::new(());
        let task = tokio::spawn(serve(listener, target, vanished.subscribe()));
        Ok(Self { port, vanished, task })
    }

    /// Where it listens.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Every connection that stands now goes dumb.
    pub fn vanish(&self) {
        self.vanished.send_replace(());
    }
}

impl Drop for VanishingHost {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, target: u16, vanished: watch::Receiver<()>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let mut vanished = vanished.clone();
        vanished.mark_unchanged();
        let Ok(server) = TcpStream::connect(("127.0.0.1", target)).await else { continue };
        // Small answers must not wait for each other; a purchase waits for several of them.
        drop((client.set_nodelay(true), server.set_nodelay(true)));
        connections.spawn(connect(client, server, vanished));
        while connections.try_join_next().is_some() {}
    }
}

async fn connect(mut client: TcpStream, mut server: TcpStream, mut vanished: watch::Receiver<()>) {
    tokio::select! {
        // However they end, both sides see it.
        _ended = copy_bidirectional(&mut client, &mut server) => return,
        _changed = vanished.changed() => drop(server),
    }
    let mut lost = vec![0; PIECE_BYTES];
    while let Ok(1..) = client.read(&mut lost).await {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    async fn echo() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (mut from, mut to) = stream.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut from, &mut to).await });
            }
        });
        port
    }

    async fn answers(stream: &mut TcpStream) {
        stream.write_all(b"ping").await.unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"ping");
    }

    #[tokio::test]
    async fn what_stands_goes_dumb_and_stays_open_and_what_is_new_goes_through() {
        let host = VanishingHost::before(echo().await).await.unwrap();
        let mut old = TcpStream::connect(("127.0.0.1", host.port())).await.unwrap();
        answers(&mut old).await;
        host.vanish();
        old.write_all(b"lost").await.unwrap();
        let mut new = TcpStream::connect(("127.0.0.1", host.port())).await.unwrap();
        answers(&mut new).await;
        // Whatever would come on the old one had its chance by now: the new one was asked and answered after it.
        assert_eq!(old.try_read(&mut [0; 4]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        host.vanish();
        let mut newest = TcpStream::connect(("127.0.0.1", host.port())).await.unwrap();
        answers(&mut newest).await;
    }
}
