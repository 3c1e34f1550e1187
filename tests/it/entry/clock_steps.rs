//! An api process whose clock is wrong. It jumps back: ids go on rising, and no buyer is refused (row A2). It is ahead or
//! behind: the sale starts and ends by Redis' clock all the same (row A8).

use crate::support::processes::killable::{KillableProcess, ProcessOptions};
use crate::support::processes::programs::scratch;
use crate::support::processes::wrong_clock::offset_by;
use crate::support::world::{Answer, World, run};
use seckill::roles::Role;

#[test]
fn ids_go_on_rising_when_the_clock_of_an_api_jumps_back() {
    run(async {
        let mut world = World::with(&[Role::Relay, Role::Consumer], &[]).await;
        let sale = world.sale_with("clock", 100, |sale| sale.starts_at_ms -= 3_600_000).await;
        // libfaketime reads the offset from the file at each call.
        let offset = scratch("clock_steps").join("offset");
        let set_offset = |text: &str| std::fs::write(&offset, text).unwrap();
        set_offset("+0s");
        let from_file =
            [("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap().to_owned()), ("FAKETIME_NO_CACHE", "1".into())];
        let env = offset_by("+0s").into_iter().filter(|(name, _)| *name != "FAKETIME").chain(from_file).collect();
        let api = world.spawn("api", ProcessOptions { env, ..ProcessOptions::default() });
        world.api = api.api_url();
        api.serves_buyers().await;
        let mut ids = vec![];
        for step in ["+0s", "-20s", "-10s", "-25s", "+5s"] {
            set_offset(step);
            for buyer in 0..5 {
                ids.push(world.bought(&sale, &format!("buyer{step}{buyer}")).await);
            }
        }
        assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
        api.kill();
        assert_eq!(world.settled(&sale).await.counted.ordered, 25);
        world.finish().await;
    });
}

const MINUTE_MS: i64 = 60_000;

/// An api process with this clock, to which all that follows is sent.
async fn api_with_clock(world: &mut World, offset: &str) -> KillableProcess {
    let env = offset_by(offset).into_iter().collect();
    let api = world.spawn("api", ProcessOptions { env, ..ProcessOptions::default() });
    world.api = api.api_url();
    api.serves_buyers().await;
    api
}

#[test]
fn an_api_whose_clock_is_ahead_sells_nothing_before_the_start() {
    run(async {
        let mut world = World::with(&[Role::Relay, Role::Consumer], &[]).await;
        let later = world.sale_with("later", 10, |sale| sale.starts_at_ms += 20 * MINUTE_MS).await;
        let now = world.sale("now", 10, Some(1)).await;
        let ahead = api_with_clock(&mut world, "+30m").await;
        for buyer in 0..5 {
            let answer = world.buy(&later, &format!("b{buyer}"), 1, None).await;
            assert_eq!((answer.status, answer.code().as_str()), (425, "P1-S5"), "{answer:?}");
            let again_s: i64 = answer.header("retry-after").parse().unwrap();
            assert!((18 * 60..=20 * 60).contains(&again_s), "by the clock that counts: {answer:?}");
        }
        world.assert_untouched(&later, 10).await;
        world.bought(&now, "alice").await;
        ahead.kill();
        world.finish().await;
    });
}

#[test]
fn an_api_whose_clock_is_behind_sells_nothing_after_the_end_and_repeats_what_was_accepted() {
    run(async {
        let mut world = World::with(&[Role::Relay, Role::Consumer], &[]).await;
        let sale = world.sale_with("over", 10, |sale| sale.starts_at_ms -= 50 * MINUTE_MS).await;
        let behind = api_with_clock(&mut world, "-30m").await;
        let (token, _) = world.token(&sale, "alice").await;
        let first = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!(first.status, 202, "{first:?}");
        world.sql("UPDATE sales SET ends_at = UTC_TIMESTAMP(3) - INTERVAL 20 MINUTE").await;
        world.sale_control().warm(&sale).await.unwrap();
        let (late, _) = world.token(&sale, "bob").await;
        for _ in 0..3 {
            let answer: Answer = world.buy(&sale, "bob", 1, Some(&late)).await;
            assert_eq!((answer.status, answer.code().as_str()), (410, "P1-S6"), "{answer:?}");
            let again = world.buy(&sale, "alice", 1, Some(&token)).await;
            assert_eq!((again.status, again.body), (202, first.body.clone()));
        }
        behind.kill();
        assert_eq!(world.settled(&sale).await.counted.ordered, 1);
        world.finish().await;
    });
}
