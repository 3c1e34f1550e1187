//! Request ids are unique among processes, and a status is for its owner only.

use crate::support::basics::resp::RawRedis;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::domain::snowflake::NODES;
use seckill::p1_entry::request_ids::RequestIds;
use seckill::roles::Role;
use seckill::runtime::{Stopper, now_ms};
use std::collections::HashSet;
use std::time::{Duration, Instant};

const IDS: usize = 20_000;

/// Takes ids as fast as they come, waiting where the lease is spent or not yet there.
async fn take(ids: RequestIds) -> Vec<RequestId> {
    let mut taken = Vec::with_capacity(IDS);
    let deadline = Instant::now() + Duration::from_secs(30);
    while taken.len() < IDS {
        assert!(Instant::now() < deadline, "{} ids only", taken.len());
        match ids.next() {
            Ok(id) => taken.push(id),
            Err(_) => crate::support::world::pause().await,
        }
    }
    taken
}

#[test]
fn processes_never_make_the_same_request_id() {
    run(async {
        let world = World::with(&[], &[]).await;
        let mut redis = RawRedis::of(&world).await;
        // Only three node ids are free: without leases the processes would meet on them.
        let (nodes, fence) = (world.servers.redis.keys.nodes(0), now_ms() + 3_600_000);
        for node in 3..NODES {
            redis.call(&["HSET", &nodes, &node.to_string(), &format!("{fence} someone")]).await;
        }
        let stopper = Stopper::new();
        let start =
            |name: &str| RequestIds::start(world.servers.redis.leases.clone(), name.to_owned(), stopper.clone());
        let three = ["one", "two", "three"].map(start);
        eventually("three leases", async || three.iter().all(RequestIds::is_ready)).await;
        let fourth = start("four");
        let taking = three.into_iter().map(|ids| tokio::spawn(take(ids)));
        let mut seen = HashSet::new();
        for taken in futures::future::join_all(taking).await {
            let taken = taken.unwrap();
            assert!(taken.is_sorted(), "one process's ids grow");
            for id in taken {
                assert!(seen.insert(id), "{id} was made twice");
            }
        }
        assert_eq!(seen.len(), 3 * IDS);
        assert!(!fourth.is_ready() && fourth.next().is_err(), "there is no fourth node");
        stopper.stop();
        world.stop().await;
    });
}

#[test]
fn the_next_holder_of_a_node_starts_after_its_fence() {
    run(async {
        let world = World::with(&[], &[]).await;
        let store = &world.servers.redis;
        let now = now_ms();
        let first = store
            .leases
            .lease(5, "one", seckill::store::redis::LeaseTime { now_ms: now, lease_ms: 60_000 }, true)
            .await
            .unwrap()
            .expect("a lease");
        assert!(first.fence_ms >= now + 60_000);
        for clock in [now, now + 59_999] {
            assert!(
                store
                    .leases
                    .lease(5, "two", seckill::store::redis::LeaseTime { now_ms: clock, lease_ms: 60_000 }, true)
                    .await
                    .unwrap()
                    .is_none(),
                "it is held"
            );
        }
        let late = first.fence_ms + 1;
        assert!(
            store
                .leases
                .lease(5, "two", seckill::store::redis::LeaseTime { now_ms: late, lease_ms: 60_000 }, false)
                .await
                .unwrap()
                .is_none(),
            "not asked to take over"
        );
        let second = store
            .leases
            .lease(5, "two", seckill::store::redis::LeaseTime { now_ms: late, lease_ms: 60_000 }, true)
            .await
            .unwrap()
            .expect("its time is over");
        assert!(second.after_ms >= first.fence_ms, "{second:?} after {first:?}");
        assert!(
            store
                .leases
                .lease(5, "one", seckill::store::redis::LeaseTime { now_ms: late, lease_ms: 60_000 }, false)
                .await
                .unwrap()
                .is_none(),
            "no way back"
        );
        world.stop().await;
    });
}

#[test]
fn a_status_is_for_its_owner_only() {
    run(async {
        let world = World::start().await;
        let (sale, other) = (world.sale("status", 5, None).await, world.sale("else", 5, None).await);
        let id = world.buy(&sale, "alice", 2, None).await.text("request_id");
        for settled in [false, true] {
            for (sale, user) in [(&sale, "bob"), (&sale, "Alice"), (&sale, "alice "), (&other, "alice")] {
                let answer = world.status(sale, user, &id, 0).await;
                assert_eq!(
                    (answer.status, answer.code().as_str()),
                    (404, "ORDER_NOT_FOUND"),
                    "{sale} {user} {settled}"
                );
                assert!(!answer.body.contains("quantity"), "{answer:?}");
            }
            let mine = world.status(&sale, "alice", &id, 20).await;
            assert_eq!((mine.status, mine.text("status").as_str()), (200, "CONFIRMED"), "{mine:?}");
            assert_eq!((mine.text("request_id"), &mine.json["quantity"]), (id.clone(), &serde_json::json!(2)));
            assert_eq!((mine.text("code").as_str(), mine.header("cache-control")), ("P4-C0", "no-store"));
        }
        let never = world.status(&sale, "alice", "4242", 0).await;
        assert_eq!(never.status, 404, "{never:?}");
        world.finish().await;
    });
}

/// The order is in the broker; Redis loses the ledger. "No such order" would be a lie.
#[test]
fn an_accepted_buyer_never_gets_404_because_redis_lost_the_ledger() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay], &[]).await;
        let sale = world.sale("forgetful", 5, None).await;
        let id = world.buy(&sale, "alice", 1, None).await.text("request_id");
        eventually("the order is in the broker", async || world.waiting_in("seckill.orders").await == 1).await;
        let ledger = world.servers.redis.keys.ledger(0, &sale);
        world.redis(&["DEL", &ledger]).await;
        let answer = world.status(&sale, "alice", &id, 0).await;
        assert_eq!((answer.status, answer.retry_after_s() > 0), (503, true), "{answer:?}");
        let consumer = world.extra_roles(&[Role::Consumer], |_| {});
        eventually("her order", async || world.status(&sale, "alice", &id, 0).await.status == 200).await;
        let found = world.status(&sale, "alice", &id, 0).await;
        assert_eq!(found.text("status"), "CONFIRMED");
        let other = world.status(&sale, "bob", &id, 0).await;
        assert!(other.status != 200 && !other.body.contains("quantity"), "{other:?}");
        consumer.stop().await;
        world.stop().await;
    });
}
