//! What was accepted is not persisted (A10, C7). The entry slows, closes to new buyers, answers replays, and opens by
//! itself when landing is back.

use crate::support::basics::answer::Answer;
use crate::support::basics::resp::RawRedis;
use crate::support::processes::killable::KillableProcess;
use crate::support::processes::programs::signal;
use crate::support::world::parts::buckets::buyer_of;
use crate::support::world::{World, eventually, pause, run};
use seckill::dev::ports::free_port;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use std::time::Instant;

/// A world whose api role is a process of its own, with metrics of its own.
async fn world(roles: &[Role], set: &[&str]) -> (World, KillableProcess) {
    let mut world = World::with(roles, set).await;
    let listen = format!("127.0.0.1:{}", free_port().expect("a port"));
    let setting = format!("http.listen={listen}");
    let api = world.process("api", "", &[set, &[setting.as_str()]].concat());
    world.api = format!("http://{listen}");
    let sales = format!("{}/v1/sales", world.api);
    eventually("the api answers", async || world.http.get(&sales).send().await.is_ok()).await;
    (world, api)
}

/// New buyers, a group at a time, until somebody gets 503. Returns that answer; everybody else must be accepted.
async fn until_refused(world: &World, sale: &SaleId, together: usize) -> Answer {
    let mut refused = None;
    eventually("somebody is refused", async || {
        let buyers: Vec<String> = (0..together).map(|_| format!("crowd-{}", rand::random::<u64>())).collect();
        let answers = buyers.iter().map(|buyer| world.buy(sale, buyer, 1, None));
        for answer in futures::future::join_all(answers).await {
            match answer.status {
                202 => {}
                503 => refused = Some(answer),
                other => panic!("{other}: {answer:?}"),
            }
        }
        refused.is_some()
    })
    .await;
    let refused = refused.expect("somebody");
    assert_eq!(refused.code(), "P1-S8", "{refused:?}");
    refused
}

/// Ends the api process and brings the rest to its end.
async fn finish(world: World, mut api: KillableProcess, rest: World) {
    let (code, _) = api.program.terminate().await;
    assert_eq!(code, Some(0), "{}", api.program.stderr());
    rest.finish().await;
    world.stop().await;
}

#[test]
fn a_consumer_that_stands_still_closes_the_entry_and_its_return_opens_it_once() {
    run(async {
        let set = ["p1_entry.lag_max_ms=2000", "p1_entry.adaptive=false"];
        let (world, api) = world(&[Role::Relay], &set).await;
        let sale = world.sale("stands", 100_000, Some(1)).await;
        let (token, request_id) = world.token(&sale, "alice").await;
        assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202);
        let mut unused = Vec::new();
        for n in 0..20 {
            unused.push(world.token(&sale, &format!("bob-{n}")).await.0);
        }
        let refused = until_refused(&world, &sale, 1).await;
        assert!((5..=10).contains(&refused.retry_after_s()), "{refused:?}");
        // What was accepted last may still be on its way there.
        eventually("it is the lag: all of it is in the broker", async || {
            world.servers.redis.outbox.depth(0).await.unwrap().0 == 0
        })
        .await;

        let begun = Instant::now();
        let mut passed = 0;
        for n in 0..40 {
            let answer = world.buy(&sale, &format!("new-{n}"), 1, None).await;
            assert!(answer.code() == "P1-S8" || answer.status == 202, "{answer:?}");
            passed += u64::from(answer.status == 202);
            let replay = world.buy(&sale, "alice", 1, Some(&token)).await;
            assert_eq!((replay.status, replay.text("request_id")), (202, request_id.clone()), "{replay:?}");
        }
        assert!(passed <= 2 + begun.elapsed().as_secs(), "only a trickle: {passed} in {:?}", begun.elapsed());
        let mut refused = 0;
        for (n, token) in unused.iter().enumerate() {
            let answer = world.buy(&sale, &format!("bob-{n}"), 1, Some(token)).await;
            assert!(answer.code() == "P1-S8" || answer.status == 202, "{answer:?}");
            refused += usize::from(answer.status == 503);
        }
        assert!(refused > 0, "a token alone is no replay");
        assert_eq!(api.metric("seckill_p1_entry_open").await, Some(0.0));
        assert!(api.metric("seckill_p1_entry_lag_seconds").await >= Some(2.0));

        let rest = world.second_world(&[Role::Consumer], &[]).await;
        api.until_metric("seckill_p1_entry_open", |open| open > 0.5).await;
        for n in 0..10 {
            assert_eq!(world.buy(&sale, &format!("late-{n}"), 1, None).await.status, 202, "everybody again");
        }
        let audit = rest.settled(&sale).await;
        assert_eq!(audit.counted.redis_stock + audit.counted.ordered, 100_000, "{audit:?}");
        assert_eq!(api.metric("seckill_p1_entry_closed_total").await, Some(1.0), "it closed once and opened once");
        finish(world, api, rest).await;
    });
}

