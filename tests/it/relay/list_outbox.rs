//! The outbox as a list (C8): what only lists have, processing lists, hands and no streams at all. What both kinds of outbox
//! promise is tested with both in the other files of this folder.

use crate::support::basics::resp::{RawRedis, Reply};
use crate::support::world::fault_injection::redis;
use crate::support::world::outbox_kinds::sent_by_id;
use crate::support::world::relay_state::{no_relay_is_named, parked, read_and_die};
use crate::support::world::{World, eventually, run, shared, time_passes};
use seckill::p5_reconcile::{Window, request_history};
use seckill::roles::Role::{self, Api, Consumer, Relay};
use seckill::store::rabbit::declare;
use serde_json::Value;

const LIST: &str = "redis.outbox=list";

#[test]
fn with_lists_no_phase_needs_a_stream() {
    run(async {
        let (urls, name) = (shared().await.urls(), "nostreams");
        shared().await.add_vhost(name).await.expect("a virtual host");
        // A user who may do everything but what concerns streams: whatever tries to is refused.
        let user = ["ACL", "SETUSER", name, "reset", "on", ">pw", "~*", "&*", "+@all", "-@stream"];
        redis(&urls.redis_url, &user).await;
        let url = urls.redis_url.replace("redis://", &format!("redis://{name}:pw@"));
        let (amqp, mysql) =
            (urls.amqp_url.replace("%2f", name), urls.mysql_url.replace("/seckill", &format!("/{name}")));
        let set = [LIST, "p3_relay.attempts_max=2", "p5_reconcile.quiet_ms=1000"];
        let world = World::on((&url, &amqp, &mysql), name, &Role::ALL, &set).await;
        let sale = world.sale("lists", 1_000, Some(1)).await;
        world.sell(&sale, 200).await;
        eventually("all of them", async || world.orders(&sale).await == 200).await;
        eventually("an empty outbox", async || world.outbox().await == (0, 0)).await;
        assert!(world.servers.redis.outbox.scan(0, "-", 10).await.unwrap().entries.is_empty());
        // Parked, read, copied to the register: the poison stays for a person.
        let mut raw = RawRedis::at(&urls.redis_url, name).await;
        raw.call(&["LPUSH", &world.servers.redis.keys.outbox_list(0), "who knows"]).await;
        eventually("a parked one", async || parked(&world).await == 1).await;
        let entry = world.servers.redis.relay_dlq.page(0, "-", 10).await.unwrap().remove(0);
        assert!(entry.reason.contains("field s is missing") && entry.parked_at_ms > 0, "{entry:?}");
        assert!(world.servers.redis.relay_dlq.page(0, &format!("({}", entry.id), 10).await.unwrap().is_empty());
        // Lost keys: the rebuild makes the sale again.
        raw.call(&["DEL", &world.servers.redis.keys.ledger(0, &sale)]).await;
        eventually("the rebuilt sale", async || {
            world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().is_some_and(|meta| meta.epoch == 2)
        })
        .await;
        eventually("it sells again", async || world.buy(&sale, "last", 1, None).await.status == 202).await;
        eventually("the last one", async || world.orders(&sale).await == 201).await;
        world.servers.redis.relay_dlq.remove(0, &entry.id).await.unwrap();
        assert_eq!(parked(&world).await, 0);
        for key in raw.keys().await {
            assert_ne!(raw.call(&["TYPE", &key]).await, Reply::Bytes(b"stream".to_vec()), "{key}");
        }
        world.finish().await;
    });
}

#[test]
fn a_relay_killed_with_entries_in_its_list_has_them_back_at_its_start() {
    run(async {
        let set = ["p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000", LIST];
        let world = World::with(&[Api, Consumer], &set).await;
        let sale = world.sale("lists", 100, Some(1)).await;
        world.sell(&sale, 40).await;
        // Sent and confirmed, and dead before it could say so: a SIGKILL of a real process.
        let claim = ["p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000"];
        world.process("relay", "F7=return", &claim).dies_at("F7").await;
        let (all, held) = world.outbox().await;
        assert!(all == 40 && held > 0, "{all} entries, {held} in its hand");
        let relay = world.process("relay", "", &claim);
        eventually("all of them, long before the claim time", async || world.orders(&sale).await == 40).await;
        no_relay_is_named(&world).await;
        drop(relay);
        world.finish().await;
    });
}

