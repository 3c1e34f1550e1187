//! Sales on a Redis Cluster (B4, B5): the shards lie on three servers, a sale sells exactly its stock over all of them, and a
//! server that is gone stops its own share.

use crate::support::processes::redis_sets::Cluster;
use crate::support::world::clusters::{SHARDS, buyer_of, shards_of, world_on};
use crate::support::world::{World, eventually, run_waiting};
use seckill::domain::ids::SaleId;
use std::time::{Duration, Instant};

async fn statuses(world: &World, sale: &SaleId, buyers: impl Iterator<Item = String>) -> Vec<u16> {
    let mut statuses = Vec::new();
    for buyer in buyers {
        statuses.push(world.buy(sale, &buyer, 1, None).await.status);
    }
    statuses
}

#[test]
fn a_sale_on_three_servers_sells_exactly_its_stock() {
    run_waiting(async {
        let cluster = Cluster::start(3, 0, &[]).await;
        let world = world_on(&cluster, "cluster-exact", &[]).await;
        let places = world.servers.redis.servers();
        assert!(places.len() == 3 && places.iter().all(|(_, shards)| !shards.is_empty()), "{places:?}");
        let sale = world.sale("spread", 30, Some(1)).await;
        let buyers = (0..60).map(|n| format!("crowd-{n}"));
        let answers = statuses(&world, &sale, buyers).await;
        assert_eq!(answers.iter().filter(|status| **status == 202).count(), 30, "{answers:?}");
        assert_eq!(answers.iter().filter(|status| **status == 410).count(), 30, "{answers:?}");
        world.finish().await;
    });
}

#[test]
fn a_dead_server_stops_its_share_and_no_other() {
    run_waiting(async {
        let cluster = Cluster::start(3, 0, &[]).await;
        let world = world_on(&cluster, "cluster-share", &["redis.command_timeout_ms=500"]).await;
        let sale = world.sale("share", 800, None).await;
        let dead = cluster.primary_of_tag("{0}").await;
        let of_dead: Vec<u16> = shards_of(&world, dead.port());
        let living: Vec<u16> = (0..SHARDS).filter(|shard| !of_dead.contains(shard)).collect();
        let first = |shards: &[u16], n: usize| shards.iter().map(|s| buyer_of(*s, n)).collect::<Vec<_>>().into_iter();
        assert!(statuses(&world, &sale, first(&(0..SHARDS).collect::<Vec<_>>(), 0)).await.iter().all(|s| *s == 202));

        dead.kill().await;
        for n in 1..4 {
            let there = statuses(&world, &sale, first(&living, n)).await;
            assert!(there.iter().all(|status| *status == 202), "{there:?}");
            let gone = statuses(&world, &sale, first(&of_dead, n)).await;
            assert!(gone.iter().all(|status| matches!(status, 503 | 504)), "{gone:?}");
        }
        dead.restart().await;
        let again = buyer_of(of_dead[0], 9);
        eventually("its share sells again", async || world.buy(&sale, &again, 1, None).await.status == 202).await;
        world.finish().await;
    });
}

/// A server that stands still answers no call and refuses none: what each reading of a sale waits for it must not make the sale too old
/// to be decided for the buyers of the other servers. Sales whose cached copy is on that server, and on another one.
#[test]
fn a_silent_server_makes_no_sale_too_old_for_the_buyers_of_the_others() {
    run_waiting(async {
        const STALE_MAX: Duration = Duration::from_secs(4);
        let cluster = Cluster::start(3, 0, &[]).await;
        // A command to the silent server lasts longer than a view may decide.
        let set = ["redis.command_timeout_ms=12000", "p1_entry.cache_stale_max_ms=4000"];
        let world = world_on(&cluster, "cluster-silent", &set).await;
        let silent = cluster.primary_of_tag("{0}").await;
        let of_silent = shards_of(&world, silent.port());
        let living: Vec<u16> = (0..SHARDS).filter(|shard| !of_silent.contains(shard)).collect();
        let mut sales = Vec::new();
        for is_there in [true, false] {
            let ids = (0..).map(|n| SaleId::parse(&format!("silent-{n}")).unwrap());
            for id in ids {
                let port = cluster.primary_of_tag(&world.servers.redis.keys.sale(&id)).await.port();
                if (port == silent.port()) == is_there {
                    sales.push(world.sale(id.as_str(), 100_000, None).await);
                    break;
                }
            }
        }
        for sale in &sales {
            let first = (0..SHARDS).map(|shard| buyer_of(shard, 0));
            assert!(statuses(&world, sale, first).await.iter().all(|status| *status == 202));
        }

        silent.freeze().await;
        let begun = Instant::now();
        for n in 1.. {
            for sale in &sales {
                let there = statuses(&world, sale, living.iter().map(|shard| buyer_of(*shard, n))).await;
                assert!(there.iter().all(|status| *status == 202), "{sale} after {:?}: {there:?}", begun.elapsed());
            }
            if begun.elapsed() > 3 * STALE_MAX {
                break;
            }
        }
        silent.thaw().await;
        for sale in &sales {
            let again = buyer_of(of_silent[0], 1_000_000);
            eventually("its share sells again", async || world.buy(sale, &again, 1, None).await.status == 202).await;
        }
        world.finish().await;
    });
}
