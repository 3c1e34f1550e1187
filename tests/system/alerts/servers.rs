//! Alerts about servers that are down, fired by servers that are down: killed, and standing still.

use crate::support::outside::prometheus::Prometheus;
use crate::support::processes::killable::ProcessOptions;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::relay_state::outbox_key;
use crate::support::world::{World, run_waiting, time_passes};
use seckill::dev::ServerKind;
use seckill::domain::ids::SaleId;

/// Some purchases a second, whatever the answers, for ever.
async fn buying(world: &World, sale: &SaleId, who: &str) {
    for n in 0u64.. {
        let user = format!("{who}-{n}");
        tokio::join!(world.buy(sale, &user, 1, None), time_passes(200));
    }
}

#[test]
fn servers_that_are_away_are_paged_whether_they_are_dead_or_stand_still() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let mut world = World::on_breakable(&servers, "alerts-away", &[], &[]).await;
        let sale = world.sale("away", 100_000, None).await;
        // The rules' minutes are seconds here, and so are the seconds that a call may take.
        let quick = [
            "mysql.statement_timeout_ms=300",
            "mysql.connect_timeout_ms=300",
            "mysql.pool_wait_ms=300",
            "redis.command_timeout_ms=400",
            "redis.connect_timeout_ms=400",
        ];
        let api = world.api_process(&quick).await;
        let rest = ["relay", "consumer", "reconcile"].map(|role| {
            // The disk of the relay's log is full.
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
            let stderr = (role == "relay").then(|| full.into());
            world.spawn(role, ProcessOptions { sets: &quick, stderr, ..ProcessOptions::default() })
        });
        let [relay, consumer, p5] = &rest;
        let tower = Prometheus::over("alerts-away", &[&api, relay, consumer, p5]).await;

        let broker = ["SeckillRelayBreakerOpen", "SeckillServerAway", "SeckillLogLinesLost"].as_slice();
        let broker = tower.before("the broker killed", broker).await;
        servers.server(ServerKind::Rabbitmq).unwrap().kill().await.unwrap();
        broker.fires_during(buying(&world, &sale, "broker")).await;
        servers.server(ServerKind::Rabbitmq).unwrap().restart().await.unwrap();
        broker.resolves().await;

        let database = ["SeckillPersistBreakerOpen", "SeckillServerAway", "SeckillNobodyReconciles"].as_slice();
        let database = tower.before("the database frozen", database).await;
        servers.server(ServerKind::Mysql).unwrap().pause().unwrap();
        database.fires_during(buying(&world, &sale, "database")).await;
        servers.server(ServerKind::Mysql).unwrap().resume().unwrap();
        database.resolves().await;

        let redis = tower.before("redis frozen", &["SeckillServerAway", "SeckillAnswersFail"]).await;
        servers.server(ServerKind::Redis).unwrap().pause().unwrap();
        redis.fires_during(buying(&world, &sale, "redis")).await;
        servers.server(ServerKind::Redis).unwrap().resume().unwrap();
        redis.resolves().await;

        let refused = tower.before("redis refuses the relay's reads", &["SeckillStepsFail"]).await;
        let (outbox, away) = (outbox_key(&world), format!("{}-away", outbox_key(&world)));
        world.redis(&["RENAME", &outbox, &away]).await;
        world.redis(&["SET", &outbox, "no stream"]).await;
        refused.fires().await;
        world.redis(&["RENAME", &away, &outbox]).await;
        refused.resolves().await;
        drop(rest);
        drop(api);
        world.finish().await;
    });
}