#[test]
fn a_question_finds_an_entry_in_the_list_and_in_a_hand() {
    run(async {
        let world = World::with(&[Api], &[LIST]).await;
        let sale = world.sale("lists", 100, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        let detail = async || {
            let audit = world.audit(&sale, Window::Now).await;
            audit.findings.into_iter().find(|finding| finding.request_id == Some(alice)).expect("a leak").detail
        };
        let (waiting, entry) = (detail().await, request_history(&world.reconcile_context(), alice).await.outbox_entry);
        assert!(waiting.contains("in no relay's hand"), "{waiting}");
        assert!(entry.is_some_and(|id| id.ends_with(&alice.to_string())));
        read_and_die(&world, "relay-7", 1).await;
        let (held, entry) = (detail().await, request_history(&world.reconcile_context(), alice).await.outbox_entry);
        assert!(held.contains("read by relay relay-7 and not confirmed") && entry.is_some(), "{held}");
        let page = world.servers.redis.outbox.scan(0, "-", 10).await.unwrap();
        let held = &page.entries[0];
        assert_eq!(
            (page.entries.len(), held.entry.field("s")),
            (1, Some(sale.as_str().as_bytes())),
            "what a rebuild asks"
        );
        // Its time is over and no relay holds it: parked, then persisted out of the ledger like any other.
        world
            .servers
            .redis
            .outbox
            .park(0, "relay-7", &held.entry.id, seckill::store::redis::ParkReason { reason: "nack", attempts: 10 })
            .await
            .unwrap();
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.parked == 1, "{audit:#?}");
        let rest = world.extra_roles(&[Consumer, Role::Reconcile], |_| {});
        eventually("landed", async || world.orders(&sale).await == 1 && parked(&world).await == 0).await;
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn who_lost_an_entry_counts_and_parks_nothing_and_deletes_only_its_own() {
    run(async {
        let world = World::with(&[Api], &[LIST]).await;
        let sale = world.sale("lists", 100, Some(1)).await;
        world.sell(&sale, 3).await;
        let redis = &world.servers.redis;
        let ids: Vec<String> =
            redis.outbox.new_entries(0, "slow", 3).await.unwrap().into_iter().map(|entry| entry.id).collect();
        assert!(
            redis
                .outbox
                .take_over(0, "quick", 60_000, seckill::store::redis::PageFrom { start: "0-0", count: 10 })
                .await
                .unwrap()
                .entries
                .is_empty(),
            "it is alive"
        );
        assert_eq!(redis.outbox.failed(0, "slow", &ids).await.unwrap(), [1, 1, 1]);
        // Windows 28, 29: it slept, and woke up too late.
        let taken = redis
            .outbox
            .take_over(0, "quick", 0, seckill::store::redis::PageFrom { start: "0-0", count: 2 })
            .await
            .unwrap()
            .entries;
        assert_eq!(taken.iter().map(|entry| &entry.id).collect::<Vec<_>>(), [&ids[0], &ids[1]], "the oldest first");
        assert_eq!(redis.outbox.touch(0, "slow", &ids).await.unwrap(), ids[2..]);
        assert_eq!(redis.outbox.failed(0, "slow", &ids).await.unwrap(), [0, 0, 2]);
        let parking = redis
            .outbox
            .park(0, "slow", &ids[0], seckill::store::redis::ParkReason { reason: "nack", attempts: 10 })
            .await
            .unwrap();
        assert_eq!((parking, parked(&world).await), (seckill::store::redis::Parking::NotOurs, 0));
        assert_eq!(redis.outbox.done(0, "slow", &sent_by_id(&ids)).await.unwrap(), 1);
        assert_eq!(world.outbox().await, (2, 2));
        assert_eq!(redis.outbox.failed(0, "quick", &ids).await.unwrap(), [2, 2, 0], "counted on by the new owner");
        // In any order, and twice.
        assert_eq!(redis.outbox.done(0, "quick", &sent_by_id(&ids[1..2])).await.unwrap(), 1);
        assert_eq!(redis.outbox.own_entries(0, "quick", "0", 10).await.unwrap().0, taken[..1]);
        assert_eq!(redis.outbox.done(0, "quick", &sent_by_id(&ids)).await.unwrap(), 1);
        assert_eq!(redis.outbox.done(0, "quick", &sent_by_id(&ids)).await.unwrap(), 0);
        no_relay_is_named(&world).await;
        world.stop().await;
    });
}

#[test]
fn a_rebuild_waits_for_an_entry_in_a_dead_relays_hand() {
    run(async {
        let world = World::with(&[Api], &[LIST, "p5_reconcile.quiet_ms=500"]).await;
        let sale = world.sale("lists", 100, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        read_and_die(&world, "dead", 1).await;
        // Empty queues: without any the rebuild would wait for those.
        declare(&world.servers.rabbit).await.unwrap();
        assert_eq!(world.redis(&["DEL", &world.servers.redis.keys.ledger(0, &sale)]).await, Value::from(1));
        let epoch = async || world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().map(|meta| meta.epoch);
        let reconcile = world.extra_roles(&[Role::Reconcile], |_| {});
        time_passes(4_000).await;
        assert_eq!(epoch().await, Some(1), "nothing but the entry knows alice");
        let rest = world.extra_roles(&[Consumer, Relay], |_| {});
        eventually("rebuilt", async || epoch().await == Some(2)).await;
        eventually("alice's order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        rest.stop().await;
        reconcile.stop().await;
        world.finish().await;
    });
}
