//! When a sale sells is decided by the script and Redis' clock (A8), whatever the process that calls it believes.

use crate::support::basics::resp::RawRedis;
use crate::support::world::parts::reserve_model::{Ask, EPOCH};
use crate::support::world::parts::script_model::{redis_sale, request_id, reserve};
use crate::support::world::{World, eventually, run};
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::{MetaState, Sale};
use seckill::domain::sale_door::SaleDoor;
use seckill::roles::Role;
use seckill::runtime::now_ms;

const ALICE: Ask = Ask { id: 1, user: 0, quantity: 2 };
const BOB: Ask = Ask { id: 2, user: 1, quantity: 1 };
const HOUR_MS: i64 = 3_600_000;

/// The sale, warmed on one shard and open.
async fn open(world: &World, sale: &Sale) {
    let keys = &world.servers.redis.sale_keys;
    keys.activate(sale, 0, 100, ("g", 10)).await.unwrap();
    keys.set_state(&sale.sale_id, 0, MetaState::Open, &[MetaState::Loaded]).await.unwrap();
}

fn window(sale: &Sale, starts_in_ms: i64, ends_in_ms: i64) -> Sale {
    Sale { starts_at_ms: now_ms() + starts_in_ms, ends_at_ms: now_ms() + ends_in_ms, ..sale.clone() }
}

#[test]
fn the_script_takes_nothing_outside_of_the_window_and_answers_replays() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (store, mut redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let early = window(&redis_sale("window", 5), HOUR_MS, 2 * HOUR_MS);
        open(&world, &early).await;
        let id = &early.sale_id;
        let untouched = redis.dump().await;
        for answer in reserve(store, id, EPOCH, &[ALICE, BOB]).await {
            let Reserved::NotStarted(wait_ms) = answer else { panic!("{answer:?}") };
            assert!((3_000_000..=3_600_000).contains(&wait_ms), "{wait_ms}");
        }
        assert!(untouched == redis.dump().await, "nothing is written before the start");

        // It was put to an earlier time.
        assert!(store.sale_keys.set_terms(&window(&early, -HOUR_MS, HOUR_MS), 0).await.unwrap());
        assert_eq!(reserve(store, id, EPOCH, &[ALICE]).await, [Reserved::Accepted]);
        for (starts, ends) in [(-2 * HOUR_MS, 0), (HOUR_MS, 2 * HOUR_MS)] {
            assert!(store.sale_keys.set_terms(&window(&early, starts, ends), 0).await.unwrap());
            let answers = reserve(store, id, EPOCH, &[ALICE, BOB]).await;
            assert_eq!(answers[0], Reserved::Replayed, "a replay comes first");
            assert!(matches!(answers[1], Reserved::Ended | Reserved::NotStarted(_)), "{answers:?}");
            assert_eq!(ends == 0, answers[1] == Reserved::Ended, "{answers:?}");
        }
        assert_eq!(store.stock.units(id, 0).await.unwrap(), Some(8));
        assert!(store.ledger.lookup(id, 0, &[request_id(BOB.id)]).await.unwrap()[0].is_none());
        // Another state and another epoch say more than the window does.
        assert_eq!(reserve(store, id, EPOCH + 1, &[BOB]).await, [Reserved::StaleEpoch]);
        store.sale_keys.set_state(id, 0, MetaState::Paused, &[MetaState::Open]).await.unwrap();
        assert_eq!(reserve(store, id, EPOCH, &[BOB]).await, [Reserved::Paused]);
        world.stop().await;
    });
}

#[test]
fn a_door_for_tokens_takes_no_buyer_without_one_and_one_of_a_later_version_no_new_one() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (store, mut redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let sale = redis_sale("door", 5);
        let (id, meta) = (&sale.sale_id, store.keys.meta(0, &sale.sale_id));
        open(&world, &sale).await;
        assert_eq!(redis.call(&["HGET", &meta, "door"]).await.text(), "open");
        let with_room = Sale { waiting_room: true, ..sale.clone() };
        assert!(store.sale_keys.set_terms(&with_room, 0).await.unwrap());
        // Alice's request has an odd number, and no token; Bob's has one.
        assert!(ALICE.by() == SaleDoor::Open && BOB.by() == SaleDoor::Token);
        let untouched = redis.dump().await;
        assert_eq!(reserve(store, id, EPOCH, &[ALICE]).await, [Reserved::TokenMissing]);
        assert!(untouched == redis.dump().await, "nothing is written");
        assert_eq!(reserve(store, id, EPOCH, &[ALICE, BOB]).await, [Reserved::TokenMissing, Reserved::Accepted]);
        // Keys of an older version have no door: only the entry judges.
        assert_eq!(redis.call(&["HDEL", &meta, "door"]).await.int(), 1);
        assert_eq!(reserve(store, id, EPOCH, &[ALICE]).await, [Reserved::Accepted]);
        assert!(store.sale_keys.set_terms(&with_room, 0).await.unwrap(), "the repeated check of warmed sales sets it");
        assert_eq!(redis.call(&["HGET", &meta, "door"]).await.text(), "token");
        assert_eq!(reserve(store, id, EPOCH, &[ALICE]).await, [Reserved::Replayed], "a replay comes first");
        redis.call(&["HSET", &meta, "door", "later"]).await;
        let later = Ask { id: 4, user: 3, quantity: 1 };
        assert_eq!(reserve(store, id, EPOCH, &[BOB, later]).await, [Reserved::Replayed, Reserved::Damaged]);
        world.stop().await;
    });
}

