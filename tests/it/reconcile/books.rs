//! The books bridge Redis and the database (E11, E12): what only the comparison of the two shows, who it can be, and how a
//! person ends it.

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::p5_reconcile::{FindingKind, SaleAudit, Window};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

const AUDITS: &[&str] = &["p5_reconcile.interval_ms=100"];

fn kinds(audit: &SaleAudit) -> Vec<FindingKind> {
    let mut kinds: Vec<_> = audit.findings.iter().map(|finding| finding.kind).collect();
    kinds.dedup();
    kinds
}

/// Buyers `from..to`, each with an order by the end.
async fn landed(world: &World, sale: &SaleId, buyers: std::ops::Range<u32>) -> Vec<RequestId> {
    let mut ids = Vec::new();
    for user in buyers {
        ids.push(world.bought(sale, &format!("u{user}")).await);
    }
    assert!(world.settled(sale).await.consistent());
    ids
}

/// Until the ledger has forgotten everything.
async fn forgotten(world: &World, sale: &SaleId) {
    let forgets = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.ledger_retention_s = 1);
    let ledger = world.servers.redis.keys.ledger(0, sale);
    eventually("an empty ledger", async || world.redis(&["HLEN", &ledger]).await.as_u64() == Some(1)).await;
    forgets.stop().await;
}

/// The scene that was measured from outside: "consistent", exit code 0, over a hundred orders that are gone.
#[test]
fn a_database_restored_from_an_older_backup_is_reported_named_and_mended() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], AUDITS).await;
        let sale = world.sale("restored", 1_000, Some(1)).await;
        landed(&world, &sale, 0..20).await;
        world.back_up().await;
        let lost = landed(&world, &sale, 20..40).await;
        forgotten(&world, &sale).await;
        world.stop_roles().await;
        world.restore().await;

        let audit = world.audit(&sale, Window::Now).await;
        assert!(!audit.consistent() && kinds(&audit) == [FindingKind::Gap], "{audit:#?}");
        assert_eq!((audit.series[0].number, audit.series[0].outcomes, audit.counted.gaps), (40, 20, 20));
        let said = world.cli(&["audit", "--now", "--sale", "restored", "--json"]).exits(2).json();
        assert_eq!(said["sales"][0]["suspects"].as_array().map(Vec::len), Some(20), "all of them are named: {said}");
        let said = world.cli(&["audit", "--now", "--sale", "restored"]).exits(2).out;
        assert!(said.contains("P5-RC4") && said.contains(&lost[0].to_string()) && !said.contains(" ok"), "{said}");

        // The reconciler writes them down; a person persists most of them again and gives one up.
        world.start_roles(&[Api, Relay, Consumer, Reconcile]).await;
        eventually("rows of the register", async || world.rows("failed_request", "reason = 'GAP'").await == 20).await;
        world.cli(&["dlq", "give-up", &lost[7].to_string(), "--reason", "the buyer was refunded"]).exits(0);
        world.cli(&["dlq", "replay", "--all"]).exits(0);
        let audit = world.settled(&sale).await;
        assert!(audit.consistent(), "{audit:#?}");
        assert_eq!((audit.counted.ordered, audit.counted.failed_held, audit.counted.redis_stock), (39, 1, 960));
        world.finish().await;
    });
}

#[test]
fn what_the_ledger_still_knows_is_persisted_again_after_a_restore() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &["p5_reconcile.interval_ms=100"]).await;
        let sale = world.sale("again", 100, Some(2)).await;
        landed(&world, &sale, 0..5).await;
        world.back_up().await;
        landed(&world, &sale, 3..8).await;
        world.stop_roles().await;
        world.restore().await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(kinds(&audit) == [FindingKind::Leak] && audit.counted.leaked == 5, "{audit:#?}");
        world.start_roles(&[Api, Reconcile]).await;
        eventually("all of them", async || world.orders(&sale).await == 10).await;
        world.finish().await;
    });
}

