//! An orderly stop as buyers and balancers see it: each waiting request gets its answer, and the process says that it ends.

use crate::support::basics::answer::Answer;
use crate::support::processes::own_redis;
use crate::support::processes::programs::signal;
use crate::support::world::{World, eventually, run, time_passes};
use futures::StreamExt;
use reqwest::Method;
use seckill::roles::Role::{Api, Consumer, Relay};
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
        // With the stream as many as one buyer may have.
        let polls: Vec<_> = (0..7)
            .map(|_| tokio::spawn(Answer::of(world.request(Method::GET, &format!("{orders}?wait=30"), "alice"))))
            .collect();
        // Between two readings of the ledger, most of them.
        time_passes(1_000).await;
        assert!(polls.iter().all(|poll| !poll.is_finished()), "nothing is final");
        let begun = Instant::now();
        world.stop_roles().await;
        let took = begun.elapsed();
        let mut answered = 0;
        for poll in polls {
            let answer = poll.await.unwrap();
            // A question that is under way at this very moment may not be answered any more; that is a whole answer too.
            assert!([200, 503].contains(&answer.status), "{answer:?}");
            answered += usize::from(answer.status == 200 && answer.text("status") == "QUEUED");
        }
        assert!(answered >= 5, "{answered} of 7 were answered");
        let rest: Vec<_> = stream.collect().await;
        assert!(rest.iter().all(Result::is_ok), "cut off: {rest:?}");
        // Actix would wait for five seconds and then cut what is left.
        assert!(took < Duration::from_millis(4_500), "{took:?}");
        world.stop().await;
    });
}

#[test]
fn purchases_under_way_at_sigterm_are_accepted_and_the_process_is_not_ready_meanwhile() {
    run(async {
        let mut redis = own_redis::start("sigterm-redis").await;
        let world = World::on_redis(&redis.url(), "sigterm", &[Relay, Consumer], &[]).await;
        // The rates are the first that a purchase asks for.
        let mut api = world.process("api", "", &["p1_entry.user_rate_per_s=100"]);
        api.serves_buyers().await;
        let sale = world.sale("sigterm", 100, Some(1)).await;
        eventually("it sells", async || world.buy_at(&api, "sigterm", "first", None).await == Some(202)).await;
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let buy = |n: usize| {
            let request = client.post(format!("{}/v1/sales/{sale}/orders", api.api_url()));
            Answer::of(request.bearer_auth(world.access(&format!("buyer-{n}"))).json(&serde_json::json!({})))
        };
        redis.pause().expect("it stands still");
        let buying: Vec<_> = (0..20).map(|n| tokio::spawn(buy(n))).collect();
        time_passes(700).await;
        assert!(buying.iter().all(|one| !one.is_finished()), "all are under way");
        signal(api.program.pid(), libc::SIGTERM);
        let ready = format!("http://{}/readyz", api.admin());
        eventually("it is not ready", async || {
            let Ok(answer) = client.get(&ready).send().await else { return false };
            answer.status() == 503 && answer.text().await.is_ok_and(|body| body.contains("\"draining\":true"))
        })
        .await;
        redis.resume().expect("it goes on");
        for one in buying {
            let answer = one.await.unwrap();
            assert_eq!(answer.status, 202, "{answer:?}");
        }
        assert_eq!(api.program.ended().await, Some(0), "{}", api.program.stderr());
        assert_eq!(world.settled(&sale).await.counted.ordered, 21);
        world.finish().await;
    });
}
