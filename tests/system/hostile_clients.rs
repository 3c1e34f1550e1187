//! Clients that do not read, do not finish, or send too much cost a bounded amount for a bounded time, and are counted by reason (S3).

use crate::support::basics::answer::Answer;
use crate::support::processes::killable::{KillableProcess, ProcessOptions};
use crate::support::world::{World, eventually, pause, run};
use seckill::roles::Role;
use socket2::{Domain, Socket, Type};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream as BlockingStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// How often a port closed a connection for a reason.
async fn closed(api: &KillableProcess, server: &str, reason: &str) -> f64 {
    let name = format!("seckill_http_connections_closed_total{{server=\"{server}\",reason=\"{reason}\"}}");
    api.metric(&name).await.unwrap_or(-1.0)
}

async fn serving(world: &World, sets: &[&str]) -> KillableProcess {
    let api = world.spawn("api", ProcessOptions { sets, ..ProcessOptions::default() });
    api.serves_buyers().await;
    assert_eq!(closed(&api, "public", "pipelined").await, 0.0, "exported from the start");
    api
}

fn public(api: &KillableProcess) -> SocketAddr {
    api.api_url().replace("http://", "").parse().unwrap()
}

fn get(path: &str, more: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: seckill\r\n{more}\r\n").into_bytes()
}

