//! The private Redis Cluster does what the tests on it rely on: it comes up whole, keeps its data, and fails over.

use crate::support::processes::redis_sets::{Cluster, Force, Node};
use crate::support::world::{eventually, run_waiting};

/// Waits until a replica has a write: replication does not make the writer wait.
async fn has(replica: &Node, key: &str, wanted: &str) {
    eventually("the write is on the replica", async || {
        replica.try_calls(&[&["READONLY"], &["GET", key]]).await.is_ok_and(|value| value == wanted)
    })
    .await;
}

#[test]
fn a_killed_primary_is_replaced_and_comes_back_as_a_replica() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &["min-replicas-to-write 0"]).await;
        assert_eq!(cluster.url().matches("127.0.0.1:").count(), 3, "{}", cluster.url());
        let old = cluster.primary_of_tag("{3}").await;
        cluster.call("{3}", &["SET", "{3}:key", "kept"]).await;
        assert!(old.calls("set").await == 1 && old.calls("evalsha").await == 0, "it ran there");
        let replica = cluster.replica_of(old).await;
        has(replica, "{3}:key", "kept").await;

        old.kill().await;
        let new = cluster.failed_over(old).await;
        assert_eq!(new.port(), replica.port());
        assert_eq!(cluster.call("{3}", &["GET", "{3}:key"]).await, "kept");
        cluster.call("{3}", &["SET", "{3}:key", "changed"]).await;

        old.restart().await;
        cluster.whole().await;
        assert_eq!(cluster.replica_of(new).await.port(), old.port());
        has(old, "{3}:key", "changed").await;
        cluster.fail_over_to(old, Force::Agreed).await;
        assert_eq!(cluster.primary_of_tag("{3}").await.port(), old.port());
        assert_eq!(cluster.call("{3}", &["GET", "{3}:key"]).await, "changed");
    });
}

#[test]
fn a_frozen_primary_loses_its_slots_and_learns_of_it() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &["requirepass secret"]).await;
        let old = cluster.primary_of_tag("{0}").await;
        old.freeze().await;
        assert!(!old.runs() && old.try_call(&["PING"]).await.is_err(), "it stands still");
        let new = cluster.failed_over(old).await;
        old.thaw().await;
        cluster.whole().await;
        assert_eq!(cluster.replica_of(new).await.port(), old.port());
        for force in [Force::Voted, Force::Takeover] {
            let replica = cluster.replica_of(new).await;
            cluster.fail_over_to(replica, force).await;
            cluster.whole().await;
        }
    });
}

#[test]
fn without_replicas_a_dead_primary_takes_only_its_own_slots_away() {
    run_waiting(async {
        let cluster = Cluster::start(3, 0, &[]).await;
        let ports: Vec<u16> = cluster.nodes().iter().map(Node::port).collect();
        for (slot, port) in [(0, ports[0]), (5_461, ports[1]), (10_922, ports[2]), (16_383, ports[2])] {
            assert_eq!(cluster.primary_of_slot(slot).await.port(), port, "{slot}");
        }
        let slot = cluster.slot_of("{1}").await;
        let dead = cluster.primary_of_slot(slot).await;
        let other = cluster.nodes().iter().find(|node| node.port() != dead.port()).unwrap();
        let mut alive = String::new();
        for tag in 0.. {
            alive = format!("{{{tag}}}");
            if cluster.primary_of_tag(&alive).await.port() == other.port() {
                break;
            }
        }
        dead.kill().await;
        eventually("its death is known", async || {
            other.call(&["CLUSTER", "INFO"]).await.as_str().is_some_and(|info| !info.contains("cluster_slots_fail:0"))
        })
        .await;
        let refusal = other.try_call(&["GET", "{1}"]).await.unwrap_err().to_string();
        assert!(refusal.contains(&format!("MOVED {slot} 127.0.0.1:{}", dead.port())), "sent to the dead: {refusal}");
        assert_eq!(cluster.call(&alive, &["SET", &alive, "yes"]).await, "OK", "the others sell on");
        dead.restart().await;
        cluster.whole().await;
    });
}
