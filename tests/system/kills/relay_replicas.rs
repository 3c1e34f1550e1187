//! With `redis.wait_replicas` (B6, window 15) the relay sends nothing that too few replicas have. Were it an order
//! already, a promoted replica would sell its units once more.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::replicas::pair;
use crate::support::world::outbox_kinds::{LIST, OUTBOX_KINDS};
use crate::support::world::{World, eventually, run_waiting, time_passes};
use seckill::roles::Role;
use std::collections::BTreeMap;

/// Longer than `p3_relay.claim_idle_ms` here: a second relay takes over what the first one holds.
const TAKEN_OVER_MS: u64 = 6_000;

#[test]
fn what_no_replica_has_is_not_sent_on_before_one_has_it() {
    run_waiting(async {
        for (name, kind) in ["relay-stream", "relay-list"].into_iter().zip(OUTBOX_KINDS) {
            sent_when_replicated(name, kind).await;
        }
    });
}

async fn sent_when_replicated(name: &str, kind: &str) {
    let (primary, mut replica) = pair(name).await;
    let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300", kind];
    let world = World::on_redis(&primary.url(), name, &[Role::Api, Role::Relay], &set).await;
    let sale = world.sale(name, 10, Some(1)).await;
    assert_eq!(world.buy(&sale, "first", 1, None).await.status, 202);
    eventually("it is sent and done", async || world.outbox().await == (0, 0)).await;
    eventually("the queue has it", async || world.waiting_in("seckill.orders").await == 1).await;
    let (token, request_id) = world.token(&sale, "alice").await;

    replica.pause().unwrap();
    let unknown = world.buy(&sale, "alice", 1, Some(&token)).await;
    assert_eq!((unknown.status, unknown.text("request_id")), (504, request_id), "{unknown:?}");
    let other = world.extra_roles(&[Role::Relay], |settings| settings.runtime.node = format!("{name}-other"));
    time_passes(TAKEN_OVER_MS).await;
    let (lying, _) = world.outbox().await;
    assert_eq!((lying, world.waiting_in("seckill.orders").await), (1, 1), "{kind}: it stays in the outbox");

    replica.resume().unwrap();
    eventually("it is sent now", async || world.waiting_in("seckill.orders").await == 2).await;
    eventually("and done", async || world.outbox().await == (0, 0)).await;
    assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202);
    other.stop().await;
    let rest = world.extra_roles(&[Role::Consumer, Role::Reconcile], |_| {});
    let counted = world.settled(&sale).await.counted;
    assert_eq!((counted.ordered, counted.redis_stock), (2, 8), "{counted:?}");
    rest.stop().await;
    world.finish().await;
}

/// The numbers of the connections to a Redis, and whether each has asked for replicas.
async fn connections(raw: &mut RawRedis) -> BTreeMap<String, bool> {
    let list = raw.call(&["CLIENT", "LIST"]).await.text();
    let of_line = |line: &str| {
        let field = |name: &str| line.split(' ').find_map(|field| field.strip_prefix(name));
        Some((field("id=")?.to_owned(), field("name=").is_some_and(|name| name.starts_with("seckill-"))))
    };
    list.lines().filter_map(of_line).collect()
}

#[test]
fn what_a_list_handed_out_is_read_again_when_the_replicas_could_not_be_asked() {
    run_waiting(async {
        let name = "relay-unasked";
        let (primary, _replica) = pair(name).await;
        let mut raw = RawRedis::at(&primary.url(), "").await;
        let late = ["p3_relay.claim_idle_ms=60000", "p5_reconcile.window_ms=120000"];
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300", LIST, late[0], late[1]];
        let world = World::on_redis(&primary.url(), name, &[Role::Api], &set).await;
        let sale = world.sale(name, 100, Some(1)).await;
        assert_eq!(world.buy(&sale, "first", 1, None).await.status, 202);
        let before = connections(&mut raw).await;
        let relay = world.extra_roles(&[Role::Relay], |_| {});
        eventually("it is sent and done", async || world.outbox().await == (0, 0)).await;
        let now = connections(&mut raw).await;
        let asking = now.iter().find(|(id, asks)| **asks && !before.contains_key(*id)).expect("one of the relay").0;
        // Its other connection stands, and this one cannot be made again.
        raw.call(&["CONFIG", "SET", "maxclients", &(now.len() - 1).to_string()]).await;
        raw.call(&["CLIENT", "KILL", "ID", asking]).await;
        // The relay knows it before there is anything to hand out.
        time_passes(1_000).await;
        for buyer in 0..5 {
            assert_eq!(world.buy(&sale, &format!("buyer-{buyer}"), 1, None).await.status, 202);
        }
        eventually("some are in its hand", async || world.outbox().await.1 > 0).await;
        time_passes(1_000).await;
        assert_eq!(world.outbox().await.0, 5, "it is not known whether replicas have that they were handed out");
        raw.call(&["CONFIG", "SET", "maxclients", "10000"]).await;
        eventually("they are sent and done", async || world.outbox().await == (0, 0)).await;
        relay.stop().await;
        let rest = world.extra_roles(&[Role::Consumer, Role::Reconcile], |_| {});
        assert_eq!(world.settled(&sale).await.counted.ordered, 6);
        rest.stop().await;
        world.finish().await;
    });
}
