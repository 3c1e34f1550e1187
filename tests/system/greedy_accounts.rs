//! What one account can take of that which others need (A9, A13): calls at the database, and places to wait.

use crate::support::basics::answer::Answer;
use crate::support::world::{World, eventually, run};
use futures::future::join_all;
use reqwest::Method;
use seckill::roles::Role;

#[test]
fn an_account_that_asks_for_its_orders_without_end_is_slowed_and_others_see_theirs() {
    run(async {
        let world = World::with(&[Role::Api], &["p1_entry.user_rate_per_s=1"]).await;
        let calls =
            [(Method::GET, "/v1/orders"), (Method::GET, "/v1/orders/4242"), (Method::DELETE, "/v1/orders/4242")];
        for (n, (method, path)) in calls.into_iter().enumerate() {
            let asked = (0..60).map(|_| Answer::of(world.request(method.clone(), path, &format!("greedy-{n}"))));
            let answers = join_all(asked).await;
            let slowed: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
            assert!(!slowed.is_empty(), "{method} {path}: {answers:?}");
            for answer in slowed {
                assert_eq!(answer.code(), "RATE_LIMITED", "{answer:?}");
                assert!((1..=4).contains(&answer.retry_after_s()), "{answer:?}");
            }
            let mine = Answer::of(world.request(Method::GET, "/v1/orders", &format!("patient-{n}"))).await;
            assert_eq!(mine.status, 200, "{mine:?}");
        }
        world.stop().await;
    });
}

#[test]
fn an_account_holds_eight_places_to_wait_and_leaves_the_others_to_others() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("places", 5, None).await;
        let (alice, bob) =
            (world.bought(&sale, "alice").await.to_string(), world.bought(&sale, "bob").await.to_string());
        let follow = |user: &str, id: &str| {
            world.request(Method::GET, &format!("/v1/sales/{sale}/orders/{id}/events"), user).send()
        };
        let mut held = Vec::new();
        for n in 0..8 {
            let mut stream = follow("alice", &alice).await.unwrap();
            assert_eq!(stream.status(), 200, "{n}");
            // What was sent is read: closing with unread bytes would reset the connection.
            assert!(stream.chunk().await.unwrap().is_some());
            held.push(stream);
        }
        let refused = follow("alice", &alice).await.unwrap();
        let again_s: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!(refused.status() == 429 && (5..=10).contains(&again_s), "{refused:?}");
        assert!(refused.text().await.unwrap().contains("RATE_LIMITED"));
        let poll = world.status(&sale, "alice", &alice, 30).await;
        assert_eq!((poll.status, poll.text("status").as_str()), (200, "QUEUED"), "{poll:?}");
        assert!((5..=10).contains(&poll.retry_after_s()), "{poll:?}");
        assert_eq!(follow("bob", &bob).await.unwrap().status(), 200, "another buyer's places");

        held.pop();
        eventually("the place of a lost connection is free", async || {
            follow("alice", &alice).await.is_ok_and(|stream| stream.status() == 200)
        })
        .await;
        world.stop().await;
    });
}
