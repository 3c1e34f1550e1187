//! What one server of a cluster builds on another one's word (B4, B6; windows 15 and 16): units that move between two servers
//! exist once whichever of the two is replaced, and no process is without request ids because a server is.

use crate::support::buyers::winners::sells_out;
use crate::support::processes::redis_sets::{Cluster, Node};
use crate::support::world::clusters::{SHARDS, buyer_of, cut_off, shards_of, world_on};
use crate::support::world::{World, eventually, pause, run_waiting, time_passes};
use seckill::domain::ids::SaleId;
use seckill::domain::snowflake::NODES;
use seckill::p1_entry::request_ids::{LeaseTerms, RequestIds};
use seckill::runtime::Stopper;
use seckill::store::redis::{Between, Taken};
use std::collections::HashSet;
use std::time::Duration;

const PROMISED: [&str; 3] = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300", "redis.command_timeout_ms=1000"];
const STOCK: i64 = 16;
/// P5 has searched for unfinished transfers in this time.
const P5_MS: u64 = 3_000;

/// The primary of shard 0, cut off from its replica; one of its shards, and one of another server.
async fn alone<'a>(cluster: &'a Cluster, world: &World) -> (&'a Node, &'a Node, u16, u16) {
    let old = cluster.primary_of_tag("{0}").await;
    let replica = cluster.replica_of(old).await;
    let own = shards_of(world, old.port());
    let other = (0..SHARDS).find(|shard| !own.contains(shard)).unwrap();
    cut_off(replica, old).await;
    (old, replica, own[0], other)
}

/// The replica takes over without what it lacks, and the lost one comes back as its replica.
async fn replace(cluster: &Cluster, old: &Node, replica: &Node) {
    old.kill().await;
    replica.thaw().await;
    assert_eq!(cluster.failed_over(old).await.port(), replica.port());
    old.restart().await;
    cluster.whole().await;
}

async fn stock(world: &World, sale: &SaleId, shard: u16) -> i64 {
    // The test's own connection finds the promoted server in its own time.
    let mut bucket = None;
    eventually("the bucket's server answers", async || {
        bucket = world.servers.redis.transfers.bucket(sale, shard).await.ok().flatten();
        bucket.is_some()
    })
    .await;
    bucket.unwrap().stock
}

/// Every unit is in a bucket, once, and sells once.
async fn every_unit_sells_once(world: World, sale: &SaleId, sold: usize) {
    eventually("no unit lies between two buckets", async || {
        let mut left = 0;
        for shard in 0..SHARDS {
            let Ok(Some(bucket)) = world.servers.redis.transfers.bucket(sale, shard).await else { return false };
            left += bucket.stock + bucket.sent - bucket.received;
            if !world.servers.redis.transfers.pending(sale, shard).await.is_ok_and(|records| records.is_empty()) {
                return false;
            }
        }
        assert_eq!(left, STOCK - i64::try_from(sold).unwrap(), "units of all buckets");
        true
    })
    .await;
    let first = buyer_of(0, 77);
    let (token, _) = world.token(sale, &first).await;
    eventually("it sells", async || world.buy(sale, &first, 1, Some(&token)).await.status == 202).await;
    sells_out(world, sale, (sold + 1, usize::try_from(STOCK).unwrap())).await;
}

#[test]
fn units_that_no_replica_knows_to_be_taken_are_not_given() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &[]).await;
        let world = world_on(&cluster, "cluster-taken", &PROMISED).await;
        let sale = world.sale("taken", STOCK, None).await;
        let (old, replica, source, target) = alone(&cluster, &world).await;
        let redis = &world.servers.redis;
        let taken = redis.transfers.take(&sale, Between { source, target }, 1, 1).await;
        assert!(taken.is_err(), "only one server knows of it: {taken:?}");
        assert_eq!((stock(&world, &sale, source).await, stock(&world, &sale, target).await), (1, 2));
        time_passes(P5_MS).await;
        assert_eq!(stock(&world, &sale, target).await, 2, "P5 gives it no more than P2 does");
        // Who wants more than their bucket has gets it from the servers that have their replicas.
        let (token, _) = world.token(&sale, &buyer_of(target, 0)).await;
        eventually("the others give", async || {
            world.buy(&sale, &buyer_of(target, 0), 4, Some(&token)).await.status == 202
        })
        .await;

        replace(&cluster, old, replica).await;
        assert_eq!(stock(&world, &sale, source).await, 2, "the promoted one has never had it");
        // Four units of one buyer count as four sold.
        every_unit_sells_once(world, &sale, 4).await;
    });
}

#[test]
fn units_that_no_replica_knows_to_be_given_are_given_again() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &[]).await;
        let world = world_on(&cluster, "cluster-given", &PROMISED).await;
        let sale = world.sale("given", STOCK, None).await;
        let (old, replica, target, source) = alone(&cluster, &world).await;
        let redis = &world.servers.redis;
        let Taken::Record(transfer) = redis.transfers.take(&sale, Between { source, target }, 1, 1).await.unwrap()
        else {
            panic!("a record")
        };
        let given = redis.transfers.give(&sale, &transfer).await;
        assert!(given.is_err(), "only one server knows of it: {given:?}");
        assert_eq!(stock(&world, &sale, target).await, 3);
        time_passes(P5_MS).await;
        assert_eq!(redis.transfers.pending(&sale, source).await.unwrap(), [transfer], "it is not forgotten");

        replace(&cluster, old, replica).await;
        every_unit_sells_once(world, &sale, 0).await;
    });
}

#[test]
fn a_process_whose_node_id_is_on_a_dead_server_takes_another() {
    run_waiting(async {
        let cluster = Cluster::start(3, 0, &[]).await;
        let world = world_on(&cluster, "cluster-ids", &["redis.command_timeout_ms=500"]).await;
        let stopper = Stopper::new();
        let terms = LeaseTerms { lease_ms: 20_000, renew: Duration::from_secs(1) };
        let ids = RequestIds::on_terms(world.servers.redis.leases.clone(), "one".to_owned(), stopper.clone(), terms);
        eventually("a lease", async || ids.is_ready()).await;
        let mut seen = HashSet::new();
        // The next id, and the node id in it.
        let mut next = || {
            let id = ids.next().expect("there is always an id").get();
            assert!(seen.insert(id), "{id} was made twice");
            u16::try_from(id >> 12 & u64::from(NODES - 1)).unwrap()
        };
        let first = next();
        let dead = cluster.primary_of_tag(&format!("{{{}}}", first % SHARDS)).await;
        let of_dead = shards_of(&world, dead.port());
        dead.kill().await;
        let mut node = first;
        while node == first {
            pause().await;
            node = next();
        }
        assert!(!of_dead.contains(&(node % SHARDS)), "on a server that lives");
        dead.restart().await;
        stopper.stop();
        world.finish().await;
    });
}
