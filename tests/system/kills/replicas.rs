//! Accepts that wait for a replica (B6; windows 15 and 16). What too few replicas have is never reported as accepted,
//! and with `min-replicas-to-write` it is not even made.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::replicas::{in_step, pair};
use crate::support::world::{Answer, World, eventually, run_waiting};
use seckill::roles::Role;

/// What the api role of this world says about Redis: whether it is ready, and why not.
async fn ready(world: &World) -> (bool, String) {
    let probes = world.probed(Role::Api).await;
    let redis = probes.into_iter().find(|probe| probe.name == "redis").expect("a probe");
    (redis.ok, redis.problem.unwrap_or_default() + &redis.warnings.join("; "))
}

#[test]
fn what_no_replica_has_is_unknown_until_one_has_it() {
    run_waiting(async {
        let (primary, mut replica) = pair("wait").await;
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300", "p1_entry.cache_ttl_ms=50"];
        let world = World::on_redis(&primary.url(), "wait", &[Role::Api], &set).await;
        let sale = world.sale("wait", 10, Some(1)).await;
        let first = world.buy(&sale, "first", 1, None).await;
        assert_eq!(first.status, 202, "{first:?}");
        let there =
            RawRedis::at(&replica.url(), "").await.call(&["HLEN", &world.servers.redis.keys.ledger(0, &sale)]).await;
        assert_eq!(there.int(), 2, "accepted means on the replica");
        let (token, request_id) = world.token(&sale, "alice").await;

        replica.pause().unwrap();
        for time in ["the accept", "its replay"] {
            let unknown = world.buy(&sale, "alice", 1, Some(&token)).await;
            assert_eq!((unknown.status, unknown.code().as_str()), (504, "OUTCOME_UNKNOWN"), "{time}: {unknown:?}");
            assert_eq!(unknown.text("request_id"), request_id, "{time}: {unknown:?}");
        }
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(8), "it is real here, once");
        let asked = world.status(&sale, "alice", &request_id, 0).await;
        assert_eq!(asked.status, 503, "QUEUED would say accepted: {asked:?}");
        // Nor that there is none: a former primary would not know what its successor accepted.
        let (_, unused) = world.token(&sale, "bob").await;
        let asked = world.status(&sale, "bob", &unused, 0).await;
        assert_eq!(asked.status, 503, "no replica follows this server: {asked:?}");
        // A pause of the sale does not make the replay a promise, either.
        world.sale_control().pause(&sale).await.unwrap();
        eventually("the entry knows of the pause", async || {
            Answer::of(world.request(reqwest::Method::GET, "/v1/sales/wait", "alice")).await.code() == "P1-S7"
        })
        .await;
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300"];
        let unknown = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!(unknown.status, 504, "{unknown:?}");
        world.sale_control().resume(&sale).await.unwrap();

        replica.resume().unwrap();
        eventually("the replay is answered", async || {
            let again = world.buy(&sale, "alice", 1, Some(&token)).await;
            assert!(matches!(again.status, 202 | 503 | 504), "{again:?}");
            again.status == 202 && again.text("request_id") == request_id
        })
        .await;
        assert_eq!(world.status(&sale, "alice", &request_id, 0).await.text("status"), "QUEUED");
        eventually("there is none", async || world.status(&sale, "bob", &unused, 0).await.status == 404).await;
        let other = world.second_world(&[Role::Api], &set).await;
        assert_eq!(
            other.buy(&sale, "alice", 1, Some(&token)).await.status,
            202,
            "a replay on a connection that wrote nothing"
        );
        other.stop().await;
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], |_| {});
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.ordered, counted.redis_stock), (2, 8), "one unit each: {counted:?}");
        rest.stop().await;
        world.finish().await;
    });
}

