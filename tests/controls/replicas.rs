//! Transfers between two servers of which one is replaced by a replica that it was cut off from (window 15).

use crate::harms_without;
use crate::scene::found;
use crate::support::processes::redis_sets::{Cluster, Node};
use crate::support::world::clusters::{SHARDS, cut_off, shards_of};
use crate::support::world::{World, eventually};
use seckill::domain::ids::SaleId;
use seckill::faults::Mechanism;
use seckill::p5_reconcile::finish_transfers;
use seckill::store::redis::{Between, Given, Taken};

const PROMISED: [&str; 3] = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300", "redis.command_timeout_ms=1000"];

/// A sale on three servers, and the primary of shard 0, cut off from its replica; one of its shards, and one of another server.
struct CutOff<'a> {
    world: World,
    sale: SaleId,
    old: &'a Node,
    replica: &'a Node,
    here: u16,
    elsewhere: u16,
}

async fn cut_off_in<'a>(cluster: &'a Cluster, name: &str) -> CutOff<'a> {
    let world = World::on_cluster((cluster, SHARDS), name, &[], &PROMISED).await;
    let sale = world.sale("transfers", 16, None).await;
    let old = cluster.primary_of_tag("{0}").await;
    let replica = cluster.replica_of(old).await;
    let own = shards_of(&world, old.port());
    let elsewhere = (0..SHARDS).find(|shard| !own.contains(shard)).unwrap();
    cut_off(replica, old).await;
    CutOff { world, sale, old, replica, here: own[0], elsewhere }
}

impl CutOff<'_> {
    /// The replica takes over without what it lacks; then P5 gives the records that it finds.
    async fn replaced(self, cluster: &Cluster) -> Vec<String> {
        let Self { world, sale, old, replica, .. } = self;
        old.kill().await;
        replica.thaw().await;
        assert_eq!(cluster.failed_over(old).await.port(), replica.port());
        old.restart().await;
        cluster.whole().await;
        let transfers = &world.servers.redis.transfers;
        let row = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        // The test's own connection finds the promoted server in its own time.
        eventually("all is finished", async || {
            let mut left = finish_transfers(transfers, SHARDS, &row).await.is_err();
            for shard in 0..SHARDS {
                left |= !transfers.pending(&sale, shard).await.is_ok_and(|records| records.is_empty());
            }
            !left
        })
        .await;
        let found = found(&world, &sale).await;
        world.stop().await;
        found
    }
}

#[test]
fn units_are_in_two_buckets_when_they_are_given_before_a_replica_has_the_take() {
    harms_without(Mechanism::TakeReplicated, async |_| {
        let cluster = Cluster::start(3, 1, &[]).await;
        let cut = cut_off_in(&cluster, "control-taken").await;
        let transfers = &cut.world.servers.redis.transfers;
        let between = Between { source: cut.here, target: cut.elsewhere };
        if let Ok(Taken::Record(transfer)) = transfers.take(&cut.sale, between, 1, 1).await {
            assert_eq!(transfers.give(&cut.sale, &transfer).await.unwrap(), Given::Now);
        }
        cut.replaced(&cluster).await
    });
}

#[test]
fn units_are_in_no_bucket_when_their_record_is_forgotten_before_a_replica_has_the_gift() {
    harms_without(Mechanism::GiftReplicated, async |_| {
        let cluster = Cluster::start(3, 1, &[]).await;
        let cut = cut_off_in(&cluster, "control-given").await;
        let transfers = &cut.world.servers.redis.transfers;
        let between = Between { source: cut.elsewhere, target: cut.here };
        let Taken::Record(transfer) = transfers.take(&cut.sale, between, 1, 1).await.unwrap() else {
            panic!("a record")
        };
        if transfers.give(&cut.sale, &transfer).await.is_ok() {
            transfers.forget(&cut.sale, &transfer).await.unwrap();
        }
        cut.replaced(&cluster).await
    });
}
