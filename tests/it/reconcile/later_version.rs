//! A message of a later version that no process here can read ends with its request, and only with it.

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::policy::Quantity;
use seckill::p5_reconcile::dlq::{MqDlqCleanup, MqDlqContents, clean_mq_dlq};
use seckill::roles::Role::{Api, Reconcile};
use seckill::store::mysql::codes::PersistSource;
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
        world.servers.rows.persister.persist_one(&other, PersistSource::Relay).await.unwrap();
        let (of_alice, of_bob) =
            (envelope_of_tomorrow(&world, &sale, alice).await, envelope_of_tomorrow(&world, &sale, bob).await);
        world
            .park_in_mq([
                (alice.to_string(), of_alice.clone(), "UNKNOWN_VERSION"),
                (bob.to_string(), of_bob, "UNKNOWN_VERSION"),
                ("x".to_owned(), of_alice, "UNKNOWN_VERSION"),
            ])
            .await;
        let context = world.reconcile_context();
        let first = clean_mq_dlq(&context, &mut HashSet::new(), &mut MqDlqContents::default()).await.unwrap();
        let noted = MqDlqCleanup { seen_count: 3, removed_count: 0, noted_count: 1, foreign_count: 2, unseen_count: 0 };
        assert_eq!(first, noted);
        let row = format!("request_id = {alice} AND status = 'open' AND reason = 'UNKNOWN_VERSION'");
        assert_eq!(world.rows("failed_request", &row).await, 1);

        world
            .servers
            .rows
            .persister
            .persist_one(&world.accepted(&sale, alice).await, PersistSource::Compensation)
            .await
            .unwrap();
        let then = clean_mq_dlq(&context, &mut HashSet::new(), &mut MqDlqContents::default()).await.unwrap();
        let removed =
            MqDlqCleanup { seen_count: 3, removed_count: 1, noted_count: 0, foreign_count: 2, unseen_count: 0 };
        assert_eq!(then, removed, "its request is decided, as the ledger has it");

        // In the relay's DLQ too, with P5 at work: persisted from the ledger, the entry goes, its bytes are in the register.
        let (id, body) = (carol.to_string(), envelope_of_tomorrow(&world, &sale, carol).await);
        let (body, relay_dlq) = (String::from_utf8(body).unwrap(), world.servers.redis.keys.relay_dlq(0));
        let fields = ["reason", "nack", "attempts", "10", "parked_at_ms", "1", "s", sale.as_str()];
        let entry = [&["XADD", &relay_dlq, "*", "entry", "1-1"][..], &fields, &["r", &id, "p", &body]].concat();
        world.redis(&entry).await;
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        eventually("carol's order", async || world.status_of(&sale, "carol", carol).await.0 == "CONFIRMED").await;
        eventually("an empty relay DLQ", async || world.redis(&["XLEN", &relay_dlq]).await == 0).await;
        let kept = format!("request_id = {carol} AND reason = 'ATTEMPTS_SPENT' AND payload LIKE '%\"v\":2%'");
        eventually("a row", async || world.rows("failed_request", &kept).await == 1).await;
        reconcile.stop().await;
        world.stop().await;
    });
}