#[test]
fn a_full_outbox_closes_the_entry_without_flapping_and_never_grows_past_its_bound() {
    run(async {
        let (world, api) = world(&[], &["p1_entry.backlog_max=200"]).await;
        let sale = world.sale("backlogged", 100_000, Some(1)).await;
        eventually("the entry is closed", async || {
            until_refused(&world, &sale, 20).await;
            api.metric("seckill_p1_entry_open").await == Some(0.0)
        })
        .await;
        let depth = world.servers.redis.outbox.depth(0).await.unwrap().0;
        assert!(depth <= 200, "{depth}");
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        api.until_metric("seckill_p1_entry_open", |open| open > 0.5).await;
        api.until_metric("seckill_p1_entry_limit_per_s", |limit| limit < 0.5).await;
        assert_eq!(world.buy(&sale, "late", 1, None).await.status, 202);
        assert_eq!(api.metric("seckill_p1_entry_closed_total").await, Some(1.0));
        finish(world, api, rest).await;
    });
}

#[test]
fn the_entry_slows_before_it_closes_and_is_free_again_when_orders_land() {
    run(async {
        let (world, api) = world(&[Role::Relay], &["p1_entry.lag_max_ms=12000"]).await;
        let sale = world.sale("slows", 100_000, Some(1)).await;
        let refused = until_refused(&world, &sale, 40).await;
        assert!((1..=3).contains(&refused.retry_after_s()), "slowed, not closed: {refused:?}");
        assert_eq!(api.metric("seckill_p1_entry_closed_total").await, Some(0.0), "{}", api.program.stderr());
        assert!(api.metric("seckill_p1_entry_limit_per_s").await >= Some(50.0));
        let rest = world.second_world(&[Role::Consumer], &[]).await;
        api.until_metric("seckill_p1_entry_limit_per_s", |limit| limit < 0.5).await;
        assert_eq!(world.buy(&sale, "late", 1, None).await.status, 202);
        finish(world, api, rest).await;
    });
}

#[test]
fn a_ledger_whose_outcomes_were_not_marked_does_not_close_the_entry() {
    run(async {
        let (world, api) = world(&[Role::Relay], &["p1_entry.lag_max_ms=8000"]).await;
        let sale = world.sale("unpublished", 1_000, Some(1)).await;
        for n in 0..20 {
            assert_eq!(world.buy(&sale, &format!("buyer-{n}"), 1, None).await.status, 202);
            // Those that come closer together than 10 ms are one probe, and too few probes are no lag.
            pause().await;
        }
        api.until_metric("seckill_p1_entry_lag_seconds", |lag| lag > 0.001).await;
        signal(api.program.pid(), libc::SIGSTOP);
        let rest = world.second_world(&[Role::Consumer], &[]).await;
        assert_eq!(rest.settled(&sale).await.counted.ordered, 20);
        let (mut redis, ledger) = (RawRedis::of(&world).await, world.servers.redis.keys.ledger(0, &sale));
        let page = world.servers.redis.ledger.page(&sale, 0, "0", 1_000).await.unwrap();
        assert_eq!(page.records.len(), 20);
        for (id, _) in page.records {
            let record = redis.call(&["HGET", &ledger, &id.to_string()]).await.text();
            let queued = record.replacen('C', "Q", 1);
            redis.call(&["HSET", &ledger, &id.to_string(), &queued]).await;
        }
        signal(api.program.pid(), libc::SIGCONT);
        api.until_metric("seckill_p1_entry_lag_seconds", |lag| lag < 0.001).await;
        assert_eq!(api.metric("seckill_p1_entry_closed_total").await, Some(0.0), "the database knows better");
        assert_eq!(world.buy(&sale, "late", 1, None).await.status, 202);
        finish(world, api, rest).await;
    });
}

/// As while one server of a Cluster loads its data: it accepts nothing, and the others are watched all the same.
#[test]
fn an_outbox_that_answers_with_errors_hides_no_backlog_of_the_others() {
    run(async {
        let set = ["p1_entry.backlog_max=200", "redis.shards=2"];
        let (world, api) = world(&[], &set).await;
        let sale = world.sale("half-published", 100_000, Some(1)).await;
        let damaged = world.servers.redis.keys.outbox(1);
        world.redis(&["SET", &damaged, "no stream"]).await;
        let mut buyers = (0..).map(|n| buyer_of(0, 2, n));
        eventually("the entry is closed", async || {
            let group: Vec<String> = buyers.by_ref().take(20).collect();
            futures::future::join_all(group.iter().map(|buyer| world.buy(&sale, buyer, 1, None))).await;
            api.metric("seckill_p1_entry_open").await == Some(0.0)
        })
        .await;
        world.redis(&["DEL", &damaged]).await;
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &set).await;
        api.until_metric("seckill_p1_entry_open", |open| open > 0.5).await;
        finish(world, api, rest).await;
    });
}
