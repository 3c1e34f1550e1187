//! Entries and names in the stream that reading alone never finds, or that somebody took away.

use crate::support::world::relay_state::{attempts, nothing_is_left, outbox_key, parked, read_and_die};
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::redis::SentEntry;

#[test]
fn an_entry_acknowledged_but_not_deleted_is_relayed_again_and_harms_nobody() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("zombie", 100, Some(1)).await;
        let outbox = outbox_key(&world);
        world.sell(&sale, 2).await;
        let entries = world.servers.redis.outbox.page(0, "-", 10).await.unwrap();
        let relay = world.extra_roles(&[Relay], |_| {});
        eventually("both orders", async || world.orders(&sale).await == 2).await;
        nothing_is_left(&world).await;
        relay.stop().await;
        // Window 44, before and after the order: one that is persisted already, one that never went out.
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        let fields: Vec<String> =
            entries[0].fields.iter().flat_map(|(name, value)| [name.clone(), text(value)]).collect();
        let again = ["XADD", &outbox, "*"].into_iter().chain(fields.iter().map(String::as_str));
        world.redis(&again.collect::<Vec<_>>()).await;
        let last = world.bought(&sale, "last").await;
        let read = world.servers.redis.outbox.new_entries(0, "ghost", 10).await.unwrap();
        for entry in &read {
            world.redis(&["XACK", &outbox, "relay", &entry.id]).await;
        }
        assert_eq!((read.len(), world.outbox().await), (2, (2, 0)));
        let relay = world.extra_roles(&[Relay], |_| {});
        eventually("the one that never went out", async || world.status_of(&sale, "last", last).await.0 == "CONFIRMED")
            .await;
        nothing_is_left(&world).await;
        assert_eq!((world.orders(&sale).await, parked(&world).await), (3, 0));
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn deleted_entries_do_not_break_their_batch_and_their_requests_are_persisted_from_the_ledger() {
    run(async {
        let world =
            World::with(&[Api, Consumer], &["p3_relay.claim_idle_ms=1000", "p3_relay.confirm_timeout_ms=900"]).await;
        let sale = world.sale("deleted", 100, Some(1)).await;
        let (outbox, counts) = (outbox_key(&world), world.servers.redis.keys.attempts(0));
        // One after the other, so that each entry has one order, whatever it may hold.
        for buyer in 0..20 {
            world.bought(&sale, &format!("buyer-{buyer}")).await;
        }
        // Window 32: in this relay's own history. Window 31: in another one's.
        read_and_die(&world, &format!("relay-{}", world.settings.node()), 10).await;
        read_and_die(&world, "ghost", 10).await;
        let all = world.servers.redis.outbox.page(0, "-", 20).await.unwrap();
        for gone in [2, 3, 12, 17] {
            world.redis(&["HINCRBY", &counts, &all[gone].id, "3"]).await;
            world.redis(&["XDEL", &outbox, &all[gone].id]).await;
        }
        assert_eq!(world.outbox().await, (16, 20));
        let relay = world.extra_roles(&[Relay], |_| {});
        eventually("the sixteen", async || world.orders(&sale).await == 16).await;
        eventually("nothing pending", async || world.outbox().await == (0, 0)).await;
        eventually("no attempts", async || attempts(&world).await.is_empty()).await;
        assert_eq!(parked(&world).await, 0, "there was nothing to park");
        let metrics = seckill::telemetry::render();
        let counted =
            metrics.lines().find_map(|line| line.strip_prefix("seckill_p3_relay_deleted_total ")).expect("a metric");
        assert!(counted.parse::<u64>().expect("a count") >= 4, "{counted}");
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        eventually("all twenty", async || world.orders(&sale).await == 20).await;
        reconcile.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn more_entries_are_done_at_once_than_a_script_can_hand_on() {
    run(async {
        const MANY: usize = 9_000;
        let world = World::with(&[], &[]).await;
        let (outbox, store) = (outbox_key(&world), &world.servers.redis.outbox);
        let fill = "for i = 1, tonumber(ARGV[1]) do redis.call('XADD', KEYS[1], '*', 's', 'x') end";
        world.redis(&["EVAL", fill, "1", &outbox, &MANY.to_string()]).await;
        world.redis(&["XGROUP", "CREATE", &outbox, "relay", "0"]).await;
        let read = store.new_entries(0, "slow", MANY).await.unwrap();
        let sent: Vec<SentEntry> = read.into_iter().map(|entry| SentEntry { id: entry.id, orders: 1 }).collect();
        // Window 32: somebody trimmed the stream while a relay had a whole window of it.
        world.redis(&["XTRIM", &outbox, "MAXLEN", "4000"]).await;
        assert_eq!(world.outbox().await, (4_000, 9_000));
        assert_eq!(store.done(0, "slow", &sent).await.unwrap(), 4_000);
        assert_eq!(world.outbox().await, (0, 0));
        world.finish().await;
    });
}

#[test]
fn names_of_relays_that_are_gone_go_too_but_never_with_entries() {
    run(async {
        let set = ["p3_relay.claim_idle_ms=300", "p3_relay.confirm_timeout_ms=250"];
        let world = World::with(&[Api, Consumer], &set).await;
        let sale = world.sale("names", 100, Some(1)).await;
        let outbox = outbox_key(&world);
        world.sell(&sale, 10).await;
        read_and_die(&world, "dead-with-entries", 4).await;
        for name in ["dead-1", "dead-2", "dead-3"] {
            world.redis(&["XGROUP", "CREATECONSUMER", &outbox, "relay", name]).await;
        }
        let redis = &world.servers.redis;
        assert!(redis.outbox.forget_relays(0, "me", 60_000, 16).await.unwrap().is_empty(), "they may only be slow");
        eventually("silence", async || redis.outbox.forget_relays(0, "dead-3", 200, 1).await.unwrap().len() == 1).await;
        let rest = redis.outbox.forget_relays(0, "dead-3", 0, 16).await.unwrap();
        assert!(rest.len() == 1 && !rest.contains(&"dead-with-entries".to_owned()), "{rest:?}");
        let relay = world.extra_roles(&[Relay], |_| {});
        eventually("all ten", async || world.orders(&sale).await == 10).await;
        let names = async || world.redis(&["XINFO", "CONSUMERS", &outbox, "relay"]).await.as_array().unwrap().len();
        eventually("one name", async || names().await == 1).await;
        nothing_is_left(&world).await;
        relay.stop().await;
        world.finish().await;
    });
}
