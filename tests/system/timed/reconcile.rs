//! What the audit and the reconciler must do while a request is young, or before it is trimmed.

use crate::support::world::audits::{kinds, ledger_state, lose_the_outbox};
use crate::support::world::{World, eventually, run};
use seckill::domain::ledger::LedgerState;
use seckill::p5_reconcile::{FindingKind, Window, audit_sale};
use seckill::roles::Role;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use std::time::{Duration, Instant};

#[test]
fn audit_and_order_show_report_the_truth_by_exit_code_and_json() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("shown", 10, Some(1)).await;
        let id = world.bought(&sale, "alice").await.to_string();
        let shown = world.cli(&["order", "show", &id, "--json"]).exits(0).json();
        assert_eq!(shown["status"], "QUEUED", "{shown:#}");
        assert!(shown["outbox_entry"].is_string(), "{shown:#}");
        world.cli(&["order", "show", "4711"]).exits(1);
        world.cli(&["order", "show", "not-a-number"]).exits(64);

        // Young: on its way. With the window waived: lost, and every way of asking says so.
        world.cli(&["audit"]).exits(0);
        world.cli(&["audit", "--sale", "shown"]).exits(0);
        let now = world.cli(&["audit", "--now", "--json"]).exits(2).json();
        assert_eq!((&now["consistent"], &now["sales"][0]["counted"]["leaked"]), (&false.into(), &1.into()), "{now:#}");
        assert_eq!(now["sales"][0]["findings"][0]["request_id"], id.as_str(), "{now:#}");
        let table = world.cli(&["audit", "--now"]).exits(2).out;
        assert!(table.contains(&format!("shown P5-RC1: request {id}: accepted")), "{table}");
        let none = world.cli(&["audit", "--sale", "nobody"]).exits(1);
        assert!(none.err.contains("seckill sale list"), "{none:?}");

        let more = world.extra_roles(&[Relay, Consumer], |_| {});
        eventually("the order", async || world.orders(&sale).await == 1).await;
        eventually("the mark", async || {
            world.cli(&["order", "show", &id, "--json"]).exits(0).json()["ledger"]["state"] != "Q"
        })
        .await;
        let shown = world.cli(&["order", "show", &id, "--json"]).exits(0).json();
        assert_eq!((&shown["status"], &shown["order"]["source"]), (&"CONFIRMED".into(), &"relay".into()), "{shown:#}");
        assert!(world.cli(&["order", "show", &id]).exits(0).out.contains("CONFIRMED"));
        world.cli(&["audit", "--now"]).exits(0);

        // Closed for good; what was accepted is persisted.
        world.cli(&["sale", "close", "shown"]).exits(0);
        assert_eq!(world.rows("sales", "status = 'closed'").await, 1);
        eventually("buyers see it", async || world.buy(&sale, "bob", 1, None).await.status == 410).await;
        for refused in [["sale", "top-up", "shown", "1"], ["sale", "reclaim", "shown", "--"]] {
            let said = world.cli(&refused[..3 + usize::from(refused[1] == "top-up")]);
            assert!(said.code == Some(1) && said.err.contains("closed"), "{said:?}");
        }
        more.stop().await;
        let sale = world.servers.rows.sales.get(&sale).await.unwrap().unwrap();
        assert!(audit_sale(&world.reconcile_context(), &sale, Window::Now).await.unwrap().consistent());
        world.finish().await;
    });
}

#[test]
fn a_leak_is_found_and_persisted_or_recorded_for_good() {
    run(async {
        let world = World::with(&[Api, Consumer], &[]).await;
        let sale = world.sale("leak", 100, Some(1)).await;
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        // Bob has bought elsewhere meanwhile: his request can never become an order.
        world.foreign_order(&sale, "bob", 7).await;
        lose_the_outbox(&world).await;
        let accepted = Instant::now();

        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!(kinds(&audit), [FindingKind::Leak], "{audit:#?}");
        let mut found: Vec<_> = audit.findings.iter().filter_map(|finding| finding.request_id).collect();
        found.sort_unstable();
        assert_eq!((found, audit.counted.leaked), (vec![alice, bob], 2));
        assert!(!audit.consistent());
        let audit = world.audit(&sale, Window::Ms(5_000)).await;
        assert!(audit.consistent() && audit.counted.in_flight == 2, "young requests are on their way: {audit:#?}");

        let relay = world.extra_roles(&[Relay], |_| {});
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        eventually("alice's order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        assert!(accepted.elapsed() > Duration::from_secs(4), "not before the window: {:?}", accepted.elapsed());
        eventually("bob's failure", async || world.status_of(&sale, "bob", bob).await.0 == "FAILED").await;
        assert_eq!(world.status_of(&sale, "bob", bob).await.1, "DUPLICATE_BUYER");
        let story = world.servers.rows.requests.records_of(alice).await.unwrap();
        assert_eq!(story.order.unwrap().source, "compensation");
        let story = world.servers.rows.requests.records_of(bob).await.unwrap();
        assert!(story.order.is_none() && story.failure.is_some_and(|row| row.status.code() == "failed_final"));
        eventually("the finding in the database", async || {
            world.rows("audit_findings", &format!("code = 'P5-RC1' AND request_id = {alice}")).await > 0
        })
        .await;
        reconcile.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn marks_that_the_consumer_missed_are_made_up_for() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("marks", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        eventually("the order", async || world.status_of(&sale, "alice", alice).await.0 == "CONFIRMED").await;
        let ledger = world.servers.redis.keys.ledger(0, &sale);
        let record = world.redis(&["HGET", &ledger, &alice.to_string()]).await;
        let queued = record.as_str().unwrap().replacen('C', "Q", 1);
        world.redis(&["HSET", &ledger, &alice.to_string(), &queued]).await;
        // What buyers were answered is remembered by the process that answered; the ledger is what counts here.
        eventually("the mark", async || ledger_state(&world, &sale, alice).await == LedgerState::Confirmed).await;
        assert_eq!(world.orders(&sale).await, 1);
        world.finish().await;
    });
}

#[test]
fn settled_records_go_after_their_time_and_a_closed_sale_leaves_nothing() {
    run(async {
        let set = ["p1_entry.token_ttl_s=1", "p5_reconcile.ledger_retention_s=6", "p5_reconcile.interval_ms=200"];
        let world = World::with(&Role::ALL, &set).await;
        let sale = world.sale("trimmed", 10, Some(1)).await;
        let redis = &world.servers.redis;
        for user in ["alice", "bob", "carol"] {
            let answer = world.buy(&sale, user, 1, None).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            let status = world.status(&sale, user, &answer.text("request_id"), 20).await;
            assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
        }
        let left = async || redis.ledger.page(&sale, 0, "0", 100).await.unwrap().records.len();
        assert_eq!(left().await, 3, "they are kept for their time");
        eventually("the records are forgotten", async || left().await == 0).await;
        let trimmed = redis.sale_keys.count(&sale, 0).await.unwrap().unwrap().trimmed;
        assert_eq!((trimmed.count, trimmed.ordered, trimmed.failed), (3, 3, 0));
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.accepted == 3, "the sums still hold: {audit:#?}");
        assert_eq!(world.buy(&sale, "alice", 1, None).await.code(), "P2-R1", "her purchase is not forgotten");

        world.sale_control().close(&sale).await.unwrap();
        eventually("the closed sale's keys are gone", async || redis.sale_keys.meta(&sale, 0).await.unwrap().is_none())
            .await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.ordered == 3, "the database has it all: {audit:#?}");
        world.finish().await;
    });
}
