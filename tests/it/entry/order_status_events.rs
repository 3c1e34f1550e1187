//! The status as server-sent events (A11).

use crate::support::world::{World, run};
use futures::StreamExt;
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::Value;

async fn follow(world: &World, sale: &SaleId, user: &str, id: &str) -> reqwest::Response {
    let path = format!("/v1/sales/{sale}/orders/{id}/events");
    world.request(Method::GET, &path, user).send().await.unwrap()
}

/// The documents in a stream's events.
fn events_of(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

#[test]
fn a_stream_sends_queued_then_the_outcome_then_ends() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("sse", 5, None).await;
        let id = world.bought(&sale, "alice").await.to_string();
        let answer = follow(&world, &sale, "alice", &id).await;
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        let mut stream = answer.bytes_stream();
        let first = stream.next().await.unwrap().unwrap();
        let first = std::str::from_utf8(&first).unwrap();
        assert!(first.starts_with("event: status\ndata: ") && first.ends_with("\n\n"), "{first:?}");
        assert_eq!(
            (events_of(first)[0]["status"].as_str(), events_of(first)[0]["request_id"].as_str()),
            (Some("QUEUED"), Some(&*id))
        );

        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        let mut text = String::new();
        while let Some(part) = stream.next().await {
            text.push_str(std::str::from_utf8(&part.unwrap()).unwrap());
        }
        let events = events_of(&text);
        assert_eq!(events.len(), 1, "{text:?}");
        assert_eq!((events[0]["status"].as_str(), events[0]["code"].as_str()), (Some("CONFIRMED"), Some("P4-C0")));

        // A late reader gets the outcome at once; a reader who is not the owner gets nothing.
        let late = follow(&world, &sale, "alice", &id).await.text().await.unwrap();
        assert_eq!(events_of(&late).len(), 1, "{late:?}");
        assert_eq!(events_of(&late)[0]["status"], "CONFIRMED");
        for (user, id) in [("bob", id.as_str()), ("alice", "4242")] {
            assert_eq!(follow(&world, &sale, user, id).await.status(), 404);
        }
        assert_eq!(follow(&world, &sale, "alice", "x").await.status(), 400);
        rest.finish().await;
        world.stop().await;
    });
}
