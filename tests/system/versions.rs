//! Two versions of the program side by side, and a rolling restart under load. Real processes; the next version writes
//! another envelope and another header, and reads both envelopes (`next_version`, `src/domain/message/next.rs`).

use crate::support::processes::fleet::{CONNECTIONS, Fleet, NEXT, THIS};
use crate::support::world::outbox_kinds::LIST;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::redis::OutboxEntry;

/// The way up, the half of it back, and all of it back, in orders that are right and orders that are not.
#[test]
fn two_versions_side_by_side_lose_nothing_on_the_way_up_and_on_the_way_back() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("versions", 1_000_000, Some(1)).await;
        // Envelopes: orders in lines have none.
        let set = ["p4_persist.attempts_max=3", LIST];
        let mut fleet = Fleet::start(world, &sale, 1, &set).await;
        fleet.replace(Consumer, 0, NEXT).await;
        fleet.replace(Api, 0, NEXT).await;
        // Half way back with the wrong one first: what the new api accepts, the old consumer cannot read.
        fleet.replace(Consumer, 0, THIS).await;
        fleet.until_logged(Consumer, "this build reads version").await;
        fleet.replace(Relay, 0, NEXT).await;
        eventually("one that no consumer of two read", async || !fleet.world.mq_dlq().await.is_empty()).await;
        // Both consumers at once: each message goes round until one meets it that can read it.
        fleet.add(Consumer, NEXT).await;
        fleet.sells_on().await;
        fleet.replace(Consumer, 0, NEXT).await;
        fleet.replace(Reconcile, 0, NEXT).await;
        // All of it is new. All of it back, with old ones at the end of what new ones began.
        fleet.replace(Reconcile, 0, THIS).await;
        fleet.replace(Consumer, 0, THIS).await;
        fleet.replace(Api, 0, THIS).await;
        fleet.replace(Relay, 0, THIS).await;
        fleet.replace(Consumer, 1, THIS).await;
        let reports = fleet.all_confirmed().await;
        assert!(reports.iter().all(|report| report.accepted > 500), "too few to show anything");
        // Nothing that the old ones could not read stays for ever.
        eventually("an empty MQ DLQ", async || fleet.world.mq_dlq().await.is_empty()).await;
        eventually("a closed register", async || fleet.world.rows("failed_request", "status = 'open'").await == 0)
            .await;
        fleet.finish().await;
    });
}

/// 1 was one order an entry. A process whose file has it still starts, and writes lines, as without it.
#[test]
fn the_old_form_of_outbox_entries_is_asked_for_in_vain_and_a_warning_says_so() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("form", 1_000_000, Some(1)).await;
        let mut fleet = Fleet::start(world, &sale, 1, &["redis.outbox_format=1"]).await;
        fleet.until_logged(Api, "redis.outbox_format = 1 has no effect").await;
        // While no relay is there, entries stay.
        let outbox = fleet.world.servers.redis.outbox.clone();
        let mut entries = vec![];
        let some = eventually("entries", async || {
            entries = outbox.page(0, "-", 10).await.expect("redis");
            !entries.is_empty()
        });
        tokio::join!(fleet.replace(Relay, 0, THIS), some);
        let in_lines = |entry: &OutboxEntry| {
            ["n", "o"].iter().all(|name| entry.field(name).is_some()) && entry.field("p").is_none()
        };
        assert!(entries.iter().all(in_lines), "{entries:?}");
        fleet.finish_unnoticed().await;
    });
}

#[test]
fn a_rolling_restart_of_two_of_each_role_loses_nothing() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("rolling", 1_000_000, Some(1)).await;
        let mut fleet = Fleet::start(world, &sale, 2, &[]).await;
        for role in [Consumer, Relay, Reconcile, Api] {
            for place in 0..2 {
                fleet.replace(role, place, THIS).await;
            }
        }
        for report in fleet.all_confirmed().await {
            assert_eq!((report.accepted, report.unresolved), (report.purchases, 0), "{:?}", report.by_status);
            // A request that meets the end of an idle connection; each of the crowd's can do so once, and is repeated.
            assert!(
                report.unknown <= CONNECTIONS.into(),
                "{} answers were cut off: {:?}",
                report.unknown,
                report.by_status
            );
            let other = report.purchases - report.by_status.status(202);
            assert_eq!(other, 0, "{:?}", report.by_status);
        }
        fleet.finish().await;
    });
}
