//! The order in the waiting room. Who comes before the start is drawn, who comes later stands in line; coming again
//! changes nothing, and what is in Redis survives it.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::waiting_rooms::buyers;
use crate::support::world::{World, run};
use seckill::roles::Role;
use seckill::store::redis::RoomPlace;

/// Buyers of a draw.
const DRAWN: u32 = 2_000;
/// Spearman's rank correlation of 2,000 unrelated ranks has a standard deviation of 1/√1999 = 0.0224: beyond this bound, 6.7
/// of them, is less than one run in 10¹⁰.
const RELATED: f64 = 0.15;

/// Spearman's rank correlation of two orders without ties.
fn correlation(one: &[u64], other: &[u64]) -> f64 {
    let n = one.len() as f64;
    let squares: f64 = one.iter().zip(other).map(|(a, b)| (*a as f64 - *b as f64).powi(2)).sum();
    1.0 - 6.0 * squares / (n * (n * n - 1.0))
}

#[test]
fn who_comes_before_the_start_is_drawn_and_not_by_when_or_who() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let users = buyers(0..DRAWN);
        let mut draws = Vec::new();
        for id in ["draw-one", "draw-two"] {
            let sale = world.early_room(id, 10).await;
            for answer in world.all_enter(&sale, &users).await {
                assert_eq!(answer.text("state"), "waiting");
                let shown = ["place", "ahead", "ticket"].map(|field| !answer.json[field].is_null());
                assert_eq!(shown, [false; 3], "nothing of the order is shown: {answer:?}");
                let again_s: u64 = answer.header("retry-after").parse().unwrap();
                assert!((3_000..=3_601).contains(&again_s), "after the start: {again_s}");
            }
            // Coming again, as often as one likes.
            let (mut redis, room) = (RawRedis::of(&world).await, world.servers.redis.keys.room(0, &sale));
            let before = redis.call(&["ZRANGE", &room, "0", "-1", "WITHSCORES"]).await;
            world.all_enter(&sale, &users[..50]).await;
            assert_eq!(redis.call(&["ZRANGE", &room, "0", "-1", "WITHSCORES"]).await, before);

            let started = world.as_if_started(&sale).await;
            let places = world.numbers(&started, &users).await;
            let mut sorted = places.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (1..=u64::from(DRAWN)).collect::<Vec<_>>(), "everyone has a place of their own");
            draws.push(places);
        }
        let came: Vec<u64> = (1..=u64::from(DRAWN)).collect();
        for (what, related) in [
            ("the first draw and the arrival", correlation(&draws[0], &came)),
            ("the second draw and the arrival", correlation(&draws[1], &came)),
            ("the two draws of the same buyers", correlation(&draws[0], &draws[1])),
        ] {
            assert!(related.abs() < RELATED, "{what}: {related}");
        }
        world.stop().await;
    });
}

#[test]
fn who_comes_later_stands_in_line_behind_the_drawn_ones_and_keeps_the_place() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.early_room("line", 10).await;
        let (early, late) = (buyers(0..40), buyers(1_000..1_100));
        world.all_enter(&sale, &early).await;
        let started = world.as_if_started(&sale).await;
        let drawn = world.numbers(&started, &early).await;
        // One after the other, in an order that is not the one of their names.
        for (at, user) in late.iter().rev().enumerate() {
            let answer = world.enter_room(&sale, user).await;
            assert_eq!(answer.json["place"], 41 + at, "{answer:?}");
            assert!(!answer.text("ticket").is_empty(), "{answer:?}");
        }
        for user in late.iter().rev().take(10) {
            world.enter_room(&sale, user).await;
        }
        assert_eq!(world.numbers(&started, &early).await, drawn);
        let line: Vec<u64> = (41..=140).rev().collect();
        assert_eq!(world.numbers(&started, &late).await, line);
        world.stop().await;
    });
}

#[test]
fn the_first_call_after_the_start_draws_for_good_even_if_the_clock_goes_back() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.early_room("drawn-once", 10).await;
        let early = world.stored(&sale).await;
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|n| buyers(n..n + 1));
        assert_eq!(world.places(&early, &[first.clone(), second.clone()].concat()).await, [RoomPlace::Undrawn; 2]);
        assert_eq!(world.numbers(&world.as_if_started(&sale).await, &third).await, [3]);
        // For the script a start that is ahead again is a clock that went back.
        assert_eq!(world.numbers(&early, &fourth).await, [4]);
        let mut drawn = world.numbers(&early, &[first, second].concat()).await;
        drawn.sort_unstable();
        assert_eq!(drawn, [1, 2]);
        world.stop().await;
    });
}

#[test]
fn a_full_room_takes_no_buyer_in_and_puts_none_out() {
    run(async {
        let world = World::with(&[Role::Api], &["p1_entry.room_places_max=3"]).await;
        let sale = world.room("full", 10).await;
        let users = buyers(0..5);
        world.all_enter(&sale, &users[..3]).await;
        for user in &users[3..] {
            let full = world.enter_room(&sale, user).await;
            assert_eq!((full.status, full.code().as_str()), (503, "ROOM_FULL"), "{full:?}");
            assert_eq!(full.header("retry-after"), "60");
        }
        for answer in world.all_enter(&sale, &users[..3]).await {
            assert!(answer.json["place"].as_u64().unwrap() <= 3, "{answer:?}");
        }
        world.stop().await;
    });
}