/// Everything until the server closes; a reset is an end, too.
async fn rest_of(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    eventually("the server closes", async || {
        let mut part = [0; 65_536];
        match stream.try_read(&mut part) {
            Ok(0) => true,
            Ok(count) => {
                bytes.extend_from_slice(&part[..count]);
                false
            }
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    })
    .await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A client whose kernel takes little, and that reads nothing.
fn silent(address: SocketAddr, says: &[u8]) -> BlockingStream {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&address.into()).unwrap();
    let mut stream = BlockingStream::from(socket);
    stream.write_all(says).unwrap();
    stream
}

/// Bytes that wait in the kernel to be taken from the server at `address`, the most of one connection.
fn untaken_bytes(address: SocketAddr) -> u64 {
    let port = format!(":{:04X}", address.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().skip(1).map(|row| row.split_whitespace().collect::<Vec<_>>());
    let of_server = rows.filter(|row| row[1].ends_with(&port)).map(|row| row[4].split(':').next().unwrap().to_owned());
    of_server.map(|queue| u64::from_str_radix(&queue, 16).unwrap()).max().unwrap_or(0)
}

#[test]
fn a_client_that_reads_nothing_is_cut_off_and_its_answers_are_not_piled_up() {
    run(async {
        let world = World::with(&[], &[]).await;
        let api = serving(&world, &["http.write_timeout_s=2", "http.keep_alive_s=600"]).await;
        let many = get("/openapi.json", "").repeat(17);
        let clients: Vec<_> = (0..20).map(|_| silent(public(&api), &many)).collect();
        let all = async || closed(&api, "public", "write_timeout").await == 20.0;
        let mut most = 0;
        eventually("all are cut off", async || {
            most = most.max(untaken_bytes(public(&api)));
            all().await
        })
        .await;
        assert!(most < 1 << 20, "{most} bytes for one client");
        // Operators' answers are bounded alike; a buyer beside them is served.
        assert_eq!(Answer::of(world.http.get(format!("{}/v1/sales", api.api_url()))).await.status, 200);
        drop(clients);
        drop(api);
        world.finish().await;
    });
}

#[test]
fn a_head_above_16_kib_is_refused_and_its_connection_closed() {
    run(async {
        let world = World::with(&[], &[]).await;
        let api = serving(&world, &[]).await;
        let large = |path| get(path, &format!("X-Large: {}\r\n", "x".repeat(100_000)));
        let address = public(&api);
        let mut fits = TcpStream::connect(address).await.unwrap();
        let close = format!("Connection: close\r\nX-Large: {}\r\n", "x".repeat(15_000));
        fits.write_all(&get("/v1/sales", &close)).await.unwrap();
        assert!(rest_of(&mut fits).await.starts_with("HTTP/1.1 200"));

        let mut first = TcpStream::connect(address).await.unwrap();
        first.write_all(&large("/v1/sales")).await.unwrap();
        assert!(rest_of(&mut first).await.starts_with("HTTP/1.1 431"));

        let mut second = TcpStream::connect(address).await.unwrap();
        second.write_all(&get("/v1/sales", "")).await.unwrap();
        let mut answer = [0; 12];
        second.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        second.write_all(&large("/v1/sales")).await.unwrap();
        assert!(rest_of(&mut second).await.contains("HTTP/1.1 431"), "on a connection that was served before");
        assert_eq!(closed(&api, "public", "head_too_large").await, 2.0);

        let mut operators = TcpStream::connect(api.admin()).await.unwrap();
        operators.write_all(&large("/livez")).await.unwrap();
        assert!(rest_of(&mut operators).await.starts_with("HTTP/1.1 431"));
        assert_eq!(closed(&api, "admin", "head_too_large").await, 1.0);
        drop(api);
        world.finish().await;
    });
}

#[test]
fn sixteen_requests_may_wait_on_a_connection_and_four_hundred_close_it() {
    run(async {
        let world = World::with(&[], &[]).await;
        let api = serving(&world, &[]).await;
        let mut good = TcpStream::connect(public(&api)).await.unwrap();
        let requests = [get("/v1/sales", "").repeat(16), get("/v1/sales", "Connection: close\r\n")].concat();
        good.write_all(&requests).await.unwrap();
        assert_eq!(rest_of(&mut good).await.matches("HTTP/1.1 200").count(), 17);
        assert_eq!(closed(&api, "public", "pipelined").await, 0.0);

        let mut greedy = TcpStream::connect(public(&api)).await.unwrap();
        greedy.write_all(&get("/v1/sales", "").repeat(400)).await.unwrap();
        assert!(rest_of(&mut greedy).await.matches("HTTP/1.1 200").count() < 400);
        assert_eq!(closed(&api, "public", "pipelined").await, 1.0);
        drop(api);
        world.finish().await;
    });
}

#[test]
fn requests_whose_bodies_come_in_chunks_wait_like_others() {
    run(async {
        let world = World::with(&[], &[]).await;
        let api = serving(&world, &[]).await;
        let post = |more: &str| {
            let head = format!("POST /v1/sales/none/places HTTP/1.1\r\nHost: seckill\r\n{more}");
            format!("{head}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n").into_bytes()
        };
        let mut good = TcpStream::connect(public(&api)).await.unwrap();
        good.write_all(&[post("").repeat(16), post("Connection: close\r\n")].concat()).await.unwrap();
        assert_eq!(rest_of(&mut good).await.matches("HTTP/1.1 401").count(), 17);
        assert_eq!(closed(&api, "public", "pipelined").await, 0.0);

        let mut greedy = TcpStream::connect(public(&api)).await.unwrap();
        greedy.write_all(&post("").repeat(200)).await.unwrap();
        assert!(rest_of(&mut greedy).await.matches("HTTP/1.1 401").count() < 200);
        assert_eq!(closed(&api, "public", "pipelined").await, 1.0);
        drop(api);
        world.finish().await;
    });
}

/// What waits is no head, and no call is under way that could end: only a deadline ends it.
#[test]
fn a_connection_that_is_not_read_behind_an_empty_line_of_a_body_has_a_deadline() {
    run(async {
        let world = World::with(&[Role::Relay], &[]).await;
        let sale = world.sale("paused", 5, Some(1)).await;
        let api = serving(&world, &["http.head_timeout_ms=500", "http.keep_alive_s=3600"]).await;
        let orders = format!("{}/v1/sales/{sale}/orders", api.api_url());
        let bought = world.http.post(orders).bearer_auth(world.access("alice")).json(&serde_json::json!({}));
        let bought = Answer::of(bought).await;
        assert_eq!(bought.status, 202, "{bought:?}");
        // No consumer runs, so the first call lasts while the rest is read.
        let wait = format!("/v1/sales/{sale}/orders/{}?wait=3", bought.text("request_id"));
        let first = get(&wait, &format!("Authorization: Bearer {}\r\n", world.access("alice")));
        let head = "POST /v1/sales/none/places HTTP/1.1\r\nHost: seckill\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunk = [b"186a0\r\n\n\n", &[b'x'; 90_000][..]].concat();
        let mut client = TcpStream::connect(public(&api)).await.unwrap();
        client.write_all(&[&first, head.as_bytes(), &chunk].concat()).await.unwrap();
        let answers = rest_of(&mut client).await;
        assert!(answers.contains("HTTP/1.1 200") && answers.contains("HTTP/1.1 401"), "{answers}");
        assert_eq!(closed(&api, "public", "head_timeout").await, 1.0);
        drop(api);
        let consumer = world.extra_roles(&[Role::Consumer], |_| {});
        world.settled(&sale).await;
        consumer.stop().await;
        world.finish().await;
    });
}

/// Closing with bytes unread, or that are still to come, would reset the connection, and may take the answer back.
#[test]
fn a_client_that_is_refused_before_its_body_may_send_it_and_has_an_orderly_end() {
    run(async {
        let world = World::with(&[], &[]).await;
        let api = serving(&world, &[]).await;
        let head = "POST /v1/sales/none/places HTTP/1.1\r\nHost: seckill\r\nContent-Length: 12000\r\n\r\n";
        // The server waits for a second: a machine that is slower at times tries again.
        eventually("all is sent behind the answer", async || {
            let mut client = TcpStream::connect(public(&api)).await.unwrap();
            client.write_all(head.as_bytes()).await.unwrap();
            let mut answer = [0; 12];
            client.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 401");
            for _ in 0..3 {
                pause().await;
                if client.write_all(&[b'x'; 4_000]).await.is_err() {
                    return false;
                }
            }
            let mut rest = Vec::new();
            client.read_to_end(&mut rest).await.is_ok() && String::from_utf8_lossy(&rest).contains("UNAUTHORIZED")
        })
        .await;
        drop(api);
        world.finish().await;
    });
}

#[test]
fn half_a_second_head_and_what_is_no_http_are_closed_and_counted_and_not_logged() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut api = serving(&world, &["http.head_timeout_ms=500", "http.keep_alive_s=3600"]).await;
        let mut slow = TcpStream::connect(public(&api)).await.unwrap();
        slow.write_all(&get("/v1/sales", "")).await.unwrap();
        let mut answer = [0; 12];
        slow.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        slow.write_all(b"GET /v1/sa").await.unwrap();
        rest_of(&mut slow).await;
        assert_eq!(closed(&api, "public", "head_timeout").await, 1.0);

        for bytes in [
            &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
        ] {
            let mut odd = TcpStream::connect(public(&api)).await.unwrap();
            odd.write_all(bytes).await.unwrap();
            assert!(rest_of(&mut odd).await.starts_with("HTTP/1.1 400"));
        }
        eventually("both are counted", async || closed(&api, "public", "malformed").await == 2.0).await;
        assert_eq!(api.program.terminate().await.0, Some(0));
        let log = api.program.stderr();
        assert!(!log.contains("stream error") && !log.contains("actix_http"), "{log}");
        world.finish().await;
    });
}

