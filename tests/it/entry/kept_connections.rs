//! A refusal costs the client its purchase, not its connection: under load each new connection waits in the accept queue.

use crate::support::buyers::raw_http::{RawAnswer, connect, purchase_head, send_on};
use crate::support::world::{World, run, time_passes};
use seckill::roles::Role;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const BODY: &str = "Content-Length: 14\r\n\r\n{\"quantity\":1}";

/// Requests with a body that is not read: the request, and the status of its refusal.
fn refused(world: &World, sale: &str) -> Vec<(String, u16)> {
    let access = world.access("alice");
    let post = |path: &str, head: &str| format!("POST /v1/sales/{path} HTTP/1.1\r\nHost: seckill\r\n{head}{BODY}");
    let bearer = format!("Authorization: Bearer {access}\r\n");
    let json = "Content-Type: application/json\r\n";
    vec![
        (post(&format!("{sale}/orders"), json), 401),
        (post(&format!("{sale}/orders"), &format!("{bearer}Content-Type: text/plain\r\n")), 415),
        (post("a.b/orders", &format!("{bearer}{json}")), 400),
        (purchase_head(world, sale, "alice", &format!("Idempotency-Key: x\r\nIdempotency-Key: x\r\n{BODY}")), 400),
        (post(&format!("{sale}/tokens"), json), 401),
        (post("a.b/tokens", &bearer), 400),
        (post("none/tokens", &bearer), 404),
        (post(&format!("{sale}/places"), &bearer), 404),
    ]
}

async fn buys(world: &World, stream: &mut TcpStream, sale: &str, user: &str) -> RawAnswer {
    send_on(stream, purchase_head(world, sale, user, BODY).as_bytes()).await
}

#[test]
fn a_refusal_before_the_body_keeps_the_connection() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &["http.body_timeout_ms=60000"]).await;
        let sale = world.sale("kept", 100, None).await;
        let mut stream = connect(&world).await;
        for (n, (request, status)) in refused(&world, sale.as_str()).into_iter().enumerate() {
            let answer = send_on(&mut stream, request.as_bytes()).await;
            assert_eq!(answer.status, status, "{request}: {answer:?}");
            assert!(!answer.head.contains("connection: close"), "{request}: {answer:?}");
            // The body in a packet of its own.
            let (head, body) = request.split_at(request.len() - 14);
            stream.write_all(head.as_bytes()).await.unwrap();
            time_passes(50).await;
            assert_eq!(send_on(&mut stream, body.as_bytes()).await.status, status, "{request}");
            let bought = buys(&world, &mut stream, sale.as_str(), &format!("buyer-{n}")).await;
            assert_eq!(bought.status, 202, "after {status}: {bought:?}");
        }
        drop(stream);
        world.finish().await;
    });
}

#[test]
fn a_full_process_refuses_and_keeps_the_connection() {
    run(async {
        let world = World::with(&[Role::Api], &["p1_entry.in_flight_max=1", "http.body_timeout_ms=60000"]).await;
        let sale = world.sale("full", 100, None).await;
        let mut streams = Vec::new();
        for _ in 0..40 {
            streams.push(connect(&world).await);
        }
        // Refusals of a full process come by chance, so there are many, and each connection is used again.
        for round in 0..3 {
            let users = (0..streams.len()).map(|n| format!("{round}-{n}")).collect::<Vec<_>>();
            let calls = streams.iter_mut().zip(&users).map(|(stream, user)| buys(&world, stream, sale.as_str(), user));
            for answer in futures::future::join_all(calls).await {
                assert!(matches!(answer.status, 202 | 410 | 503), "{answer:?}");
                assert!(!answer.head.contains("connection: close"), "{answer:?}");
            }
        }
        drop(streams);
        world.stop().await;
    });
}

#[test]
fn a_body_that_never_comes_delays_its_refusal_and_ends_the_connection() {
    run(async {
        let world = World::with(&[Role::Api], &["http.body_timeout_ms=200"]).await;
        world.sale("never", 1, None).await;
        for path in ["orders", "tokens"] {
            let head = format!("POST /v1/sales/never/{path} HTTP/1.1\r\nHost: seckill\r\nContent-Length: 14\r\n\r\n");
            let answer = send_on(&mut connect(&world).await, head.as_bytes()).await;
            assert_eq!(answer.status, 401, "{answer:?}");
            assert!(answer.head.contains("connection: close"), "{answer:?}");
        }
        let slow = purchase_head(&world, "never", "alice", "Content-Length: 14\r\n\r\n");
        let answer = send_on(&mut connect(&world).await, slow.as_bytes()).await;
        assert_eq!(answer.status, 408, "{answer:?}");
        world.stop().await;
    });
}
