//! Long outboxes, and entries in them that reading alone never finds or that somebody took away.

use crate::support::world::relay_state::{no_relay_is_named, nothing_is_left, outbox_key, read_and_die};
use crate::support::world::{World, eventually, run_waiting};
use seckill::config::ServerUrl;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill_bench::loadgen;
use serde_json::Value;

/// Far above any test's length: no relay takes over by idle time.
const NO_CLAIM: [&str; 2] = ["p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000"];

#[test]
fn entries_in_nobodys_pending_list_are_found_and_relayed() {
    run_waiting(async {
        // Entries of one order, so that there are as many.
        let world = World::with(&[Api, Consumer], &[NO_CLAIM[0], NO_CLAIM[1], "p2_reserve.group_max=1"]).await;
        let sale = world.sale("orphans", 2_000, Some(1)).await;
        let outbox = outbox_key(&world);
        // More than one page: window 30 by a consumer deleted with what it had, and by a group set forward.
        world.sell(&sale, 1_200).await;
        read_and_die(&world, "ghost", 700).await;
        assert_eq!(world.redis(&["XGROUP", "DELCONSUMER", &outbox, "relay", "ghost"]).await, Value::from(700));
        world.redis(&["XGROUP", "SETID", &outbox, "relay", "$"]).await;
        assert_eq!(world.outbox().await, (1_200, 0), "no relay has them, and none is given them");
        let relay = world.extra_roles(&[Relay], |settings| settings.p3_relay.claim_idle_ms = 6_000);
        eventually("all of them", async || world.orders(&sale).await == 1_200).await;
        nothing_is_left(&world).await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_group_that_was_destroyed_is_made_again_from_the_beginning() {
    run_waiting(async {
        // Entries of one order: a full hand is four of them.
        let world = World::with(&[Api, Consumer], &["p2_reserve.group_max=1"]).await;
        let sale = world.sale("group", 5_000, Some(1)).await;
        let outbox = outbox_key(&world);
        // With a full hand, of which nothing can go away: nothing is read, so nothing else would notice.
        let stuck = world.extra_roles(&[Relay], |settings| {
            settings.rabbitmq.url = ServerUrl::new("amqp://guest:guest@127.0.0.1:1/%2f".to_owned());
            settings.p3_relay.window_max = 4;
            settings.p3_relay.attempts_max = 1_000;
        });
        world.sell(&sale, 20).await;
        eventually("a full hand", async || world.outbox().await == (20, 4)).await;
        world.redis(&["XGROUP", "DESTROY", &outbox, "relay"]).await;
        eventually("a full hand again", async || world.outbox().await == (20, 4)).await;
        stuck.stop().await;
        let relay = world.extra_roles(&[Relay], |_| {});
        let selling = loadgen::run(loadgen::LoadPlan { first_buyer: 1_000, ..world.crowd(&sale, 2_000) });
        let harm = async {
            for so_far in [100, 400, 900] {
                eventually("a load", async || world.orders(&sale).await > so_far).await;
                world.redis(&["XGROUP", "DESTROY", &outbox, "relay"]).await;
            }
        };
        let (sold, ()) = tokio::join!(selling, harm);
        assert_eq!(sold.unwrap().accepted, 2_000);
        eventually("everything", async || world.orders(&sale).await == 2_020).await;
        nothing_is_left(&world).await;
        relay.stop().await;
        world.finish().await;
    });
}

const LIST: &str = "redis.outbox=list";

#[test]
fn no_list_of_a_dead_relay_stays() {
    run_waiting(async {
        let set = [LIST, "p3_relay.claim_idle_ms=3000", "p5_reconcile.window_ms=120000"];
        let world = World::with(&[Api, Consumer], &set).await;
        let sale = world.sale("lists", 2_000, Some(1)).await;
        world.sell(&sale, 1_000).await;
        // More than a window of one relay; another; one whose hand somebody deleted; one last seen in the future, before the
        // clock was set back (window 95).
        for (name, count) in [("dead-a", 700), ("dead-b", 50), ("nobody", 50), ("tomorrow", 50)] {
            read_and_die(&world, name, count).await;
        }
        let hands = world.servers.redis.keys.hands(0);
        assert_eq!(world.redis(&["HDEL", &hands, "nobody"]).await, Value::from(1));
        world.redis(&["HSET", &hands, "tomorrow", "99999999999999 50"]).await;
        assert_eq!(world.outbox().await, (950, 800), "entries without a holder are counted for none");
        let relay = world.extra_roles(&[Relay], |_| {});
        eventually("all of them", async || world.orders(&sale).await == 1_000).await;
        no_relay_is_named(&world).await;
        relay.stop().await;
        world.finish().await;
    });
}