#[test]
fn answers_are_counted_by_status_and_code_and_no_cache_keeps_a_problem() {
    run(async {
        let world = World::with(&[Role::Relay, Role::Consumer], &[]).await;
        let sale = world.sale("counted", 10, None).await;
        let api = serving(&world, &[]).await;
        let counted = async |server: &str, status: u16, code: &str| {
            let labels = format!("{{server=\"{server}\",status=\"{status}\",code=\"{code}\"}}");
            api.metric(&format!("seckill_http_answers_total{labels}")).await
        };
        for trouble in [(503, "UNAVAILABLE"), (504, "OUTCOME_UNKNOWN"), (500, "INTERNAL")] {
            assert_eq!(counted("public", trouble.0, trouble.1).await, Some(0.0), "from the start");
        }
        assert_eq!(world.buy_at(&api, sale.as_str(), "alice", None).await, Some(202));
        assert_eq!(counted("public", 202, "none").await, Some(1.0));
        let admin = format!("http://{}", api.admin());
        for (url, server, code) in [
            (format!("{}/nowhere", api.api_url()), "public", "NO_SUCH_ROUTE"),
            (format!("{}/v1/sales/unheard-of", api.api_url()), "public", "P1-S3"),
            (format!("{}/v1/orders", api.api_url()), "public", "UNAUTHORIZED"),
            (format!("{admin}/admin/v1/sales"), "admin", "UNAUTHORIZED"),
        ] {
            let answer = world.http.get(&url).send().await.unwrap();
            let header = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            assert_eq!(header("Cache-Control").as_deref(), Some("no-store"), "{url}");
            assert!(header("Vary").is_some_and(|vary| vary.contains("Accept-Language")), "{url}");
            let status = answer.status().as_u16();
            assert!(answer.text().await.unwrap().contains(code), "{url}");
            assert!(counted(server, status, code).await.is_some_and(|count| count >= 1.0), "{url} {status} {code}");
        }
        assert!(counted("admin", 200, "none").await.is_some_and(|count| count >= 1.0), "probes and scrapes");
        drop(api);
        world.finish().await;
    });
}
