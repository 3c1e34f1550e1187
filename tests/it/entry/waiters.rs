//! Long polls and event streams are bounded apart from buyers (A13): who finds no place gets an answer at once. A crowd of them costs
//! Redis next to nothing until its orders land.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::raw_http::connect;
use crate::support::world::{World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn above_the_bound_a_poll_gets_the_present_status_and_a_stream_503() {
    run(async {
        let world = World::with(&[Role::Api], &["http.waiters_max=1"]).await;
        let sale = world.sale("waiters", 5, None).await;
        let alice = world.bought(&sale, "alice").await.to_string();
        let bob = world.bought(&sale, "bob").await.to_string();
        let follow = |user: &str, id: &str| {
            world.request(Method::GET, &format!("/v1/sales/{sale}/orders/{id}/events"), user).send()
        };
        let mut stream = follow("alice", &alice).await.unwrap();
        assert_eq!(stream.status(), 200);
        // What was sent is read: closing with unread bytes would reset the connection, which no server can miss.
        assert!(stream.chunk().await.unwrap().is_some_and(|event| event.starts_with(b"event: status")));

        // No place is left. Buyers are served as before.
        let poll = world.status(&sale, "bob", &bob, 30).await;
        assert_eq!((poll.status, poll.text("status").as_str()), (200, "QUEUED"), "{poll:?}");
        assert!((5..=10).contains(&poll.retry_after_s()), "{poll:?}");
        let refused = follow("bob", &bob).await.unwrap();
        let again_s: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(refused.status() == 503 && (5..=10).contains(&again_s), "{refused:?}");
        assert!(refused.text().await.unwrap().contains("P1-S8"));
        let status = world.status(&sale, "bob", &bob, 0).await;
        assert_eq!((status.status, status.headers.get("retry-after")), (200, None), "it did not want to wait");
        assert_eq!(world.buy(&sale, "carol", 1, None).await.status, 202);

        drop(stream);
        eventually("the place of a lost connection is free", async || {
            follow("bob", &bob).await.is_ok_and(|stream| stream.status() == 200)
        })
        .await;
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        assert_eq!(world.settled(&sale).await.counted.ordered, 3);
        // Its record is marked after the commit; until then a stream would have to wait for it, and need a place.
        eventually("it is known to be final", async || {
            world.status(&sale, "bob", &bob, 0).await.text("status") == "CONFIRMED"
        })
        .await;
        assert_eq!(follow("bob", &bob).await.unwrap().status(), 200);
        rest.finish().await;
        world.stop().await;
    });
}

/// Waiting for a second heartbeat that it does not take would keep its place for twenty seconds.
#[test]
fn who_closes_half_its_connection_is_gone_before_the_next_heartbeat() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("half", 5, None).await;
        let id = world.bought(&sale, "alice").await;
        let (access, mut stream) = (world.access("alice"), connect(&world).await);
        let head = format!("GET /v1/sales/{sale}/orders/{id}/events HTTP/1.1\r\nHost: seckill\r\n");
        stream.write_all(format!("{head}Authorization: Bearer {access}\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = vec![0; 4096];
        let mut bytes = 0;
        while !String::from_utf8_lossy(&answer[..bytes]).contains("QUEUED") {
            bytes += stream.read(&mut answer[bytes..]).await.unwrap();
        }
        stream.shutdown().await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert!(!rest.contains("waiting"), "the server talked on: {rest:?}");
        drop(stream);
        world.stop().await;
    });
}

/// Reads of records in the ledger of a sale, by all who are connected.
async fn records_read(world: &World, sale: &SaleId, window: Duration) -> usize {
    let ledger = format!("\"HMGET\" \"{}\"", world.servers.redis.keys.ledger(0, sale));
    let lines = RawRedis::of(world).await.monitored(window).await;
    let fields = lines.iter().filter_map(|line| Some(line.split_once(&ledger)?.1.matches(" \"").count()));
    fields.sum()
}

#[test]
fn who_waits_reads_its_record_when_its_order_may_have_landed() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("patient", 100, None).await;
        let mut ids = Vec::new();
        for buyer in 0..40 {
            ids.push(world.bought(&sale, &format!("b{buyer}")).await.to_string());
        }
        let polls = ids.iter().enumerate().map(async |(buyer, id)| {
            loop {
                let answer = world.status(&sale, &format!("b{buyer}"), id, 20).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                if answer.text("status") == "CONFIRMED" {
                    return;
                }
            }
        });
        let lands = async {
            // By the clock there would be eighty in any such second. Each has to know first how far orders landed.
            eventually("hardly any reads", async || records_read(&world, &sale, Duration::from_secs(1)).await < 10)
                .await;
            world.second_world(&[Role::Relay, Role::Consumer], &[]).await
        };
        let (_, rest) = tokio::join!(futures::future::join_all(polls), lands);
        let mut redis = RawRedis::of(&world).await;
        let meta = redis.hash(&world.servers.redis.keys.meta(0, &sale)).await;
        assert_eq!(meta["settled"], format!("{} 40", meta["epoch"]), "{meta:?}");
        rest.finish().await;
        world.stop().await;
    });
}

/// As where an older version made the keys, or settles them.
#[test]
fn who_waits_is_answered_where_nothing_says_how_far_orders_landed() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("by-the-clock", 5, None).await;
        let id = world.bought(&sale, "alice").await.to_string();
        let meta = world.servers.redis.keys.meta(0, &sale);
        for settled in ["", "1", "0 9", "99999999999 1"] {
            RawRedis::of(&world).await.call(&["HSET", &meta, "settled", settled]).await;
            let poll = world.status(&sale, "alice", &id, 1).await;
            assert_eq!((poll.status, poll.text("status").as_str()), (200, "QUEUED"), "{settled}: {poll:?}");
        }
        RawRedis::of(&world).await.call(&["HDEL", &meta, "settled"]).await;
        let polls = async { while world.status(&sale, "alice", &id, 20).await.text("status") != "CONFIRMED" {} };
        let lands = world.second_world(&[Role::Relay, Role::Consumer], &[]);
        let ((), rest) = tokio::join!(polls, lands);
        rest.finish().await;
        world.stop().await;
    });
}
