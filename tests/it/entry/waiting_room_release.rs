//! How the waiting room lets buyers go: at its rate by the clock of Redis, to the place, however many processes do
//! it; not before the start, not while nothing is sold, not faster than orders are persisted.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::waiting_rooms::{ReleaseCursor, buyers};
use crate::support::world::{World, eventually, pause, run, time_passes};
use seckill::domain::sale::Sale;
use seckill::roles::Role;

/// One call of the script, and what it must have done by the clock that it read.
async fn release(world: &World, sale: &Sale, rate: u32, arrivals: u64) -> ReleaseCursor {
    let before = world.release_cursor(&sale.sale_id).await;
    let release = world.servers.redis.rooms.release(sale, rate, 0).await.unwrap();
    let door = world.release_cursor(&sale.sale_id).await;
    let elapsed_us = if before.at_us == 0 { 0 } else { door.at_us.saturating_sub(before.at_us).min(1_000_000) };
    let parts = before.part + u64::from(rate) * elapsed_us;
    let (mut released, mut part) = (before.released + parts / 1_000_000, parts % 1_000_000);
    if released >= arrivals {
        (released, part) = (arrivals, 0);
    }
    assert_eq!((door.released, door.part), (released, part), "{rate} a second for {elapsed_us} µs after {before:?}");
    assert_eq!((release.released, release.gained, release.arrivals), (released, released - before.released, arrivals));
    door
}

#[test]
fn what_is_released_is_the_rate_times_the_time_of_redis_to_the_place() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.room("exact", 10).await;
        let stored = world.stored(&sale).await;
        world.numbers(&stored, &buyers(0..2_000)).await;
        assert_eq!(release(&world, &stored, 1_000_000, 2_000).await.released, 0, "the first reading begins the count");
        for round in 0..60u32 {
            release(&world, &stored, [1, 7, 333, 0, 999][round as usize % 5], 2_000).await;
            pause().await;
        }
        let before = world.release_cursor(&sale).await.released;
        time_passes(2_500).await;
        let after = release(&world, &stored, 100, 2_000).await.released;
        assert!((100..=101).contains(&(after - before)), "an outage ends in a second's worth: {before} {after}");
        // Never more than there are, and nothing is saved up while no buyer waits.
        eventually("all are released", async || release(&world, &stored, 5_000, 2_000).await.released == 2_000).await;
        for _ in 0..20 {
            release(&world, &stored, 1_000, 2_000).await;
            pause().await;
        }
        world.numbers(&stored, &buyers(2_000..3_000)).await;
        release(&world, &stored, 1_000, 3_000).await;
        world.stop().await;
    });
}

#[test]
fn nothing_is_released_before_the_start_in_a_pause_or_while_the_sale_is_not_warmed() {
    run(async {
        let world = World::with(&[], &[]).await;
        let waiting = buyers(0..100);
        let early = world.early_room("release-early", 10).await;
        let draft = world.draft("release-draft", 10, |sale| sale.waiting_room = true).await;
        let open = world.room("release-open", 10).await;
        for sale in [&early, &draft, &open] {
            let stored = world.stored(sale).await;
            world.places(&stored, &waiting).await;
        }
        let goes = async |sale: &_| {
            let stored = world.stored(sale).await;
            for _ in 0..3 {
                world.servers.redis.rooms.release(&stored, 1_000_000, 0).await.unwrap();
                time_passes(30).await;
            }
            world.release_cursor(sale).await.released
        };
        assert_eq!((goes(&early).await, goes(&draft).await), (0, 0));
        world.sale_control().pause(&open).await.unwrap();
        assert_eq!(goes(&open).await, 0, "paused");
        world.sale_control().resume(&open).await.unwrap();
        assert_eq!(goes(&open).await, 100, "open again");
        world.sale_control().warm(&draft).await.unwrap();
        assert_eq!(goes(&draft).await, 100, "warmed");
        world.stop().await;
    });
}

#[test]
fn drawn_places_are_answered_before_the_first_buyer_is_released() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.early_room("early", 10).await;
        let early = world.stored(&sale).await;
        world.places(&early, &buyers(0..500)).await;
        // As if it started this moment: a second, and a tenth of a millisecond for each of the 500.
        let clock = RawRedis::of(&world).await.call(&["TIME"]).await.items();
        let started = Sale { starts_at_ms: clock[0].text().parse::<i64>().unwrap() * 1000, ..early };
        assert!(world.servers.redis.sale_keys.set_terms(&started, 0).await.unwrap());
        let opens_us = u64::try_from(started.starts_at_ms).unwrap() * 1_000 + 1_050_000;
        let release = async || world.servers.redis.rooms.release(&started, 1_000_000, 0).await.unwrap();
        // The first reading only begins the count.
        assert_eq!(release().await.released, 0);
        eventually("somebody is released", async || {
            let (release, at_us) = (release().await, world.release_cursor(&sale).await.at_us);
            assert_eq!(release.released > 0, at_us > opens_us, "{release:?} at {at_us}, from {opens_us} on");
            release.released > 0
        })
        .await;
        world.stop().await;
    });
}

