//! A Redis that forgets its scripts all the time costs buyers nothing.

use crate::support::basics::resp::RawRedis;
use crate::support::processes::own_redis;
use crate::support::world::run;
use seckill::roles::Role;
use seckill::runtime::Stopper;
use seckill_bench::loadgen::{self, LoadPlan};

#[test]
fn a_script_cache_that_is_emptied_all_the_time_costs_nobody_anything() {
    run(async {
        // Its own: the cache is the whole server's.
        let (_server, world) = own_redis::world("flushed", &Role::ALL, &[]).await;
        let sale = world.sale("flush", 300, Some(1)).await;
        let stopper = Stopper::new();
        let flushing = async {
            let (mut redis, mut times) = (RawRedis::of(&world).await, 0);
            while !stopper.is_stopped() {
                redis.call(&["SCRIPT", "FLUSH"]).await;
                times += 1;
                crate::support::world::time_passes(200).await;
            }
            times
        };
        let buying = async {
            let mut plan = LoadPlan::new(&world.api, sale.clone(), world.settings.auth.secret.clone());
            // At this rate the purchases take two seconds, ten times as long as the cache lives.
            (plan.buyers, plan.connections, plan.rate_per_s, plan.timeout_ms) = (500, 8, Some(250.0), 30_000);
            let report = loadgen::run(plan).await.expect("a run");
            stopper.stop();
            report
        };
        let (times, report) = tokio::join!(flushing, buying);
        assert!(times > 5, "flushed {times} times");
        for row in report.by_status.rows() {
            assert!(matches!(row.status, 202 | 409 | 410), "{row:?}");
        }
        assert_eq!((report.accepted, report.purchases, report.unresolved), (300, 500, 0), "{:?}", report.by_status);
        assert_eq!(world.settled(&sale).await.counted.ordered, 300);
        world.finish().await;
    });
}
