//! What the entry does within seconds: it gives up, answers, opens and ends in time.

use crate::support::buyers::raw_http::{purchase_head, send};
use crate::support::buyers::refusals::refused;
use crate::support::buyers::replays::{first, same};
use crate::support::world::{World, eventually, run};
use seckill::roles::Role;
use seckill::runtime::now_ms;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[test]
fn a_body_that_never_comes_is_given_up_in_time() {
    run(async {
        let world = World::with(&[Role::Api], &["http.body_timeout_ms=500"]).await;
        let sale = world.sale("slow", 7, None).await;
        for body in ["", "{\"quan"] {
            let head = purchase_head(&world, sale.as_str(), "a", "Content-Length: 14\r\n\r\n");
            let begun = Instant::now();
            let answer = send(&world, format!("{head}{body}").as_bytes()).await;
            assert_eq!((answer.status, answer.text("code").as_str()), (408, "REQUEST_TIMEOUT"), "{answer:?}");
            assert!(answer.text("detail").contains("body"), "{answer:?}");
            let took = begun.elapsed();
            assert!(took >= Duration::from_millis(490) && took < Duration::from_secs(3), "{took:?}");
        }
        world.assert_untouched(&sale, 7).await;
        world.stop().await;
    });
}

#[test]
fn a_buyers_rate_is_one_for_all_processes() {
    run(async {
        let set = ["p1_entry.user_rate_per_s=2"];
        let one = World::with(&[Role::Api], &set).await;
        let two = one.second_world(&[Role::Api, Role::Relay, Role::Consumer], &set).await;
        let sale = one.sale("rated", 1_000, None).await;
        let mut counts = BTreeMap::new();
        for n in 0..20 {
            let answer = [&one, &two][n % 2].buy(&sale, "eager", 1, None).await;
            *counts.entry((answer.status, answer.code())).or_insert(0) += 1;
            if answer.status == 429 {
                assert!((1..=3).contains(&answer.retry_after_s()), "{answer:?}");
            }
        }
        let refused = counts.get(&(429, "RATE_LIMITED".to_owned())).copied().unwrap_or(0);
        // Two at once and two for each second that twenty requests took; two processes with a bucket each would give twice that.
        assert!(refused >= 10, "{counts:?}");
        assert_eq!(counts.len(), 2, "{counts:?}");
        let other = one.buy(&sale, "patient", 1, None).await;
        assert_eq!(other.status, 202, "another buyer's bucket is full: {other:?}");
        two.finish().await;
        one.stop().await;
    });
}

#[test]
fn a_replay_gets_the_same_bytes_after_the_sale_has_ended() {
    run(async {
        let world = World::start().await;
        let sale = world.sale_with("ends", 5, |sale| sale.ends_at_ms = now_ms() + 3_000).await;
        let (token, answer) = first(&world, &sale).await;
        eventually("the end", async || world.buy(&sale, "bob", 1, None).await.code() == "P1-S6").await;
        same(&world, &sale, &token, &answer, "after the end").await;
        let two = world.buy(&sale, "alice", 2, Some(&token)).await;
        assert_eq!((two.status, two.code().as_str()), (422, "TOKEN_REUSED"), "{two:?}");
        world.finish().await;
    });
}

#[test]
fn a_long_poll_waits_for_the_final_status_and_no_longer() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.sale("poll", 5, None).await;
        let id = world.buy(&sale, "alice", 1, None).await.text("request_id");
        let queued = world.status(&sale, "alice", &id, 0).await;
        assert_eq!((queued.text("status").as_str(), queued.text("code").as_str()), ("QUEUED", "P2-R0"), "{queued:?}");
        let begun = Instant::now();
        let queued = world.status(&sale, "alice", &id, 2).await;
        assert_eq!(queued.text("status"), "QUEUED", "{queued:?}");
        let took = begun.elapsed();
        assert!(took > Duration::from_millis(1_200), "{took:?}");
        let polling = async {
            let begun = Instant::now();
            let answer = world.status(&sale, "alice", &id, 30).await;
            (answer, begun.elapsed())
        };
        let landing = async {
            crate::support::world::time_passes(500).await;
            world.second_world(&[Role::Relay, Role::Consumer], &[]).await
        };
        let ((answer, took), rest) = tokio::join!(polling, landing);
        assert_eq!(answer.text("status"), "CONFIRMED", "{answer:?}");
        assert!(took > Duration::from_millis(500) && took < Duration::from_secs(20), "{took:?}");
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_sale_sells_within_its_window_only() {
    run(async {
        let world = World::start().await;
        let early = world.sale_with("early", 5, |sale| sale.starts_at_ms = now_ms() + 4_000).await;
        let ended = world.sale_with("ended", 5, |sale| sale.ends_at_ms = now_ms() - 1).await;
        refused(&world, &early, 425, "P1-S5").await;
        let answer = world.buy(&early, "nobody", 1, None).await;
        let seconds: u64 = answer.header("retry-after").parse().expect("whole seconds");
        assert!((1..=4).contains(&seconds), "{answer:?}");
        refused(&world, &ended, 410, "P1-S6").await;
        world.assert_untouched(&early, 5).await;
        world.assert_untouched(&ended, 5).await;
        eventually("the start", async || world.buy(&early, "alice", 1, None).await.status == 202).await;
        assert!(now_ms() >= world.servers.rows.sales.get(&early).await.unwrap().unwrap().starts_at_ms);
        world.finish().await;
    });
}
