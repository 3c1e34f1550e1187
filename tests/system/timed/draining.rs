//! An orderly stop as buyers see it: each waiting request gets a whole answer.

use crate::support::answer::Answer;
use crate::support::world::{World, run, time_passes};
use futures::StreamExt;
use reqwest::Method;
use seckill::roles::Role::Api;
use std::time::{Duration, Instant};

#[test]
fn a_stop_answers_waiting_status_requests_and_ends_the_streams() {
    run(async {
        // No consumer: nothing becomes final.
        let mut world = World::with(&[Api], &[]).await;
        let sale = world.sale("drain", 100, Some(1)).await;
        let id = world.bought(&sale, "alice").await;
        let orders = format!("/v1/sales/{sale}/orders/{id}");
        let stream = world.request(Method::GET, &format!("{orders}/events"), "alice").send().await.unwrap();
        let mut stream = stream.bytes_stream();
        let first = stream.next().await.unwrap().unwrap();
        assert!(String::from_utf8_lossy(&first).contains("QUEUED"), "{first:?}");
        let polls: Vec<_> = (0..8)
            .map(|_| tokio::spawn(Answer::of(world.request(Method::GET, &format!("{orders}?wait=30"), "alice"))))
            .collect();
        // Between two looks at the ledger, most of them.
        time_passes(1_000).await;
        assert!(polls.iter().all(|poll| !poll.is_finished()), "nothing is final");
        let begun = Instant::now();
        world.stop_roles().await;
        let took = begun.elapsed();
        let mut told_count = 0;
        for poll in polls {
            let answer = poll.await.unwrap();
            // A look that is under way at this very moment may not be answered any more; that is a whole answer too.
            assert!([200, 503].contains(&answer.status), "{answer:?}");
            told_count += usize::from(answer.status == 200 && answer.text("status") == "QUEUED");
        }
        assert!(told_count >= 6, "{told_count} of 8 were told");
        let rest: Vec<_> = stream.collect().await;
        assert!(rest.iter().all(Result::is_ok), "cut off: {rest:?}");
        // Actix would wait for five seconds and then cut what is left.
        assert!(took < Duration::from_millis(4_500), "{took:?}");
        world.stop().await;
    });
}
