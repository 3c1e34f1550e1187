//! A connection that was given up sends nothing any more: not what the kernel still has, either.

use crate::support::world::fault_injection::{port_of, through};
use crate::support::world::{World, eventually, run};
use fred::types::Value;
use seckill::config::{Redis, ServerUrl};
use seckill::store::redis::RedisStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;

/// The way's own buffer: what the client sends more stays with the client's kernel.
const BUFFER: u32 = 4 * 1024;
/// More than the way takes, less than a kernel takes from a process.
const VALUE: usize = 60 * 1024;
const VALUES: usize = 4;

/// A way to Redis that can stop reading what clients say.
struct StoppableWay {
    port: u16,
    stops: watch::Sender<bool>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    /// Read after it had stopped, of connections from before.
    late_bytes: AtomicUsize,
    /// Connections from before that have ended.
    ended: AtomicUsize,
}

impl StoppableWay {
    fn before(target: u16) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(BUFFER).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(64).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stops, stopped) = watch::channel(false);
        let counts = Arc::<Counts>::default();
        let counted = counts.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                counted.connections.fetch_add(1, SeqCst);
                let server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                let ((from_client, mut to_client), (mut from_server, to_server)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(async move { copy(&mut from_server, &mut to_client).await });
                tokio::spawn(forward(from_client, to_server, stopped.clone(), counted.clone()));
            }
        });
        Self { port, stops, counts }
    }
}

async fn forward(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut stopped: watch::Receiver<bool>,
    counts: Arc<Counts>,
) {
    let mut buffer = vec![0; 1024];
    let (is_from_before, mut was_stopped) = (!*stopped.borrow(), false);
    loop {
        let read = tokio::select! {
            biased;
            stops = stopped.wait_for(|stops| *stops) => {
                assert!(stops.is_ok());
                None
            }
            read = from.read(&mut buffer) => Some(read),
        };
        match read {
            None => {
                was_stopped = is_from_before;
                stopped.wait_for(|stops| !*stops).await.unwrap();
            }
            Some(Ok(length @ 1..)) if was_stopped => _ = counts.late_bytes.fetch_add(length, SeqCst),
            Some(Ok(length @ 1..)) => to.write_all(&buffer[..length]).await.unwrap(),
            Some(Ok(_) | Err(_)) => break,
        }
    }
    counts.ended.fetch_add(usize::from(was_stopped), SeqCst);
}

#[test]
fn what_the_kernel_has_of_a_connection_that_was_given_up_is_never_sent() {
    run(async {
        let world = World::with(&[], &[]).await;
        let direct = world.settings.redis.url.expose();
        let way = StoppableWay::before(port_of(direct));
        let settings = Redis {
            url: ServerUrl::new(through(direct, way.port)),
            command_timeout_ms: 200,
            ..world.settings.redis.clone()
        };
        let store = RedisStore::start(&settings, None).expect("a handle");
        assert!(store.wait_connected(Duration::from_secs(10)).await, "redis connects");
        let before = way.counts.connections.load(SeqCst);
        way.stops.send(true).unwrap();
        let set = |n: usize| {
            let (key, value) = (format!("{}given-up-{n}", world.settings.redis.prefix), "x".repeat(VALUE));
            store.command("SET", 0, vec![Value::from(key), Value::from(value)])
        };
        for answer in futures::future::join_all((0..VALUES).map(set)).await {
            assert!(answer.is_err(), "no server answers: {answer:?}");
        }
        eventually("given up", async || {
            assert!(set(VALUES).await.is_err(), "no server answers");
            way.counts.connections.load(SeqCst) > before
        })
        .await;
        way.stops.send(false).unwrap();
        eventually("the old one has ended", async || way.counts.ended.load(SeqCst) > 0).await;
        let late = way.counts.late_bytes.load(SeqCst);
        assert!(late <= 4 * BUFFER as usize, "{late} bytes were sent after the connection was given up");
        eventually("whole again", async || set(0).await.is_ok()).await;
        store.quit().await;
        world.finish().await;
    });
}