#[test]
fn rows_deleted_by_hand_and_units_given_by_hand_are_reported() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], AUDITS).await;
        let sale = world.sale("hands", 100, Some(1)).await;
        let ids = landed(&world, &sale, 0..10).await;
        forgotten(&world, &sale).await;
        world.stop_roles().await;
        let keys = &world.servers.redis.keys;
        let (stock, grants) = (keys.stock(0, &sale), keys.grants(0, &sale));

        // Redis is given units that were not released, with the books of its own side in order.
        world.redis(&["INCRBY", &stock, "50"]).await;
        world.redis(&["HINCRBY", &grants, "first", "50"]).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(kinds(&audit) == [FindingKind::Unbalanced], "{audit:#?}");
        world.cli(&["audit", "--now"]).exits(2);
        world.redis(&["INCRBY", &stock, "-50"]).await;
        world.redis(&["HINCRBY", &grants, "first", "-50"]).await;
        assert!(world.audit(&sale, Window::Now).await.consistent(), "as it was");

        // An order and its outcome vanish, and the stock is put right: the database agrees with itself.
        let id = ids[4];
        world
            .sql(&format!(
                "BEGIN; DELETE FROM orders WHERE request_id = {id}; DELETE FROM request_outcome WHERE request_id = {id}; \
                 UPDATE sales SET stock = stock + 1; \
                 INSERT INTO stock_flow (sale_id, delta, kind, ref) VALUES ('hands', 1, 'correction', 'x'); COMMIT"
            ))
            .await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(kinds(&audit) == [FindingKind::Gap] && audit.counted.gaps == 1, "{audit:#?}");
        assert_eq!(audit.series[0].gaps, [(5, 5)]);

        // A person closes it; the unit stays held, until a person offers it again.
        let close = ["finding", "close", "hands", "--gap", "1:0:5-5", "--reason", "refunded by the shop"];
        world.cli(&["finding", "close", "hands", "--gap", "1:0:6-6", "--reason", "typed wrong"]).exits(1);
        world.cli(&close).exits(0);
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.written_off == 1, "{audit:#?}");
        let reclaimed = world.cli(&["sale", "reclaim", "hands"]).exits(0).out;
        assert!(reclaimed.contains("1 units again"), "{reclaimed}");
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.redis_stock == 91, "{audit:#?}");
        assert_eq!(world.rows("operator_acts", "action = 'finding.close' AND reason IS NOT NULL").await, 1);
        world.finish().await;
    });
}

#[test]
fn what_redis_gave_away_and_the_database_did_not_have_stays_reported_until_a_person_closes_it() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer, Reconcile], &["p5_reconcile.interval_ms=100"]).await;
        let sale = world.sale("refused", 2, Some(1)).await;
        let keys = &world.servers.redis.keys;
        world.redis(&["INCRBY", &keys.stock(0, &sale), "1"]).await;
        world.redis(&["HINCRBY", &keys.grants(0, &sale), "first", "1"]).await;
        for user in ["a", "b", "c"] {
            world.bought(&sale, user).await;
        }
        eventually("its end", async || world.rows("request_outcome", "reason = 'SOLD_OUT'").await == 1).await;
        let audit = world.settled(&sale).await;
        assert!(kinds(&audit).contains(&FindingKind::Refused), "{audit:#?}");
        assert!(world.cli(&["sale", "reclaim", "refused"]).exits(0).out.contains("no units"), "it has none");
        world.cli(&["finding", "close", "refused", "--refused", "--reason", "refunded"]).exits(0);
        let audit = world.settled(&sale).await;
        assert_eq!(kinds(&audit), [FindingKind::Unbalanced], "{audit:#?}");
        // Redis' own books still speak of a grant that was never made: only the rebuild of the sale ends that.
        world.cli(&["sale", "rebuild", "refused"]).exits(0);
        eventually("rebuilt", async || world.audit(&sale, Window::Now).await.consistent()).await;
        world.finish().await;
    });
}

/// Negative controls: without the equation the audit is silent about what it is for.
#[test]
fn without_the_bridge_units_that_only_redis_has_are_not_reported() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("bridgeless", 10, Some(1)).await;
        let keys = &world.servers.redis.keys;
        world.redis(&["INCRBY", &keys.stock(0, &sale), "5"]).await;
        world.redis(&["HINCRBY", &keys.grants(0, &sale), "first", "5"]).await;
        world.cli_with_faults("unit_bridge=return", &["audit", "--now"]).exits(0);
        world.cli(&["audit", "--now"]).exits(2);
        world.stop().await;
    });
}

#[test]
fn without_the_numbers_a_lost_request_of_an_epoch_that_ended_is_not_reported() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer, Reconcile], AUDITS).await;
        let sale = world.sale("numberless", 10, Some(1)).await;
        let ids = landed(&world, &sale, 0..3).await;
        world.cli(&["sale", "rebuild", "numberless"]).exits(0);
        eventually("rebuilt", async || world.rows("sales", "epoch > 1").await == 1).await;
        eventually("it sells", async || world.buy(&sale, "late", 1, None).await.status == 202).await;
        assert!(world.settled(&sale).await.consistent());
        // As if it had never been persisted, and Redis had forgotten it with its epoch.
        let id = ids[1];
        world
            .sql(&format!(
                "BEGIN; DELETE FROM orders WHERE request_id = {id}; DELETE FROM request_outcome WHERE request_id = {id}; \
                 UPDATE sales SET granted = granted - 1 WHERE sale_id = 'numberless'; COMMIT"
            ))
            .await;
        let without = world.cli_with_faults("number_equation=return", &["audit", "--now", "--json"]).json();
        assert_eq!(without["sales"][0]["findings"].as_array().map(Vec::len), Some(0), "{without}");
        let audit = world.cli(&["audit", "--now", "--json"]).exits(2).json();
        assert!(
            audit["sales"][0]["findings"].as_array().is_some_and(|all| all.iter().any(|f| f["kind"] == "GAP")),
            "{audit}"
        );
        world.stop().await;
    });
}
