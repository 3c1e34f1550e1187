//! The reserve script is all or nothing. With any key missing or damaged, nothing at all changes.

use crate::support::basics::resp::{RawRedis, Reply};
use crate::support::world::outbox_kinds::{LIST, OUTBOX_KINDS, STREAM, sent};
use crate::support::world::parts::reserve_model::{Ask, EPOCH};
use crate::support::world::parts::script_model::{redis_sale, request_id, reserve, user_id};
use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;
use seckill::domain::reserve::Reserved;
use seckill::domain::sale::MetaState;
use seckill::store::redis::RedisFault;
use std::collections::BTreeMap;

const ALICE: Ask = Ask { id: 1, user: 0, quantity: 2 };
const BOB: Ask = Ask { id: 2, user: 1, quantity: 1 };

/// An open sale of 10 in which alice has bought 2.
async fn fresh(world: &World, redis: &mut RawRedis) -> SaleId {
    redis.clear().await;
    let (store, sale) = (&world.servers.redis, redis_sale("damage", 5));
    store.sale_keys.activate(&sale, 0, 100, ("g", 10)).await.unwrap();
    store.sale_keys.set_state(&sale.sale_id, 0, MetaState::Open, &[MetaState::Loaded]).await.unwrap();
    assert_eq!(reserve(store, &sale.sale_id, EPOCH, &[ALICE]).await, [Reserved::Accepted]);
    sale.sale_id
}

/// A group of a new request, a replay and another new one: everyone gets `expected`, and no byte changes.
async fn nothing_changes(world: &World, redis: &mut RawRedis, sale: &SaleId, expected: &Reserved, what: &str) {
    let before = redis.dump().await;
    let third = Ask { id: 3, user: 2, quantity: 1 };
    let answers = reserve(&world.servers.redis, sale, EPOCH, &[BOB, ALICE, third]).await;
    assert_eq!(answers, vec![expected.clone(); 3], "{what}");
    let after: BTreeMap<String, Reply> = redis.dump().await;
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>(), "{what}");
    assert!(before == after, "{what}: something was written");
}

#[test]
fn with_any_key_missing_or_of_another_type_nothing_changes() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[], &[outbox]).await;
            let list = outbox == LIST;
            let mut redis = RawRedis::of(&world).await;
            let keys = world.servers.redis.keys.clone();
            let last = if list { "hands" } else { "outbox-more" };
            for name in &["meta", "stock", "buyers", "ledger", "outbox", last] {
                for kind in ["gone", "hash", "string", "list", "set", "zset", "stream"] {
                    let sale = fresh(&world, &mut redis).await;
                    let (key, own) = match *name {
                        "meta" => (keys.meta(0, &sale), "hash"),
                        "stock" => (keys.stock(0, &sale), "string"),
                        "buyers" => (keys.buyers(0, &sale), "hash"),
                        "ledger" => (keys.ledger(0, &sale), "hash"),
                        "hands" => (keys.hands(0), "hash"),
                        "outbox-more" => (keys.outbox_more(0), "string"),
                        _ if list => (keys.outbox_list(0), "list"),
                        _ => (keys.outbox(0), "stream"),
                    };
                    // An empty list, the hands of idle relays and the orders beyond the first of no entry are not there.
                    let may_be_gone = list && ["outbox", "hands"].contains(name) || *name == "outbox-more";
                    if kind == own || kind == "gone" && may_be_gone {
                        continue;
                    }
                    redis.call(&["DEL", &key]).await;
                    match kind {
                        "hash" => redis.call(&["HSET", &key, "f", "1"]).await,
                        "string" => redis.call(&["SET", &key, "10"]).await,
                        "list" => redis.call(&["RPUSH", &key, "1"]).await,
                        "set" => redis.call(&["SADD", &key, "1"]).await,
                        "zset" => redis.call(&["ZADD", &key, "1", "1"]).await,
                        "stream" => redis.call(&["XADD", &key, "*", "f", "1"]).await,
                        _ => Reply::Nil,
                    };
                    let expected = if kind == "gone" { Reserved::NotLoaded } else { Reserved::Damaged };
                    nothing_changes(&world, &mut redis, &sale, &expected, &format!("{name} {kind}")).await;
                }
            }
            world.stop().await;
        }
    });
}

