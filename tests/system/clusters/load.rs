//! A server of a Redis Cluster is lost while a crowd buys. `tests/long` loses a frozen one, and one with lists.

use crate::support::buyers::retrying_buyers::RetryingBuyers;
use crate::support::processes::lost_primary::{LATE, Loss, SOME, STOCK, crowd, lose_a_primary, place_of};
use crate::support::processes::redis_sets::Cluster;
use crate::support::world::clusters::world_on;
use crate::support::world::{eventually, run_waiting, time_passes};

#[test]
fn a_primary_killed_in_a_crowd_stops_its_share_only_and_nothing_is_lost() {
    run_waiting(lose_a_primary("load-kill", Loss::Killed, &[]));
}

#[test]
fn without_replicas_a_server_that_restarts_in_a_crowd_loses_nothing() {
    run_waiting(async {
        let cluster = Cluster::start(3, 0, &[]).await;
        let world = world_on(&cluster, "load-restart", &["redis.command_timeout_ms=1000"]).await;
        let sale = world.sale("load", STOCK, Some(1)).await;
        let dead = cluster.primary_of_tag("{0}").await;
        let lost = place_of(&world, dead.port());
        let rush = RetryingBuyers::new(&world, &sale);
        crowd(&rush, async {
            eventually("a load", async || rush.accepted() > SOME).await;
            dead.kill().await;
            let gone = rush.mark("the first server is killed");
            time_passes(2_000).await;
            for server in (0..3).filter(|server| *server != lost) {
                eventually("the others go on", async || rush.accepted_of(server, gone, None) > SOME / 3).await;
            }
            let back = rush.mark("it is started again");
            assert_eq!(rush.accepted_of(lost, gone + LATE, Some(back)), 0, "its share stands still");
            dead.restart().await;
            eventually("its share sells again", async || rush.accepted_of(lost, back, None) > SOME / 3).await;
            rush.mark("its share has sold again");
        })
        .await;
        rush.print("load-restart");
        rush.holds().await;
        world.finish().await;
    });
}
