//! The proxy does to a connection what it says, or the faults made with it prove nothing.

use super::files::Folder;
use super::raw_commands::try_redis;
use super::support::links::conditions::OneWayConditions;
use super::support::links::link::Link;
use super::time::{eventually, run};
use seckill::dev::{ports::free_port, redis};
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Longer than anything takes here that is not held up.
const AT_ONCE: Duration = Duration::from_millis(400);

/// A server that says everything back, and a proxy in front of it.
async fn echo() -> Link {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.into_split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    Link::before(port).await
}

async fn connect(proxy: &Link) -> TcpStream {
    TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap()
}

/// Sends something and gets it back.
async fn says(stream: &mut TcpStream, text: &[u8]) -> Duration {
    let begun = Instant::now();
    stream.write_all(text).await.unwrap();
    let mut got = vec![0; text.len()];
    stream.read_exact(&mut got).await.unwrap();
    assert_eq!(got, text);
    begun.elapsed()
}

#[test]
fn everything_passes_and_a_half_closed_connection_finishes_its_other_half() {
    run(async {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        says(&mut stream, &vec![7; 300_000]).await;
        stream.write_all(b"last words").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, b"last words");
        eventually("the connection over", async || proxy.open() == 0).await;
        assert_eq!(proxy.passed_bytes(), 2 * 300_010);
    });
}

#[test]
fn a_slow_link_takes_its_time_in_the_direction_asked_for() {
    run(async {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        proxy.change(|conditions| {
            conditions.to_client = OneWayConditions { delay_ms: 300, ..OneWayConditions::default() }
        });
        assert!(says(&mut stream, b"late").await >= Duration::from_millis(300));
        proxy.change(|conditions| {
            conditions.to_client = OneWayConditions::default();
            conditions.to_server = OneWayConditions { bytes_per_s: 20_000, ..OneWayConditions::default() };
        });
        assert!(says(&mut stream, &[1; 10_000]).await >= Duration::from_millis(450));
        proxy.heal();
        assert!(says(&mut stream, &[1; 10_000]).await < AT_ONCE);
    });
}

#[test]
fn a_one_way_partition_holds_one_direction_and_then_hands_over_what_waited() {
    run(async {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        proxy.change(|conditions| conditions.to_client.black_hole = true);
        stream.write_all(b"hello").await.unwrap();
        eventually("the request at the server", async || proxy.passed_bytes() == 5).await;
        let mut got = [0; 5];
        assert!(timeout(AT_ONCE, stream.read_exact(&mut got)).await.is_err(), "{got:?}");
        proxy.heal();
        stream.read_exact(&mut got).await.unwrap();
        assert_eq!(&got, b"hello");
        proxy.change(|conditions| conditions.to_server.black_hole = true);
        stream.write_all(b"again").await.unwrap();
        assert!(timeout(AT_ONCE, stream.read_exact(&mut got)).await.is_err());
        assert_eq!(proxy.passed_bytes(), 10, "the request never left");
    });
}

#[test]
fn a_cut_link_closes_and_refuses_until_it_is_healed() {
    run(async {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        says(&mut stream, b"hello").await;
        proxy.change(|conditions| conditions.cut = true);
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0, "closed in order");
        eventually("new connections refused", async || {
            let refused = TcpStream::connect(("127.0.0.1", proxy.port())).await;
            refused.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
        })
        .await;
        proxy.heal();
        eventually("new connections pass", async || TcpStream::connect(("127.0.0.1", proxy.port())).await.is_ok())
            .await;
        says(&mut connect(&proxy).await, b"hello").await;
    });
}

#[test]
fn a_reset_ends_what_is_open_and_lets_new_ones_pass() {
    run(async {
        let proxy = echo().await;
        let mut stream = connect(&proxy).await;
        says(&mut stream, b"hello").await;
        proxy.reset();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        says(&mut connect(&proxy).await, b"hello").await;
    });
}

#[test]
fn a_request_whose_reply_is_dropped_was_executed_by_redis_once() {
    run(async {
        let folder = Folder::new("proxied-redis");
        let server = redis::start(folder.path(), free_port().unwrap()).await.unwrap();
        let proxy = Link::before(server.port()).await;
        let through = format!("redis://127.0.0.1:{}", proxy.port());
        let count = async || try_redis(&server.url(), &["GET", "n"]).await.unwrap();

        proxy.drop_next_reply(b"INCR");
        assert_eq!(try_redis(&through, &["PING"]).await.unwrap(), "PONG", "others pass");
        assert_eq!(proxy.fired(), 0);
        let error = try_redis(&through, &["INCR", "n"]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
        assert_eq!((count().await, proxy.fired()), ("1".into(), 1), "executed, and no client got it");
        assert_eq!(try_redis(&through, &["INCR", "n"]).await.unwrap(), 2, "only the next one");

        // In two pieces, and the pattern between them.
        proxy.drop_next_reply(b"INCR");
        let mut stream = connect(&proxy).await;
        let (passed, piece) = (proxy.passed_bytes(), b"*2\r\n$4\r\nIN");
        stream.write_all(piece).await.unwrap();
        let arrived = passed + piece.len() as u64;
        eventually("the first piece at the server", async || proxy.passed_bytes() == arrived).await;
        stream.write_all(b"CR\r\n$1\r\nn\r\n").await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert_eq!((count().await, proxy.fired()), ("3".into(), 2));

        proxy.drop_next_reply(b"");
        assert!(try_redis(&through, &["DECR", "n"]).await.is_err(), "any request");
        assert_eq!((count().await, proxy.disarm()), ("2".into(), false));
    });
}