#[test]
fn with_a_number_that_is_none_nothing_changes() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut redis = RawRedis::of(&world).await;
        let keys = world.servers.redis.keys.clone();
        // Some of them are numbers to Lua and none to the commands that would add to them.
        let no_numbers = [
            "",
            "abc",
            "1.5",
            "-1",
            "1e3",
            "0x10",
            "8.0",
            "08",
            " 8",
            "8 ",
            "+8",
            "-0",
            "inf",
            "nan",
            "9007199254740993",
            "99999999999999999999999",
        ];
        for text in no_numbers {
            let sale = fresh(&world, &mut redis).await;
            redis.call(&["SET", &keys.stock(0, &sale), text]).await;
            nothing_changes(&world, &mut redis, &sale, &Reserved::Damaged, &format!("stock {text:?}")).await;
            for field in ["limit", "cap", "number", "starts", "ends"] {
                let sale = fresh(&world, &mut redis).await;
                redis.call(&["HSET", &keys.meta(0, &sale), field, text]).await;
                nothing_changes(&world, &mut redis, &sale, &Reserved::Damaged, &format!("{field} {text:?}")).await;
            }
        }
        for field in ["limit", "cap", "number"] {
            let sale = fresh(&world, &mut redis).await;
            redis.call(&["HDEL", &keys.meta(0, &sale), field]).await;
            nothing_changes(&world, &mut redis, &sale, &Reserved::Damaged, &format!("no {field}")).await;
        }
        world.stop().await;
    });
}

#[test]
fn keys_that_do_not_name_their_shards_sell_nothing() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut redis = RawRedis::of(&world).await;
        let sale = fresh(&world, &mut redis).await;
        redis.call(&["HDEL", &world.servers.redis.keys.meta(0, &sale), "shards"]).await;
        let before = redis.dump().await;
        let answers = reserve(&world.servers.redis, &sale, EPOCH, &[BOB, ALICE]).await;
        assert_eq!(answers, [Reserved::OtherShards, Reserved::Replayed]);
        assert!(before == redis.dump().await, "something was written");
        world.stop().await;
    });
}

#[test]
fn a_damaged_state_or_record_refuses_whom_it_concerns() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut redis = RawRedis::of(&world).await;
        let (store, keys) = (&world.servers.redis, world.servers.redis.keys.clone());
        for state in ["", "OPEN", "bogus"] {
            let sale = fresh(&world, &mut redis).await;
            redis.call(&["HSET", &keys.meta(0, &sale), "state", state]).await;
            let before = redis.dump().await;
            let answers = reserve(store, &sale, EPOCH, &[BOB, ALICE]).await;
            assert_eq!(
                answers,
                [Reserved::Damaged, Reserved::Replayed],
                "state {state:?}: a replay is answered all the same"
            );
            assert!(before == redis.dump().await, "state {state:?}");
        }
        for record in ["", "x", "2", "two 5", "-1 5", "2 "] {
            let sale = fresh(&world, &mut redis).await;
            redis.call(&["HSET", &keys.buyers(0, &sale), user_id(1).as_str(), record]).await;
            let before = redis.dump().await;
            assert_eq!(reserve(store, &sale, EPOCH, &[BOB]).await, [Reserved::Damaged], "buyer {record:?}");
            assert!(before == redis.dump().await, "buyer {record:?}");
        }
        for record in ["", "x", "Q 1 2", "Q 1 two 1 5 - plain"] {
            let sale = fresh(&world, &mut redis).await;
            redis.call(&["HSET", &keys.ledger(0, &sale), &request_id(2).to_string(), record]).await;
            let before = redis.dump().await;
            assert_eq!(reserve(store, &sale, EPOCH, &[BOB]).await, [Reserved::Conflict], "ledger {record:?}");
            assert!(before == redis.dump().await, "ledger {record:?}");
        }
        world.stop().await;
    });
}

