//! P5 keeps the MQ DLQ small. What is decided goes, what is not is noted, unknown ones stay for a person; and an audit
//! that could not read everything says so.

use crate::support::world::{World, eventually, run};
use seckill::domain::message;
use seckill::domain::policy::Quantity;
use seckill::p5_reconcile::dlq::{MqDlqCleanup, MqDlqContents, clean_mq_dlq};
use seckill::p5_reconcile::{FindingKind, ReconcileContext, Window, audit_sale, compensate};
use seckill::roles::Role::Api;
use seckill::store::mysql::codes::PersistSource;
use seckill::store::rabbit::{DlqReader, declare};
use std::collections::HashSet;

#[test]
fn decided_messages_go_undecided_ones_are_noted_and_unknown_ones_stay() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("tidy", 100, Some(1)).await;
        declare(&world.servers.rabbit).await.unwrap();
        let (ordered, forged) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        let (open, damaged) = (world.bought(&sale, "carol").await, world.bought(&sale, "dave").await);
        world.lose_the_outbox().await;
        for id in [ordered, forged] {
            let accepted = world.accepted(&sale, id).await;
            world.servers.rows.persister.persist_one(&accepted, PersistSource::Relay).await.unwrap();
        }
        for id in [ordered, open, ordered] {
            world.park_request_in_mq(&sale, id).await;
        }
        let mut other = world.accepted(&sale, forged).await;
        other.purchase.quantity = Quantity::new(2).unwrap();
        let other = message::encode(&other);
        world
            .park_in_mq([
                (forged.to_string(), other.clone().into_bytes(), "CONFLICT"),
                (damaged.to_string(), b"half a message".to_vec(), "UNDECODABLE"),
                ("x".to_owned(), b"noise".to_vec(), "UNDECODABLE"),
            ])
            .await;

        // A process that dies while it reads the queue leaves everything there.
        let mut reader = DlqReader::connect(&world.servers.rabbit).await.unwrap();
        assert!(reader.next().await.unwrap().is_some_and(|first| first.behind_count == 5));
        drop(reader);
        eventually("it is back", async || world.mq_dlq().await.len() == 6).await;

        let context = world.reconcile_context();
        let mut noted = HashSet::new();
        let first = clean_mq_dlq(&context, &mut noted, &mut MqDlqContents::default()).await.unwrap();
        let expected =
            MqDlqCleanup { seen_count: 6, removed_count: 2, noted_count: 2, foreign_count: 3, unseen_count: 0 };
        assert_eq!(first, expected);
        let open_body = message::encode(&world.accepted(&sale, open).await);
        let mut left = vec![open_body, other, "half a message".to_owned(), "noise".to_owned()];
        left.sort();
        assert_eq!(world.mq_dlq().await, left);
        for (id, reason) in [(open, "ATTEMPTS_SPENT"), (damaged, "UNDECODABLE")] {
            let row = format!("request_id = {id} AND source = 'mq_dlq' AND status = 'open' AND reason = '{reason}'");
            assert_eq!(world.rows("failed_request", &row).await, 1);
        }
        assert_eq!(world.rows("failed_request", "TRUE").await, 2);
        // Another process, which does not know what was noted, changes nothing more.
        let again = clean_mq_dlq(&context, &mut HashSet::new(), &mut MqDlqContents::default()).await.unwrap();
        let quiet = MqDlqCleanup { seen_count: 4, removed_count: 0, noted_count: 0, foreign_count: 3, unseen_count: 0 };
        assert_eq!(again, quiet);
        let audit = world.audit(&sale, Window::Now).await;
        assert_eq!((audit.counted.parked, audit.counted.leaked), (2, 0), "{audit:#?}");

        // With the reconciler at work: persisted from the ledger, the message goes, the rows are closed, unknown ones stay.
        let reconcile = world.busy_reconciler(&[]);
        eventually("carol's order", async || world.status_of(&sale, "carol", open).await.0 == "CONFIRMED").await;
        eventually("her message is gone", async || world.mq_dlq().await.len() == 3).await;
        eventually("closed rows", async || world.rows("failed_request", "status = 'resolved'").await == 2).await;
        for (source, left) in [("mq", 3.0), ("relay", 0.0)] {
            let gauge = format!("seckill_p5_reconcile_dlq_count{{source=\"{source}\"}}");
            eventually(&gauge, async || reconcile.metric(&gauge).await == Some(left)).await;
        }
        drop(reconcile);
        world.finish().await;
    });
}

#[test]
fn an_audit_that_could_not_see_the_whole_mq_dlq_says_so() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("many", 100, Some(1)).await;
        declare(&world.servers.rabbit).await.unwrap();
        let alice = world.bought(&sale, "alice").await;
        world.lose_the_outbox().await;
        let few = ReconcileContext { mq_dlq_max: 20, ..world.reconcile_context() };
        let noise = (0..60).map(|n| (format!("n{n}"), b"noise".to_vec(), "UNDECODABLE"));
        world.park_in_mq(noise).await;
        world.park_request_in_mq(&sale, alice).await;
        let row = world.servers.rows.sales.get(&sale).await.unwrap().expect("the sale");
        let audit = audit_sale(&few, &row, Window::Now).await.unwrap();
        assert_eq!(audit.mq_dlq_unseen_count, 41, "{audit:#?}");
        assert_eq!((audit.findings.len(), audit.findings[0].kind), (1, FindingKind::Leak), "{audit:#?}");
        assert!(audit.findings[0].detail.contains("41 messages of the MQ DLQ were not read"), "{audit:#?}");
        // P5 notes what it meets in the register, and from then on it is found however many entries are before it.
        // A reading ends after two seconds, whatever it has seen by then.
        eventually("it is noted", async || {
            let mut contents = MqDlqContents::default();
            let cleaned = clean_mq_dlq(&world.reconcile_context(), &mut HashSet::new(), &mut contents).await.unwrap();
            cleaned.noted_count == 1
        })
        .await;
        let audit = audit_sale(&few, &row, Window::Now).await.unwrap();
        assert_eq!((audit.counted.parked, audit.counted.leaked), (1, 0), "{audit:#?}");
        compensate(&few, &audit).await.unwrap();
        world.finish().await;
    });
}