/// A former primary that wakes answers within the same moment, so what was known of the replicas just before says nothing.
#[test]
fn that_there_is_no_such_order_is_never_answered_after_an_earlier_reading_of_the_replicas() {
    run_waiting(async {
        let (primary, mut replica) = pair("asked").await;
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300"];
        let world = World::on_redis(&primary.url(), "asked", &[Role::Api], &set).await;
        let (open, gone) = (world.sale("asked", 10, None).await, world.sale("gone", 1, None).await);
        assert_eq!(world.buy(&gone, "alice", 1, None).await.status, 202);
        let (_, unused) = world.token(&open, "bob").await;
        let (token, _) = world.token(&gone, "bob").await;
        for round in 0..3 {
            eventually("there is none", async || world.status(&open, "bob", &unused, 0).await.status == 404).await;
            eventually("sold out", async || world.buy(&gone, "bob", 1, Some(&token)).await.status == 410).await;
            assert_eq!(world.status(&open, "bob", &unused, 0).await.status, 404);
            replica.pause().unwrap();
            let asked = world.status(&open, "bob", &unused, 0).await;
            assert_eq!(asked.status, 503, "round {round}: no replica follows this server now: {asked:?}");
            let asked = world.buy(&gone, "bob", 1, Some(&token)).await;
            assert_eq!(asked.status, 504, "round {round}: its successor may have accepted it: {asked:?}");
            replica.resume().unwrap();
        }
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], |_| {});
        assert_eq!(world.settled(&gone).await.counted.ordered, 1);
        rest.stop().await;
        world.finish().await;
    });
}

/// Calls of a command that the server has processed.
async fn calls(url: &str, command: &str) -> i64 {
    let stats = RawRedis::at(url, "").await.call(&["INFO", "commandstats"]).await.text();
    let start = format!("cmdstat_{command}:calls=");
    let calls = stats.lines().find_map(|line| line.strip_prefix(&start)?.split(',').next());
    calls.map_or(0, |calls| calls.parse().unwrap())
}