#[test]
fn keys_of_an_older_version_have_no_window_until_one_is_set_and_lost_keys_get_none() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (store, mut redis) = (&world.servers.redis, RawRedis::of(&world).await);
        let sale = window(&redis_sale("older", 5), HOUR_MS, 2 * HOUR_MS);
        let (id, meta) = (&sale.sale_id, store.keys.meta(0, &sale.sale_id));
        open(&world, &sale).await;
        assert_eq!(redis.call(&["HDEL", &meta, "starts", "ends"]).await.int(), 2);
        assert_eq!(reserve(store, id, EPOCH, &[ALICE]).await, [Reserved::Accepted]);
        assert!(store.sale_keys.set_terms(&sale, 0).await.unwrap());
        assert!(matches!(reserve(store, id, EPOCH, &[BOB]).await[..], [Reserved::NotStarted(_)]));
        assert_eq!(redis.call(&["DEL", &meta]).await.int(), 1);
        assert!(!store.sale_keys.set_terms(&sale, 0).await.unwrap());
        assert!(!redis.keys().await.contains(&meta), "nothing brings the key back");
        world.stop().await;
    });
}

#[test]
fn a_sale_that_was_rescheduled_or_rebuilt_sells_within_its_new_window() {
    run(async {
        let settings = ["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];
        let world = World::with(&Role::ALL, &settings).await;
        let sale = world.sale("moved", 5, Some(1)).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        let stored = async || {
            let mut redis = RawRedis::of(&world).await;
            let meta = redis.hash(&world.servers.redis.keys.meta(0, &sale)).await;
            [&meta["starts"], &meta["ends"]].map(|text| text.parse::<i64>().unwrap())
        };
        let before = stored().await;
        world
            .sql("UPDATE sales SET starts_at = starts_at + INTERVAL 1 HOUR, ends_at = ends_at + INTERVAL 1 HOUR")
            .await;
        let later = before.map(|at| at + HOUR_MS);
        world.sale_control().warm(&sale).await.unwrap();
        assert_eq!(stored().await, later, "a warm-up of a warmed sale sets the window");
        eventually("the entry knows", async || world.buy(&sale, "bob", 1, None).await.code() == "P1-S5").await;
        world.cli(&["sale", "rebuild", "moved"]).exits(0);
        let meta = async || world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap();
        let rebuilt = async || meta().await.is_some_and(|meta| meta.epoch == 2 && meta.state == MetaState::Open);
        eventually("a rebuild", rebuilt).await;
        assert_eq!(stored().await, later, "a rebuild keeps it");
        world.sql("UPDATE sales SET starts_at = starts_at - INTERVAL 1 HOUR").await;
        // Without a command: an api process compares warmed sales again and again.
        eventually("selling again", async || world.buy(&sale, "bob", 1, None).await.status == 202).await;
        world.finish().await;
    });
}

/// A process that judged a sale, and slept while it was rebuilt, does not stop what is whole.
#[test]
fn a_freeze_stops_the_epoch_that_was_judged_and_those_before_it() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (keys, sale) = (&world.servers.redis.sale_keys, Sale { epoch: 4, ..redis_sale("judged", 5) });
        open(&world, &sale).await;
        let state = async || keys.meta(&sale.sale_id, 0).await.unwrap().unwrap().state;
        keys.freeze(&sale.sale_id, 0, 3).await.unwrap();
        assert_eq!(state().await, MetaState::Open, "a rebuild came in between");
        for judged in [4, 5, 4] {
            keys.set_state(&sale.sale_id, 0, MetaState::Open, &[MetaState::Frozen]).await.unwrap();
            keys.freeze(&sale.sale_id, 0, judged).await.unwrap();
            assert_eq!(state().await, MetaState::Frozen, "{judged}");
        }
        keys.set_state(&sale.sale_id, 0, MetaState::Closed, &[MetaState::Frozen]).await.unwrap();
        keys.freeze(&sale.sale_id, 0, 4).await.unwrap();
        assert_eq!(state().await, MetaState::Closed, "it sells nothing");
    });
}
