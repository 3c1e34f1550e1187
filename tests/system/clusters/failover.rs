//! Fail-over on a Redis Cluster (windows 15 to 17): whoever is promoted sells only after the boot fence, one that lacks what
//! was sold is frozen and rebuilt, and a former primary that still has its scripts is not trusted for it.

use super::cluster_sales::{buyer_of, shards_of, world_on};
use super::redis_loss::{buy_at_last, sells_again};
use super::redis_sets::{Cluster, Force, Node};
use super::world::{World, eventually, run};
use seckill::domain::ids::SaleId;

/// Settings that let a rebuild come soon.
pub const SOON: [&str; 3] = ["p5_reconcile.quiet_ms=1000", "p1_entry.cache_ttl_ms=50", "redis.command_timeout_ms=1000"];

type Winner = (String, String, String);

/// Buyers of one shard who get what they want, and have it in the database.
pub async fn winners(world: &World, sale: &SaleId, shard: u16, numbers: std::ops::Range<usize>) -> Vec<Winner> {
    let mut winners = Vec::new();
    for n in numbers {
        winners.push(buy_at_last(world, sale, &buyer_of(shard, n)).await);
    }
    for (user, _, request_id) in &winners {
        let status = world.status(sale, user, request_id, 20).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
    }
    winners
}

/// The rest of the stock is sold, and not one unit more.
pub async fn sells_out(world: World, sale: &SaleId, (sold, stock): (usize, usize)) {
    let mut accepted = sold;
    for n in 0..stock + 20 {
        let answer = world.buy(sale, &format!("rest-{n}"), 1, None).await;
        accepted += usize::from(answer.status == 202);
    }
    assert_eq!(accepted, stock);
    let counted = world.settled(sale).await.counted;
    assert_eq!((counted.ordered, counted.database_stock, counted.redis_stock), (stock.try_into().unwrap(), 0, 0));
    world.finish().await;
}

/// From now on the replica gets nothing of its primary any more. Standing still is not enough: what is written meanwhile
/// would wait in its socket.
pub async fn cut_off(replica: &Node, primary: &Node) {
    replica.freeze().await;
    assert_eq!(primary.call(&["CLIENT", "KILL", "TYPE", "replica"]).await, 1);
}

/// The scripts a server has.
async fn scripts(node: &Node) -> u64 {
    node.info("memory").await["number_of_cached_scripts"].parse().unwrap()
}

#[test]
fn a_replica_that_lacks_what_was_sold_is_frozen_and_rebuilt() {
    run(async {
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
    run(async {
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
