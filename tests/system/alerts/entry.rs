//! Alerts about the entry, fired by what they are about: a full room, a slow Redis, a replica down, orders that are not
//! persisted, a risk service that is gone.

use crate::support::outside::prometheus::Prometheus;
use crate::support::outside::risk_shop::RiskShop;
use crate::support::processes::programs::signal;
use crate::support::processes::replicas::pair;
use crate::support::world::{World, run_waiting, time_passes};
use seckill::domain::ids::SaleId;

/// Ten purchases a second, whatever the answers, for ever.
async fn buying(world: &World, sale: &SaleId) {
    for n in 0u64.. {
        let user = format!("buyer-{n}");
        tokio::join!(world.buy(sale, &user, 1, None), time_passes(100));
    }
}

#[test]
fn a_full_room_a_slow_redis_and_a_replica_that_is_down_are_reported() {
    run_waiting(async {
        let (mut primary, mut replica) = pair("alerts").await;
        let mut world = World::on_redis(&primary.url(), "alerts-slow", &[], &[]).await;
        let sale = world.sale("slow", 100_000, None).await;
        let room = world.early_room("room", 10).await;
        let set = ["redis.wait_replicas=1", "redis.wait_timeout_ms=300", "p1_entry.room_places_max=1"];
        let api = world.api_process(&set).await;
        let tower = Prometheus::over("alerts-slow", &[&api]).await;

        let full = tower.before("a second buyer in a room for one", &["SeckillRoomFull"]).await;
        assert_eq!(world.enter_room(&room, "alice").await.status, 200);
        assert_eq!(world.enter_room(&room, "bob").await.status, 503);
        full.fires().await;
        full.resolves().await;

        let slow = tower.before("a redis that stands still half of the time", &["SeckillReserveSlow"]).await;
        let stumbling = async {
            while primary.pause().is_ok() {
                time_passes(250).await;
                primary.resume().unwrap();
                time_passes(250).await;
            }
        };
        let harm = async {
            tokio::select! {
                () = stumbling => {}
                () = buying(&world, &sale) => {}
            }
        };
        slow.fires_during(harm).await;
        primary.resume().unwrap();

        let alone = tower.before("the replica frozen", &["SeckillUnreplicated"]).await;
        replica.pause().unwrap();
        alone.fires_during(buying(&world, &sale)).await;
        replica.resume().unwrap();
        alone.resolves().await;
        world.stop().await;
    });
}

#[test]
fn orders_that_are_not_persisted_are_paged() {
    run_waiting(async {
        let mut world = World::with(&[], &[]).await;
        let sale = world.sale("stuck", 100_000, None).await;
        let (relay, consumer) = (world.process("relay", "", &[]), world.process("consumer", "", &[]));
        let api = world.api_process(&["p1_entry.lag_max_ms=8000"]).await;
        let tower = Prometheus::over("alerts-stuck", &[&api, &relay, &consumer]).await;
        let alerts = ["SeckillEntryClosed", "SeckillEntryRefuses", "SeckillLandingLags"].as_slice();
        let stuck = tower.before("the only consumer frozen, lag_max_ms 8 s", alerts).await;
        signal(consumer.program.pid(), libc::SIGSTOP);
        stuck.fires_during(buying(&world, &sale)).await;
        signal(consumer.program.pid(), libc::SIGCONT);
        stuck.resolves().await;
        drop(api);
        world.finish().await;
    });
}

/// A token for a buyer of its own each tenth of a second, for ever.
async fn asking(world: &World, sale: &SaleId) {
    for n in 0u64.. {
        let user = format!("asks-{n}");
        tokio::join!(world.call_for_token(sale, &user, &[]), time_passes(100));
    }
}

#[test]
fn buyers_whom_a_risk_service_that_is_gone_does_not_judge_are_reported() {
    run_waiting(async {
        let mut shop = RiskShop::start().await;
        let mut world = World::with(&[], &[]).await;
        let sale = world.challenged("unjudged", "hook").await;
        let [url, secrets] = shop.settings();
        let api = world.api_process(&[&url, &secrets]).await;
        let tower = Prometheus::over("alerts-risk", &[&api]).await;
        let gone = tower.before("the risk service gone", &["SeckillRiskServiceFails"]).await;
        assert_eq!(world.call_for_token(&sale, "judged", &[]).await.status, 201);
        assert_eq!(api.metric("seckill_p1_entry_risk_breaker_open").await, Some(0.0));
        shop.close();
        gone.fires_during(asking(&world, &sale)).await;
        assert_eq!(api.metric("seckill_p1_entry_risk_breaker_open").await, Some(1.0));
        gone.resolves().await;
        drop(api);
        world.stop().await;
    });
}
