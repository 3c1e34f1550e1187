//! Leaks are reported once, with where they are, and one damaged sale or request stops no other (E1, E2).

use crate::support::world::{World, eventually, run, time_passes};
use seckill::domain::message::OrderMessage;
use seckill::p5_reconcile::{FindingKind, Window, compensate};
use seckill::roles::Role::{Api, Reconcile};
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::{Outgoing, PublishRoute, Topology, declare, send_all};

#[test]
fn a_standing_leak_is_reported_once_and_each_repair_is_counted() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("leaks", 100, Some(1)).await;
        for user in ["alice", "bob", "carol"] {
            world.bought(&sale, user).await;
        }
        world.foreign_order(&sale, "carol", 7).await;
        world.lose_the_outbox().await;
        let manual = world.busy_reconciler(&["p5_reconcile.compensate=manual"]);
        eventually("three leaks", async || manual.p5_state("P5-RC1").await == 3.0).await;
        let written = world.rows("audit_runs", "consistent = 0").await;
        eventually("a run now and then", async || world.rows("audit_runs", "consistent = 0").await > written).await;
        assert_eq!(manual.p5_state("P5-RC1").await, 3.0, "a finding that stands is no new finding");
        assert_eq!(manual.program.stderr().matches("nowhere but in the ledger").count(), 3, "logged once each");
        assert_eq!(
            (world.orders(&sale).await, world.rows("request_outcome", "epoch > 0").await),
            (1, 0),
            "only reported"
        );
        drop(manual);

        let auto = world.busy_reconciler(&[]);
        eventually("two orders written", async || auto.p5_state("P5-COMP0").await == 2.0).await;
        eventually("one failure recorded", async || auto.p5_state("P5-COMP1").await == 1.0).await;
        eventually("all is well", async || auto.p5_state("P5-RC0").await > 0.0).await;
        let alarms = auto.metric("seckill_p5_reconcile_false_alarms_total{sale=\"leaks\"}").await;
        assert_eq!((auto.p5_state("P5-RC1").await, alarms), (3.0, Some(0.0)));
        let last = "consistent = 1 AND run_id = (SELECT MAX(run_id) FROM audit_runs)";
        eventually("a consistent run on record", async || world.rows("audit_runs", last).await == 1).await;
        world.finish().await;
    });
}

#[test]
fn a_finding_says_where_the_request_lies() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("where", 100, Some(1)).await;
        let detail = async |world: &World, id| {
            let audit = world.audit(&sale, Window::Now).await;
            audit.findings.into_iter().find(|finding| finding.request_id == Some(id)).expect("a leak").detail
        };
        let alice = world.bought(&sale, "alice").await;
        let said = detail(&world, alice).await;
        assert!(
            said.contains("as number 1 (shard 0), in the outbox as ") && said.contains("in no relay's hand"),
            "{said}"
        );
        world.servers.redis.outbox.new_entries(0, "relay-7", 10).await.unwrap();
        let said = detail(&world, alice).await;
        assert!(said.contains("read by relay relay-7 and not confirmed"), "{said}");
        world.lose_the_outbox().await;
        let said = detail(&world, alice).await;
        assert!(said.contains("not in the outbox, nothing waits in the broker: nowhere but in the ledger"), "{said}");
        let topology = Topology::new(&world.servers.rabbit);
        let retried =
            Outgoing::new(PublishRoute { exchange: &topology.retry_exchange(1), key: "0" }, "x", b"x".to_vec());
        let to_orders =
            Outgoing::new(PublishRoute { exchange: &topology.orders_exchange(), key: "0" }, "y", b"y".to_vec());
        send_all(&world.servers.rabbit, &mut None, vec![to_orders, retried]).await.unwrap();
        let said = detail(&world, alice).await;
        assert!(said.contains("perhaps among ") && said.contains("waiting"), "{said}");
        let audit = world.audit(&sale, Window::Now).await;
        compensate(&world.reconcile_context(), &audit).await.unwrap();
        world.finish().await;
    });
}

#[test]
fn a_damaged_sale_queue_or_request_stops_no_other() {
    run(async {
        let mut world = World::with(&[Api], &["p5_reconcile.window_ms=4500"]).await;
        let keys = world.servers.redis.keys.clone();
        let (wrong, garbage) = (world.sale("a-wrong", 10, Some(1)).await, world.sale("b-garbage", 10, Some(1)).await);
        let sale = world.sale("c-leak", 10, Some(1)).await;
        world.bought(&wrong, "a").await;
        let harmed = world.bought(&garbage, "a").await;
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        world.lose_the_outbox().await;
        world.redis(&["DEL", &keys.ledger(0, &wrong)]).await;
        world.redis(&["SET", &keys.ledger(0, &wrong), "not a hash"]).await;
        world.redis(&["HSET", &keys.ledger(0, &garbage), &harmed.to_string(), "what is this"]).await;
        world.redis(&["SET", &keys.relay_dlq(0), "not a stream"]).await;
        world
            .sql("CREATE TRIGGER refuse BEFORE INSERT ON orders FOR EACH ROW IF NEW.user_id = 'alice' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF")
            .await;
        world.start_roles(&[Api, Reconcile]).await;
        eventually("bob's order", async || world.status_of(&sale, "bob", bob).await.0 == "CONFIRMED").await;
        assert_eq!(world.status_of(&sale, "alice", alice).await.0, "QUEUED");
        let found = format!("code = 'LEDGER_DAMAGED' AND sale_id = '{garbage}' AND request_id = {harmed}");
        // A finding that stands has a row again every ten intervals, so a slow machine may see several.
        eventually("the damaged record", async || world.rows("audit_findings", &found).await >= 1).await;
        // It stands in every further round, although nothing of this sale changes.
        time_passes(2_500).await;
        // The record is unreadable, and the ledger has one request less than were accepted.
        let standing = r#"seckill_p5_reconcile_findings_count{sale="b-garbage",finding="LEDGER_DAMAGED"} 2"#;
        let metrics = seckill::telemetry::render();
        assert!(metrics.lines().any(|line| line == standing), "the damage is forgotten");
        world.sql("DROP TRIGGER refuse").await;
        eventually("alice's order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        assert!(world.audit(&sale, Window::Now).await.consistent());
        world.stop_roles().await;
    });
}

#[test]
fn what_is_persisted_during_the_audit_counts_as_a_false_alarm() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("behind", 10, Some(1)).await;
        let id = world.bought(&sale, "alice").await;
        let accepted: OrderMessage = world.accepted(&sale, id).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(audit.findings.first().map(|finding| finding.kind), Some(FindingKind::Leak));
        world.servers.rows.persister.persist_one(&accepted, PersistSource::Relay).await.unwrap();
        let begins = "seckill_p5_reconcile_false_alarms_total{sale=\"behind\"} 1";
        assert_eq!(compensate(&world.reconcile_context(), &audit).await.unwrap(), 0, "decided by somebody else");
        assert!(seckill::telemetry::render().lines().any(|line| line == begins));
        world.lose_the_outbox().await;
        world.finish().await;
    });
}
