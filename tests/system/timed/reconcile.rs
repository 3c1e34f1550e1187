//! Group D, E9: settled ledger records are forgotten after their time, the books still balance, and a closed sale leaves
//! nothing in Redis.

use super::world::{World, eventually, run};
use seckill::p5_reconcile::Window;
use seckill::roles::Role;

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
        let left = async || redis.ledger_page(&sale, 0, "0", 100).await.unwrap().records.len();
        assert_eq!(left().await, 3, "they are kept for their time");
        eventually("the records are forgotten", async || left().await == 0).await;
        let trimmed = redis.shard_count(&sale, 0).await.unwrap().unwrap().trimmed;
        assert_eq!((trimmed.count, trimmed.ordered, trimmed.failed), (3, 3, 0));
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.accepted == 3, "the sums still hold: {audit:#?}");
        assert_eq!(world.buy(&sale, "alice", 1, None).await.code(), "P2-R1", "her purchase is not forgotten");

        world.warmer().close(&sale).await.unwrap();
        eventually("the closed sale's keys are gone", async || redis.meta(&sale, 0).await.unwrap().is_none()).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.consistent() && audit.counted.ordered == 3, "the database has it all: {audit:#?}");
        world.finish().await;
    });
}