#[test]
fn each_wait_has_a_write_before_it_and_an_idle_relay_waits_for_nothing() {
    run_waiting(async {
        let (primary, replica) = pair("written").await;
        let url = primary.url();
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300"];
        let world = World::on_redis(&url, "written", &[Role::Api, Role::Relay], &set).await;
        let sale = world.sale("written", 10, None).await;
        let (token, id) = world.token(&sale, "alice").await;
        // The second is a replay: its command writes nothing.
        for _ in 0..2 {
            assert_eq!(world.buy(&sale, "alice", 1, Some(&token)).await.status, 202);
        }
        assert_eq!(world.status(&sale, "alice", &id, 0).await.text("status"), "QUEUED");
        eventually("it is sent and done", async || world.outbox().await == (0, 0)).await;
        // Waits first: a call between the two questions may only add to the writes.
        let (waits, writes) = (calls(&url, "wait").await, calls(&url, "pexpire").await);
        assert!(waits > 3 && writes >= waits, "{writes} writes for {waits} waits");
        for server in [&primary, &replica] {
            let left = RawRedis::at(&server.url(), "").await.call(&["PTTL", "written:{0}:barrier"]).await.int();
            assert!((1..=604_800_000).contains(&left), "{left} ms");
        }

        let (waits, reads) = (calls(&url, "wait").await, calls(&url, "xreadgroup").await);
        eventually("the relay asks for work", async || calls(&url, "xreadgroup").await > reads + 60).await;
        let waited = calls(&url, "wait").await - waits;
        assert!(waited < 20, "{waited} waits for 60 reads that found nothing");
        let rest = world.extra_roles(&[Role::Consumer, Role::Reconcile], |_| {});
        assert_eq!(world.settled(&sale).await.counted.ordered, 1);
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn polls_of_a_queued_order_wait_for_the_replicas_once() {
    run_waiting(async {
        let (primary, _replica) = pair("polled").await;
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300"];
        let world = World::on_redis(&primary.url(), "polled", &[Role::Api], &set).await;
        let sale = world.sale("polled", 10, None).await;
        let mut orders = Vec::new();
        for buyer in ["alice", "bob", "carol"] {
            orders.push((buyer, world.buy(&sale, buyer, 1, None).await.text("request_id")));
        }
        let before = calls(&primary.url(), "wait").await;
        for _ in 0..100 {
            let polls = orders.iter().map(|(buyer, id)| world.status(&sale, buyer, id, 0));
            for answer in futures::future::join_all(polls).await {
                assert_eq!((answer.status, answer.text("status").as_str()), (200, "QUEUED"), "{answer:?}");
            }
        }
        let waited = calls(&primary.url(), "wait").await - before;
        assert!((1..=3).contains(&waited), "{waited} waits for 300 polls of 3 orders");
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], |_| {});
        assert_eq!(world.settled(&sale).await.counted.ordered, 3);
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn readiness_says_when_replicas_are_missing_and_nothing_is_sold_then() {
    run_waiting(async {
        let (primary, mut replica) = pair("missing").await;
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300"];
        let world = World::on_redis(&primary.url(), "missing", &Role::ALL, &set).await;
        let sale = world.sale("missing", 10, None).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        // The other roles may still be on their way up when the entry sells.
        eventually("every role is ready", async || ready(&world).await.0).await;
        let (_, why) = ready(&world).await;
        assert!(why.contains("min-replicas-to-write"), "recommended: {why}");

        replica.kill().await.unwrap();
        eventually("the entry refuses at once", async || world.buy(&sale, "bob", 1, None).await.status == 503).await;
        let (is_ready, why) = ready(&world).await;
        assert!(!is_ready && why.contains("connected replicas is 0, expected 1 or more"), "{why}");
        let stock = world.servers.redis.stock.units(&sale, 0).await.unwrap();
        for _ in 0..3 {
            let refused = world.buy(&sale, "carol", 1, None).await;
            assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"), "{refused:?}");
        }
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), stock, "nothing was accepted");

        replica.restart().await.unwrap();
        let port = primary.port().to_string();
        RawRedis::at(&replica.url(), "").await.call(&["REPLICAOF", "127.0.0.1", &port]).await;
        in_step(&replica).await;
        eventually("selling goes on", async || world.buy(&sale, "dave", 1, None).await.status == 202).await;
        eventually("ready again", async || ready(&world).await.0).await;
        world.finish().await;
    });
}

#[test]
fn with_min_replicas_to_write_nothing_is_half_done() {
    run_waiting(async {
        let (primary, mut replica) = pair("min").await;
        let world = World::on_redis(
            &primary.url(),
            "min",
            &[Role::Api],
            &["p1_entry.cache_ttl_ms=60000", "p1_entry.cache_stale_max_ms=60000"],
        )
        .await;
        let sale = world.sale("min", 10, None).await;
        world.config_set("min-replicas-to-write", "1").await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        let (token, request_id) = world.token(&sale, "bob").await;
        let keys = world.servers.redis.keys.clone();
        let of_sale =
            [keys.meta(0, &sale), keys.stock(0, &sale), keys.buyers(0, &sale), keys.ledger(0, &sale), keys.outbox(0)];
        let mut redis = RawRedis::of(&world).await;

        replica.kill().await.unwrap();
        eventually("the primary knows", async || {
            RawRedis::of(&world).await.call(&["INFO", "replication"]).await.text().contains("connected_slaves:0")
        })
        .await;
        let mut before = Vec::new();
        for key in &of_sale {
            before.push(redis.call(&["DUMP", key]).await);
        }
        for _ in 0..3 {
            let refused = world.buy(&sale, "bob", 1, Some(&token)).await;
            assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"), "{refused:?}");
        }
        for (key, before) in of_sale.iter().zip(&before) {
            assert_eq!(redis.call(&["DUMP", key]).await, *before, "{key}");
        }

        replica.restart().await.unwrap();
        let port = primary.port().to_string();
        RawRedis::at(&replica.url(), "").await.call(&["REPLICAOF", "127.0.0.1", &port]).await;
        in_step(&replica).await;
        eventually("the same token is accepted", async || {
            let again = world.buy(&sale, "bob", 1, Some(&token)).await;
            again.status == 202 && again.text("request_id") == request_id
        })
        .await;
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], |_| {});
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        rest.stop().await;
        world.finish().await;
    });
}
