//! Two versions of the program side by side, and a rolling restart under load. Real processes; the next version writes
//! another envelope and another header, and reads both envelopes (`next_version`, `src/domain/message/next.rs`).

use super::fleet::{CONNECTIONS, Fleet, NEXT, THIS};
use super::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::policy::Quantity;
use seckill::p5_reconcile::Tidied;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::mysql::codes::Source;
use seckill::store::mysql::landing;
use seckill::store::rabbit::declare;
use std::collections::HashSet;

/// What a next version's api would have put into the outbox.
async fn envelope_of_tomorrow(world: &World, sale: &SaleId, id: RequestId) -> Vec<u8> {
    let accepted = world.accepted(sale, id).await;
    let (number, at) = (accepted.number, accepted.accepted_at_ms);
    let order = serde_json::json!({ "sale": sale.as_str(), "user": accepted.purchase.user_id.as_str(), "qty": 1 });
    format!(r#"{{"v":2,"rid":"{id}","order":{order},"shard":0,"epoch":1,"no":{number},"at":{at}}}"#).into_bytes()
}

#[test]
fn a_message_of_a_later_version_ends_with_its_request_and_only_with_it() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("tomorrow", 100, Some(1)).await;
        declare(&world.servers.rabbit).await.unwrap();
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        let carol = world.bought(&sale, "carol").await;
        world.lose_the_outbox().await;
        // Alice's request is open. Bob's outcome is not what the ledger has. The third names no request.
        let mut other = world.accepted(&sale, bob).await;
        other.purchase.quantity = Quantity::new(2).unwrap();
        landing::land_one(&world.servers.db, &other, Source::Relay).await.unwrap();
        let (of_alice, of_bob) =
            (envelope_of_tomorrow(&world, &sale, alice).await, envelope_of_tomorrow(&world, &sale, bob).await);
        world
            .park_in_mq([
                (alice.to_string(), of_alice.clone(), "UNKNOWN_VERSION"),
                (bob.to_string(), of_bob, "UNKNOWN_VERSION"),
                ("x".to_owned(), of_alice, "UNKNOWN_VERSION"),
            ])
            .await;
        let auditor = world.auditor();
        let first = auditor.tidy_mq_dlq(&mut HashSet::new()).await.unwrap();
        let noted = Tidied { seen_count: 3, removed_count: 0, noted_count: 1, foreign_count: 2, unseen_count: 0 };
        assert_eq!(first, noted);
        let row = format!("request_id = {alice} AND status = 'open' AND reason = 'UNKNOWN_VERSION'");
        assert_eq!(world.rows("failed_request", &row).await, 1);

        landing::land_one(&world.servers.db, &world.accepted(&sale, alice).await, Source::Compensation).await.unwrap();
        let then = auditor.tidy_mq_dlq(&mut HashSet::new()).await.unwrap();
        let removed = Tidied { seen_count: 3, removed_count: 1, noted_count: 0, foreign_count: 2, unseen_count: 0 };
        assert_eq!(then, removed, "its request is decided, as the ledger has it");

        // In the relay's DLQ too, with P5 at work: landed from the ledger, the entry goes, its bytes are in the register.
        let (id, body) = (carol.to_string(), envelope_of_tomorrow(&world, &sale, carol).await);
        let (body, relay_dlq) = (String::from_utf8(body).unwrap(), world.servers.redis.keys.relay_dlq(0));
        let told = ["reason", "nack", "attempts", "10", "parked_at_ms", "1", "s", sale.as_str()];
        let entry = [&["XADD", &relay_dlq, "*", "entry", "1-1"][..], &told, &["r", &id, "p", &body]].concat();
        world.redis(&entry).await;
        let reconcile = world.more(&[Reconcile], |_| {});
        eventually("carol's order", async || world.told(&sale, "carol", carol).await.0 == "CONFIRMED").await;
        eventually("an empty relay DLQ", async || world.redis(&["XLEN", &relay_dlq]).await == 0).await;
        let kept = format!("request_id = {carol} AND reason = 'ATTEMPTS_SPENT' AND payload LIKE '%\"v\":2%'");
        eventually("a row", async || world.rows("failed_request", &kept).await == 1).await;
        reconcile.stop().await;
        world.stop().await;
    });
}

/// The way up, the half of it back, and all of it back, in orders that are right and orders that are not.
#[test]
fn two_versions_side_by_side_lose_nothing_on_the_way_up_and_on_the_way_back() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("versions", 1_000_000, Some(1)).await;
        let mut fleet = Fleet::start(world, &sale, 1, &["p4_persist.attempts_max=3"]).await;
        fleet.replace(Consumer, 0, NEXT).await;
        fleet.replace(Api, 0, NEXT).await;
        // Half way back with the wrong one first: what the new api accepts, the old consumer cannot read.
        fleet.replace(Consumer, 0, THIS).await;
        fleet.until_said(Consumer, "left to a consumer that can read it").await;
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
