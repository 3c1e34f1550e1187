//! The broker's disk is lost with confirmed messages on it (window 58). The ledger has them all.

use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{ALONE, World, eventually, run_waiting};
use seckill::dev::ServerKind;
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill_bench::loadgen::{self, LoadPlan};

async fn sell(world: &World, sale: &SaleId, first_buyer: u64, buyers: u64) {
    let report = loadgen::run(LoadPlan { first_buyer, ..world.crowd(sale, buyers) }).await.unwrap();
    assert_eq!(report.accepted, buyers, "{:?}", report.by_status);
}

#[test]
fn a_broker_that_lost_its_disk_loses_no_request() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let urls = servers.urls();
        // In the default virtual host: a broker that starts empty has no other.
        let on = (urls.redis_url.as_str(), urls.amqp_url.as_str(), urls.mysql_url.as_str());
        let set = ["rabbitmq.prefix=wiped", "mysql.statement_timeout_ms=2000", ALONE[0], ALONE[1]];
        let mysql = on.2.replace("/seckill", "/wiped");
        let world = World::on((on.0, on.1, &mysql), "wiped", &[Api, Relay], &set).await;
        let sale = world.sale("wiped", 1_000, Some(1)).await;
        sell(&world, &sale, 0, 200).await;
        eventually("confirmed and gone from redis", async || {
            world.outbox().await == (0, 0) && world.waiting_in("wiped.orders").await == 200
        })
        .await;

        let disk = servers.dir().join("rabbitmq").join("data");
        let broker = servers.server(ServerKind::Rabbitmq).unwrap();
        broker.kill().await.unwrap();
        std::fs::remove_dir_all(&disk).unwrap();
        std::fs::create_dir(&disk).unwrap();
        // Some more are accepted while there is no broker at all.
        sell(&world, &sale, 200, 50).await;
        broker.restart().await.unwrap();

        let rest = world.extra_roles(&[Consumer, Reconcile], |_| {});
        sell(&world, &sale, 250, 50).await;
        eventually("every accepted request has its order", async || world.orders(&sale).await == 300).await;
        assert!(world.rows("orders", "source = 'compensation'").await >= 200, "out of the ledger");
        eventually("the new ones went the ordinary way", async || world.rows("orders", "source = 'relay'").await >= 50)
            .await;
        rest.stop().await;
        world.finish().await;
    });
}
