//! Ten thousand requests on a few places of one process (A9, A10).

use crate::support::world::{World, run};
use seckill::roles::Role;
use seckill_bench::loadgen;
use std::collections::BTreeMap;

#[test]
fn ten_thousand_requests_on_a_few_places_are_answered_and_what_is_promised_is_kept() {
    run(async {
        let world = World::with(&Role::ALL, &["p1_entry.in_flight_max=4"]).await;
        let sale = world.sale("flooded", 500, Some(1)).await;
        let mut plan = world.crowd(&sale, 10_000);
        (plan.connections, plan.max_retries, plan.timeout_ms) = (256, 0, 60_000);
        let report = loadgen::run(plan).await.expect("a run");
        assert_eq!((report.unresolved, report.accepted_twice), (0, 0), "{report:?}");
        let mut answers = BTreeMap::new();
        for row in report.by_status.rows() {
            answers.insert((row.status, row.code.clone()), row.count);
            assert!(matches!((row.status, row.code.as_str()), (202 | 410, _) | (503, "P1-S8")), "{row:?}");
        }
        assert!(report.by_status.code(503, "P1-S8") > 0, "{answers:?}");
        assert_eq!(answers.values().sum::<u64>(), 10_000, "{answers:?}");
        let counted = world.settled(&sale).await.counted;
        assert_eq!(counted.ordered.unsigned_abs(), report.accepted, "{answers:?}");
        world.finish().await;
    });
}
