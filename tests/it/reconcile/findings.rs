//! What is lost, oversold or orphaned is found; what can be repaired is repaired forward, once (P5).

use crate::support::world::audits::{kinds, lose_the_outbox};
use crate::support::world::outbox_kinds::parked_orders;
use crate::support::world::{World, eventually, pause, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::outcome::Outcome;
use seckill::p5_reconcile::{FindingKind, Window, compensate};
use seckill::roles::Role::{self, Api, Consumer, Reconcile, Relay};
use seckill::store::redis::{ParkReason, Parking};
use std::time::{Duration, Instant};

/// Waits for another whole run of the reconciler over this world.
async fn another_run(world: &World) {
    let examined = "SELECT COALESCE(MAX(run_id), 0) AS n FROM audit_runs";
    let before = world.number(examined).await;
    eventually("another run written down", async || world.number(examined).await > before + 1).await;
}

#[test]
fn a_leak_is_only_reported_when_compensation_is_manual() {
    run(async {
        let set = ["p5_reconcile.compensate=manual", "p5_reconcile.interval_ms=100"];
        let world = World::with(&[Api, Reconcile], &set).await;
        let sale = world.sale("manual", 100, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        lose_the_outbox(&world).await;
        eventually("the finding", async || world.rows("audit_findings", "code = 'P5-RC1'").await > 0).await;
        another_run(&world).await;
        assert_eq!(world.orders(&sale).await, 0);
        assert_eq!(world.status_of(&sale, "alice", alice).await.0, "QUEUED");
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(compensate(&world.reconcile_context(), &audit).await.unwrap(), 1, "a person's decision");
        assert_eq!(world.status_of(&sale, "alice", alice).await.0, "CONFIRMED");
        world.finish().await;
    });
}

/// Everything that could be "repaired" by accident.
async fn figures(world: &World, sale: &SaleId) -> (i64, i64, i64, String) {
    (
        world.orders(sale).await,
        world.number("SELECT stock AS n FROM sales").await,
        world.number("SELECT CAST(SUM(delta) AS SIGNED) AS n FROM stock_flow").await,
        format!("{:?}", world.servers.redis.sale_keys.count(sale, 0).await.unwrap()),
    )
}

#[test]
fn overselling_and_orphans_are_reported_and_nothing_is_touched() {
    run(async {
        let mut world = World::with(&Role::ALL, &["p5_reconcile.interval_ms=100"]).await;
        let sale = world.sale("over", 10, Some(1)).await;
        for user in ["a", "b", "c"] {
            world.bought(&sale, user).await;
        }
        assert!(world.settled(&sale).await.consistent());
        let meta = world.servers.redis.keys.meta(0, &sale);
        let ledger = world.servers.redis.keys.ledger(0, &sale);
        let known = world.number("SELECT CAST(MIN(request_id) AS SIGNED) AS n FROM orders").await.to_string();

        // Redis forgets a request the database has decided.
        let record = world.redis(&["HGET", &ledger, &known]).await;
        world.redis(&["HDEL", &ledger, &known]).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(kinds(&audit).contains(&FindingKind::Orphan), "{audit:#?}");
        world.redis(&["HSET", &ledger, &known, record.as_str().unwrap()]).await;
        assert!(world.audit(&sale, Window::Now).await.consistent(), "as it was");

        // Redis goes back in time: its number is below the database's.
        world.redis(&["HSET", &meta, "number", "1"]).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(kinds(&audit).contains(&FindingKind::Orphan), "{audit:#?}");
        world.redis(&["HSET", &meta, "number", "3"]).await;

        // An order too many, by hand and past every guard.
        world
            .sql(
                "INSERT INTO orders (request_id, sale_id, user_id, quantity, amount_cents, source, accepted_at) \
                 VALUES (7, 'over', 'z', 8, 800, 'replay', UTC_TIMESTAMP(3))",
            )
            .await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(kinds(&audit).contains(&FindingKind::OverSell) && audit.counted.oversold(), "{audit:#?}");
        world.redis(&["HSET", &meta, "number", "1"]).await;

        let before = figures(&world, &sale).await;
        another_run(&world).await;
        assert_eq!(figures(&world, &sale).await, before, "findings are for a person");
        for code in ["P5-RC2", "P5-RC3"] {
            assert!(world.rows("audit_findings", &format!("code = '{code}'")).await > 0, "{code} is written down");
        }
        world.stop_roles().await;
    });
}

/// Its number has no outcome, and Redis' counters are gone with the shard's meta: the ledger still says whose the number is.
#[test]
fn a_number_that_only_the_ledger_of_a_shard_without_counters_knows_is_no_gap() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("without", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        world.bought(&sale, "bob").await;
        assert!(world.settled(&sale).await.consistent());
        world.stop_roles().await;
        world.sql(&format!("DELETE FROM request_outcome WHERE request_id = {alice}")).await;
        let keys = &world.servers.redis.keys;
        world.redis(&["DEL", &keys.meta(0, &sale)]).await;

        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(kinds(&audit), [FindingKind::KeysLost, FindingKind::Leak, FindingKind::Unbalanced], "{audit:#?}");
        let series = &audit.series[0];
        assert_eq!((series.outcomes, series.undecided, series.gaps.len()), (1, 1, 0), "{audit:#?}");
        assert_eq!(audit.counted.gaps_held, 1, "a rebuild does not sell its unit again");

        world.redis(&["HDEL", &keys.ledger(0, &sale), &alice.to_string()]).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(kinds(&audit), [FindingKind::KeysLost, FindingKind::Gap, FindingKind::Unbalanced], "{audit:#?}");
    });
}