#[test]
fn several_api_processes_release_what_one_would() {
    run(async {
        const RATE: u64 = 200;
        let set = ["p1_entry.room_release_per_s=200"];
        let world = World::with(&[Role::Api], &set).await;
        let sale = world.room("shared", 5_000).await;
        let users = buyers(0..1_200);
        world.numbers(&world.stored(&sale).await, &users).await;
        let mut worlds = vec![world];
        for _ in 0..3 {
            worlds.push(worlds[0].second_world(&[Role::Api], &set).await);
        }
        let last = &users[1_199];
        let ticket = worlds[0].enter_room(&sale, last).await.text("ticket");
        let first = worlds[0].release_cursor(&sale).await;
        eventually("all of them are released", async || {
            let mut all = true;
            for world in &worlds {
                let answer = world.ask_place(&sale, last, &ticket).await;
                assert_eq!(answer.status, 200, "{answer:?}");
                all &= answer.text("state") == "released";
            }
            let door = worlds[0].release_cursor(&sale).await;
            let most = first.released + RATE * (door.at_us - first.at_us) / 1_000_000 + 1;
            assert!(door.released <= most, "{door:?} is more than one process would release since {first:?}");
            all
        })
        .await;
        for world in worlds {
            world.stop().await;
        }
    });
}

#[test]
fn a_closed_entry_lets_its_trickle_out_of_the_room_and_all_when_it_opens() {
    run(async {
        let world =
            World::with(&[Role::Api], &["p1_entry.backlog_max=10", "p1_entry.room_release_per_s=1000000"]).await;
        let (plain, sale) = (world.sale("closes", 1_000, Some(1)).await, world.room("behind-it", 1_000).await);
        eventually("the entry is closed", async || {
            let answer = world.buy(&plain, &format!("buyer-{}", rand::random::<u64>()), 1, None).await;
            answer.status == 503 && (5..=10).contains(&answer.retry_after_s())
        })
        .await;
        let users = buyers(0..500);
        world.all_enter(&sale, &users[..1]).await;
        let first = world.release_cursor(&sale).await;
        let tickets: Vec<String> = world.all_enter(&sale, &users).await.iter().map(|a| a.text("ticket")).collect();
        eventually("some seconds of Redis' clock", async || {
            let door = world.release_cursor(&sale).await;
            let trickle = (door.at_us - first.at_us) / 1_000_000;
            assert!(door.released <= first.released + trickle + 1, "{first:?} {door:?}");
            trickle >= 3
        })
        .await;
        let waiting = world.ask_place(&sale, &users[499], &tickets[499]).await;
        assert_eq!(waiting.text("state"), "waiting", "{waiting:?}");
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        eventually("the room is empty", async || world.release_cursor(&sale).await.released == 500).await;
        // The process that answers reads the door a few times a second.
        eventually("the last one is let in", async || {
            world.ask_place(&sale, &users[499], &tickets[499]).await.text("state") == "released"
        })
        .await;
        rest.finish().await;
        world.stop().await;
    });
}

#[test]
fn signed_places_are_released_even_after_redis_lost_the_room() {
    run(async {
        let world = World::with(&[Role::Api], &["p1_entry.room_release_per_s=20"]).await;
        let sale = world.room("lost", 10).await;
        let users = buyers(0..60);
        let came = world.all_enter(&sale, &users).await;
        let last = came.iter().position(|answer| answer.json["place"] == 60).expect("the last one");
        let (user, ticket) = (&users[last], came[last].text("ticket"));
        world.lose_room(&sale).await;
        // No buyer comes in again: only the ticket says that there were sixty.
        eventually("place 60 is released", async || {
            let answer = world.ask_place(&sale, user, &ticket).await;
            assert_eq!((answer.status, answer.json["place"].as_u64()), (200, Some(60)), "{answer:?}");
            answer.text("state") == "released"
        })
        .await;
        assert_eq!(world.token_for(&sale, user, Some(&ticket)).await.status, 201);
        world.stop().await;
    });
}