#[test]
fn a_grant_to_a_damaged_stock_is_not_written_down() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut redis = RawRedis::of(&world).await;
        let (store, keys) = (&world.servers.redis, world.servers.redis.keys.clone());
        for text in ["", "abc", "1.5", "1e3", "0x10", " 8", "9223372036854775807"] {
            let sale = fresh(&world, &mut redis).await;
            redis.call(&["SET", &keys.stock(0, &sale), text]).await;
            let before = redis.dump().await;
            let refused = store.sale_keys.grant(&sale, 0, EPOCH, ("more", 5)).await;
            assert!(matches!(refused, Err(RedisFault::Refused(_))), "stock {text:?}: {refused:?}");
            assert!(before == redis.dump().await, "stock {text:?}: something was written");
        }
        world.stop().await;
    });
}

#[test]
fn the_backlog_cap_is_exact() {
    run(async {
        for outbox in OUTBOX_KINDS {
            let world = World::with(&[], &[outbox]).await;
            let mut redis = RawRedis::of(&world).await;
            redis.clear().await;
            let (store, sale) = (&world.servers.redis, redis_sale("cap", 0));
            store.sale_keys.activate(&sale, 0, 5, ("g", 100)).await.unwrap();
            store.sale_keys.set_state(&sale.sale_id, 0, MetaState::Open, &[MetaState::Loaded]).await.unwrap();
            let ask = |id| Ask { id, user: 0, quantity: 1 };
            let group: Vec<Ask> = (1..=8).map(ask).collect();
            let answers = reserve(store, &sale.sale_id, EPOCH, &group).await;
            let accepted = answers.iter().filter(|answer| **answer == Reserved::Accepted).count();
            assert_eq!(accepted, 5, "{answers:?}");
            assert!(answers[5..].iter().all(|answer| *answer == Reserved::Backlog), "{answers:?}");
            assert_eq!(store.outbox.depth(0).await.unwrap(), (5, 0));
            assert_eq!(
                reserve(store, &sale.sale_id, EPOCH, &[ask(1)]).await,
                [Reserved::Replayed],
                "a replay is no load"
            );
            // In a relay's hand it is as unsent as before.
            let read = store.outbox.new_entries(0, "relay-1", 3).await.unwrap();
            assert_eq!(reserve(store, &sale.sale_id, EPOCH, &[ask(6)]).await, [Reserved::Backlog]);
            let gone = sent(&read[0]);
            assert_eq!(gone.orders, if outbox == STREAM { 5 } else { 1 });
            assert_eq!(store.outbox.done(0, "relay-1", std::slice::from_ref(&gone)).await.unwrap(), 1);
            assert_eq!(
                store.outbox.done(0, "relay-1", std::slice::from_ref(&gone)).await.unwrap(),
                0,
                "not counted off twice"
            );
            let more: Vec<Ask> = (11..=10 + gone.orders as u64 + 1).map(ask).collect();
            let answers = reserve(store, &sale.sale_id, EPOCH, &more).await;
            let (accepted, last) = answers.split_at(gone.orders);
            assert!(accepted.iter().all(|answer| *answer == Reserved::Accepted), "{answers:?}");
            assert_eq!(last, [Reserved::Backlog]);
            let left = 95 - i64::try_from(gone.orders).unwrap();
            assert_eq!(store.stock.units(&sale.sale_id, 0).await.unwrap(), Some(left));
            // What somebody deletes by hand fills no outbox: a backlog that is gone must not refuse for ever.
            let outbox_key = if outbox == LIST { store.keys.outbox_list(0) } else { store.keys.outbox(0) };
            let held = if outbox == LIST { 2 } else { 0 };
            match held {
                0 => world.redis(&["XTRIM", &outbox_key, "MAXLEN", "0"]).await,
                _ => world.redis(&["DEL", &outbox_key]).await,
            };
            assert_eq!(store.outbox.depth(0).await.unwrap().0, held);
            let again: Vec<Ask> = (21..=26).map(ask).collect();
            let answers = reserve(store, &sale.sale_id, EPOCH, &again).await;
            let accepted = answers.iter().filter(|answer| **answer == Reserved::Accepted).count() as u64;
            assert_eq!((accepted, store.outbox.depth(0).await.unwrap().0), (5 - held, 5), "{answers:?}");
            world.stop().await;
        }
    });
}
