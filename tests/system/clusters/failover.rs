//! Fail-over on a Redis Cluster (windows 15 to 17): a promoted server sells only after the boot fence, one that lacks what
//! was sold is frozen and rebuilt, and a former primary that still has its scripts is not trusted for it.

use crate::support::buyers::winners::{sells_again, sells_out, winners};
use crate::support::processes::redis_sets::{Cluster, Force, Node};
use crate::support::world::clusters::{SOON, cut_off, shards_of, world_on};
use crate::support::world::{eventually, run_waiting};

/// The scripts a server has.
async fn scripts(node: &Node) -> u64 {
    node.info("memory").await["number_of_cached_scripts"].parse().unwrap()
}

#[test]
fn a_replica_that_lacks_what_was_sold_is_frozen_and_rebuilt() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &[]).await;
        let world = world_on(&cluster, "cluster-lag", &SOON).await;
        let sale = world.sale("lag", 40, Some(1)).await;
        let old = cluster.primary_of_tag("{0}").await;
        let replica = cluster.replica_of(old).await;
        let shard = shards_of(&world, old.port())[0];
        let mut won = winners(&world, &sale, shard, 0..2).await;
        eventually("the replica has it", async || {
            replica.info("replication").await["slave_repl_offset"]
                == old.info("replication").await["master_repl_offset"]
        })
        .await;
        cut_off(replica, old).await;
        won.extend(winners(&world, &sale, shard, 2..5).await);
        old.kill().await;
        replica.thaw().await;
        let new = cluster.failed_over(old).await;
        assert_eq!(new.port(), replica.port());
        sells_again(&world, &sale, &won, 2).await;
        sells_out(world, &sale, (won.len(), 40)).await;
    });
}

#[test]
fn a_former_primary_with_its_old_scripts_does_not_sell_what_it_missed() {
    run_waiting(async {
        let cluster = Cluster::start(3, 1, &[]).await;
        let world = world_on(&cluster, "cluster-back", &SOON).await;
        let sale = world.sale("back", 40, Some(1)).await;
        let first = cluster.primary_of_tag("{0}").await;
        let second = cluster.replica_of(first).await;
        let shard = shards_of(&world, first.port())[0];
        let mut won = winners(&world, &sale, shard, 0..2).await;
        cluster.fail_over_to(second, Force::Agreed).await;
        won.extend(winners(&world, &sale, shard, 2..4).await);
        eventually("the former primary has it", async || {
            let offset = |info: &std::collections::BTreeMap<String, String>| info["master_repl_offset"].clone();
            offset(&first.info("replication").await) == offset(&second.info("replication").await)
        })
        .await;

        cut_off(first, second).await;
        won.extend(winners(&world, &sale, shard, 4..7).await);
        second.kill().await;
        first.thaw().await;
        let again = cluster.failed_over(second).await;
        assert_eq!(again.port(), first.port());
        assert!(scripts(first).await > 0, "it has kept its scripts from when it was the primary");
        sells_again(&world, &sale, &won, 2).await;
        sells_out(world, &sale, (won.len(), 40)).await;
    });
}