#[test]
fn relay_dlq_entries_are_in_the_register_before_they_leave_redis() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("parked", 100, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        let redis = &world.servers.redis;
        // Unreadable ones stay where they are, and must not hide the others behind them.
        let dlq = redis.keys.relay_dlq(0);
        for _ in 0..600 {
            world.redis(&["XADD", &dlq, "*", "reason", "unreadable"]).await;
        }
        let entry = redis.outbox.new_entries(0, "by hand", 1).await.unwrap().remove(0);
        let why = ParkReason { reason: "the broker said no", attempts: 10 };
        let parking = redis.outbox.park_orders(0, "by hand", &entry.id, (why, &parked_orders(&entry))).await;
        assert_eq!(parking.unwrap(), Parking::Moved);
        assert_eq!(redis.relay_dlq.count(0).await.unwrap(), 601);
        world
            .sql("CREATE TRIGGER refuse BEFORE INSERT ON failed_request FOR EACH ROW SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'")
            .await;
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        let patience = Instant::now() + Duration::from_secs(3);
        while Instant::now() < patience {
            assert_eq!(redis.relay_dlq.count(0).await.unwrap(), 601, "deleted before it was written down");
            pause().await;
        }
        world.sql("DROP TRIGGER refuse").await;
        eventually("an open row", async || world.rows("failed_request", "source = 'relay_dlq'").await == 1).await;
        eventually("it left redis", async || redis.relay_dlq.count(0).await.unwrap() == 600).await;
        eventually("the order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        eventually("a closed row", async || world.rows("failed_request", "status = 'resolved'").await == 1).await;
        assert_eq!(
            world.rows("failed_request", "detail = 'the broker said no' AND resolved_by = 'reconcile'").await,
            1
        );
        reconcile.stop().await;
        world.finish().await;
    });
}

#[test]
fn two_reconcilers_at_once_do_no_harm() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("both", 100, Some(1)).await;
        world.sell(&sale, 60).await;
        lose_the_outbox(&world).await;
        // Past the leadership: both have seen the same leaks and persist them at the same time.
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(audit.counted.leaked, 60);
        let context = world.reconcile_context();
        let (one, two, three) =
            tokio::join!(compensate(&context, &audit), compensate(&context, &audit), compensate(&context, &audit));
        assert_eq!(one.unwrap() + two.unwrap() + three.unwrap(), 60, "each landed by one of them");
        assert_eq!(world.orders(&sale).await, 60);
        let roles = [world.extra_roles(&[Reconcile], |_| {}), world.extra_roles(&[Reconcile], |_| {})];
        another_run_or_quiet(&world, &sale).await;
        for roles in roles {
            roles.stop().await;
        }
        assert_eq!(world.number("SELECT stock AS n FROM sales").await, 40);
        world.finish().await;
    });
}

/// A consistent sale is written down once and then only now and then: waits for that first row.
async fn another_run_or_quiet(world: &World, sale: &SaleId) {
    eventually("a run written down", async || {
        world.rows("audit_runs", &format!("sale_id = '{sale}' AND consistent = 1")).await > 0
    })
    .await;
    let ids = world.number("SELECT CAST(MIN(request_id) AS SIGNED) AS n FROM orders").await;
    let id = RequestId::parse(&ids.to_string()).unwrap();
    let outcome = world.servers.rows.requests.outcome_of(id).await.unwrap().unwrap().outcome;
    assert_eq!(outcome, Outcome::Ordered);
}

/// The keys of a closed sale go in one step, and an audit reads them in several.
#[test]
fn a_closed_sale_that_leaves_redis_during_an_audit_has_lost_nothing() {
    run(async {
        let world = World::with(&[], &[]).await;
        for round in 0..30 {
            let sale = world.sale(&format!("leaves-{round}"), 5, None).await;
            world.sale_control().close(&sale).await.unwrap();
            let audits = futures::future::join_all((0..8).map(|_| world.audit(&sale, Window::Now)));
            let leaves = async {
                // Somewhere among the first steps of the audits.
                world.rows("sales", "TRUE").await;
                assert!(world.servers.redis.sale_keys.archive(&sale, 0).await.unwrap(), "it was there");
            };
            let (audits, ()) = tokio::join!(audits, leaves);
            for audit in audits {
                assert!(audit.findings.is_empty(), "round {round}: {audit:#?}");
            }
        }
        world.finish().await;
    });
}
