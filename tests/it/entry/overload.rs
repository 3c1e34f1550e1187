//! Clients that are slow on purpose hold up no other client, and a client above the limit is refused at once (A9, A10).

use crate::support::basics::answer::Answer;
use crate::support::buyers::raw_http::purchase_head;
use crate::support::world::{World, run};
use seckill::roles::Role;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[test]
fn bodies_that_never_come_hold_no_place() {
    run(async {
        let set = ["p1_entry.in_flight_max=1", "http.body_timeout_ms=60000"];
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &set).await;
        let sale = world.sale("lazy", 10, None).await;
        let address = world.api.strip_prefix("http://").unwrap();
        let mut lazy = Vec::new();
        for n in 0..50 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = purchase_head(&world, sale.as_str(), &format!("lazy-{n}"), "Content-Length: 14\r\n\r\n{\"quan");
            stream.write_all(head.as_bytes()).await.unwrap();
            lazy.push(stream);
        }
        for n in 0..5 {
            assert_eq!(world.buy(&sale, &format!("quick-{n}"), 1, None).await.status, 202);
        }
        // And one of them was under way all the time.
        lazy[7].write_all(b"tity\":1}").await.unwrap();
        let mut answer = [0; 12];
        lazy[7].read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 202");
        drop(lazy);
        world.finish().await;
    });
}

#[test]
fn silent_connections_keep_no_buyer_out_for_longer_than_a_head_may_take() {
    run(async {
        let set =
            ["http.workers_count=1", "http.connections_max=8", "http.head_timeout_ms=1500", "http.keep_alive_s=1"];
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &set).await;
        let sale = world.sale("silent", 10, None).await;
        let address = world.api.strip_prefix("http://").unwrap();
        let mut silent = Vec::new();
        for n in 0..32 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if n % 2 == 0 {
                stream.write_all(b"POST /v1/sales/silent/orders HTTP/1.1\r\nHost: sec").await.unwrap();
            }
            silent.push(stream);
        }
        // A client of its own: the world's may have a connection from before.
        let fresh = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(60)).build().unwrap();
        let begun = Instant::now();
        let buy = fresh.post(format!("{}/v1/sales/{sale}/orders", world.api)).bearer_auth(world.access("patient"));
        let answer = Answer::of(buy.json(&serde_json::json!({}))).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        assert!(begun.elapsed() >= Duration::from_millis(1_000), "the bound held him back: {:?}", begun.elapsed());
        for stream in &mut silent {
            let mut rest = Vec::new();
            let closed = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut rest)).await;
            assert!(closed.is_ok(), "a silent connection is closed");
        }
        world.finish().await;
    });
}

#[test]
fn a_process_that_takes_in_its_rate_says_when_to_come_back() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &["p1_entry.global_rate_per_s=3"]).await;
        let sale = world.sale("rated-all", 1_000, Some(1)).await;
        let mut refused = 0;
        let begun = Instant::now();
        for n in 0..30 {
            let answer = world.buy(&sale, &format!("buyer-{n}"), 1, None).await;
            if answer.status != 202 {
                assert!(answer.code() == "RATE_LIMITED" && (1..=3).contains(&answer.retry_after_s()), "{answer:?}");
                refused += 1;
            }
        }
        assert!(30 - refused <= 3 + 3 * (1 + begun.elapsed().as_secs()), "{refused} of 30 refused");
        assert!(30 - refused >= 3, "a second's rate at least is taken in: {refused} of 30 refused");
        world.finish().await;
    });
}
