//! What buyers own by `purchases` against their orders, in sales with a cumulative limit.

use crate::support::basics::time::eventually;
use crate::support::world::{World, run};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn a_purchase_that_was_changed_by_hand_is_a_finding_with_the_buyers_name() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &["p5_reconcile.interval_ms=100"]).await;
        let (sale, other) = (world.sale("owned", 20, Some(3)).await, world.sale("other", 20, Some(3)).await);
        for user in ["alice", "bob"] {
            assert_eq!(world.buy(&sale, user, 2, None).await.status, 202);
            assert_eq!(world.buy(&other, user, 2, None).await.status, 202);
        }
        assert!(world.settled(&sale).await.consistent() && world.settled(&other).await.consistent());
        world.sql("UPDATE purchases SET quantity = 1 WHERE sale_id = 'owned' AND user_id = 'bob'").await;
        let said = world.cli(&["audit", "--now"]).exits(2).out;
        assert!(said.contains("3 against 4 in sale owned: buyer bob 1 against 2"), "{said}");
        assert!(!said.contains("alice"), "{said}");
        assert!(world.audit(&other, Window::Now).await.consistent());
        // A leader finds it, too, and says so for as long as it is so.
        world.start_roles(&[Reconcile]).await;
        eventually("a finding", async || {
            world.rows("audit_findings", "code = 'UNBALANCED' AND detail LIKE '%buyer bob 1 against 2%'").await > 1
        })
        .await;
        world.stop_roles().await;
        // A buyer who is in one of the tables only.
        world.sql("DELETE FROM purchases WHERE sale_id = 'owned'").await;
        let said = world.cli(&["audit", "--now"]).exits(2).out;
        assert!(said.contains("buyer alice 0 against 2, buyer bob 0 against 2"), "{said}");
        world
            .sql("INSERT INTO purchases (sale_id, user_id, quantity) SELECT sale_id, user_id, quantity FROM orders WHERE sale_id = 'owned'")
            .await;
        world.cli(&["audit", "--now"]).exits(0);
        world.finish().await;
    });
}
